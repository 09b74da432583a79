"""What a request for slots must satisfy, and how one ends: shared by people's requests and by jobs."""

from __future__ import annotations

from ..errors import Conflict, NotFound, Refused, TooMany
from .draft import Draft
from .model import (
    Owner,
    Queue,
    Reason,
    Request,
    Session,
    SessionId,
    SessionState,
    SlotSpec,
    State,
)
from .place import never_served
from .table import live


def live_session(state: State, owner: Owner, session_id: SessionId) -> Session:
    session = owned_session(state, owner, session_id)
    if session.state is not SessionState.LIVE:
        raise Conflict(Reason.of("session_over"))
    return session


def owned_session(state: State, owner: Owner, session_id: SessionId) -> Session:
    session = state.sessions.get(session_id)
    if session is None or session.owner != owner:
        raise NotFound(Reason.of("no_such_session"))
    return session


def queue_named(state: State, name: str) -> Queue:
    queue = state.queues.get(name)
    if queue is None:
        raise Refused(Reason.of("unknown_queue", queue=name, known=", ".join(sorted(state.queues))))
    return queue


def check_servable(state: State, spec: SlotSpec) -> None:
    """Raise Refused for what never can be. While no device was reported yet, anything may come."""
    if spec.count < 1:
        raise Refused(Reason.of("bad_count", count=spec.count))
    problems = [telemetry.problem for telemetry in state.telemetry.values()]
    if problems and all(problem is not None and problem.code == "no_gpu" for problem in problems):
        raise Refused(Reason.of("no_gpu"))
    if state.slots or (spec.profile is not None and spec.count > 1):
        reason = never_served(state, spec)
        if reason is not None:
            raise Refused(reason)


def check_room(state: State, owner: Owner) -> None:
    waiting = sum(request.owner == owner for request in live(state.requests))
    if waiting >= state.limits.waiting_max_per_owner:
        raise TooMany(Reason.of("too_many_waiting", waiting=waiting))


def end(draft: Draft, request: Request, arc: str, reason: Reason) -> None:
    draft.move(request, arc, reason, reason=reason)
