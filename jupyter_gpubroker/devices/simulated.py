"""The reader of simulated GPUs: real processes, real times, devices that are files (`simulated_state`).

UUIDs follow from the folder and the position, so a restarted broker finds the same devices. As on real hardware a MIG
instance has no utilisation counter here: it is unknown. Read on in `simulated_spec` for what can be simulated.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path

import msgspec

from .reader import GpuFound, Inventory, ProcessReading, SlotFound, SlotReading
from .simulated_spec import SimulatedGpu, parse_spec
from .simulated_state import Context, StateFolder, now_ms, write_atomically

DRIVER_VERSION = "simulated"


class SimulatedReader:
    """Creates the folder if need be. Raises `SpecError` for a spec that describes no GPUs."""

    def __init__(self, spec: str, folder: Path) -> None:
        self._folder = StateFolder(folder)
        self._inventory = Inventory("simulated", DRIVER_VERSION, _gpus(parse_spec(spec), folder))
        self._slots = {slot.uuid: slot for gpu in self._inventory.gpus for slot in gpu.slots}
        self._folder.create()
        for slot_uuid in self._slots:
            (folder / slot_uuid).mkdir(mode=0o700, exist_ok=True)
        write_atomically(self._folder.devices, msgspec.json.encode(self._inventory))
        opened_ms = now_ms()
        self._last_ms = dict.fromkeys(self._slots, opened_ms)
        self._last_busy_ms: dict[str, dict[str, int]] = {slot_uuid: {} for slot_uuid in self._slots}

    def inventory(self) -> Inventory:
        return self._inventory

    def observe(self, slot_uuids: Sequence[str] | None = None) -> tuple[SlotReading, ...]:
        self._folder.sweep()
        wanted = self._slots if slot_uuids is None else slot_uuids
        return tuple(self._observe(slot_uuid) for slot_uuid in wanted)

    def close(self) -> None:
        """Nothing is held open."""

    def _observe(self, slot_uuid: str) -> SlotReading:
        slot = self._slots.get(slot_uuid)
        if slot is None:
            return SlotReading(slot_uuid, problems=("NotFound",))
        contexts = self._folder.contexts(slot_uuid)
        used = self._utilisation(slot, contexts)
        return SlotReading(
            slot_uuid,
            memory_used_mib=sum(context.memory_mib for context in contexts),
            utilisation_percent=_sum_percent(list(used.values())) if slot.kind == "gpu" else None,
            processes=tuple(
                ProcessReading(context.pid, "compute", context.memory_mib, used[context.name])
                for context in contexts
            ),
        )

    def _utilisation(self, slot: SlotFound, contexts: Sequence[Context]) -> dict[str, int | None]:
        """By process, the part of the window in which its work ran; unknown if its start was not seen."""
        moment_ms, start_ms = now_ms(), self._last_ms[slot.uuid]
        before_ms = self._last_busy_ms[slot.uuid]
        busy_ms = {context.name: context.busy_until(moment_ms) for context in contexts}
        before_ms |= {context.name: 0 for context in contexts if context.created_ms >= start_ms}
        self._last_ms[slot.uuid], self._last_busy_ms[slot.uuid] = moment_ms, busy_ms
        if slot.kind == "mig":
            return dict.fromkeys(busy_ms)
        window_ms = max(1, moment_ms - start_ms)
        return {
            name: _percent(total_ms - before_ms[name], window_ms) if name in before_ms else None
            for name, total_ms in busy_ms.items()
        }


def _percent(busy_ms: int, window_ms: int) -> int:
    """Rounded up: work that was seen is never 0."""
    return max(0, min(100, -(-100 * busy_ms // window_ms)))


def _sum_percent(parts: Sequence[int | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return None if len(known) < len(parts) else min(100, sum(known))


def _gpus(specs: Sequence[SimulatedGpu], folder: Path) -> tuple[GpuFound, ...]:
    return tuple(_gpu(spec, index, folder) for index, spec in enumerate(specs))


def _gpu(spec: SimulatedGpu, index: int, folder: Path) -> GpuFound:
    gpu_uuid = f"GPU-{_uuid(folder, str(index))}"
    return GpuFound(
        uuid=gpu_uuid,
        index=index,
        pci_bus_id=f"00000000:{index + 1:02X}:00.0",
        model=spec.model.name,
        memory_mib=spec.model.memory_mib,
        mig_enabled=bool(spec.profiles),
        mig_pending=bool(spec.profiles),
        slots=_instances(spec, index, folder)
        or (SlotFound(gpu_uuid, "gpu", spec.model.memory_mib),),
    )


def _instances(spec: SimulatedGpu, index: int, folder: Path) -> tuple[SlotFound, ...]:
    """Instances are numbered from 1, as the driver does for other than 7g."""
    profiles = spec.model.profiles or {}
    return tuple(
        SlotFound(
            uuid=f"MIG-{_uuid(folder, f'{index}/{number}/{name}')}",
            kind="mig",
            memory_mib=profiles[name].memory_mib,
            profile=name,
            gi_id=number,
            ci_id=0,
        )
        for number, name in enumerate(spec.profiles, 1)
    )


def _uuid(folder: Path, position: str) -> uuid.UUID:
    return uuid.uuid5(uuid.NAMESPACE_URL, f"{folder.resolve().as_uri()}#{position}")
