"""Did a holder's process tree work on the host in the window: CPU seconds and bytes read or written.

The members of a tree are looked up now and then (a scan of /proc), their counters at every sample. Children that came
and went between two scans are in their parents' counters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..processes import Process
from .holdings import Holder
from .processes import ProcessTable

# A kernel that only answers heartbeats uses well under 1 % of a core; a loading loop uses far more.
BUSY_CPU_PERCENT = 5
BUSY_IO_BYTES_PER_S = 256 * 1024
SCAN_EVERY_S = 5.0
SCAN_SHARE_MAX = 0.02
SAMPLE_EVERY_S = 0.5

Identity = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Sample:
    taken_s: float
    cpu_ms: int
    io_bytes: int
    is_busy: bool | None


class HostActivity:
    """`clock` in seconds, counting up."""

    def __init__(self, table: ProcessTable, clock: Callable[[], float]) -> None:
        self._table = table
        self._clock = clock
        self._trees: dict[Identity, list[Identity]] = {}
        self._samples: dict[Identity, _Sample] = {}
        self._next_scan_s = 0.0

    def sample(self, holders: Sequence[Holder]) -> dict[str, bool | None]:
        """By holder id: busy since the last sample, or None while that is not known."""
        identities = {(holder.pid, holder.start_ticks) for holder in holders}
        now_s = self._clock()
        if now_s >= self._next_scan_s or not identities <= self._trees.keys():
            self._trees = self._scan(identities)
            self._next_scan_s = now_s + max(SCAN_EVERY_S, (self._clock() - now_s) / SCAN_SHARE_MAX)
        self._samples = {root: self._one(root, now_s) for root in identities}
        return {
            holder.id: self._samples[holder.pid, holder.start_ticks].is_busy for holder in holders
        }

    def _one(self, root: Identity, now_s: float) -> _Sample:
        last = self._samples.get(root)
        if last is not None and now_s - last.taken_s < SAMPLE_EVERY_S:
            return last
        members = [
            process
            for pid, ticks in self._trees[root]
            if (process := self._table.process(pid)) is not None and process.start_ticks == ticks
        ]
        cpu_ms = sum(process.cpu_ms for process in members)
        io_bytes = sum(self._table.io_bytes(process.pid) or 0 for process in members)
        if last is None:
            return _Sample(now_s, cpu_ms, io_bytes, None)
        window_s = now_s - last.taken_s
        # A member that ended takes its counters along, hence the tree's sum may fall: that is no idleness.
        is_busy = (
            cpu_ms - last.cpu_ms > window_s * 10 * BUSY_CPU_PERCENT
            or io_bytes - last.io_bytes > window_s * BUSY_IO_BYTES_PER_S
        )
        has_fallen = cpu_ms < last.cpu_ms or io_bytes < last.io_bytes
        return _Sample(now_s, cpu_ms, io_bytes, None if has_fallen and not is_busy else is_busy)

    def _scan(self, roots: set[Identity]) -> dict[Identity, list[Identity]]:
        """The living processes of each tree: descendants, and whoever is left in the root's group or session."""
        processes = self._table.all()
        by_pid = {process.pid: process for process in processes}
        root_of: dict[int, Identity] = {pid: (pid, ticks) for pid, ticks in roots}
        trees: dict[Identity, list[Identity]] = {root: [] for root in roots}
        for process in processes:
            root = _root(process, by_pid, root_of)
            if root is not None:
                trees[root].append((process.pid, process.start_ticks))
        return trees


def _root(
    process: Process, by_pid: dict[int, Process], root_of: dict[int, Identity]
) -> Identity | None:
    """The nearest root above a process; trees do not overlap."""
    seen: set[int] = set()
    step: Process | None = process
    while step is not None and step.pid not in seen:
        seen.add(step.pid)
        root = root_of.get(step.pid)
        if root is not None and root[1] == step.start_ticks:
            return root
        step = by_pid.get(step.parent)
    for leader in (process.group, process.session):
        root = root_of.get(leader)
        if root is not None and root[1] <= process.start_ticks:
            return root
    return None
