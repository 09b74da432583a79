"""People ask for slots, and stop asking.

What can never be served is refused at once, saying what there is; what cannot be served now waits in line (`queue`). The same
id with the same content again is the same request.
"""

from __future__ import annotations

from ..errors import Conflict, NotFound, Refused
from . import giveback, jobs
from .asking import check_room, check_servable, end, live_session, queue_named
from .draft import Draft
from .events import RequestAbandoned, RequestCancelled, RequestMade, UnparkRequested
from .model import (
    Lease,
    LeaseState,
    Millis,
    Reason,
    Request,
    RequestState,
    Session,
    SessionKind,
    SlotSpec,
    State,
)
from .place import never_served
from .table import found, is_over, live

_IN_USE = frozenset({LeaseState.GRANTED, LeaseState.ACTIVE})


def made(draft: Draft, event: RequestMade) -> None:
    state = draft.state
    existing = state.requests.get(event.request_id)
    if existing is not None:
        _same(existing, event)
        return
    session = live_session(state, event.owner, event.session_id)
    if session.kind is SessionKind.RUNNER:
        raise Refused(Reason.of("runner_holds_nothing"))
    queue = queue_named(state, event.queue)
    check_servable(state, event.spec)
    check_room(state, event.owner)
    _check_holds_nothing(state, session)
    request = Request(
        id=event.request_id,
        number=draft.next_number(),
        owner=event.owner,
        session_id=session.id,
        spec=event.spec,
        queue=queue.name,
        since_ms=draft.now,
        place_ms=_place_kept(draft, session, event),
        expires_ms=_expiry(draft, event.wait_ms),
        duration_ms=event.duration_ms,
        preemptible=event.preemptible or queue.preemptible,
    )
    draft.put(request, Reason.of("asked"))


def unpark_asked(draft: Draft, event: UnparkRequested) -> None:
    state = draft.state
    lease = state.leases.get(event.lease_id)
    if lease is None or lease.owner != event.owner:
        raise NotFound(Reason.of("no_such_lease"))
    existing = state.requests.get(event.request_id)
    if existing is not None:
        if existing.owner != event.owner or existing.lease_id != lease.id:
            raise Conflict(Reason.of("other_content"))
        return
    if lease.state is not LeaseState.PARKED:
        raise Conflict(Reason.of("not_parked"))
    session = live_session(state, event.owner, lease.session_id)
    _check_not_waiting(state, session)
    check_room(state, event.owner)
    request = Request(
        id=event.request_id,
        number=draft.next_number(),
        owner=event.owner,
        session_id=session.id,
        spec=SlotSpec(count=len(lease.home), pinned=lease.home),
        queue=lease.queue,
        since_ms=draft.now,
        expires_ms=_expiry(draft, event.wait_ms),
        preemptible=lease.preemptible,
        lease_id=lease.id,
    )
    draft.put(request, Reason.of("asked_back"))


def cancelled(draft: Draft, event: RequestCancelled) -> None:
    """Waiting ends; a grant that its holder has not applied yet is taken back."""
    request = draft.state.requests.get(event.request_id)
    if request is None or request.owner != event.owner:
        raise NotFound(Reason.of("no_such_request"))
    if request.job_id is not None:
        jobs.stop(draft, draft.state.jobs[request.job_id], event.reason)
        return
    if request.state is RequestState.WAITING:
        end(draft, request, "cancelled", event.reason)
    elif request.lease_id is not None:
        lease = draft.state.leases.get(request.lease_id)
        if lease is not None and lease.state is LeaseState.GRANTED:
            take_back(draft, lease, event.reason)


def abandoned(draft: Draft, event: RequestAbandoned) -> None:
    request = draft.state.requests.get(event.request_id)
    if request is not None and request.state is RequestState.WAITING and request.job_id is None:
        end(draft, request, "abandoned", Reason.of("nobody_listens"))


def take_back(draft: Draft, lease: Lease, cause: Reason, arc: str = "given_back") -> None:
    """End a grant that its holder has not applied. A lease on its way back from parking is parked again."""
    resuming = lease.order.kind if lease.order is not None else None
    giveback.let_go(draft, lease, cause, arc=arc, kind=resuming)


def refuse_unservable(draft: Draft) -> None:
    """The devices are known now: who asked before, for what there is not, need not wait."""
    for request in live(draft.state.requests):
        reason = None if request.spec.pinned else never_served(draft.state, request.spec)
        if reason is None:
            continue
        if request.job_id is not None:
            jobs.refused(draft, request.job_id, reason)
        end(draft, request, "unsatisfiable", reason)


# --- what a request of a session must satisfy besides (see `asking`) ----------------------------------------------------


def _check_holds_nothing(state: State, session: Session) -> None:
    """One lease per process: it must never see two MIG instances, and its devices are one environment variable."""
    _check_not_waiting(state, session)
    for lease in found(Lease, state.leases, "by_session", session.id):
        if is_over(lease):
            continue
        if lease.state in _IN_USE:
            raise Conflict(Reason.of("already_holds", lease_id=lease.id))
        if lease.order is not None:
            raise Conflict(Reason.of("giving_back", lease_id=lease.id))


def _check_not_waiting(state: State, session: Session) -> None:
    for request in found(Request, state.requests, "by_session", session.id):
        raise Conflict(Reason.of("already_waiting", request_id=request.id))


def _same(existing: Request, event: RequestMade) -> None:
    before = (existing.owner, existing.session_id, existing.spec, existing.duration_ms)
    asked = (event.owner, event.session_id, event.spec, event.duration_ms)
    if before != asked or existing.queue != event.queue:
        raise Conflict(Reason.of("other_content"))


def _expiry(draft: Draft, wait_ms: int | None) -> Millis | None:
    """None where it waits for ever, or is answered at once."""
    return Millis(draft.now + wait_ms) if wait_ms else None


def _place_kept(draft: Draft, session: Session, event: RequestMade) -> Millis | None:
    """The place in line that the crashed incarnation had for the same thing, if it asks again soon."""
    before = draft.state.sessions.get(session.predecessor) if session.predecessor else None
    if before is None or draft.now - before.since_ms > draft.state.limits.restart_gap_ms:
        return None
    asked_already = any(r.session_id == session.id for r in draft.state.requests.values())
    if asked_already:
        return None
    kept = [
        request.in_line_since_ms
        for request in draft.state.requests.values()
        if request.session_id == before.id
        and (request.spec, request.queue) == (event.spec, event.queue)
        and _lost_at_the_end(draft.state, request, before)
    ]
    return max(kept, default=None)


def _lost_at_the_end(state: State, request: Request, session: Session) -> bool:
    """Whether the session was waiting for it, or held it and did not give it back, when it ended."""
    if request.state is RequestState.CANCELLED:
        return request.ended_ms == session.since_ms
    if request.state is not RequestState.GRANTED or request.lease_id is None:
        return False
    lease = state.leases.get(request.lease_id)
    if lease is None or lease.session_id != session.id or lease.gave_back is not None:
        return False
    return lease.state is not LeaseState.CLEARED or lease.since_ms >= session.since_ms
