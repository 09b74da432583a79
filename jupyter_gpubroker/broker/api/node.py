"""The broker itself, its devices and its line."""

from __future__ import annotations

from functools import cache

from ...wire import openapi, routes
from ...wire.views import HealthView, MeView
from .call import Actions, Answer, Call, Reads


def health(call: Call) -> Answer:
    view: HealthView = call.views.health(call.broker.settings)
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
    routes.READY: health,
    routes.ME: me,
    routes.GPUS: gpus,
    routes.QUEUE: queue,
    routes.OPENAPI: description,
}
ACTIONS: Actions = {}
