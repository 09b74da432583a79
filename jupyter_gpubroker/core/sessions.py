"""Processes that may hold leases: how they come, restart and go.

A restart that was announced hands everything to the successor. An end that was not ends what was held, and the kernel that is
started in its place keeps the place in line (`requests`).
"""

from __future__ import annotations

from dataclasses import replace

from ..errors import Conflict, NotFound
from . import giveback, idle, jobs
from .asking import end, owned_session
from .draft import Draft
from .events import (
    OfferMade,
    SessionEnded,
    SessionOpened,
    SessionReported,
    SessionRestarting,
)
from .model import (
    GiveBackKind,
    Lease,
    LeaseState,
    MiB,
    Millis,
    Reason,
    Session,
    SessionState,
)
from .table import found, is_over, live


def opened(draft: Draft, event: SessionOpened) -> None:
    session = event.session
    existing = draft.state.sessions.get(session.id)
    if existing is not None:
        _same_process(existing, session)
        draft.put(_completed(existing, session), Reason.of("session_described"))
        return
    before = None if event.predecessor is None else draft.state.sessions.get(event.predecessor)
    if before is not None and before.owner != session.owner:
        raise NotFound(Reason.of("no_such_session"))
    session = replace(
        session,
        state=SessionState.LIVE,
        since_ms=draft.now,
        activity_since_ms=draft.now,
        predecessor=None if before is None else before.id,
    )
    draft.put(session, Reason.of("session_opened"))
    if before is not None and before.state is SessionState.RESTARTING:
        _succeed(draft, before, session)
    elif before is not None and before.state is SessionState.LIVE:
        end_session(draft, before, Reason.of("session_replaced"))


def reported(draft: Draft, event: SessionReported) -> None:
    before = owned_session(draft.state, event.owner, event.session_id)
    if before.state is SessionState.ENDED:
        return
    session = replace(before, activity=event.activity, front_ends=event.front_ends)
    if before.activity is not event.activity:
        session = replace(session, activity_since_ms=draft.now)
    draft.put(session, Reason.of("session_reported", activity=event.activity.value))
    if before.activity is not event.activity:
        idle.activity_changed(draft, session, before.activity)


def offered(draft: Draft, event: OfferMade) -> None:
    session = owned_session(draft.state, event.owner, event.session_id)
    if session.state is SessionState.ENDED:
        return
    kernel_offer = session.kernel_offer if event.by_server else event.offer
    server_offer = event.offer if event.by_server else session.server_offer
    session = replace(session, kernel_offer=kernel_offer, server_offer=server_offer)
    draft.put(session, Reason.of("offer_made"))


def restarting(draft: Draft, event: SessionRestarting) -> None:
    session = owned_session(draft.state, event.owner, event.session_id)
    if session.state is SessionState.RESTARTING:
        return
    if session.state is SessionState.ENDED:
        raise Conflict(Reason.of("session_over"))
    reason = Reason.of("restart_announced")
    draft.move(session, "restart_announced", reason)
    _acknowledge_later(draft, session, draft.state.limits.restart_gap_ms, reason)


def ended(draft: Draft, event: SessionEnded) -> None:
    session = draft.state.sessions.get(event.session_id)
    if session is None:
        raise NotFound(Reason.of("no_such_session"))
    if session.state is SessionState.RESTARTING and event.reason.code == "process_gone":
        _await_successor(draft, session, event.reason)
    elif session.state is not SessionState.ENDED:
        end_session(draft, session, event.reason)


def end_session(draft: Draft, session: Session, cause: Reason, arc: str = "ended") -> None:
    """Nobody is there any more: leases drain without an order, requests leave the line, jobs are lost."""
    draft.move(session, arc, cause)
    jobs.runner_gone(draft, session.id, cause)
    for request in live(draft.state.requests):
        if request.session_id == session.id:
            end(draft, request, "holder_gone", cause)
    for lease in _leases(draft, session):
        if lease.state is LeaseState.PARKED:
            giveback.drop_parked(draft, lease, cause)
        elif lease.state is LeaseState.CLEARED:
            draft.put(replace(lease, residue_mib=MiB(0)), cause)
        elif lease.state is not LeaseState.QUARANTINED and not jobs.has_process(draft.state, lease):
            giveback.let_go(draft, lease, cause)


