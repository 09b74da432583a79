"""Did the holder of a slot use the device in the window: what the counters allow to say, and None for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..core.events import ProcessOnSlot, ProcessOwner
from ..devices.reader import SlotReading


@dataclass(frozen=True, slots=True)
class Use:
    """`source` names what `busy` was read from, `window_ms` the time it speaks of; both None where nothing was."""

    busy: bool | None
    source: str | None = None
    window_ms: int | None = None


def use_of(
    reading: SlotReading, processes: Sequence[ProcessOnSlot] | None, holder_ids: frozenset[str]
) -> Use:
    """The holder's own use where the device tells processes apart, else anybody's.

    A holder that is not among the processes on the slot does not use it, whatever the counters say: another tenant may. A list
    without any process proves nothing while they count: who draws is not on it, nor are others in a container.
    """
    if processes is None or not holder_ids:
        return _device(reading, "device")
    own = [process for process in processes if process.holder_id in holder_ids]
    if not own:
        is_told = processes and _all_told(processes)
        return Use(False, "nobody") if is_told else _device(reading, "device")
    is_alone = len(own) == len(processes)
    uses = [process.computes for process in own]
    busy = True if True in uses else None if None in uses else False
    share = Use(busy, None if busy is None else "utilisation", reading.window_ms)
    device = _device(reading, "utilisation" if is_alone else "device")
    if device.busy and not is_alone and _are_all_zero(reading, processes):
        return Use(None)
    # Alone on the slot, the device's counters cover the whole window best.
    first, second = (device, share) if is_alone else (share, device)
    return second if first.busy is None else first


def _device(reading: SlotReading, name: str) -> Use:
    """Anybody's use, by the engines' own counters and by the driver's."""
    engines = [reading.engine_percent, reading.sm_percent]
    known = [percent for percent in (*engines, reading.utilisation_percent) if percent is not None]
    if not known:
        return Use(None)
    has_engines = any(percent is not None for percent in engines)
    return Use(any(known), "engines" if has_engines else name, reading.window_ms)


def _are_all_zero(reading: SlotReading, processes: Sequence[ProcessOnSlot]) -> bool:
    """Nobody did what the device counted: then the processes have no samples of their own, and their zeros say nothing."""
    listed = any(process.utilisation_percent for process in reading.processes or ())
    return not listed and all(process.computes is False for process in processes)


def _all_told(processes: Sequence[ProcessOnSlot]) -> bool:
    return all(process.owned_by is not ProcessOwner.UNMAPPED for process in processes)
