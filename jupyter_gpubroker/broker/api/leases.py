"""Leases: what holders do with what they hold."""

from __future__ import annotations

from ...core.events import (
    LeaseAcknowledged,
    LeaseKept,
    LeaseReleased,
    NoticeShown,
    OrderAnswered,
    UnparkRequested,
)
from ...core.model import GiveBackKind, Lease, LeaseId, MiB, Reason, RequestId
from ...core.table import live
from ...errors import NotFound
from ...wire import routes
from ...wire.bodies import AnswerBody, KeepBody, NoticeShownBody, ReleaseBody, UnparkBody
from ...wire.views import LeasesView, LeaseView, RequestView
from .call import Actions, Answer, Call, Reads
from .requests import request_view
from .values import reason_of


def get_lease(call: Call) -> Answer:
    lease = own_lease(call, call.thing_id)
    views = call.views
    return Answer(views.lease_key(lease), lambda: views.lease(lease))


def get_leases(call: Call) -> Answer:
    views = call.views
    leases = tuple(lease for lease in live(call.state.leases) if lease.owner == call.caller.owner)
    return Answer(
        tuple(views.lease_key(lease) for lease in leases),
        lambda: LeasesView(tuple(views.lease(lease) for lease in leases)),
    )


async def acknowledge(call: Call) -> LeaseView:
    await call.send(LeaseAcknowledged(call.caller.owner, LeaseId(call.thing_id)))
    return _view(call)


async def keep(call: Call) -> LeaseView:
    body = call.body_as(KeepBody)
    await call.send(LeaseKept(call.caller.owner, LeaseId(call.thing_id), body.keep_ms))
    return _view(call)


async def release(call: Call) -> LeaseView:
    return await _release(call, None)


async def park(call: Call) -> LeaseView:
    return await _release(call, GiveBackKind.PARKED)


async def unpark(call: Call) -> RequestView:
    body = call.body_as(UnparkBody)
    request_id = RequestId(body.request_id)
    await call.send(
        UnparkRequested(call.caller.owner, LeaseId(call.thing_id), request_id, body.wait_ms)
    )
    return request_view(call, body.request_id)


async def notice_shown(call: Call) -> LeaseView:
    number = call.body_as(NoticeShownBody).number
    await call.send(NoticeShown(call.caller.owner, LeaseId(call.thing_id), number))
    return _view(call)


async def answer(call: Call) -> LeaseView:
    body = call.body_as(AnswerBody)
    reason = None if body.reason is None else reason_of(body.reason)
    await call.send(
        OrderAnswered(
            call.caller.owner,
            LeaseId(call.thing_id),
            body.number,
            body.ok,
            MiB(body.residue_mib),
            reason,
        )
    )
    return _view(call)


def own_lease(call: Call, lease_id: str) -> Lease:
    lease = call.state.leases.get(LeaseId(lease_id))
    if lease is None or lease.owner != call.caller.owner:
        raise NotFound(Reason.of("no_such_lease"))
    return lease


async def _release(call: Call, kind: GiveBackKind | None) -> LeaseView:
    body = call.body_as(ReleaseBody)
    if kind is None and body.kind is not None:
        kind = GiveBackKind(body.kind)
    lease_id = LeaseId(call.thing_id)
    await call.send(
        LeaseReleased(call.caller.owner, lease_id, kind, body.done, MiB(body.residue_mib))
    )
    return _view(call)


def _view(call: Call) -> LeaseView:
    return call.views.lease(own_lease(call, call.thing_id))


READS: Reads = {
    routes.LEASE: get_lease,
    routes.LEASES: get_leases,
}
ACTIONS: Actions = {
    routes.ACKNOWLEDGE: acknowledge,
    routes.KEEP: keep,
    routes.RELEASE: release,
    routes.PARK: park,
    routes.UNPARK: unpark,
    routes.NOTICE_SHOWN: notice_shown,
    routes.ANSWER: answer,
}
