"""Requests: places in line. An open long poll on one is what makes it demand."""

from __future__ import annotations

import uuid

from ...core.decide import advance
from ...core.events import RequestCancelled, RequestMade
from ...core.model import Reason, Request, RequestId, RequestState, SessionId
from ...core.table import live
from ...errors import NotFound
from ...wire import routes
from ...wire.bodies import RequestBody
from ...wire.views import RequestsView, RequestView
from ..views import Views
from .call import Actions, Answer, Call, Reads
from .values import spec_of


def get_request(call: Call) -> Answer:
    request = own_request(call, call.thing_id)
    views = call.views
    attends = request.id if request.state is RequestState.WAITING else None
    return Answer(views.request_key(request), lambda: views.request(request), attends)


def get_requests(call: Call) -> Answer:
    views = call.views
    requests = tuple(
        request for request in live(call.state.requests) if request.owner == call.caller.owner
    )
    return Answer(
        tuple(views.request_key(request) for request in requests),
        lambda: RequestsView(tuple(views.request(request) for request in requests)),
    )


async def put_request(call: Call) -> RequestView:
    await call.ask(_made(call, call.thing_id))
    return request_view(call, call.thing_id)


async def outlook(call: Call) -> RequestView:
    """The core is asked as always; what follows is shown and thrown away."""
    await call.first_look()
    now = call.broker.loop.time.now()
    event = _made(call, uuid.uuid4().hex)
    _, state = advance(call.state, event, now)
    views = Views(state, call.broker.latest, now, call.caller)
    return views.request(state.requests[event.request_id])


async def cancel_request(call: Call) -> RequestView:
    reason = Reason.of("cancelled_by_client")
    await call.send(RequestCancelled(call.caller.owner, RequestId(call.thing_id), reason))
    return request_view(call, call.thing_id)


def own_request(call: Call, request_id: str) -> Request:
    request = call.state.requests.get(RequestId(request_id))
    if request is None or request.owner != call.caller.owner:
        raise NotFound(Reason.of("no_such_request"))
    return request


def _made(call: Call, request_id: str) -> RequestMade:
    body = call.body_as(RequestBody)
    return RequestMade(
        call.caller.owner,
        RequestId(request_id),
        SessionId(body.session_id),
        spec_of(body.spec),
        body.queue,
        body.wait_ms,
        body.duration_ms,
        body.preemptible,
    )


def request_view(call: Call, request_id: str) -> RequestView:
    return call.views.request(own_request(call, request_id))


READS: Reads = {
    routes.REQUEST: get_request,
    routes.REQUESTS: get_requests,
}
ACTIONS: Actions = {
    routes.PUT_REQUEST: put_request,
    routes.OUTLOOK: outlook,
    routes.CANCEL_REQUEST: cancel_request,
}
