"""When something must happen though no event comes, and what happens then.

Each entity that is not over has at most one next deadline (`machine.DEADLINE` names its kind). After `pass_due` none is left
that is due, but notices, which `settle` judges last, when it is known what came free.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from . import giveback, health, jobs, leases, reclaim, sessions
from .asking import end
from .draft import Draft
from .model import (
    Gpu,
    Job,
    Lease,
    LeaseState,
    Millis,
    Reason,
    Request,
    Session,
    State,
)
from .table import found, groups

Mortal = Request | Session | Lease | Job | Gpu


def next_deadline(state: State) -> Millis | None:
    """When a `Ticked` is due at the latest."""
    if state.contradiction is not None:
        return None
    return min((at for at, _ in chain(_scheduled(state), _others(state))), default=None)


def pass_due(draft: Draft) -> None:
    """Everything that is due happens, in the order of its time; but for notices."""
    known = chain(_scheduled(draft.state, draft.now), _others(draft.state))
    overdue = [(at, one) for at, one in known if at <= draft.now]
    for _, one in sorted(overdue, key=lambda pair: (pair[0], type(pair[1]).__name__, pair[1].id)):
        if isinstance(one, Request):
            _request_due(draft, one)
        elif isinstance(one, Session):
            _session_due(draft, one)
        elif isinstance(one, Lease):
            _lease_due(draft, one)
        elif isinstance(one, Job):
            _job_due(draft, one)
        else:
            _gpu_due(draft, one)


def pass_due_notices(draft: Draft) -> None:
    for lease in found(Lease, draft.state.leases, "noticed"):
        if lease.notice is not None and lease.notice.due_ms <= draft.now:
            reclaim.due(draft, lease)


def _scheduled(state: State, now: Millis | None = None) -> Iterator[tuple[Millis, Mortal]]:
    """From the indices by time: what is due by `now`, and at least the next of each kind."""
    tables: tuple[tuple[type[Mortal], Mapping[Any, Mortal]], ...] = (
        (Request, state.requests),
        (Lease, state.leases),
        (Job, state.jobs),
    )
    for entity_type, entities in tables:
        for at_ms, key in groups(entity_type, entities, "due").get(True, ()):
            yield at_ms, entities[key]
            if now is None or at_ms > now:
                break


def _others(state: State) -> Iterator[tuple[Millis, Mortal]]:
    """Those few whose time depends on more than themselves."""
    for session in found(Session, state.sessions, "restarting"):
        yield Millis(session.since_ms + state.limits.restart_gap_ms), session
    for lease in found(Lease, state.leases, "ending"):
        at_ms = reclaim.end_notice_ms(state, lease) if lease.state is LeaseState.ACTIVE else None
        if at_ms is not None:
            yield at_ms, lease
    for job in found(Job, state.jobs, "stopping"):
        overdue_ms = jobs.overdue_ms(state, job)
        if overdue_ms is not None:
            yield overdue_ms, job
    for gpu in found(Gpu, state.gpus, "faulty"):
        well_ms = health.well_from_ms(gpu)
        if well_ms is not None:
            yield well_ms, gpu


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


def _gpu_due(draft: Draft, before: Gpu) -> None:
    gpu = draft.state.gpus[before.id]
    if gpu == before:
        health.probation_over(draft, gpu)


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
        leases.resume_overdue(draft, lease)
    elif lease.notice is None:
        reclaim.announce_end(draft, lease)
