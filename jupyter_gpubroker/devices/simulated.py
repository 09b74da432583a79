"""The reader of simulated GPUs: real processes, real times, devices that are files (`simulated_state`).

What can be known of a device is what its model would tell (`simulated_devices`): a MIG instance has no counter of the
driver's. What is wrong with one is in `simulated_faults`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from .reader import (
    GPU_SIGNALS,
    SLOT_SIGNALS,
    Availability,
    Capability,
    GpuFound,
    GpuReading,
    GpuState,
    Inventory,
    Missing,
    ProcessReading,
    Signal,
    SlotFound,
    SlotReading,
    available,
)
from .simulated_devices import devices_of
from .simulated_faults import NO_FAULTS, read_faults
from .simulated_state import Context, StateFolder, now_ms, write_atomically

IDLE_POWER_MW = 70_000
POWER_MW_PER_PERCENT = 5_000
IDLE_TEMPERATURE_C = 30
PERCENTS_PER_DEGREE = 2


class SimulatedReader:
    """Creates the folder if need be. Raises `SpecError` for a spec that describes no GPUs."""

    def __init__(self, spec: str, folder: Path) -> None:
        self._folder = StateFolder(folder)
        devices = devices_of(spec, folder)
        self._inventory, self._signals = devices.inventory, devices.signals
        self._actions = devices.recovery_actions
        self._slots = {slot.uuid: (gpu, slot) for gpu in self._inventory.gpus for slot in gpu.slots}
        self._folder.create()
        for slot_uuid in self._slots:
            (folder / slot_uuid).mkdir(mode=0o700, exist_ok=True)
        write_atomically(self._folder.devices, msgspec.json.encode(self._inventory))
        self._faults = NO_FAULTS
        self._last_xid = read_faults(folder).last_number
        opened_ms = now_ms()
        self._last_ms = dict.fromkeys(self._slots, opened_ms)
        self._last_busy_ms: dict[str, dict[str, int]] = {slot_uuid: {} for slot_uuid in self._slots}
        self._last_use: dict[str, int | None] = {}

    def inventory(self) -> Inventory:
        self._faults = read_faults(self._folder.path)
        return replace(self._inventory, gpus=tuple(map(self._found, self._inventory.gpus)))

    def observe(self, slot_uuids: Sequence[str] | None = None) -> tuple[SlotReading, ...]:
        self._folder.sweep()
        self._faults = read_faults(self._folder.path)
        wanted = self._slots if slot_uuids is None else slot_uuids
        return tuple(self._observe(slot_uuid) for slot_uuid in wanted)

    def health(self) -> tuple[GpuReading, ...]:
        self._faults = read_faults(self._folder.path)
        readings = tuple(self._health(gpu) for gpu in self._inventory.gpus)
        self._last_xid = max(self._last_xid, self._faults.last_number)
        return readings

    def capabilities(self) -> tuple[Capability, ...]:
        self._faults = read_faults(self._folder.path)
        found: list[Capability] = []
        for gpu in map(self._found, self._inventory.gpus):
            missing = self._missing(gpu.uuid, GPU_SIGNALS)
            found.append(Capability(gpu.uuid, available(GPU_SIGNALS, missing), None, gpu.problems))
            found.extend(
                Capability(
                    gpu.uuid,
                    available(SLOT_SIGNALS, self._missing(slot.uuid, SLOT_SIGNALS)),
                    slot.uuid,
                )
                for slot in gpu.slots
            )
        return tuple(found)

    def close(self) -> None:
        """Nothing is held open."""

    # --- slots --------------------------------------------------------------------------------------------------------

    def _observe(self, slot_uuid: str) -> SlotReading:
        gpu, slot = self._slots.get(slot_uuid, (None, None))
        if gpu is None or slot is None or slot_uuid in self._faults.gone:
            return _unread(slot_uuid, "NotFound")
        self._faults.wait_if_hanging(slot_uuid)
        if self._state(gpu) == "lost":
            return _unread(slot_uuid, "GpuIsLost")
        missing = self._missing(slot_uuid, SLOT_SIGNALS)
        contexts = self._folder.contexts(slot_uuid)
        window_ms, used = self._use(slot, contexts)
        total = _sum_percent(list(used.values()))
        if total is None:
            for signal in ("utilisation", "process_utilisation", "engines"):
                missing.setdefault(signal, "first_sample")
        self._last_use[slot_uuid] = total
        engines = None if "engines" in missing else total
        has_use = "utilisation" not in missing or "engines" not in missing
        return SlotReading(
            slot_uuid,
            memory_used_mib=None
            if "memory" in missing
            else sum(context.memory_mib for context in contexts),
            utilisation_percent=None if "utilisation" in missing else total,
            processes=None
            if "processes" in missing
            else tuple(
                ProcessReading(
                    context.pid,
                    "compute",
                    context.memory_mib,
                    None if "process_utilisation" in missing else used[context.name],
                )
                for context in contexts
            ),
            engine_percent=engines,
            sm_percent=engines,
            dram_percent=engines,
            window_ms=window_ms if has_use else None,
            sample_age_ms=0 if has_use else None,
            missing=missing,
        )

    def _use(
        self, slot: SlotFound, contexts: Sequence[Context]
    ) -> tuple[int, dict[str, int | None]]:
        """The window, and by process the part of it in which its work ran; unknown if its start was not seen."""
        moment_ms, start_ms = now_ms(), self._last_ms[slot.uuid]
        before_ms = self._last_busy_ms[slot.uuid]
        busy_ms = {context.name: context.busy_until(moment_ms) for context in contexts}
        before_ms |= {context.name: 0 for context in contexts if context.created_ms >= start_ms}
        self._last_ms[slot.uuid], self._last_busy_ms[slot.uuid] = moment_ms, busy_ms
        window_ms = max(1, moment_ms - start_ms)
        return window_ms, {
            name: _percent(total_ms - before_ms[name], window_ms) if name in before_ms else None
            for name, total_ms in busy_ms.items()
        }

    # --- GPUs ---------------------------------------------------------------------------------------------------------

    def _found(self, gpu: GpuFound) -> GpuFound:
        state = self._state(gpu)
        if state != "ok":
            return replace(gpu, state=state, slots=())
        gone = self._faults.gone
        return replace(gpu, slots=tuple(slot for slot in gpu.slots if slot.uuid not in gone))

    def _state(self, gpu: GpuFound) -> GpuState:
        return self._faults.states.get(gpu.uuid, gpu.state)

    def _action(self, gpu: GpuFound) -> str:
        asked = self._actions.get(gpu.uuid, "none")
        return self._faults.recovery_actions.get(gpu.uuid, asked)

    def _health(self, gpu: GpuFound) -> GpuReading:
        self._faults.wait_if_hanging(gpu.uuid)
        state = self._state(gpu)
        missing = self._missing(gpu.uuid, GPU_SIGNALS)
        missing.pop("accounting", None)
        if state != "ok":
            return GpuReading(gpu.uuid, state, missing=missing)
        percent = max((self._last_use.get(slot.uuid) or 0 for slot in gpu.slots), default=0)
        power_mw = IDLE_POWER_MW + POWER_MW_PER_PERCENT * percent
        return GpuReading(
            gpu.uuid,
            state,
            power_mw=None if "power" in missing else power_mw,
            power_idle_mw=None if "power" in missing else IDLE_POWER_MW,
            temperature_c=None
            if "temperature" in missing
            else IDLE_TEMPERATURE_C + percent // PERCENTS_PER_DEGREE,
            ecc_uncorrected=None if "ecc" in missing else 0,
            recovery_action=None if "recovery_action" in missing else self._action(gpu),
            xids=() if "faults" in missing else self._faults.reported_to(gpu.uuid, self._last_xid),
            missing=missing,
        )

    def _missing(self, device: str, signals: Sequence[Signal]) -> dict[Signal, Missing]:
        """What the device does not tell: by what it is, and by what is wrong with it."""
        kept = self._signals.get(device, {})
        missing = {
            signal: _lasting(kept[signal]) for signal in signals if kept.get(signal, "ok") != "ok"
        }
        wrong = self._faults.signals.get(device, {})
        missing.update((signal, why) for signal, why in wrong.items() if signal in signals)
        gpu = next((gpu for gpu in self._inventory.gpus if gpu.uuid == device), None)
        if gpu is not None and self._state(gpu) != "ok":
            why: Missing = "no_permission" if self._state(gpu) == "no_permission" else "failed"
            missing = dict.fromkeys(signals, why)
        return missing


def _unread(slot_uuid: str, error: str) -> SlotReading:
    missing: dict[Signal, Missing] = dict.fromkeys(SLOT_SIGNALS, "failed")
    return SlotReading(slot_uuid, problems=(f"simulated: {error}",), missing=missing)


def _lasting(availability: Availability) -> Missing:
    assert availability != "ok"
    return availability


def _percent(busy_ms: int, window_ms: int) -> int:
    """Rounded up: work that was seen is never 0."""
    return max(0, min(100, -(-100 * busy_ms // window_ms)))


def _sum_percent(parts: Sequence[int | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return None if len(known) < len(parts) else min(100, sum(known))
