"""Suspending a process' GPU state: the driver's calls as a protocol, and what must hold before they are used.

The calls are those of the CUDA checkpoint API: lock, checkpoint, (device free), restore, unlock. They are unforgiving: a
restore without enough memory wedges the process for good (NVIDIA/cuda-checkpoint#44), and a failed checkpoint may take
the process along. So every condition is checked first, and each unmet one is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

ProcessState = Literal["running", "locked", "checkpointed", "failed", "gone", "unknown"]

DRIVER_MAJOR_MIN = 580  # 570 failed on plain PyTorch (cuda-checkpoint#34)
HOST_MEMORY_PERCENT = 110


class DriverError(Exception):
    """A call of the driver failed; `code` is its name for why."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__(f"{code}: {detail}" if detail else code)
        self.code = code


class LockTimeout(DriverError):
    """The device's work did not end in time. The process runs on as before."""

    def __init__(self) -> None:
        super().__init__("busy")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why not, as a code and its numbers."""

    code: str
    values: Mapping[str, int | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Subject:
    """A process as a driver finds it. None is unknown, which never speaks for a checkpoint.

    slots:       the UUIDs of all slots on which it has a context.
    memory_mib:  its memory on them.
    children:    descendants that have contexts of their own.
    is_verified: a checkpoint and its return have been seen to work on this very kind of node.
    """

    state: ProcessState
    slots: tuple[str, ...] = ()
    memory_mib: int | None = None
    children: tuple[int, ...] = ()
    uses_mig: bool = False
    uses_uvm: bool = False
    uses_mps: bool = False
    uses_nccl: bool = False
    driver_major: int | None = None
    is_own_uid: bool = True
    is_verified: bool = False


@dataclass(frozen=True, slots=True)
class HostMemory:
    """What the host can take in: free memory, and what the process' cgroup still allows (None: no limit)."""

    available_mib: int
    cgroup_free_mib: int | None = None


class CheckpointDriver(Protocol):
    """Blocking. Every call may raise `DriverError`."""

    def subject(self, pid: int) -> Subject: ...

    def state(self, pid: int) -> ProcessState: ...

    def lock(self, pid: int, timeout_ms: int) -> None:
        """Wait for submitted work and hold back new; `LockTimeout` leaves the process running."""
        ...

    def checkpoint(self, pid: int) -> None: ...

    def restore(self, pid: int) -> None:
        """With too little free memory the process is lost: check `free_mib` before."""
        ...

    def unlock(self, pid: int) -> None: ...

    def free_mib(self, slot: str) -> int | None: ...


def refusals(subject: Subject, slot: str, host: HostMemory) -> tuple[Refusal, ...]:
    """Every reason not to suspend the process now; empty: it can be done. `slot` is the one to be freed."""
    found = []

    def refuse(is_so: bool, code: str, **values: int | str) -> None:
        if is_so:
            found.append(Refusal(code, values))

    refuse(subject.state != "running", "not_running", state=subject.state)
    refuse(not subject.is_own_uid, "other_uid")
    refuse(slot not in subject.slots, "no_context")
    refuse(subject.uses_mig, "mig_slot")
    refuse(len(subject.slots) > 1, "several_gpus", gpus=len(subject.slots))
    refuse(subject.uses_uvm, "uvm_memory")
    refuse(subject.uses_mps, "mps_client")
    refuse(subject.uses_nccl, "nccl_in_use")
    refuse(bool(subject.children), "child_has_context", pid=next(iter(subject.children), 0))
    driver_major = subject.driver_major or 0
    refuse(
        driver_major < DRIVER_MAJOR_MIN,
        "driver_too_old",
        major=driver_major,
        major_min=DRIVER_MAJOR_MIN,
    )
    refuse(not subject.is_verified, "unverified_hardware")
    found.extend(_memory_refusals(subject, host))
    return tuple(found)


def _memory_refusals(subject: Subject, host: HostMemory) -> list[Refusal]:
    """The driver keeps the device's memory in the process' own host memory."""
    if subject.memory_mib is None:
        return [Refusal("memory_unknown")]
    needed_mib = -(-subject.memory_mib * HOST_MEMORY_PERCENT // 100)
    found = []
    if host.available_mib < needed_mib:
        values = {"needed_mib": needed_mib, "free_mib": host.available_mib}
        found.append(Refusal("host_memory_short", values))
    if host.cgroup_free_mib is not None and host.cgroup_free_mib < needed_mib:
        values = {"needed_mib": needed_mib, "free_mib": host.cgroup_free_mib}
        found.append(Refusal("cgroup_memory_short", values))
    return found
