"""Which process of ours a pid told by the driver is.

The driver tells pids of the host (NVIDIA/nvidia-docker#1483), newer ones translate some of them, and not the same in every
call (Project-HAMi/HAMi-core#112, NVIDIA/open-gpu-kernel-modules#614). So a number alone proves little: a process that
computes has a GPU open, and what does not is somebody else. A pid of a namespace below ours is found by NSpid. That a pid
is not found does not mean that its process has ended.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from enum import Enum

from ..processes import Process
from .kinship import Kin, Kinship
from .processes import Identity, ProcessTable

_INNER_SCAN_EVERY_S = 5.0


class Trust(Enum):
    """What a pid of the device's list is worth here."""

    EXACT = "exact"  # simulated devices: it is ours
    LIKELY = "likely"  # the initial namespace: ours unless its process has no GPU open
    TO_BE_PROVEN = "to_be_proven"  # a container: ours only if its process has a GPU open


class Lost(Enum):
    """Why a pid is no process of ours."""

    ENDED = "ended"
    ANYBODY = "anybody"  # it cannot be seen from here whose it is


class Pids:
    """`clock` in seconds, counting up."""

    def __init__(self, table: ProcessTable, kinship: Kinship, clock: Callable[[], float]) -> None:
        self._table = table
        self._kinship = kinship
        self._clock = clock
        self._proven: set[Identity] = set()
        self._inner: dict[int, list[int]] = {}
        self._next_scan_s = 0.0

    def find(self, pid: int, trust: Trust) -> Kin | Lost:
        process = self._table.process(pid)
        if process is not None and self._is_it(process, trust):
            return self._kinship.of(process)
        inner = None if trust is Trust.EXACT else self._by_inner_pid(pid)
        if inner is not None:
            return self._kinship.of(inner)
        return Lost.ENDED if process is None and self._has_ended(pid, trust) else Lost.ANYBODY

    def sweep(self) -> None:
        self._kinship.sweep()
        self._proven = {identity for identity in self._proven if self._kinship.knows(identity)}

    def _is_it(self, process: Process, trust: Trust) -> bool:
        identity = (process.pid, process.start_ticks)
        if trust is Trust.EXACT or identity in self._proven:
            return True
        if trust is Trust.LIKELY and not self._table.shows_gpu_files:
            return True
        has_gpu = self._table.holds_gpu_file(process.pid)
        if has_gpu:
            self._proven.add(identity)
        return has_gpu is not False if trust is Trust.LIKELY else has_gpu is True

    def _has_ended(self, pid: int, trust: Trust) -> bool:
        """A zombie, or one that was here before, is dead; a number never seen may be of another namespace."""
        if trust is Trust.EXACT:
            return True
        if trust is Trust.TO_BE_PROVEN:
            return False
        return self._table.exists(pid) or self._kinship.knew(pid)

    def _by_inner_pid(self, pid: int) -> Process | None:
        """The one process with a GPU open that has this pid in a namespace of its own."""
        now_s = self._clock()
        if now_s >= self._next_scan_s:
            self._next_scan_s = now_s + _INNER_SCAN_EVERY_S
            self._inner = self._scan()
        found = [
            process
            for outer in self._inner.get(pid, ())
            if self._table.holds_gpu_file(outer)
            if (process := self._table.process(outer)) is not None
        ]
        return found[0] if len(found) == 1 else None

    def _scan(self) -> dict[int, list[int]]:
        inner: dict[int, list[int]] = defaultdict(list)
        for process in self._table.all():
            status = self._table.status(process.pid)
            for pid in () if status is None else status.inner_pids:
                inner[pid].append(process.pid)
        return inner
