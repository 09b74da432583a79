"""The real checkpoint driver against a double of the bindings: what it refuses, and how it reads the API's answers."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_gpubroker.devices.checkpoint import Checkpointer
from jupyter_gpubroker.devices.checkpoint_cuda import CudaCheckpointDriver
from jupyter_gpubroker.devices.checkpoint_driver import (
    DriverError,
    HostMemory,
    LockTimeout,
)
from jupyter_gpubroker.devices.reader import (
    GpuFound,
    Inventory,
    ProcessReading,
    SlotFound,
    SlotReading,
)

PID, SLOT = 4242, "GPU-1"


class Result(enum.IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_NOT_READY = 600
    CUDA_ERROR_NOT_SUPPORTED = 801


class State(enum.IntEnum):
    CU_PROCESS_STATE_RUNNING = 0
    CU_PROCESS_STATE_LOCKED = 1
    CU_PROCESS_STATE_CHECKPOINTED = 2
    CU_PROCESS_STATE_FAILED = 3


class Bindings:
    """`cuda.bindings.driver` with one process, whose calls answer (result, values...) as the real one's do."""

    CUresult = Result
    CUcheckpointLockArgs = SimpleNamespace

    def __init__(self) -> None:
        self.state = State.CU_PROCESS_STATE_RUNNING
        self.init = Result.CUDA_SUCCESS
        self.fails: dict[str, Result] = {}
        self.timeout_ms: int | None = None
        self.cuInit = lambda _flags: (self.init,)
        self.cuCheckpointProcessGetState = lambda _pid: (Result.CUDA_SUCCESS, self.state)
        self.cuCheckpointProcessLock = self._call("lock", State.CU_PROCESS_STATE_LOCKED)
        self.cuCheckpointProcessCheckpoint = self._call(
            "checkpoint", State.CU_PROCESS_STATE_CHECKPOINTED
        )
        self.cuCheckpointProcessRestore = self._call("restore", State.CU_PROCESS_STATE_LOCKED)
        self.cuCheckpointProcessUnlock = self._call("unlock", State.CU_PROCESS_STATE_RUNNING)

    def _call(self, name: str, state: State) -> Callable[[int, Any], tuple[Result]]:
        def call(_pid: int, arguments: Any) -> tuple[Result]:
            self.timeout_ms = getattr(arguments, "timeoutMs", self.timeout_ms)
            if name in self.fails:
                return (self.fails[name],)
            self.state = state
            return (Result.CUDA_SUCCESS,)

        return call


class OneGpu:
    """A reader of one H200 on which the process has 1000 MiB."""

    def __init__(self) -> None:
        self.driver_version: str | None = "580.95.05"
        self.processes: tuple[ProcessReading, ...] = (ProcessReading(PID, "compute", 1000),)
        self.used_mib: int | None = 1500

    def inventory(self) -> Inventory:
        slot = SlotFound(SLOT, "gpu", 143771)
        gpu = GpuFound(SLOT, 0, "", "NVIDIA H200", 143771, slots=(slot,))
        return Inventory("nvml", self.driver_version, (gpu,))

    def observe(self, _slots: Sequence[str] | None = None) -> tuple[SlotReading, ...]:
        return (SlotReading(SLOT, self.used_mib, None, self.processes),)

    def close(self) -> None: ...


@pytest.fixture
def bindings():
    return Bindings()


@pytest.fixture
def gpu():
    return OneGpu()


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    process = tmp_path / "proc" / str(PID)
    process.mkdir(parents=True)
    for name in ("maps", "environ", "stat"):
        (process / name).write_text("")
    return tmp_path / "proc"


@pytest.fixture
def verified(tmp_path: Path) -> Path:
    record = tmp_path / "verified.json"
    record.write_text(json.dumps({"driver_version": "580.95.05", "models": ["NVIDIA H200"]}))
    return record


@pytest.fixture
def driver(bindings, gpu, proc, verified) -> CudaCheckpointDriver:
    return CudaCheckpointDriver(verified, load=lambda: bindings, reader=gpu, proc=proc)


def can(driver: CudaCheckpointDriver) -> list[str]:
    checkpointer = Checkpointer(driver, host=lambda _: HostMemory(1 << 20))
    return [refusal.code for refusal in checkpointer.can(PID, SLOT)]


def test_a_verified_node_with_a_plain_process_is_not_refused(driver):
    assert can(driver) == []


@pytest.mark.parametrize(
    "record",
    [
        None,
        "not json",
        '{"driver_version": "580.95.05", "models": ["NVIDIA A100-SXM4-80GB"]}',
        '{"driver_version": "575.57.08", "models": ["NVIDIA H200"]}',
    ],
)
def test_hardware_on_which_it_was_not_seen_to_work_is_refused(
    bindings, gpu, proc, tmp_path, record
):
    path = tmp_path / "other.json"
    if record is not None:
        path.write_text(record)
    driver = CudaCheckpointDriver(path, load=lambda: bindings, reader=gpu, proc=proc)
    assert can(driver) == ["unverified_hardware"]


