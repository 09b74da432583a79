"""Sessions: the processes that may hold leases."""

from __future__ import annotations

from ...core.events import (
    OfferMade,
    SessionEnded,
    SessionOpened,
    SessionReported,
    SessionRestarting,
)
from ...core.model import (
    Activity,
    GiveBackKind,
    Offer,
    Reason,
    Session,
    SessionId,
    SessionKind,
    SessionState,
)
from ...core.table import live
from ...errors import NotFound, Refused
from ...processes import boot_id, start_ticks, uid_of
from ...wire import routes
from ...wire.bodies import OfferBody, ReportsBody, SessionBody
from ...wire.views import ReportedView, SessionsView, SessionView
from .call import Actions, Answer, Call, Reads
from .values import name_of, reason_of


def get_session(call: Call) -> Answer:
    session = _own_session(call, call.thing_id)
    views = call.views
    return Answer(views.session_key(session), lambda: views.session(session))


def get_sessions(call: Call) -> Answer:
    server_id = call.query.get("server_id")
    views = call.views
    sessions = tuple(
        session
        for session in live(call.state.sessions)
        if session.owner == call.caller.owner and server_id in (None, session.server_id)
    )
    return Answer(
        tuple(views.session_key(session) for session in sessions),
        lambda: SessionsView(tuple(views.session(session) for session in sessions)),
    )


async def put_session(call: Call) -> SessionView:
    body = call.body_as(SessionBody)
    session_id = SessionId(call.thing_id)
    predecessor = SessionId(body.predecessor) if body.predecessor is not None else None
    session = Session(
        id=session_id,
        owner=call.caller.owner,
        uid=call.caller.uid,
        kind=SessionKind(body.kind),
        name=name_of(body.name),
        pid=body.pid,
        start_ticks=_start_ticks(call, body),
        boot_id=boot_id(),
        kernel_id=body.kernel_id,
        server_id=body.server_id,
        headless=body.headless,
        groups=call.caller.groups,
    )
    await call.send(SessionOpened(session, predecessor))
    return _view(call)


async def report_sessions(call: Call) -> ReportedView:
    """The heartbeat: many sessions, one answer. What is not a live session of the caller is named, not refused."""
    unknown = []
    for report in call.body_as(ReportsBody).sessions:
        session = call.state.sessions.get(SessionId(report.session_id))
        if (
            session is None
            or session.owner != call.caller.owner
            or session.state is SessionState.ENDED
        ):
            unknown.append(report.session_id)
            continue
        activity = Activity(report.activity)
        if (session.activity, session.front_ends) != (activity, report.front_ends):
            event = SessionReported(call.caller.owner, session.id, activity, report.front_ends)
            call.broker.loop.send(event, call.call_id)
    return ReportedView(tuple(unknown))


async def offer(call: Call) -> SessionView:
    body = call.body_as(OfferBody)
    made = Offer(
        tuple(sorted(map(GiveBackKind, body.kinds), key=list(GiveBackKind).index)),
        tuple((GiveBackKind(kind), reason_of(reason)) for kind, reason in body.refusals.items()),
    )
    session_id = SessionId(call.thing_id)
    await call.send(OfferMade(call.caller.owner, session_id, made, body.by_server))
    return _view(call)


async def restart_session(call: Call) -> SessionView:
    await call.send(SessionRestarting(call.caller.owner, SessionId(call.thing_id)))
    return _view(call)


async def end_session(call: Call) -> None:
    session = _own_session(call, call.thing_id)
    await call.send(SessionEnded(session.id, Reason.of("shut_down")))


def _own_session(call: Call, session_id: str) -> Session:
    session = call.state.sessions.get(SessionId(session_id))
    if session is None or session.owner != call.caller.owner:
        raise NotFound(Reason.of("no_such_session"))
    return session


def _view(call: Call) -> SessionView:
    return call.views.session(_own_session(call, call.thing_id))


def _start_ticks(call: Call, body: SessionBody) -> int:
    """Which process the pid is. One that is known already may be gone by now: the answer stays the same."""
    known = call.state.sessions.get(SessionId(call.thing_id))
    if known is not None and known.pid == body.pid:
        return known.start_ticks
    ticks = start_ticks(body.pid)
    if ticks is None:
        raise Refused(Reason.of("no_such_process", pid=body.pid))
    if uid_of(body.pid) != call.caller.uid:
        raise Refused(Reason.of("process_not_yours", pid=body.pid))
    return ticks


READS: Reads = {routes.SESSION: get_session, routes.SESSIONS: get_sessions}
ACTIONS: Actions = {
    routes.PUT_SESSION: put_session,
    routes.REPORT_SESSIONS: report_sessions,
    routes.OFFER: offer,
    routes.RESTART_SESSION: restart_session,
    routes.END_SESSION: end_session,
}
