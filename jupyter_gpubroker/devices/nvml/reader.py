"""What is asked of the library, when, and of which handle.

A failing call costs one number, one slot or one GPU, never the whole reading. MIG handles are looked up by UUID at each
reading: one may belong to another instance after a re-partition (nvml.h).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import monotonic_ns, time_ns
from typing import Any

import pynvml

from ..choice import is_windows_below, nvidia_present
from ..reader import (
    GPU_SIGNALS,
    NO_NVIDIA_DEVICE,
    SLOT_SIGNALS,
    Capability,
    GpuFound,
    GpuReading,
    GpuState,
    Inventory,
    Missing,
    ProcessReading,
    Signal,
    SlotReading,
    available,
)
from .calls import Calls, Handle, Refusals, mib
from .condition import Faults, gpu_reading
from .gpm import Engines, Monitor
from .inventory import UNOPENED, gpu_found
from .processes import processes
from .use import WINDOW_US_MIN, Use, device_use, process_use

# The library of a driver that was replaced under us; only a new process can load the new one.
_REPLACED = "LibRmVersionMismatch"


class NvmlReader:
    """Loads the library at the first inventory, and tries again at each until that works."""

    def __init__(self) -> None:
        self._is_open = False
        self._was_open = False
        # There the counters read 0 and the list is empty whatever runs (microsoft/WSL#7162, dask/distributed#5342).
        self._is_windows_below = is_windows_below()
        self._gpus: dict[str, GpuFound] = {}
        self._slots: tuple[str, ...] = ()
        self._refusals: Refusals = set()
        self._use: dict[str, Use] = {}
        self._monitor = Monitor()
        self._faults = Faults()
        self._is_empty: dict[str, bool] = {}
        self._idle_mw: dict[str, int] = {}

    def inventory(self) -> Inventory:
        calls = Calls()
        if not self._open(calls):
            return Inventory("nvml", None, (), tuple(calls.problems))
        gpus = self._find(calls)
        if all(gpu.uuid.startswith(UNOPENED) for gpu in gpus):
            # Perhaps the driver was unloaded or replaced since: a session does not outlive that.
            self.close()
            calls = Calls()
            if not self._open(calls):
                return Inventory("nvml", None, (), tuple(calls.problems))
            gpus = self._find(calls)
        driver_version = calls.ask(pynvml.nvmlSystemGetDriverVersion)
        self._remember(gpus)
        return Inventory("nvml", driver_version, gpus, tuple(calls.problems))

    def observe(self, slot_uuids: Sequence[str] | None = None) -> tuple[SlotReading, ...]:
        wanted = self._slots if slot_uuids is None else slot_uuids
        return tuple(self._observe(slot_uuid, self._refusals) for slot_uuid in wanted)

    def health(self) -> tuple[GpuReading, ...]:
        reported = self._faults.take()
        return tuple(self._health(gpu, reported, self._refusals) for gpu in self._gpus.values())

    def capabilities(self) -> tuple[Capability, ...]:
        return tuple(
            found for gpu in self._gpus.values() for found in (self._of_gpu(gpu), *self._of(gpu))
        )

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            self._monitor.keep_only(set())
            self._faults.close()
            Calls().ask(pynvml.nvmlShutdown)

    # --- session ------------------------------------------------------------------------------------------------------

    def _open(self, calls: Calls) -> bool:
        if not self._is_open:
            calls.ask(pynvml.nvmlInit)
            self._is_open = not calls.problems
            if self._was_open and any(problem.endswith(_REPLACED) for problem in calls.problems):
                raise SystemExit("the driver was replaced; a new probe loads its library")
            self._was_open |= self._is_open
            if not self._is_open and not nvidia_present():
                calls.problems[:] = [NO_NVIDIA_DEVICE]
        return self._is_open

    @staticmethod
    def _find(calls: Calls) -> tuple[GpuFound, ...]:
        count = calls.ask(pynvml.nvmlDeviceGetCount) or 0
        return tuple(gpu_found(index) for index in range(count))

    def _remember(self, gpus: Sequence[GpuFound]) -> None:
        self._gpus = {gpu.uuid: gpu for gpu in gpus}
        self._slots = tuple(slot.uuid for gpu in gpus for slot in gpu.slots)
        self._refusals.clear()
        self._use = {slot: use for slot, use in self._use.items() if slot in self._slots}
        self._monitor.keep_only(set(self._slots))
        self._faults.listen(
            {
                uuid: handle
                for uuid, gpu in self._gpus.items()
                if gpu.state == "ok"
                and (handle := Calls().ask(pynvml.nvmlDeviceGetHandleByUUID, uuid)) is not None
            }
        )

    # --- slots --------------------------------------------------------------------------------------------------------

    def _observe(self, slot_uuid: str, refusals: Refusals) -> SlotReading:
        calls = Calls(slot_uuid, refusals)
        handle = calls.ask(pynvml.nvmlDeviceGetHandleByUUID, slot_uuid)
        if handle is None:
            self._monitor.forget(slot_uuid)
            missing: dict[Signal, Missing] = dict.fromkeys(SLOT_SIGNALS, "failed")
            return SlotReading(slot_uuid, problems=tuple(calls.problems), missing=missing)
        memory, _ = calls.ask_for("memory", pynvml.nvmlDeviceGetMemoryInfo, handle)
        use, by_process = self._counted(calls, slot_uuid, handle)
        engines = self._monitored(calls, slot_uuid, handle)
        listed = self._listed(calls, handle, by_process)
        if slot_uuid in self._slots:
            self._is_empty[slot_uuid] = listed == ()
        newest = _newest(use, engines)
        return SlotReading(
            slot_uuid,
            memory_used_mib=None if memory is None else mib(memory.used),
            utilisation_percent=None if use is None else use.percent,
            processes=listed,
            problems=tuple(calls.problems),
            engine_percent=None if engines is None else engines.engine,
            sm_percent=None if engines is None else engines.sm,
            dram_percent=None if engines is None else engines.dram,
            window_ms=None if newest is None else newest[0],
            sample_age_ms=None if newest is None else newest[1],
            missing=calls.missing,
        )

    def _listed(
        self, calls: Calls, handle: Handle, by_process: dict[int, int] | None
    ) -> tuple[ProcessReading, ...] | None:
        if self._is_windows_below:
            calls.lack("processes", "not_supported")
            return None
        return processes(calls, handle, by_process)

    def _counted(
        self, calls: Calls, slot_uuid: str, handle: Handle
    ) -> tuple[Use | None, dict[int, int] | None]:
        """The driver's own counters, which do not exist on MIG."""
        if _is_instance(slot_uuid) or self._is_windows_below:
            calls.lack("utilisation", "not_supported")
            calls.lack("process_utilisation", "not_supported")
            return None, None
        now_us = time_ns() // 1000
        last = self._use.get(slot_uuid)
        use = device_use(calls, handle, last, now_us)
        if use is not None:
            self._use[slot_uuid] = use
        begun_us = now_us if last is None else last.newest_us
        since_us = min(begun_us, now_us - WINDOW_US_MIN)
        return use, process_use(calls, handle, since_us)

    def _monitored(self, calls: Calls, slot_uuid: str, handle: Handle) -> Engines | None:
        now_us = monotonic_ns() // 1000
        if not _is_instance(slot_uuid):
            return self._monitor.read(calls, slot_uuid, handle, None, now_us)
        gpu, _ = calls.ask_for(
            "engines", pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle, handle
        )
        gi_id = calls.ask(pynvml.nvmlDeviceGetGpuInstanceId, handle)
        if gpu is None or gi_id is None:
            calls.missing.setdefault("engines", "failed")
            return None
        return self._monitor.read(calls, slot_uuid, gpu, gi_id, now_us)

    # --- GPUs ---------------------------------------------------------------------------------------------------------

    def _health(self, gpu: GpuFound, reported: Mapping[str, Any], refusals: Refusals) -> GpuReading:
        calls = Calls(gpu.uuid, refusals)
        if not self._faults.is_heard(gpu.uuid):
            calls.lack("faults", "not_supported")
        if gpu.uuid.startswith(UNOPENED):
            return GpuReading(gpu.uuid, gpu.state, missing=_all_missing(gpu))
        handle = calls.ask(pynvml.nvmlDeviceGetHandleByUUID, gpu.uuid)
        if handle is None:
            state: GpuState = "lost" if calls.is_lost else "unavailable"
            return GpuReading(gpu.uuid, state, missing=_all_missing(gpu))
        reading = gpu_reading(
            calls, gpu.uuid, handle, reported.get(gpu.uuid, ()), self._idle_mw.get(gpu.uuid)
        )
        self._learn_idle_power(gpu, reading)
        return reading

    def _learn_idle_power(self, gpu: GpuFound, reading: GpuReading) -> None:
        """The least power while nobody is on the board; a GPU that was just left is still warm, hence the least."""
        is_empty = all(self._is_empty.get(slot.uuid, False) for slot in gpu.slots)
        if reading.power_mw is not None and gpu.slots and is_empty:
            known_mw = self._idle_mw.get(gpu.uuid, reading.power_mw)
            self._idle_mw[gpu.uuid] = min(known_mw, reading.power_mw)

    # --- capabilities -------------------------------------------------------------------------------------------------

    def _of_gpu(self, gpu: GpuFound) -> Capability:
        missing = dict(self._health(gpu, {}, set()).missing)
        calls = Calls()
        handle = calls.ask(pynvml.nvmlDeviceGetHandleByUUID, gpu.uuid)
        if handle is not None:
            is_on, _ = calls.ask_for("accounting", pynvml.nvmlDeviceGetAccountingMode, handle)
            if not is_on:
                # Root switches it on, and it is lost when the driver unloads (nvml.h).
                missing["accounting"] = calls.missing.get("accounting", "not_supported")
        return Capability(gpu.uuid, available(GPU_SIGNALS, missing), None, gpu.problems)

    def _of(self, gpu: GpuFound) -> list[Capability]:
        readings = [self._observe(slot.uuid, set()) for slot in gpu.slots]
        return [
            Capability(
                gpu.uuid,
                available(SLOT_SIGNALS, reading.missing),
                reading.uuid,
                reading.problems,
            )
            for reading in readings
        ]


def _all_missing(gpu: GpuFound) -> dict[Signal, Missing]:
    why: Missing = "no_permission" if gpu.state == "no_permission" else "failed"
    return dict.fromkeys(GPU_SIGNALS, why)


def _newest(use: Use | None, engines: Engines | None) -> tuple[int, int] | None:
    """The window and the age in ms of the figures; the engines' counters, where there are any, cover all of it."""
    if engines is not None:
        age_us = monotonic_ns() // 1000 - engines.newest_us
        return engines.window_us // 1000, age_us // 1000
    if use is None or use.percent is None:
        return None
    return use.window_us // 1000, max(0, time_ns() // 1000 - use.newest_us) // 1000


def _is_instance(slot_uuid: str) -> bool:
    return slot_uuid.startswith("MIG-")
