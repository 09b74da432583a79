"""NVIDIA's checkpoint driver through cuda-bindings, which is imported at the first use (extra `checkpoint`).

On real hardware suspending stays off until a record says that this node has been seen to do it: driver versions differ
too much in what works (see `checkpoint_driver`). A process' device is told by NVML, its libraries by /proc/PID/maps.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from ..processes import PROC, descends, uid_of
from .checkpoint_driver import DriverError, LockTimeout, ProcessState, Subject
from .reader import Inventory, Reader, SlotReading

# Managed memory in practice: paged optimizers, RAPIDS pools, nvshare (none of them can be checkpointed).
UVM_LIBRARIES = ("libbitsandbytes", "librmm", "libnvshare")
MPS_PIPE_FOLDER = Path("/tmp/nvidia-mps")  # noqa: S108 - the vendor's default
_STATES: dict[str, ProcessState] = {
    "RUNNING": "running",
    "LOCKED": "locked",
    "CHECKPOINTED": "checkpointed",
    # Under way in somebody else's call: not ours to touch.
    "CHECKPOINTING": "locked",
    "RESTORING": "checkpointed",
    "FAILED": "failed",
}


class Verified(msgspec.Struct, frozen=True):
    """The record of a check on this node: with which driver, on which models."""

    driver_version: str
    models: tuple[str, ...]


class CudaCheckpointDriver:
    """`load` and `reader` are replaced in tests only; `proc` is where /proc lies."""

    def __init__(
        self,
        verified: Path | None,
        load: Callable[[], Any] | None = None,
        reader: Reader | None = None,
        proc: Path = PROC,
    ) -> None:
        self._verified = verified
        self._load = load or _load_cuda
        self._reader = reader
        self._proc = proc
        self._cuda: Any = None

    def subject(self, pid: int) -> Subject:
        state = self.state(pid)
        inventory, readings = self._read()
        own = [reading for reading in readings if pid in _pids(reading)]
        others = {other for reading in readings for other in _pids(reading)} - {pid}
        models = {
            gpu.model for gpu in inventory.gpus for slot in gpu.slots if slot.uuid in _uuids(own)
        }
        memory = [
            process.memory_mib
            for reading in own
            for process in reading.processes or ()
            if process.pid == pid
        ]
        known = [mib for mib in memory if mib is not None]
        maps = self._text(pid, "maps")
        version = inventory.driver_version or ""
        return Subject(
            state=state,
            slots=_uuids(own),
            memory_mib=sum(known) if len(known) == len(memory) else None,
            children=tuple(sorted(other for other in others if descends(other, pid, self._proc))),
            uses_mig=any(reading.uuid.startswith("MIG-") for reading in own),
            uses_uvm=any(library in maps for library in UVM_LIBRARIES),
            uses_mps=self._uses_mps(pid),
            driver_major=int(version.split(".")[0]) if version.split(".")[0].isdigit() else None,
            is_own_uid=uid_of(pid, self._proc) == os.geteuid(),
            is_verified=self._is_verified(version, models),
        )

    def state(self, pid: int) -> ProcessState:
        if not (self._proc / str(pid)).exists():
            return "gone"
        (state,) = self._call("cuCheckpointProcessGetState", pid)
        return _STATES.get(state.name.removeprefix("CU_PROCESS_STATE_"), "failed")

    def lock(self, pid: int, timeout_ms: int) -> None:
        arguments = self._api().CUcheckpointLockArgs()
        arguments.timeoutMs = timeout_ms
        try:
            self._call("cuCheckpointProcessLock", pid, arguments)
        except DriverError:
            if self.state(pid) == "running":
                raise LockTimeout from None
            raise

    def checkpoint(self, pid: int) -> None:
        self._call("cuCheckpointProcessCheckpoint", pid, None)

    def restore(self, pid: int) -> None:
        """To the same GPU: another needs a mapping for every GPU of the machine (NVIDIA/cuda-python#1983)."""
        self._call("cuCheckpointProcessRestore", pid, None)

    def unlock(self, pid: int) -> None:
        self._call("cuCheckpointProcessUnlock", pid, None)

    def free_mib(self, slot: str) -> int | None:
        inventory, readings = self._read()
        totals = {found.uuid: found.memory_mib for gpu in inventory.gpus for found in gpu.slots}
        used = {reading.uuid: reading.memory_used_mib for reading in readings}
        total_mib, used_mib = totals.get(slot), used.get(slot)
        return None if total_mib is None or used_mib is None else total_mib - used_mib

    def _api(self) -> Any:
        """The driver's functions. One `cuInit` in this long-lived process replaces the persistence mode it asks for."""
        if self._cuda is None:
            cuda = self._load()
            try:
                result = cuda.cuInit(0)[0]
            except RuntimeError as error:
                raise DriverError("driver_missing", str(error)) from error
            if result != cuda.CUresult.CUDA_SUCCESS:
                raise DriverError("driver_missing", result.name)
            self._cuda = cuda
        return self._cuda

    def _call(self, name: str, *arguments: Any) -> tuple[Any, ...]:
        cuda = self._api()
        result, *values = getattr(cuda, name)(*arguments)
        if result != cuda.CUresult.CUDA_SUCCESS:
            code = "not_supported" if result.name == "CUDA_ERROR_NOT_SUPPORTED" else "driver_error"
            raise DriverError(code, f"{name}: {result.name}")
        return tuple(values)

    def _read(self) -> tuple[Inventory, tuple[SlotReading, ...]]:
        if self._reader is None:
            from .nvml import NvmlReader

            self._reader = NvmlReader()
        return self._reader.inventory(), self._reader.observe()

    def _is_verified(self, driver_version: str, models: set[str]) -> bool:
        if self._verified is None:
            return False
        try:
            record = msgspec.json.decode(self._verified.read_bytes(), type=Verified)
        except (OSError, msgspec.DecodeError):
            return False
        return record.driver_version == driver_version and models <= set(record.models)

    def _uses_mps(self, pid: int) -> bool:
        environ = self._text(pid, "environ")
        return "CUDA_MPS_PIPE_DIRECTORY=" in environ or (MPS_PIPE_FOLDER / "control").exists()

    def _text(self, pid: int, name: str) -> str:
        try:
            return (self._proc / str(pid) / name).read_text(errors="replace")
        except OSError:
            return ""


def _load_cuda() -> Any:
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise DriverError("bindings_missing", str(error)) from error
    return driver


def _pids(reading: SlotReading) -> set[int]:
    return {process.pid for process in reading.processes or () if process.kind == "compute"}


def _uuids(readings: list[SlotReading]) -> tuple[str, ...]:
    return tuple(reading.uuid for reading in readings)
