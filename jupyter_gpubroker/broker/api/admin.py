"""What admins see and do: modes, GPUs, everybody's leases, the audit. In user scope the one who is served administers.

Who may call is said by each route's `right` and seen to before anything here runs.
"""

from __future__ import annotations

import asyncio

from ...core.events import GpuDisabled, GpuEnabled, LeaseRevoked, ModeSet, QuarantineCleared
from ...core.model import GpuId, Lease, LeaseId, Mode, Reason, SlotId
from ...core.table import live
from ...errors import Refused
from ...store import AuditRow, Sought, StoreRefused
from ...wire import routes
from ...wire.bodies import GpuBody, ModeBody, RevokeBody, SlotBody
from ...wire.views import AllLeasesView, AuditEntry, AuditView, GpusView, HeldView, ModesView
from ..views import reason_view
from ..why import reason_of_row
from .call import Actions, Answer, Call, Reads
from .values import name_of, whole_number

AUDIT_ROWS = 100


class Unreadable(Refused):
    """The archive cannot be read just now."""

    status = 503


# --- modes -----------------------------------------------------------------------------------------------------------


def get_mode(call: Call) -> Answer:
    view = _modes(call)
    return Answer(view, lambda: view)


async def set_mode(call: Call) -> ModesView:
    body = call.body_as(ModeBody)
    if body.mode is None and body.gpu is None and body.group is None:
        raise Refused(Reason.of("no_mode_given"))
    if body.gpu is not None and body.group is not None:
        raise Refused(Reason.of("gpu_or_group"))
    mode = None if body.mode is None else Mode(body.mode)
    gpu_id = None if body.gpu is None else GpuId(body.gpu)
    group = None if body.group is None else name_of(body.group)
    await call.send(ModeSet(call.caller.owner, mode, gpu_id, group))
    return _modes(call)


def _modes(call: Call) -> ModesView:
    modes = call.state.modes
    said = reason_view(Reason.of(f"mode_{modes.mode.value}"))
    return ModesView(
        mode=modes.mode.value,
        gpus={gpu_id: mode.value for gpu_id, mode in modes.gpus},
        groups={group: mode.value for group, mode in modes.groups},
        sentence=said.sentence,
        sentence_es=said.sentence_es,
    )


# --- devices ---------------------------------------------------------------------------------------------------------


async def disable_gpu(call: Call) -> GpusView:
    body = call.body_as(GpuBody)
    await call.send(GpuDisabled(call.caller.owner, GpuId(body.gpu), name_of(body.why)))
    return call.views.gpus()


async def enable_gpu(call: Call) -> GpusView:
    await call.send(GpuEnabled(call.caller.owner, GpuId(call.body_as(GpuBody).gpu)))
    return call.views.gpus()


async def clear_slot(call: Call) -> GpusView:
    body = call.body_as(SlotBody)
    await call.send(QuarantineCleared(call.caller.owner, SlotId(body.slot), name_of(body.why)))
    return call.views.gpus()


# --- leases ----------------------------------------------------------------------------------------------------------


def get_leases(call: Call) -> Answer:
    leases = live(call.state.leases)
    views = call.views
    return Answer(
        tuple(map(views.lease_key, leases)),
        lambda: AllLeasesView(tuple(_held(call, lease) for lease in leases)),
    )


async def revoke(call: Call) -> HeldView:
    body = call.body_as(RevokeBody)
    lease_id = LeaseId(call.thing_id)
    why = name_of(body.why)
    state = await call.send(LeaseRevoked(call.caller.owner, lease_id, why, body.notice_ms))
    return _held(call, state.leases[lease_id])


def _held(call: Call, lease: Lease) -> HeldView:
    job = None if lease.job_id is None else call.state.jobs.get(lease.job_id)
    session = call.state.sessions.get(lease.session_id)
    name = job.name if job is not None else session.name if session is not None else ""
    return HeldView(lease.owner, name, call.views.lease(lease))


# --- audit -----------------------------------------------------------------------------------------------------------


async def get_audit(call: Call) -> AuditView:
    query = call.query
    sought = Sought(
        after=whole_number(query, "after", 0) if "after" in query else None,
        limit=whole_number(query, "limit", AUDIT_ROWS),
        table=query.get("table"),
        entity_id=query.get("of"),
        event=query.get("event"),
        code=query.get("code"),
    )
    try:
        rows, looked_to = await asyncio.to_thread(call.broker.archive.audit, sought)
    except StoreRefused as error:
        raise Unreadable(Reason.of("archive_unreadable", why=str(error))) from error
    return AuditView(tuple(map(_entry, rows)), looked_to)


def _entry(row: AuditRow) -> AuditEntry:
    return AuditEntry(
        sequence=row.sequence,
        at=row.wall_time,
        event=row.event,
        table=row.entity_table,
        id=row.entity_id,
        before=row.before,
        after=row.after,
        reason=reason_of_row(row),
    )


READS: Reads = {routes.MODE: get_mode, routes.ALL_LEASES: get_leases}
ACTIONS: Actions = {
    routes.SET_MODE: set_mode,
    routes.DISABLE_GPU: disable_gpu,
    routes.ENABLE_GPU: enable_gpu,
    routes.CLEAR_SLOT: clear_slot,
    routes.REVOKE: revoke,
    routes.AUDIT: get_audit,
}
