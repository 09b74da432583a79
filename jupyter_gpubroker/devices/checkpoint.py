"""Suspends and resumes the GPU state of a process: `python -m jupyter_gpubroker.devices.checkpoint`.

Started by a process of the owner's uid, never by the broker. One JSON line per request and answer (`jsonlines`):

    {"id": 1, "method": "can", "params": [PID, SLOT]}                     -> {"id": 1, "result": [{"code", "values"}, ...]}
    {"id": 2, "method": "suspend", "params": [PID, SLOT, TIMEOUT_MS]}     -> {"id": 2, "result": OUTCOME}
    {"id": 3, "method": "resume", "params": [PID, SLOT, MEMORY_MIB]}      -> {"id": 3, "result": OUTCOME}
    {"id": 4, "method": "state", "params": [PID]}                         -> {"id": 4, "result": "running"}

OUTCOME is `{"ok", "state", "memory_mib", "took_ms", "refusals"}`; MEMORY_MIB is what `suspend` answered. The helper lives on
between calls: one per call cost seconds (ai-dynamo/dynamo#7773).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .checkpoint_driver import (
    CheckpointDriver,
    DriverError,
    HostMemory,
    ProcessState,
    Refusal,
    refusals,
)
from .host_memory import host_memory
from .jsonlines import serve


@dataclass(frozen=True, slots=True)
class Outcome:
    """`ok`: done and verified. Otherwise `state` tells where the process is now, and `refusals` why."""

    ok: bool
    state: ProcessState
    memory_mib: int = 0
    took_ms: int = 0
    refusals: tuple[Refusal, ...] = ()


class Checkpointer:
    """The driver's calls in the only safe order, each condition checked before the first of them."""

    def __init__(
        self, driver: CheckpointDriver, host: Callable[[int], HostMemory] = host_memory
    ) -> None:
        self._driver = driver
        self._host = host

    def state(self, pid: int) -> ProcessState:
        return self._driver.state(pid)

    def can(self, pid: int, slot: str) -> tuple[Refusal, ...]:
        """Why `suspend` would refuse now; empty: it would not."""
        return self._check(pid, slot)[0]

    def suspend(self, pid: int, slot: str, timeout_ms: int) -> Outcome:
        """Free the slot; the process' calls to the device block from here to `resume`."""
        started = time.monotonic()
        found, memory_mib = self._check(pid, slot)
        if found:
            return self._outcome(pid, started, *found)
        try:
            self._driver.lock(pid, timeout_ms)
        except DriverError as error:
            return self._outcome(pid, started, Refusal(error.code))
        try:
            self._driver.checkpoint(pid)
        except DriverError as error:
            self._unlock_if_locked(pid)
            return self._outcome(pid, started, Refusal(error.code))
        return self._outcome(pid, started, memory_mib=memory_mib, wanted="checkpointed")

    def resume(self, pid: int, slot: str, memory_mib: int) -> Outcome:
        """Bring the process back to the slot. Without enough free memory nothing is tried."""
        started = time.monotonic()
        try:
            if self._driver.state(pid) == "checkpointed":
                free_mib = self._driver.free_mib(slot)
                if free_mib is None or free_mib < memory_mib:
                    values = {"needed_mib": memory_mib, "free_mib": free_mib or 0}
                    return self._outcome(pid, started, Refusal("slot_memory_short", values))
                self._driver.restore(pid)
            # A helper that died between two calls leaves the process locked.
            self._unlock_if_locked(pid)
        except DriverError as error:
            return self._outcome(pid, started, Refusal(error.code))
        return self._outcome(pid, started, memory_mib=memory_mib, wanted="running")

    def _check(self, pid: int, slot: str) -> tuple[tuple[Refusal, ...], int]:
        try:
            subject = self._driver.subject(pid)
            host = self._host(pid)
        except DriverError as error:
            return (Refusal(error.code),), 0
        except OSError:
            return (Refusal("not_running", {"state": "gone"}),), 0
        return refusals(subject, slot, host), subject.memory_mib or 0

    def _unlock_if_locked(self, pid: int) -> None:
        if self._driver.state(pid) == "locked":
            self._driver.unlock(pid)

    def _outcome(
        self,
        pid: int,
        started: float,
        *found: Refusal,
        memory_mib: int = 0,
        wanted: ProcessState | None = None,
    ) -> Outcome:
        try:
            state = self._driver.state(pid)
        except DriverError:
            state = "unknown"
        took_ms = int((time.monotonic() - started) * 1000)
        if wanted is not None and state != wanted:
            found = (*found, Refusal("unexpected_state", {"state": state}))
        return Outcome(not found, state, memory_mib, took_ms, found)


def open_driver(simulated: Path | None, verified: Path | None) -> CheckpointDriver:
    if simulated is not None:
        from .checkpoint_simulated import SimulatedCheckpointDriver

        return SimulatedCheckpointDriver(simulated)
    from .checkpoint_cuda import CudaCheckpointDriver

    return CudaCheckpointDriver(verified)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m jupyter_gpubroker.devices.checkpoint")
    parser.add_argument("--simulated", metavar="FOLDER", type=Path, help="act on simulated GPUs")
    parser.add_argument(
        "--verified",
        metavar="FILE",
        type=Path,
        help="record of a check that saw suspending work on this node; without it real GPUs are refused",
    )
    arguments = parser.parse_args()
    checkpointer = Checkpointer(open_driver(arguments.simulated, arguments.verified))
    serve(
        {
            "state": checkpointer.state,
            "can": checkpointer.can,
            "suspend": checkpointer.suspend,
            "resume": checkpointer.resume,
        }
    )


if __name__ == "__main__":
    main()
