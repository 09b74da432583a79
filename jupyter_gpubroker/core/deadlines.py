"""When something must happen though no event comes, and what happens then.

Each entity that is not over has at most one next deadline (`machine.DEADLINE` names its kind). After `pass_due` none is left
that is due, but notices, which `settle` judges last, when it is known what came free.
"""

from __future__ import annotations

from collections.abc import Iterator

from . import giveback, jobs, leases, reclaim, sessions
from .asking import end
from .draft import Draft
from .model import (
    Job,
    Lease,
    LeaseState,
    Millis,
    Reason,
    Request,
    Session,
    State,
)
from .table import found

Mortal = Request | Session | Lease | Job


def next_deadline(state: State) -> Millis | None:
    """When a `Ticked` is due at the latest."""
    return min((at for at, _ in _deadlines(state)), default=None)


def pass_due(draft: Draft) -> None:
    """Everything that is due happens, in the order of its time; but for notices."""
    overdue = [(at, one) for at, one in _deadlines(draft.state) if at <= draft.now]
    for _, one in sorted(overdue, key=lambda pair: (pair[0], type(pair[1]).__name__, pair[1].id)):
        if isinstance(one, Request):
            _request_due(draft, one)
        elif isinstance(one, Session):
            _session_due(draft, one)
        elif isinstance(one, Lease):
            _lease_due(draft, one)
        else:
            _job_due(draft, one)


def pass_due_notices(draft: Draft) -> None:
    for lease in found(Lease, draft.state.leases, "timed"):
        if lease.notice is not None and lease.notice.due_ms <= draft.now:
            reclaim.due(draft, lease)


def _deadlines(state: State) -> Iterator[tuple[Millis, Mortal]]:
    gap_ms = state.limits.restart_gap_ms
    for request in found(Request, state.requests, "timed"):
        if request.expires_ms is not None:
            yield request.expires_ms, request
    for session in found(Session, state.sessions, "timed"):
        yield Millis(session.since_ms + gap_ms), session
    for lease in found(Lease, state.leases, "timed"):
        at_ms = _lease_deadline(state, lease)
        if at_ms is not None:
            yield at_ms, lease
    for job in found(Job, state.jobs, "timed"):
        limit_ms = jobs.limit_ms(state, job)
        if limit_ms is not None:
            yield limit_ms, job


def _lease_deadline(state: State, lease: Lease) -> Millis | None:
    if lease.state is not LeaseState.ACTIVE:
        return lease.deadline_ms
    known = (
        None if lease.order is None else lease.order.due_ms,
        None if lease.notice is None else lease.notice.due_ms,
        reclaim.end_notice_ms(state, lease),
    )
    return min((at_ms for at_ms in known if at_ms is not None), default=None)


# --- one entity is due; an earlier one may have changed it meanwhile -----------------------------------------------------


def _request_due(draft: Draft, before: Request) -> None:
    request = draft.state.requests[before.id]
    if request == before:
        waited_ms = draft.now - request.since_ms
        end(draft, request, "wait_over", Reason.of("wait_over", waited_ms=waited_ms))


def _session_due(draft: Draft, before: Session) -> None:
    session = draft.state.sessions[before.id]
    if session == before:
        sessions.gap_overdue(draft, session)


def _job_due(draft: Draft, before: Job) -> None:
    job = draft.state.jobs[before.id]
    if job == before:
        jobs.overdue(draft, job)


def _lease_due(draft: Draft, before: Lease) -> None:
    lease = draft.state.leases[before.id]
    if lease != before:
        return
    if lease.state is LeaseState.GRANTED:
        leases.not_acknowledged(draft, lease)
    elif lease.state is LeaseState.DRAINING:
        if lease.order is not None:
            giveback.order_overdue(draft, lease)
        else:
            giveback.overdue(draft, lease)
    elif lease.order is not None and lease.order.due_ms <= draft.now:
        after_ms = draft.state.limits.resume_ms
        leases.resume_failed(draft, lease, Reason.of("resume_overdue", after_ms=after_ms))
    elif lease.notice is None:
        reclaim.announce_end(draft, lease)
