"""Whose is this process? By ancestry, then by process group or session, then by the inherited mark.

Ancestry cannot be faked. The mark is an environment variable and can be, so it counts only where the process has the
uid of the session it names. What pids are worth in a container: `_is_mapped`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..core.events import ProcessOnSlot, ProcessOwner
from ..core.model import MiB
from ..devices.reader import ProcessReading
from ..processes import Process
from .holdings import Holder
from .processes import ProcessTable

_ANCESTORS_MAX = 64


@dataclass(frozen=True, slots=True)
class Attribution:
    """One round: the holders by identity and by id, and what has been found out about pids so far."""

    table: ProcessTable
    holders: Sequence[Holder]
    pids_are_ours: bool

    def on_slot(
        self, readings: Iterable[ProcessReading], holder_ids: frozenset[str]
    ) -> tuple[ProcessOnSlot, ...]:
        """The slot's compute processes with their owners; who left before we looked is not there any more."""
        found = (
            self._one(reading, holder_ids) for reading in readings if reading.kind == "compute"
        )
        return tuple(process for process in found if process is not None)

    def _one(self, reading: ProcessReading, holder_ids: frozenset[str]) -> ProcessOnSlot | None:
        memory = None if reading.memory_mib is None else MiB(reading.memory_mib)
        process = self.table.process(reading.pid)
        if not self._is_mapped(reading.pid, process):
            return ProcessOnSlot(reading.pid, ProcessOwner.UNMAPPED, memory_mib=memory)
        if process is None:
            return None
        uid = self.table.uid(reading.pid)
        owner = self._owner(process, uid, holder_ids)
        if owner is None:
            return ProcessOnSlot(reading.pid, ProcessOwner.FOREIGN, uid=uid, memory_mib=memory)
        return ProcessOnSlot(reading.pid, owner.owned_by, owner.id, uid, memory)

    def _is_mapped(self, pid: int, process: Process | None) -> bool:
        """Whether the device's pid is a pid of ours.

        The driver tells pids of the host (NVIDIA/nvidia-docker#1483), newer ones translate some of them
        (NVIDIA/open-gpu-kernel-modules#614). In a container a pid counts only if its process has a GPU open.
        """
        if self.pids_are_ours:
            return True
        return process is not None and self.table.holds_gpu_file(pid)

    def _owner(
        self, process: Process, uid: int | None, holder_ids: frozenset[str]
    ) -> Holder | None:
        """The nearest holder it belongs to, but before all others one that holds this slot.

        Holders nest: a kernel started inside a batch job works on the job's slot.
        """
        candidates = self._by_descent(process)
        if not any(holder.id in holder_ids for holder in candidates):
            candidates += self._by_mark(process.pid, uid)
        for holder in candidates:
            if holder.id in holder_ids:
                return holder
        return candidates[0] if candidates else None

    def _by_descent(self, process: Process) -> list[Holder]:
        by_identity = {(holder.pid, holder.start_ticks): holder for holder in self.holders}
        found: list[Holder] = []
        step: Process | None = process
        for _ in range(_ANCESTORS_MAX):
            if step is None:
                break
            holder = by_identity.get((step.pid, step.start_ticks))
            if holder is not None:
                found.append(holder)
            step = self.table.process(step.parent) if step.parent > 0 else None
        # Orphans keep group and session. The kernel gives no new process a pid that is still the id of one.
        leaders = (process.group, process.session)
        found.extend(
            holder
            for holder in self.holders
            if holder.pid in leaders and holder.start_ticks <= process.start_ticks
        )
        return found

    def _by_mark(self, pid: int, uid: int | None) -> list[Holder]:
        by_id: Mapping[str, Holder] = {holder.id: holder for holder in self.holders}
        named = (by_id.get(mark) for mark in self.table.marks(pid))
        return [holder for holder in named if holder is not None and holder.uid == uid]
