"""The same machine twice: NVIDIA's library as the stub plays it, and its simulation from what the probe wrote down of it.

Both are driven by the same words, so one suite can hold both readers to the same answers
(tests/unit/devices/test_reader_contract.py).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import msgspec

from jupyter_gpubroker.devices.dump import dump_of
from jupyter_gpubroker.devices.nvml import NvmlReader
from jupyter_gpubroker.devices.reader import Missing, Reader, Signal
from jupyter_gpubroker.devices.simulated import SimulatedReader
from jupyter_gpubroker.devices.simulated_faults import FAULTS
from jupyter_gpubroker.devices.simulated_state import Context, write_atomically
from jupyter_gpubroker.processes import start_ticks
from tests.support.nvml.world import LOST, NO_PERMISSION, NOT_SUPPORTED, UNKNOWN, NvmlWorld

WHOLE, SPLIT, SLICES = "GPU-0", "GPU-2", ("MIG-1", "MIG-4")
GI_IDS = {"MIG-1": 11, "MIG-4": 14}
ACTIONS = ("none", "gpu_reset", "node_reboot")
PROCESS_MIB = 400

CODES: dict[Missing, int] = {
    "not_supported": NOT_SUPPORTED,
    "no_permission": NO_PERMISSION,
    "failed": UNKNOWN,
}
# By which calls a signal is read.
CALLS: dict[Signal, tuple[str, ...]] = {
    "memory": ("nvmlDeviceGetMemoryInfo",),
    "processes": (
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlDeviceGetComputeRunningProcesses_v2",
    ),
    "utilisation": ("nvmlDeviceGetSamples",),
    "process_utilisation": ("nvmlDeviceGetProcessUtilization",),
    "engines": ("nvmlGpmSampleGet",),
    "power": ("nvmlDeviceGetPowerUsage",),
    "temperature": ("nvmlDeviceGetTemperature",),
    "ecc": ("nvmlDeviceGetTotalEccErrors",),
    "recovery_action": ("nvmlDeviceGetFieldValues",),
}


class Machine(Protocol):
    """GPU 0 is whole, 1 may not be opened, 2 is split in two instances, 3 is lost. All of them are quiet at first."""

    reader: Reader

    def enter(self, slot: str, pid: int, *, works: bool) -> None:
        """A process has a context from now on, and uses the slot or not."""
        ...

    def leave(self, slot: str, pid: int) -> None: ...

    def miss(self, signal: Signal, why: Missing, device: str = WHOLE) -> None: ...

    def lose(self, gpu: str) -> None: ...

    def remove(self, slot: str) -> None: ...

    def ask_for(self, gpu: str, action: str) -> None: ...

    def report(self, gpu: str, code: int, gi_id: int | None = None) -> None: ...


class NvmlMachine:
    def __init__(self, world: NvmlWorld) -> None:
        self._world = world
        for device in (WHOLE, *SLICES):
            world.remove(f"process {device}")
            self._use(device, works=False, used=0)
        self.reader: Reader = NvmlReader()

    def enter(self, slot: str, pid: int, *, works: bool) -> None:
        self._world.process(slot, pid, memory=PROCESS_MIB, busy=60 if works else 0)
        self._use(slot, works=works, used=PROCESS_MIB)

    def leave(self, slot: str, pid: int) -> None:
        self._world.remove(f"process {slot} {pid}")
        self._use(slot, works=False, used=0)

    def miss(self, signal: Signal, why: Missing, device: str = WHOLE) -> None:
        for call in CALLS[signal]:
            self._world.fail(call, CODES[why], device)

    def lose(self, gpu: str) -> None:
        self._world.fail("*", LOST, gpu)

    def remove(self, slot: str) -> None:
        self._world.remove(f"mig {slot}")

    def ask_for(self, gpu: str, action: str) -> None:
        self._world.gpu(gpu, action=ACTIONS.index(action))

    def report(self, gpu: str, code: int, gi_id: int | None = None) -> None:
        self._world.report(gpu, code, -1 if gi_id is None else gi_id)

    def _use(self, device: str, *, works: bool, used: int) -> None:
        values: dict[str, object] = {"used": used, "engine": 60 * works, "sm": 30 * works}
        if device == WHOLE:
            self._world.gpu(device, util=60 * works, dram=20 * works, **values)
        else:
            self._world.mig(device, dram=20 * works, **values)


class SimulatedMachine:
    """What the probe tells of the other machine, simulated. `now_ms` is the reader's clock."""

    def __init__(self, original: Reader, folder: Path, now_ms: Callable[[], int]) -> None:
        inventory = original.inventory()
        found = dump_of(inventory, original.capabilities(), original.health())
        dump = folder.parent / "probe.json"
        dump.parent.mkdir(parents=True, exist_ok=True)
        dump.write_bytes(msgspec.json.encode(found))
        self._folder, self._now_ms = folder, now_ms
        self._faults: dict[str, Any] = {}
        self.reader: Reader = SimulatedReader(f"@{dump}", folder)

    def enter(self, slot: str, pid: int, *, works: bool) -> None:
        ticks = start_ticks(pid)
        assert ticks is not None
        now_ms = self._now_ms()
        context = Context(pid, ticks, PROCESS_MIB, 0, now_ms if works else None, now_ms)
        write_atomically(self._file(slot, pid), msgspec.json.encode(context))

    def leave(self, slot: str, pid: int) -> None:
        self._file(slot, pid).unlink()

    def miss(self, signal: Signal, why: Missing, device: str = WHOLE) -> None:
        self._faults.setdefault("signals", {}).setdefault(device, {})[signal] = why
        self._write()

    def lose(self, gpu: str) -> None:
        self._faults.setdefault("states", {})[gpu] = "lost"
        self._write()

    def remove(self, slot: str) -> None:
        self._faults.setdefault("gone", []).append(slot)
        self._write()

    def ask_for(self, gpu: str, action: str) -> None:
        self._faults.setdefault("recovery_actions", {})[gpu] = action
        self._write()

    def report(self, gpu: str, code: int, gi_id: int | None = None) -> None:
        xids = self._faults.setdefault("xids", [])
        xids.append({"number": len(xids) + 1, "gpu": gpu, "code": code, "gi_id": gi_id})
        self._write()

    def _file(self, slot: str, pid: int) -> Path:
        return self._folder / slot / f"{pid}-{start_ticks(pid)}.json"

    def _write(self) -> None:
        write_atomically(self._folder / FAULTS, msgspec.json.encode(self._faults))
