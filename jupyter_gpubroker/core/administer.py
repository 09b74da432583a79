"""What admins do to devices and leases: take a GPU out and put it back, vouch for a slot, revoke a lease.

Each says who and why, and both are in the audit. A GPU that is taken out lends nothing new; who is on it stays. A lease that
is revoked goes back as an idle one does, by the mildest way that works: not even an admin destroys what was computed.
"""

from __future__ import annotations

from dataclasses import replace

from ..errors import Conflict, NotFound
from . import giveback, health, jobs, leases, reclaim
from .draft import Draft
from .events import GpuDisabled, GpuEnabled, LeaseRevoked, QuarantineCleared
from .model import Gpu, GpuId, LeaseState, Reason, Slot, SlotState, State, Withdrawal
from .place import is_unusable
from .table import found


def gpu_disabled(draft: Draft, event: GpuDisabled) -> None:
    gpu = _gpu(draft.state, event.gpu_id)
    reason = Reason.of("gpu_disabled", by=event.by, why=event.why)
    draft.put(Withdrawal(gpu.id, event.by, event.why), reason)


def gpu_enabled(draft: Draft, event: GpuEnabled) -> None:
    gpu = _gpu(draft.state, event.gpu_id)
    reason = Reason.of("gpu_enabled", by=event.by)
    if gpu.fault is not None:
        health.trust(draft, gpu, reason)
    withdrawal = draft.state.withdrawals.get(gpu.id)
    if withdrawal is None:
        return
    draft.drop(withdrawal, reason)
    for slot in found(Slot, draft.state.slots, "quarantined"):
        if slot.gpu_id == gpu.id and slot.reason is not None and slot.reason.code == "gpu_disabled":
            draft.put(replace(slot, reason=reason), reason)  # free once it is seen clear
            draft.inspect((slot.id,))


def quarantine_cleared(draft: Draft, event: QuarantineCleared) -> None:
    """The admin vouches that nobody is on the slot. What is seen there later counts again."""
    slot = draft.state.slots.get(event.slot_id)
    if slot is None:
        raise NotFound(Reason.of("no_such_slot", slot=event.slot_id))
    if slot.state is not SlotState.QUARANTINED:
        return
    if is_unusable(slot) or is_withdrawn(draft.state, slot):
        raise Conflict(Reason.of("slot_not_usable", slot=slot.id))
    reason = Reason.of("vouched", by=event.by, why=event.why)
    lease = None if slot.lease_id is None else draft.state.leases[slot.lease_id]
    if lease is None:
        draft.move(slot, "seen_clear", reason, reason=None, baseline_mib=None)
    elif lease.state is LeaseState.QUARANTINED:
        giveback.finish(draft, lease, reason)
    else:
        raise Conflict(Reason.of("slot_held", slot=slot.id))


def lease_revoked(draft: Draft, event: LeaseRevoked) -> None:
    lease = draft.state.leases.get(event.lease_id)
    if lease is None:
        raise NotFound(Reason.of("no_lease_of_anybody"))
    reason = Reason.of("revoked", by=event.by, why=event.why, notice_ms=event.notice_ms)
    if lease.job_id is not None:
        jobs.stop(draft, draft.state.jobs[lease.job_id], reason)
    elif lease.state is LeaseState.ACTIVE and lease.order is None:
        reclaim.announce_revocation(draft, lease, event.notice_ms, reason)
    else:
        leases.let_go_unused(draft, lease, reason)


def is_withdrawn(state: State, slot: Slot) -> bool:
    return slot.gpu_id in state.withdrawals


def withhold(draft: Draft) -> None:
    """Free slots of a GPU that was taken out are not lent."""
    withdrawals = draft.state.withdrawals
    if not withdrawals:
        return
    for slot in [*draft.state.slots.values()]:
        withdrawal = withdrawals.get(slot.gpu_id)
        if withdrawal is not None and slot.state is SlotState.FREE:
            reason = Reason.of("gpu_disabled", by=withdrawal.by, why=withdrawal.why)
            draft.move(slot, "disabled", reason, reason=reason)


def _gpu(state: State, gpu_id: GpuId) -> Gpu:
    gpu = state.gpus.get(gpu_id)
    if gpu is None:
        raise NotFound(Reason.of("no_such_gpu", gpu=gpu_id))
    return gpu
