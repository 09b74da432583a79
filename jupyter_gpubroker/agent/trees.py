"""The living processes of each holder's tree, its first process being there or not.

Descendants count, then who is left in the first process' group or session, then who carries its mark and has its uid; and the
descendants of all these. Trees do not overlap: the nearest holder has it. Blocking, as `processes`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..processes import Process
from .holdings import Holder, HolderIndex, led_by
from .processes import Identity, ProcessTable


@dataclass(frozen=True, slots=True)
class Tree:
    """`has_root`: the holder's first process lives, and is the first of `processes`' ancestors."""

    processes: Sequence[Process]
    has_root: bool


class Trees:
    """Remembers the marks of processes between scans."""

    def __init__(self, table: ProcessTable) -> None:
        self._table = table
        self._marks: dict[Identity, tuple[str, ...]] = {}

    def scan(self, holders: Sequence[Holder]) -> Mapping[Holder, Tree]:
        """Raises OSError when it cannot be known."""
        processes = self._table.all()
        alive = {(process.pid, process.start_ticks) for process in processes}
        self._marks = {one: marks for one, marks in self._marks.items() if one in alive}
        members: dict[Holder, list[Process]] = defaultdict(list)
        owners = _Owners(self, processes, HolderIndex(holders))
        for process in processes:
            owner = owners.of(process)
            if owner is not None:
                members[owner].append(process)
        return {
            holder: Tree(members[holder], (holder.pid, holder.start_ticks) in alive)
            for holder in holders
        }

    def by_mark(self, process: Process, holders: HolderIndex) -> Holder | None:
        identity = (process.pid, process.start_ticks)
        if identity not in self._marks:
            self._marks[identity] = self._table.marks(process.pid)
        named = [one for mark in self._marks[identity] for one in holders.by_mark.get(mark, ())]
        if not named:
            return None
        uid = self._table.uid(process.pid)
        return next((holder for holder in named if holder.uid == uid), None)


class _Owners:
    """Of one scan: the owner of each process, found once."""

    def __init__(self, trees: Trees, processes: Sequence[Process], holders: HolderIndex) -> None:
        self._trees = trees
        self._by_pid = {process.pid: process for process in processes}
        self._holders = holders
        self._found: dict[int, Holder | None] = {}
        self._eldest = min(
            (start for _, start in holders.by_identity), default=0
        )  # nobody of a tree is older than its root

    def of(self, process: Process) -> Holder | None:
        line: list[Process] = []
        step: Process | None = process
        while step is not None and step.pid not in self._found:
            self._found[step.pid] = None  # ends the walk where pids were read while they changed
            line.append(step)
            step = self._by_pid.get(step.parent)
        owner = None if step is None else self._found[step.pid]
        for step in reversed(line):
            owner = self._found[step.pid] = self._own(step) or owner or self._inherited(step)
        return owner

    def _own(self, process: Process) -> Holder | None:
        return next(
            iter(self._holders.by_identity.get((process.pid, process.start_ticks), ())), None
        )

    def _inherited(self, process: Process) -> Holder | None:
        if process.start_ticks < self._eldest:
            return None
        for leader in (process.group, process.session):
            for holder in self._holders.by_pid.get(leader, ()):
                if led_by(holder, process.start_ticks, self._by_pid.get(leader)):
                    return holder
        return self._trees.by_mark(process, self._holders)
