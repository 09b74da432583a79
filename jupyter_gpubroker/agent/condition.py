"""What is new about the condition of the GPUs: errors since the last reading, and what the driver asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..core.events import GpuFault, GpuSeen
from ..core.model import GpuId, SlotId
from ..devices.reader import GpuReading, Inventory


class Condition:
    """Remembers what was told, so that only news is."""

    def __init__(self) -> None:
        self._told: dict[str, str | None] = {}
        self._errors: dict[str, int] = {}

    def news(self, readings: Sequence[GpuReading], inventory: Inventory) -> tuple[GpuSeen, ...]:
        """The GPUs with a new error or another recovery action than before; at first all."""
        found = []
        for reading in readings:
            faults = (*_xids(reading, inventory), *self._counted(reading))
            is_told = self._told.get(reading.uuid, _NEVER) == reading.recovery_action
            if faults or not is_told:
                self._told[reading.uuid] = reading.recovery_action
                found.append(GpuSeen(GpuId(reading.uuid), reading.recovery_action, faults))
        return tuple(found)

    def _counted(self, reading: GpuReading) -> Iterator[GpuFault]:
        """Uncorrectable memory errors; of those counted before the first look nobody knows when they were."""
        count = reading.ecc_uncorrected
        if count is None:
            return
        if count > self._errors.get(reading.uuid, count):
            yield GpuFault("ecc", count)
        self._errors[reading.uuid] = count


_NEVER = "never told"


def power_above_idle_mw(readings: Sequence[GpuReading], inventory: Inventory) -> dict[SlotId, int]:
    """By slot that is a whole GPU: power is measured for the board, which tells nothing of a slice."""
    above = {
        reading.uuid: max(0, reading.power_mw - reading.power_idle_mw)
        for reading in readings
        if reading.power_mw is not None and reading.power_idle_mw is not None
    }
    return {
        SlotId(slot.uuid): above[gpu.uuid]
        for gpu in inventory.gpus
        for slot in gpu.slots
        if slot.kind == "gpu" and gpu.uuid in above
    }


def _xids(reading: GpuReading, inventory: Inventory) -> Iterator[GpuFault]:
    slots = {
        slot.gi_id: SlotId(slot.uuid)
        for gpu in inventory.gpus
        for slot in gpu.slots
        if gpu.uuid == reading.uuid and slot.gi_id is not None
    }
    for xid in reading.xids:
        slot_id = None if xid.gi_id is None else slots.get(xid.gi_id)
        yield GpuFault("xid", xid.code, slot_id)
