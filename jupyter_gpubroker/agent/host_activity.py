"""Did a holder's process tree work on the host in the window: CPU seconds and bytes read or written, and does it serve.

The members of a tree are looked up now and then (a scan of /proc), their counters at every sample. Children that came
and went between two scans are in their parents' counters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ..core.events import HostUse
from .holdings import Holder
from .listening import listens
from .processes import Identity, ProcessTable
from .trees import Trees

# A kernel that only answers heartbeats uses well under 1 % of a core; a loading loop uses far more.
BUSY_CPU_PERCENT = 5
BUSY_IO_KIB_PER_S = 256
SCAN_EVERY_S = 5.0
SCAN_SHARE_MAX = 0.02
SAMPLE_EVERY_S = 0.5
LISTEN_EVERY_S = 10.0


@dataclass(frozen=True, slots=True)
class HostSample:
    """`is_busy` None: not known yet, or not all counters could be compared."""

    is_busy: bool | None
    use: HostUse


@dataclass(frozen=True, slots=True)
class _Counters:
    taken_s: float
    cpu_ms: int
    io_bytes: int | None
    sample: HostSample


class HostActivity:
    """`clock` in seconds, counting up."""

    def __init__(self, table: ProcessTable, trees: Trees, clock: Callable[[], float]) -> None:
        self._table = table
        self._trees = trees
        self._clock = clock
        self._members: dict[str, list[Identity]] = {}
        self._counters: dict[str, _Counters] = {}
        self._listens: dict[str, tuple[float, bool | None]] = {}
        self._next_scan_s = 0.0

    def sample(
        self, holders: Sequence[Holder], quiet_ids: Collection[str] = ()
    ) -> Mapping[str, HostSample]:
        """By holder id, what was done since the last sample. Of `quiet_ids` also whether they listen."""
        ids = {holder.id for holder in holders}
        now_s = self._clock()
        if now_s >= self._next_scan_s or not ids <= self._members.keys():
            self._members = self._scan(holders)
            self._next_scan_s = now_s + max(SCAN_EVERY_S, (self._clock() - now_s) / SCAN_SHARE_MAX)
        self._counters = {one: self._count(one, now_s) for one in ids}
        self._listens = {one: seen for one, seen in self._listens.items() if one in ids}
        self._listens |= {one: self._look_for_sockets(one, now_s) for one in ids & set(quiet_ids)}
        return {one: self._sample(one) for one in ids}

    def _sample(self, holder_id: str) -> HostSample:
        sample = self._counters[holder_id].sample
        _, is_listening = self._listens.get(holder_id, (0.0, None))
        return replace(sample, use=replace(sample.use, listens=is_listening))

    def _count(self, holder_id: str, now_s: float) -> _Counters:
        last = self._counters.get(holder_id)
        if last is not None and now_s - last.taken_s < SAMPLE_EVERY_S:
            return last
        members = [
            process
            for pid, ticks in self._members[holder_id]
            if (process := self._table.process(pid)) is not None and process.start_ticks == ticks
        ]
        cpu_ms = sum(process.cpu_ms for process in members)
        io_bytes = _sum([self._table.io_bytes(process.pid) for process in members])
        if last is None:
            return _Counters(now_s, cpu_ms, io_bytes, HostSample(None, HostUse(len(members))))
        window_s = now_s - last.taken_s
        cpu = _rate(last.cpu_ms, cpu_ms, window_s * 10)
        io = _rate(last.io_bytes, io_bytes, window_s * 1024)
        is_busy = (cpu or 0) > BUSY_CPU_PERCENT or (io or 0) > BUSY_IO_KIB_PER_S
        is_known = is_busy or None not in (cpu, io)
        use = HostUse(len(members), cpu, io)
        return _Counters(now_s, cpu_ms, io_bytes, HostSample(is_busy if is_known else None, use))

    def _look_for_sockets(self, holder_id: str, now_s: float) -> tuple[float, bool | None]:
        known = self._listens.get(holder_id)
        if known is not None and now_s < known[0]:
            return known
        pids = [pid for pid, _ in self._members[holder_id]]
        return now_s + LISTEN_EVERY_S, listens(self._table, pids)

    def _scan(self, holders: Sequence[Holder]) -> dict[str, list[Identity]]:
        """By holder id, over all its incarnations."""
        members: dict[str, list[Identity]] = {holder.id: [] for holder in holders}
        for holder, tree in self._trees.scan(holders).items():
            members[holder.id] += [(one.pid, one.start_ticks) for one in tree.processes]
        return members


def _sum(parts: Sequence[int | None]) -> int | None:
    """Unknown where a part is: what another user's process reads and writes cannot be read."""
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def _rate(before: int | None, now: int | None, size: float) -> int | None:
    """What was added, in units of `size`. A member that ended takes its counters along: a sum that fell tells nothing."""
    if before is None or now is None or now < before:
        return None
    return round((now - before) / size)
