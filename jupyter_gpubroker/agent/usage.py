"""Did the holder of a slot use the device in the window: what the counters allow to say, and None for the rest."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.events import ProcessOnSlot, ProcessOwner
from ..devices.reader import SlotReading


def is_busy(
    reading: SlotReading, processes: Sequence[ProcessOnSlot] | None, holder_ids: frozenset[str]
) -> bool | None:
    """The holder's own use where the device tells processes apart, else anybody's.

    A holder without a process on the slot does not use it, whatever the counters say: a display or another tenant may.
    """
    device = _has_use(reading.utilisation_percent)
    if processes is None or not holder_ids:
        return device
    own_pids = {process.pid for process in processes if process.holder_id in holder_ids}
    if not own_pids:
        return False if _all_told(processes) else device
    entries = reading.processes or ()
    own = _any([_has_use(entry.utilisation_percent) for entry in entries if entry.pid in own_pids])
    is_alone = all(entry.pid in own_pids for entry in entries)
    # Alone on the slot, the device's counter covers the whole window best.
    first, second = (device, own) if is_alone else (own, device)
    return second if first is None else first


def _all_told(processes: Sequence[ProcessOnSlot]) -> bool:
    return all(process.owned_by is not ProcessOwner.UNMAPPED for process in processes)


def _has_use(percent: int | None) -> bool | None:
    return None if percent is None else percent > 0


def _any(uses: Sequence[bool | None]) -> bool | None:
    return True if True in uses else None if None in uses else False