def test_without_a_record_real_hardware_is_off(bindings, gpu, proc):
    driver = CudaCheckpointDriver(None, load=lambda: bindings, reader=gpu, proc=proc)
    assert can(driver) == ["unverified_hardware"]


def test_an_old_driver_is_refused(driver, gpu):
    gpu.driver_version = "570.158.01"
    assert "driver_too_old" in can(driver)


def test_an_unknown_driver_version_is_refused(driver, gpu):
    gpu.driver_version = None
    assert "driver_too_old" in can(driver)


@pytest.mark.parametrize(
    ("name", "text", "refusal"),
    [
        ("maps", "7f00 r-xp /site-packages/libbitsandbytes_cuda130.so", "uvm_memory"),
        ("maps", "7f00 r-xp /site-packages/librmm.so", "uvm_memory"),
        ("environ", "HOME=/\0CUDA_MPS_PIPE_DIRECTORY=/run/mps\0", "mps_client"),
    ],
)
def test_what_the_process_uses_is_seen_in_proc(driver, proc, name, text, refusal):
    (proc / str(PID) / name).write_text(text)
    assert can(driver) == [refusal]


def test_memory_that_the_device_does_not_tell_is_refused(driver, gpu):
    gpu.processes = (ProcessReading(PID, "compute", None),)
    assert can(driver) == ["memory_unknown"]


def test_a_child_with_a_context_is_refused(driver, gpu, proc):
    (proc / "5000").mkdir()
    (proc / "5000/stat").write_text(f"5000 (python) S {PID}" + 18 * " 0")
    gpu.processes += (ProcessReading(5000, "compute", 10),)
    assert can(driver) == ["child_has_context"]


def test_another_processs_context_is_no_refusal(driver, gpu, proc):
    gpu.processes += (ProcessReading(5000, "compute", 10), ProcessReading(9, "graphics", 10))
    assert can(driver) == []


def test_missing_bindings_are_named():
    def load() -> None:
        raise DriverError("bindings_missing")

    driver = CudaCheckpointDriver(None, load=load)
    outcome = Checkpointer(driver, host=lambda _: HostMemory(1)).suspend(1, SLOT, 100)
    assert (outcome.ok, outcome.state) == (False, "unknown")
    assert [refusal.code for refusal in outcome.refusals] == ["bindings_missing"]


def test_a_driver_that_does_not_start_is_named(driver, bindings):
    bindings.init = Result.CUDA_ERROR_NOT_SUPPORTED
    assert can(driver) == ["driver_missing"]


def test_suspend_and_resume_use_the_calls_in_order(driver, bindings):
    checkpointer = Checkpointer(driver, host=lambda _: HostMemory(1 << 20))
    suspended = checkpointer.suspend(PID, SLOT, 3000)
    assert (suspended.ok, suspended.state, suspended.memory_mib) == (True, "checkpointed", 1000)
    assert bindings.timeout_ms == 3000
    resumed = checkpointer.resume(PID, SLOT, suspended.memory_mib)
    assert (resumed.ok, resumed.state) == (True, "running")


def test_a_lock_in_vain_leaves_it_running_and_is_called_busy(driver, bindings):
    bindings.fails["lock"] = Result.CUDA_ERROR_NOT_READY
    with pytest.raises(LockTimeout):
        driver.lock(PID, 10)


def test_a_failed_checkpoint_is_unlocked_again(driver, bindings):
    bindings.fails["checkpoint"] = Result.CUDA_ERROR_NOT_SUPPORTED
    checkpointer = Checkpointer(driver, host=lambda _: HostMemory(1 << 20))
    outcome = checkpointer.suspend(PID, SLOT, 10)
    assert (outcome.ok, outcome.state) == (False, "running")
    assert [refusal.code for refusal in outcome.refusals] == ["not_supported"]


@pytest.mark.parametrize("used_mib", [None, 143_771 - 999])
def test_restore_is_not_called_without_knowing_that_the_memory_is_free(
    driver, bindings, gpu, used_mib
):
    bindings.state = State.CU_PROCESS_STATE_CHECKPOINTED
    gpu.used_mib = used_mib
    outcome = Checkpointer(driver, host=lambda _: HostMemory(1)).resume(PID, SLOT, 1000)
    assert (outcome.ok, outcome.state) == (False, "checkpointed")
    assert [refusal.code for refusal in outcome.refusals] == ["slot_memory_short"]


def test_a_process_that_ended_is_gone(driver, proc):
    assert driver.state(PID + 1) == "gone"
