"""The checkpoint driver of simulated GPUs, with the real one's conditions, times and failures.

It acts on the state folder (`simulated_state`) that the process itself obeys: it takes the process' lock exclusively, so
it waits for running work, and leaves a state that makes the process' calls wait. The calls are as unforgiving as the
real ones; `checkpoint.Checkpointer` is what makes them safe.
"""

from __future__ import annotations

import contextlib
import fcntl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import msgspec

from ..processes import descends, start_ticks
from .checkpoint_driver import DRIVER_MAJOR_MIN, DriverError, LockTimeout, ProcessState, Subject
from .reader import Inventory
from .simulated_state import Context, StateFolder, write_atomically

COPY_MIB_PER_S = 20_000
_POLL_S = 0.005


class SimulatedCheckpointDriver:
    def __init__(self, folder: Path) -> None:
        self._folder = StateFolder(folder)

    def subject(self, pid: int) -> Subject:
        contexts = self._contexts()
        own = {slot: found[pid] for slot, found in contexts.items() if pid in found}
        others = {other for found in contexts.values() for other in found} - {pid}
        return Subject(
            state=self.state(pid),
            slots=tuple(own),
            memory_mib=sum(context.memory_mib for context in own.values()),
            children=tuple(sorted(other for other in others if descends(other, pid))),
            uses_mig=any(slot.startswith("MIG-") for slot in own),
            uses_uvm=any(context.uvm for context in own.values()),
            uses_nccl=any(context.nccl for context in own.values()),
            driver_major=DRIVER_MAJOR_MIN,
            is_verified=True,
        )

    def state(self, pid: int) -> ProcessState:
        ticks = start_ticks(pid)
        if ticks is None:
            return "gone"
        try:
            text = (self._folder.processes / f"{pid}-{ticks}.state").read_text()
        except FileNotFoundError:
            return "running"
        return next(state for state in get_args(ProcessState) if state == text)

    def lock(self, pid: int, timeout_ms: int) -> None:
        self._require(pid, "running")
        deadline_s = time.monotonic() + timeout_ms / 1000
        with self._process_locked(pid, deadline_s):
            self._set_state(pid, "locked")

    def checkpoint(self, pid: int) -> None:
        self._require(pid, "locked")
        name = self._name(pid)
        own = {slot: found[pid] for slot, found in self._contexts().items() if pid in found}
        if any(slot.startswith("MIG-") or own[slot].uvm or own[slot].nccl for slot in own):
            # The real driver makes no attempt to keep the process healthy here either.
            self._set_state(pid, "failed")
            raise DriverError("not_supported")
        _copy(sum(context.memory_mib for context in own.values()))
        away = self._folder.suspended / name
        away.mkdir(mode=0o700, exist_ok=True)
        self._set_state(pid, "checkpointed")
        for slot in own:
            (self._folder.path / slot / f"{name}.json").replace(away / f"{slot}.json")

    def restore(self, pid: int) -> None:
        self._require(pid, "checkpointed")
        name = self._name(pid)
        suspended = self._folder.suspended_contexts(name)
        for slot, context in suspended.items():
            with self._folder.slot_locked(slot):
                if (self.free_mib(slot) or 0) < context.memory_mib:
                    self._set_state(pid, "failed")
                    raise DriverError("out_of_memory", slot)
                away = self._folder.suspended / name / f"{slot}.json"
                away.replace(self._folder.path / slot / f"{name}.json")
        _copy(sum(context.memory_mib for context in suspended.values()))
        self._set_state(pid, "locked")

    def unlock(self, pid: int) -> None:
        self._require(pid, "locked")
        self._state_path(pid).unlink()

    def free_mib(self, slot: str) -> int | None:
        total_mib = self._slots().get(slot)
        if total_mib is None:
            return None
        return total_mib - sum(context.memory_mib for context in self._folder.contexts(slot))

    def _slots(self) -> dict[str, int]:
        inventory = msgspec.json.decode(self._folder.devices.read_bytes(), type=Inventory)
        return {slot.uuid: slot.memory_mib or 0 for gpu in inventory.gpus for slot in gpu.slots}

    def _contexts(self) -> dict[str, dict[int, Context]]:
        """By slot and pid."""
        return {
            slot: {context.pid: context for context in self._folder.contexts(slot)}
            for slot in self._slots()
        }

    def _name(self, pid: int) -> str:
        ticks = start_ticks(pid)
        if ticks is None:
            raise DriverError("gone")
        return f"{pid}-{ticks}"

    def _state_path(self, pid: int) -> Path:
        return self._folder.processes / f"{self._name(pid)}.state"

    def _set_state(self, pid: int, state: ProcessState) -> None:
        write_atomically(self._state_path(pid), state.encode())

    def _require(self, pid: int, wanted: ProcessState) -> None:
        state = self.state(pid)
        if state != wanted:
            raise DriverError("illegal_state", f"{state}, not {wanted}")

    @contextlib.contextmanager
    def _process_locked(self, pid: int, deadline_s: float) -> Iterator[None]:
        """No device call of the process runs or begins meanwhile."""
        path = self._folder.processes / f"{self._name(pid)}.lock"
        with path.open("ab") as file:
            while True:
                try:
                    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError:
                    if time.monotonic() >= deadline_s:
                        raise LockTimeout from None
                    time.sleep(_POLL_S)
            yield


def _copy(mib: int) -> None:
    """Take the time that moving this much between device and host takes."""
    time.sleep(mib / COPY_MIB_PER_S)
