"""What a request for slots must satisfy, and how one ends: shared by people's requests and by jobs."""

from __future__ import annotations

from ..errors import Conflict, NotFound, Refused, TooMany
from .draft import Draft
from .model import (
    Owner,
    Reason,
    Request,
    Session,
    SessionId,
    SessionState,
    SlotSpec,
    State,
    Telemetry,
)
from .place import never_served
from .rules import Queue
from .table import groups


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
    """Raise Refused for what never can be. While no device was looked at yet, anything may come."""
    if spec.count < 1:
        raise Refused(Reason.of("bad_count", count=spec.count))
    is_hopeless = spec.profile is not None and spec.count > 1
    if is_hopeless or state.slots or any(map(_has_no_gpu, state.telemetry.values())):
        reason = never_served(state, spec)
        if reason is not None:
            raise Refused(reason)


def _has_no_gpu(node: Telemetry) -> bool:
    return node.problem is not None and node.problem.code == "no_gpu"


def check_room(state: State, owner: Owner) -> None:
    waiting = groups(Request, state.requests, "waiting").get(owner, 0)
    if waiting >= state.limits.waiting_max_per_owner:
        raise TooMany(Reason.of("too_many_waiting", waiting=waiting))


def end(draft: Draft, request: Request, arc: str, reason: Reason) -> None:
    draft.move(request, arc, reason, reason=reason)
