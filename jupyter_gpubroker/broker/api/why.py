"""Why things are as they are, also those that are over or were refused."""

from __future__ import annotations

from ...core.model import Job, Lease, Reason, Request
from ...errors import Conflict, NotFound, Refused
from ...wire import routes
from ...wire.views import WhyView
from .. import why
from .call import Action, Actions, Call, Reads

LISTED_MAX = 5


async def why_anything(call: Call) -> WhyView:
    """Of whatever has an id that begins with the query argument `of`."""
    prefix = call.query.get("of", "").lower()
    if not prefix:
        raise Refused(Reason.of("which_id"))
    found = why.things(call.state, call.broker.refusals, call.caller.owner, prefix)
    if not found:
        raise NotFound(Reason.of("unknown_id", prefix=prefix))
    if len(found) > 1:
        listed = ", ".join(sorted(one[: len(prefix) + 4] for one in found)[:LISTED_MAX])
        raise Conflict(Reason.of("ambiguous_id", prefix=prefix, listed=listed))
    return await _answer(call, *found.values())


def _why(kind: type[why.Thing], missing: str) -> Action:
    async def action(call: Call) -> WhyView:
        refusals, owner = call.broker.refusals, call.caller.owner
        thing = why.thing_of(call.state, refusals, owner, kind, call.thing_id)
        if thing is None:
            raise NotFound(Reason.of(missing))
        return await _answer(call, thing)

    return action


async def _answer(call: Call, thing: why.Thing) -> WhyView:
    story = await call.broker.loop.history(thing.id)
    return why.why(call.views, call.state, thing, story)


READS: Reads = {}
ACTIONS: Actions = {
    routes.WHY: why_anything,
    routes.WHY_JOB: _why(Job, "no_such_job"),
    routes.WHY_LEASE: _why(Lease, "no_such_lease"),
    routes.WHY_REQUEST: _why(Request, "no_such_request"),
}
