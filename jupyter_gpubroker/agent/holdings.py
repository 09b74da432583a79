"""Whose processes may be on which slots, as the broker's state says: what attribution compares /proc with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..core.events import ProcessOwner
from ..core.model import (
    GiveBackKind,
    JobState,
    LeaseId,
    LeaseState,
    Session,
    SessionId,
    SessionState,
    SlotId,
    State,
)
from ..processes import Process

_INCARNATIONS_MAX = 16
_ENDS_THE_PROCESS = (None, GiveBackKind.RESTARTED)
_JOB_HAS_PROCESS = (JobState.STARTING, JobState.RUNNING, JobState.STOPPING)


@dataclass(frozen=True, slots=True)
class Holder:
    """The first process of a session or job; it may be gone while its children are still there.

    `mark` is what its processes carry in their environment: its own id, or that of an incarnation before a restart, whose
    leftovers count as its successor's.
    """

    id: str
    owned_by: ProcessOwner
    uid: int
    pid: int
    start_ticks: int
    mark: str


class HolderIndex:
    """The holders, found by what a process shows of them."""

    def __init__(self, holders: Sequence[Holder] = ()) -> None:
        self.holders = holders
        self.by_identity: dict[tuple[int, int], list[Holder]] = defaultdict(list)
        self.by_pid: dict[int, list[Holder]] = defaultdict(list)
        self.by_mark: dict[str, list[Holder]] = defaultdict(list)
        for holder in holders:
            self.by_identity[holder.pid, holder.start_ticks].append(holder)
            self.by_pid[holder.pid].append(holder)
            self.by_mark[holder.mark].append(holder)


def led_by(holder: Holder, start_ticks: int, leader: Process | None) -> bool:
    """Whether who started then is in the holder's group or session, whose number is its pid. `leader` has that pid now.

    Orphans keep both, and the kernel gives no new process a pid that is still the number of one: so if somebody else has
    the pid, the group is his.
    """
    if leader is not None and leader.start_ticks != holder.start_ticks:
        return False
    return holder.start_ticks <= start_ticks


@dataclass(frozen=True, slots=True)
class SlotHolding:
    """Who has a slot: the session of its lease, and the job if it is one's (then the session is its runner).

    `is_leaving`: the holder has let go, and the slot was not seen clear since. `is_deserted`: besides, its process has ended.
    """

    epoch: int
    session_id: str
    job_id: str | None = None
    is_leaving: bool = False
    is_deserted: bool = False

    @property
    def worker_id(self) -> str:
        """Whose process tree does the work."""
        return self.job_id or self.session_id

    @property
    def holder_ids(self) -> frozenset[str]:
        """Whose processes may be on the slot."""
        return frozenset((self.session_id, self.worker_id))


@dataclass(frozen=True, slots=True)
class Holdings:
    """`leaving` are the leases whose holders have let go."""

    holders: tuple[Holder, ...] = ()
    slots: Mapping[SlotId, SlotHolding] = field(default_factory=dict)
    leaving: frozenset[LeaseId] = frozenset()


def holdings(state: State, boot_id: str) -> Holdings:
    """Live sessions and jobs, and ended ones whose lease is not yet cleared: their children may be left."""
    leases = [lease for lease in state.leases.values() if lease.state is not LeaseState.CLEARED]
    lingering = {lease.session_id for lease in leases}
    known = {
        session.id: session
        for session in state.sessions.values()
        if session.state is not SessionState.ENDED or session.id in lingering
    }
    sessions = [session for session in known.values() if session.boot_id == boot_id]
    holders = [holder for session in sessions for holder in _incarnations(state, session, known)]
    uids = {session.id: session.uid for session in sessions}
    lingering_jobs = {lease.job_id for lease in leases}
    for job in state.jobs.values():
        if job.state not in _JOB_HAS_PROCESS and job.id not in lingering_jobs:
            continue
        if job.pid is not None and job.start_ticks is not None and job.session_id in uids:
            uid = uids[job.session_id]
            holders.append(Holder(job.id, ProcessOwner.JOB, uid, job.pid, job.start_ticks, job.id))
    slots = {
        hold.slot_id: SlotHolding(
            epoch=hold.epoch,
            session_id=lease.session_id,
            job_id=lease.job_id,
            is_leaving=lease.is_leaving,
            is_deserted=lease.is_leaving and lease.gave_back in _ENDS_THE_PROCESS,
        )
        for lease in leases
        for hold in lease.holds
    }
    leaving = frozenset(lease.id for lease in leases if lease.is_leaving)
    return Holdings(tuple(holders), slots, leaving)


def _incarnations(
    state: State, session: Session, others: Mapping[SessionId, Session]
) -> Iterator[Holder]:
    """The session, and those it replaced by restarts, unless these have leases of their own still."""
    step: Session | None = session
    for _ in range(_INCARNATIONS_MAX):
        if step is None or step.boot_id != session.boot_id:
            return
        yield Holder(
            session.id, ProcessOwner.SESSION, session.uid, step.pid, step.start_ticks, mark=step.id
        )
        before = step.predecessor
        step = None if before is None or before in others else state.sessions.get(before)
