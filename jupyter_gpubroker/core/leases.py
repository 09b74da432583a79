"""What holders and their sides say about leases: applied, keep, release, notice shown, order carried out or not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..errors import Conflict, NotFound, Refused
from . import giveback, idle, jobs, reclaim
from .asking import end
from .draft import Draft
from .events import (
    LeaseAcknowledged,
    LeaseKept,
    LeaseReleased,
    NoticeShown,
    OrderAnswered,
)
from .model import (
    GiveBackKind,
    Late,
    Lease,
    LeaseId,
    LeaseState,
    Millis,
    Owner,
    Reason,
    State,
)
from .requests import take_back
from .table import live


def acknowledged(draft: Draft, event: LeaseAcknowledged) -> None:
    lease = _owned(draft.state, event.owner, event.lease_id)
    if lease.state is LeaseState.ACTIVE:
        return
    if lease.state is not LeaseState.GRANTED:
        raise Conflict(Reason.of("grant_over"))
    if lease.order is not None:
        raise Conflict(Reason.of("answer_the_order"))
    _activate(draft, lease, Reason.of("acknowledged"))


def kept(draft: Draft, event: LeaseKept) -> None:
    lease = _owned(draft.state, event.owner, event.lease_id)
    if lease.state is not LeaseState.ACTIVE:
        raise Conflict(Reason.of("not_active"))
    if reclaim.is_revoked(lease):
        raise Conflict(Reason.of("revoked_for_good"))
    policy = idle.policy_of(draft.state, lease)
    if policy is None:
        raise Refused(Reason.of("never_taken"))
    if lease.keeps_used >= policy.keeps_max:
        raise Conflict(Reason.of("no_keeps_left", keeps_max=policy.keeps_max))
    keep_ms = policy.keep_ms if event.keep_ms is None else min(event.keep_ms, policy.keep_ms)
    until_ms = Millis(draft.now + keep_ms)
    ends_ms = None if lease.ends_ms is None else Millis(max(lease.ends_ms, until_ms))
    used = lease.keeps_used + 1
    reason = Reason.of("kept", keep_ms=keep_ms, keeps_left=policy.keeps_max - used)
    fields: dict[str, Any] = {"keep_until_ms": until_ms, "keeps_used": used}
    draft.put(replace(lease, notice=None, ends_ms=ends_ms, **fields), reason)


def released(draft: Draft, event: LeaseReleased) -> None:
    lease = _owned(draft.state, event.owner, event.lease_id)
    reason = Reason.of("released")
    if lease.job_id is not None:
        jobs.stop(draft, draft.state.jobs[lease.job_id], Reason.of("job_cancelled"))
    elif lease.state in (LeaseState.PARKED, LeaseState.GRANTED):
        let_go_unused(draft, lease, reason)
    elif event.done and (lease.state is LeaseState.ACTIVE or _is_ordered(lease)):
        kind = event.kind or GiveBackKind.EMPTY
        giveback.let_go(draft, lease, reason, kind=kind, left_mib=event.residue_mib)
    elif lease.state is LeaseState.ACTIVE:
        giveback.order(draft, lease, _chosen_kind(draft, lease, event.kind), reason)


def let_go_unused(draft: Draft, lease: Lease, reason: Reason) -> None:
    """End a lease that is parked, or not applied yet. One that is on its way out already goes on so."""
    if lease.state is LeaseState.PARKED:
        _forget_parked(draft, lease, reason)
    elif lease.state is LeaseState.GRANTED:
        take_back(draft, lease, reason)


def notice_shown(draft: Draft, event: NoticeShown) -> None:
    """It counts when an open front end can have shown it. From then on the holder has the whole countdown."""
    lease = _owned(draft.state, event.owner, event.lease_id)
    notice = lease.notice
    if notice is None or notice.number != event.number or notice.shown:
        return
    if draft.state.sessions[lease.session_id].front_ends < 1:
        return
    due_ms = notice.due_ms
    if not notice.doubled:
        due_ms = Millis(draft.now + notice.due_ms - notice.issued_ms)
    shown = replace(notice, shown=True, due_ms=due_ms)
    draft.put(replace(lease, notice=shown), Reason.of("notice_shown"))


def order_answered(draft: Draft, event: OrderAnswered) -> None:
    lease = _owned(draft.state, event.owner, event.lease_id)
    if event.number > lease.orders:
        raise Conflict(Reason.of("no_such_order"))
    if lease.late is not None and lease.late.number == event.number:
        giveback.answered_late(draft, lease, is_done=event.ok)
        return
    if lease.order is None or lease.order.number != event.number:
        return  # answered before, or overtaken by events
    lease = replace(lease, late=None)  # who answers a later order is done with the one before
    if lease.order is not None and lease.order.resume:
        if event.ok:
            resumed(draft, lease)
        else:
            resume_failed(draft, lease, event.reason or Reason.of("resume_failed"))
    elif event.ok:
        giveback.answered(draft, lease, event.residue_mib)
    else:
        giveback.failed(draft, lease, event.reason or Reason.of("give_back_failed"))


def resumed(draft: Draft, lease: Lease) -> None:
    reason = Reason.of("resumed")
    if lease.state is LeaseState.GRANTED:
        _activate(draft, lease, reason)
    else:
        draft.put(replace(lease, order=None), reason)


def resume_failed(draft: Draft, lease: Lease, why: Reason, arc: str = "given_back") -> None:
    """The memory could not be brought back: the lease is parked again, if it is still quiet; nothing is lost."""
    if lease.state is LeaseState.GRANTED:
        take_back(draft, lease, why, arc)
    else:
        draft.put(replace(lease, order=None, cause=why), why)


def resume_overdue(draft: Draft, lease: Lease) -> None:
    """Nobody said in time that the memory is back; whoever brings it back may still be at it."""
    assert lease.order is not None
    why = Reason.of("resume_overdue", after_ms=draft.state.limits.resume_ms)
    late = Late(lease.order.number, lease.order.kind)
    resume_failed(draft, replace(lease, late=late), why, "not_acknowledged")


def not_acknowledged(draft: Draft, lease: Lease) -> None:
    """Nobody applied the grant in time."""
    if lease.job_id is not None:
        jobs.not_started(draft, lease)
    elif lease.order is not None:
        resume_overdue(draft, lease)
    else:
        reason = Reason.of("not_acknowledged", after_ms=draft.state.limits.ack_ms)
        take_back(draft, lease, reason, "not_acknowledged")


# --- small things ---------------------------------------------------------------------------------------------------------


def _activate(draft: Draft, lease: Lease, reason: Reason) -> None:
    fresh = idle.begin(draft, lease)
    draft.move(fresh, "acknowledged", reason, order=None, deadline_ms=None)


def _chosen_kind(draft: Draft, lease: Lease, wanted: GiveBackKind | None) -> GiveBackKind:
    """The kind that the holder asked for, else the mildest. Raises Refused where it would not work now."""
    if wanted is not None:
        refusal = giveback.refusal(draft.state, lease, wanted, draft.now)
        if refusal is not None:
            raise Refused(refusal)
        return wanted
    kinds = giveback.kinds_now(draft.state, lease, draft.now)
    if not kinds:
        raise Refused(Reason.of("holder_cannot_give_back"))
    return kinds[0]


def _forget_parked(draft: Draft, lease: Lease, reason: Reason) -> None:
    giveback.drop_parked(draft, lease, reason, left_mib=lease.residue_mib)
    for request in live(draft.state.requests):
        if request.lease_id == lease.id:
            end(draft, request, "cancelled", reason)


def _is_ordered(lease: Lease) -> bool:
    return lease.state is LeaseState.DRAINING and lease.order is not None


def _owned(state: State, owner: Owner, lease_id: LeaseId) -> Lease:
    lease = state.leases.get(lease_id)
    if lease is None or lease.owner != owner:
        raise NotFound(Reason.of("no_such_lease"))
    return lease
