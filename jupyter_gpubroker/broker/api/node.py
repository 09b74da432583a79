"""The broker itself, its devices and its line."""

from __future__ import annotations

import os
from functools import cache

from msgspec.structs import replace

from ...core.model import Reason
from ...core.table import live
from ...errors import Conflict, Refused
from ...wire import openapi, routes
from ...wire.bodies import StopBody
from ...wire.views import MeView, StoppedView
from ..housekeeping import is_in_use
from .call import Actions, Answer, Call, Reads
from .problems import problem_of


class NotReady(Refused):
    """The devices were not looked at yet."""

    status = 503


def health(call: Call) -> Answer:
    view = call.views.health(call.broker.settings)
    return Answer(replace(view, uptime_ms=0), lambda: view)


def ready(call: Call) -> Answer:
    view = call.views.health(call.broker.settings)
    if not view.ready:
        raise NotReady(Reason.of("not_ready"))
    return Answer(view, lambda: view)


def me(call: Call) -> Answer:
    view = MeView(call.caller.owner, call.caller.uid, call.caller.is_admin)
    return Answer(view, lambda: view)


def gpus(call: Call) -> Answer:
    views = call.views
    return Answer(views.gpus_key(), views.gpus)


def queue(call: Call) -> Answer:
    views = call.views
    return Answer(views.queue_key(), views.queue)


async def stop(call: Call) -> StoppedView:
    """Whoever is waited for by somebody does not go without a word of force."""
    state = call.state
    body = call.body_as(StopBody)
    is_attended = any(True for _ in live(state.sessions)) or call.broker.presence.is_waited_for
    if body.unless_attended and is_attended:
        raise Conflict(Reason.of("broker_attended"))
    if is_in_use(state) and not body.force:
        raise Conflict(
            Reason.of(
                "broker_in_use",
                leases=sum(1 for _ in live(state.leases)),
                requests=sum(request.job_id is None for request in live(state.requests)),
                jobs=sum(1 for _ in live(state.jobs)),
            )
        )
    call.broker.stop()
    said = problem_of(200, Reason.of("broker_stopping"))
    return StoppedView(os.getpid(), said.detail, said.detail_es)


def rules(call: Call) -> Answer:
    view = call.views.rules()
    return Answer(view, lambda: view)


def description(_: Call) -> Answer:
    document = _description()
    return Answer(document, lambda: document)


@cache
def _description() -> bytes:
    return openapi.document()


READS: Reads = {
    routes.HEALTH: health,
    routes.READY: ready,
    routes.ME: me,
    routes.GPUS: gpus,
    routes.QUEUE: queue,
    routes.POLICIES: rules,
    routes.OPENAPI: description,
}
ACTIONS: Actions = {routes.STOP: stop}
