"""Whose processes may be on which slots, as the broker's state says: what attribution compares /proc with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..core.events import ProcessOwner
from ..core.model import JobState, LeaseId, LeaseState, SessionState, SlotId, State

_JOB_HAS_PROCESS = (JobState.STARTING, JobState.RUNNING, JobState.STOPPING)


@dataclass(frozen=True, slots=True)
class Holder:
    """The first process of a session or job; it may be gone while its children are still there."""

    id: str
    owned_by: ProcessOwner
    uid: int
    pid: int
    start_ticks: int


@dataclass(frozen=True, slots=True)
class SlotHolding:
    """Who has a slot: the session of its lease, and the job if it is one's (then the session is its runner)."""

    epoch: int
    session_id: str
    job_id: str | None = None

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
    lingering_jobs = {lease.job_id for lease in leases}
    sessions = [
        session
        for session in state.sessions.values()
        if session.boot_id == boot_id
        and (session.state is not SessionState.ENDED or session.id in lingering)
    ]
    uids = {session.id: session.uid for session in sessions}
    holders = [
        Holder(session.id, ProcessOwner.SESSION, session.uid, session.pid, session.start_ticks)
        for session in sessions
    ]
    for job in state.jobs.values():
        if job.pid is None or job.start_ticks is None or job.session_id not in uids:
            continue
        if job.state in _JOB_HAS_PROCESS or job.id in lingering_jobs:
            uid = uids[job.session_id]
            holders.append(Holder(job.id, ProcessOwner.JOB, uid, job.pid, job.start_ticks))
    slots = {
        hold.slot_id: SlotHolding(hold.epoch, lease.session_id, lease.job_id)
        for lease in leases
        for hold in lease.holds
    }
    leaving = frozenset(lease.id for lease in leases if lease.is_leaving)
    return Holdings(tuple(holders), slots, leaving)
