"""Hands free slots to those whose turn it is."""

from __future__ import annotations

from dataclasses import replace

from . import jobs
from .draft import Draft
from .effects import AdmitHold
from .model import (
    Hold,
    Lease,
    LeaseId,
    MiB,
    Millis,
    Order,
    Reason,
    Request,
    Slot,
)
from .queue import grants


def grant_waiting(draft: Draft) -> None:
    for request, slots in list(grants(draft.state, draft.now)):
        _grant(draft, request, slots)


def _grant(draft: Draft, request: Request, slots: tuple[Slot, ...]) -> None:
    reason = Reason.of("granted", waited_ms=draft.now - request.since_ms)
    holds = tuple(Hold(slot.id, slot.epoch + 1) for slot in slots)
    if request.lease_id is None:
        lease = _new_lease(draft, request, holds)
        draft.put(lease, reason)
    else:
        lease = _resumed(draft, draft.state.leases[request.lease_id], holds, reason)
    for slot, hold in zip(slots, holds, strict=True):
        draft.move(slot, "granted", reason, epoch=hold.epoch, lease_id=lease.id, reason=None)
        draft.run(AdmitHold(slot.id, hold.epoch, lease.id))
    draft.move(request, "granted", reason, lease_id=lease.id)
    if request.job_id is not None:
        jobs.granted(draft, request.job_id, reason)


def _new_lease(draft: Draft, request: Request, holds: tuple[Hold, ...]) -> Lease:
    """To be acknowledged in time, else it is taken back."""
    duration_ms = request.duration_ms
    return Lease(
        id=LeaseId(request.id),
        owner=request.owner,
        session_id=request.session_id,
        queue=request.queue,
        holds=holds,
        spec=request.spec,
        job_id=request.job_id,
        since_ms=draft.now,
        granted_ms=draft.now,
        deadline_ms=Millis(draft.now + draft.state.limits.ack_ms),
        ends_ms=None if duration_ms is None else Millis(draft.now + duration_ms),
        home=tuple(hold.slot_id for hold in holds),
        verdict_since_ms=draft.now,
        preemptible=request.preemptible,
    )


def _resumed(draft: Draft, lease: Lease, holds: tuple[Hold, ...], reason: Reason) -> Lease:
    """A parked lease is back on its slots; its holder's side brings the memory back."""
    assert lease.gave_back is not None
    due_ms = Millis(draft.now + draft.state.limits.resume_ms)
    number = lease.orders + 1
    order = Order(number, lease.gave_back, draft.now, due_ms, resume=True)
    fields = {"order": order, "orders": number, "deadline_ms": due_ms, "gave_back": None}
    if lease.ends_ms is not None:  # the time while it was parked does not count
        lease = replace(lease, ends_ms=Millis(lease.ends_ms + draft.now - lease.since_ms))
    clean = replace(lease, residue_mib=MiB(0), cause=None, keep_until_ms=None)
    return draft.move(clean, "granted", reason, holds=holds, **fields)