def gap_overdue(draft: Draft, session: Session) -> None:
    """The successor did not come in time, or the restart was not carried out: who lives keeps what it holds."""
    limits = draft.state.limits
    if session.is_gone:
        reason = Reason.of("restart_not_finished", after_ms=limits.restart_gap_ms)
        end_session(draft, session, reason, "gap_overdue")
        return
    reason = Reason.of("not_restarted", after_ms=limits.restart_gap_ms)
    draft.move(session, "not_restarted", reason)
    _acknowledge_later(draft, session, 0, reason)


# --- restart ------------------------------------------------------------------------------------------------------------


def _await_successor(draft: Draft, session: Session, reason: Reason) -> None:
    """The end of the process is a part of every restart; its successor's time begins only now."""
    if session.is_gone:
        return
    draft.put(replace(session, is_gone=True, since_ms=draft.now), reason)
    _acknowledge_later(draft, session, draft.state.limits.restart_gap_ms, reason)


def _acknowledge_later(draft: Draft, session: Session, after_ms: int, reason: Reason) -> None:
    """What was granted waits until there is a process again, and then for its word."""
    for lease in _leases(draft, session):
        if lease.state is LeaseState.GRANTED:
            due_ms = Millis(draft.now + after_ms + draft.state.limits.ack_ms)
            draft.put(replace(lease, deadline_ms=due_ms), reason)


def _succeed(draft: Draft, before: Session, session: Session) -> None:
    reason = Reason.of("restarted")
    draft.move(before, "succeeded", reason)
    for request in live(draft.state.requests):
        if request.session_id != before.id:
            continue
        # What was parked is gone with the process; the wish for a GPU is not.
        parked = None if request.lease_id is None else draft.state.leases[request.lease_id]
        spec = request.spec if parked is None else parked.spec
        draft.put(replace(request, session_id=session.id, spec=spec, lease_id=None), reason)
    for job in live(draft.state.jobs):
        if job.session_id == before.id:
            draft.put(replace(job, session_id=session.id), reason)
    for lease in _leases(draft, before):
        if lease.state is LeaseState.PARKED:
            giveback.drop_parked(draft, lease, reason)
        elif lease.state is LeaseState.CLEARED:
            draft.put(replace(lease, residue_mib=MiB(0)), reason)
        else:
            draft.put(_handed_over(draft, lease, session), reason)


def _handed_over(draft: Draft, lease: Lease, session: Session) -> Lease:
    lease = replace(idle.begin(draft, lease), session_id=session.id, notice=None, late=None)
    if lease.state is LeaseState.GRANTED:
        due_ms = Millis(draft.now + draft.state.limits.ack_ms)
        return replace(lease, order=None, deadline_ms=due_ms)
    if lease.state is LeaseState.ACTIVE:
        return replace(lease, order=None)
    if lease.gave_back in giveback.LEAVES_RESIDUE:
        return replace(lease, gave_back=GiveBackKind.RESTARTED)
    return lease


# --- small things ---------------------------------------------------------------------------------------------------------


def _leases(draft: Draft, session: Session) -> list[Lease]:
    mine = found(Lease, draft.state.leases, "by_session", session.id)
    return [lease for lease in mine if not is_over(lease)]


def _same_process(existing: Session, session: Session) -> None:
    def identity(one: Session) -> tuple[object, ...]:
        return one.owner, one.uid, one.kind, one.pid, one.start_ticks, one.boot_id

    if identity(existing) != identity(session):
        raise Conflict(Reason.of("other_content"))


def _completed(existing: Session, session: Session) -> Session:
    """The process may open its session before its server does; the server knows more. Groups are those of the last caller."""
    existing = replace(existing, groups=session.groups)
    if existing.server_id is not None or session.server_id is None:
        return existing
    return replace(
        existing,
        name=session.name,
        kernel_id=session.kernel_id,
        server_id=session.server_id,
        headless=session.headless,
    )
