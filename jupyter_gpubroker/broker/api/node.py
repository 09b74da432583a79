"""The broker itself, its devices and its line."""

from __future__ import annotations

from functools import cache

from msgspec.structs import replace

from ...core.model import Reason
from ...errors import Refused
from ...wire import openapi, routes
from ...wire.views import MeView
from .call import Actions, Answer, Call, Reads


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
    view = MeView(call.caller.owner, call.caller.uid, admin=True)
    return Answer(view, lambda: view)


def gpus(call: Call) -> Answer:
    views = call.views
    return Answer(views.gpus_key(), views.gpus)


def queue(call: Call) -> Answer:
    views = call.views
    return Answer(views.queue_key(), views.queue)


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
    routes.OPENAPI: description,
}
ACTIONS: Actions = {}
