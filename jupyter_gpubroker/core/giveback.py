"""How a lease's slots come free: which kinds would work now, and the way from an order to a clear slot.

    active --order--> holder's side acts --answer--> agent looks --clear--> free
                         |  no                          |  not clear in time
                         +--> next kind, else active <--+

The mildest kind that works is taken first. A holder that is gone needs no order, only the look. Nothing is destroyed without
consent: `restarted` is possible only where it was offered, and where no kind works the holder keeps its slots.

Two sides never act on a process at once. An order that runs out says nothing about what its executor does meanwhile. So none of
another kind follows it: the lease goes straight back to active, the executor undoes what it finds to have been too late, and
until its answer has come (`late`) only the same kind is possible. The next kind follows only an answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from .clear import look_at, residue_mib
from .draft import Draft
from .events import SlotObservation
from .idle import forget, policy_of
from .model import (
    GiveBackKind,
    Late,
    Lease,
    LeaseId,
    LeaseState,
    MiB,
    Millis,
    Order,
    Reason,
    Slot,
    SlotId,
    SlotState,
    State,
)
from .place import is_lost, is_unusable

KINDS = tuple(kind for kind in GiveBackKind if kind is not GiveBackKind.KEPT)
LEAVES_RESIDUE = frozenset({GiveBackKind.PARKED, GiveBackKind.CHECKPOINTED})


def kinds_now(state: State, lease: Lease, now: Millis) -> tuple[GiveBackKind, ...]:
    """The kinds that would work now, mildest first."""
    return tuple(kind for kind in KINDS if refusal(state, lease, kind, now) is None)


def refusal(state: State, lease: Lease, kind: GiveBackKind, now: Millis) -> Reason | None:
    """Why `kind` would not work now, or None where it would."""
    if lease.late is not None and kind is not lease.late.kind and not _is_past(lease.late, now):
        return Reason.of("still_giving_back", kind=lease.late.kind.value)
    session = state.sessions.get(lease.session_id)
    offers = () if session is None else (session.kernel_offer, session.server_offer)
    for offer in offers:
        refused = dict(offer.refusals).get(kind)
        if refused is not None:
            return refused
    if not any(kind in offer.kinds for offer in offers):
        return Reason.of("not_offered", kind=kind.value)
    if kind is GiveBackKind.EMPTY and not _is_seen_clear(state, lease, now):
        return Reason.of("context_on_slot")
    return None


def slots_of(state: State, lease: Lease) -> tuple[Slot, ...]:
    return tuple(state.slots[hold.slot_id] for hold in lease.holds)


# --- beginning --------------------------------------------------------------------------------------------------------


def order(draft: Draft, lease: Lease, kind: GiveBackKind, cause: Reason) -> None:
    """Tell the holder's side to give back an active lease's slots by `kind`."""
    command = _order(draft, lease, kind)
    _drain(draft, lease, "given_back", cause, order=command, deadline_ms=command.due_ms)


def let_go(
    draft: Draft,
    lease: Lease,
    cause: Reason,
    *,
    arc: str = "given_back",
    kind: GiveBackKind | None = None,
    left_mib: MiB = MiB(0),
) -> None:
    """The holder is gone, or has given the slots back by `kind` already: only the look remains."""
    due_ms = Millis(draft.now + draft.state.limits.clear_grace_ms)
    fields: dict[str, Any] = {
        "gave_back": kind,
        "residue_mib": left_mib,
        "order": None,
        "deadline_ms": due_ms,
    }
    if lease.state is LeaseState.DRAINING:
        draft.put(replace(lease, cause=cause, **fields), cause)
    else:
        _drain(draft, lease, arc, cause, **fields)
    draft.inspect(tuple(hold.slot_id for hold in lease.holds))


def answered(draft: Draft, lease: Lease, left_mib: MiB) -> None:
    """The holder's side carried the order out."""
    assert lease.order is not None
    kind = lease.order.kind
    let_go(draft, lease, Reason.of("gave_back", kind=kind.value), kind=kind, left_mib=left_mib)


# --- failing ----------------------------------------------------------------------------------------------------------


def failed(draft: Draft, lease: Lease, why: Reason) -> None:
    """An order could not be carried out, or the slots did not come clear though the holder lives: the next kind, else none."""
    tried = _tried(lease)
    left = [kind for kind in kinds_now(draft.state, lease, draft.now) if kind not in tried]
    if left:
        command = _order(draft, lease, left[0], tried)
        fields: dict[str, Any] = {
            "orders": command.number,
            "gave_back": None,
            "residue_mib": MiB(0),
        }
        draft.put(replace(lease, order=command, deadline_ms=command.due_ms, **fields), why)
    else:
        _restore(draft, lease, why)


def order_overdue(draft: Draft, lease: Lease) -> None:
    """An order was not answered in time."""
    assert lease.order is not None
    late = Late(lease.order.number, lease.order.kind)
    why = Reason.of("order_overdue", kind=late.kind.value)
    _restore(draft, replace(lease, late=late), why)


def answered_late(draft: Draft, lease: Lease, *, is_done: bool) -> None:
    """The executor of an order that had run out has come to an end; what it did it undoes now."""
    assert lease.late is not None
    until_ms = Millis(draft.now + draft.state.limits.resume_ms)
    late = replace(lease.late, until_ms=until_ms) if is_done else None
    draft.put(replace(lease, late=late), Reason.of("answered_late", kind=lease.late.kind.value))


def stay(draft: Draft, lease: Lease, cause: Reason) -> None:
    """Nobody can give the lease back now: it stays, and is not asked again before another idle limit.

    An end that has come is not announced again.
    """
    policy = policy_of(draft.state, lease)
    idle_ms = 0 if policy is None else policy.idle_ms
    until_ms = Millis(max(draft.now + idle_ms, lease.keep_until_ms or 0))
    is_late = lease.ends_ms is not None and lease.ends_ms <= draft.now
    ends_ms = None if is_late else lease.ends_ms
    draft.put(
        replace(lease, notice=None, ends_ms=ends_ms, keep_until_ms=until_ms, cause=cause), cause
    )


def _restore(draft: Draft, lease: Lease, why: Reason) -> None:
    """Back to active. What was moved to the host already is ordered back."""
    kind = lease.gave_back if lease.gave_back in LEAVES_RESIDUE else None
    resume = None if kind is None else _order(draft, lease, kind, resume=True)
    fields: dict[str, Any] = {
        "order": resume,
        "gave_back": None,
        "residue_mib": MiB(0),
        "deadline_ms": None,
    }
    orders = lease.orders if resume is None else resume.number
    lease = draft.move(lease, "give_back_failed", why, cause=why, orders=orders, **fields)
    for slot in slots_of(draft.state, lease):
        if slot.state is SlotState.DRAINING:
            draft.move(slot, "give_back_failed", why)
        elif not is_unusable(slot):
            draft.move(slot, "device_back", why, reason=None)
    stay(draft, lease, why)


def _tried(lease: Lease) -> tuple[GiveBackKind, ...]:
    if lease.order is not None:
        return (*lease.order.tried, lease.order.kind)
    # The answered order is gone; the kinds before it were tried or not possible.
    return () if lease.gave_back is None else KINDS[: KINDS.index(lease.gave_back) + 1]


# --- seeing it through ------------------------------------------------------------------------------------------------


def observed(draft: Draft, lease_id: LeaseId, looks: Mapping[SlotId, SlotObservation]) -> None:
    """New samples: a lease whose slots all look clear is over (or parked). A lost slot holds nobody."""
    lease = draft.state.leases[lease_id]
    slots = [slot for slot in slots_of(draft.state, lease) if not is_lost(slot)]
    if any(slot.id not in looks for slot in slots):
        return
    is_parking = lease.state is LeaseState.DRAINING and lease.gave_back in LEAVES_RESIDUE
    leaving = lease if is_parking else None
    verdicts = [look_at(draft.state, slot, looks[slot.id], leaving) for slot in slots]
    if not all(verdict.is_clear for verdict in verdicts):
        return
    reason = verdicts[0].reason if verdicts else Reason.of("device_gone")
    if is_parking:
        left = max((residue_mib(draft.state, s, lease, looks[s.id]) for s in slots), default=0)
        _finish(draft, lease, "seen_quiet", reason, MiB(left))
    else:
        _finish(draft, lease, "seen_clear", reason, MiB(0))


def finish(draft: Draft, lease: Lease, reason: Reason) -> None:
    """An admin vouches for what was not seen: nobody is left there."""
    _finish(draft, lease, "seen_clear", reason, MiB(0))


def overdue(draft: Draft, lease: Lease) -> None:
    """The slots did not come clear in time."""
    if lease.gave_back is not None:  # so its holder lives, and may do better
        failed(draft, lease, Reason.of("not_clear_in_time", kind=lease.gave_back.value))
        return
    reason = Reason.of("clear_overdue", after_ms=draft.state.limits.clear_grace_ms)
    draft.move(lease, "clear_overdue", reason, cause=reason, deadline_ms=None)
    for slot in slots_of(draft.state, lease):
        if slot.state is SlotState.DRAINING:
            draft.move(slot, "clear_overdue", reason, reason=slot.reason or reason)


def drop_parked(draft: Draft, lease: Lease, cause: Reason, *, left_mib: MiB = MiB(0)) -> None:
    """A parked lease ends. `left_mib`: the residue stays noted as long as the holder's process lives."""
    draft.move(lease, "given_back", cause, cause=cause, residue_mib=left_mib, deadline_ms=None)


def _finish(draft: Draft, lease: Lease, arc: str, reason: Reason, left_mib: MiB) -> None:
    slots = slots_of(draft.state, lease)
    draft.move(lease, arc, reason, holds=(), residue_mib=left_mib, deadline_ms=None)
    for slot in slots:
        if is_unusable(slot):
            draft.put(replace(slot, lease_id=None), reason)
        else:
            draft.move(slot, "seen_clear", reason, lease_id=None, reason=None)


# --- small things -----------------------------------------------------------------------------------------------------


def _drain(draft: Draft, lease: Lease, arc: str, cause: Reason, **fields: Any) -> None:
    command = fields.get("order")
    orders = lease.orders if command is None else command.number
    forget(draft, lease)
    draft.move(lease, arc, cause, cause=cause, notice=None, orders=orders, **fields)
    for slot in slots_of(draft.state, lease):
        if slot.state is SlotState.LEASED:
            draft.move(slot, "given_back", cause)


def _order(
    draft: Draft,
    lease: Lease,
    kind: GiveBackKind,
    tried: tuple[GiveBackKind, ...] = (),
    *,
    resume: bool = False,
) -> Order:
    limits = draft.state.limits
    due_ms = Millis(draft.now + (limits.resume_ms if resume else limits.give_back_ms))
    return Order(lease.orders + 1, kind, draft.now, due_ms, resume, tried)


def _is_seen_clear(state: State, lease: Lease, now: Millis) -> bool:
    """Whether every slot of the lease was clear at a fresh look: the holder has no context there."""
    return all(was_seen_clear(state, slot, now) for slot in slots_of(state, lease))


def was_seen_clear(state: State, slot: Slot, now: Millis) -> bool:
    telemetry = state.telemetry.get(slot.node_id)
    if telemetry is None or telemetry.problem is not None:
        return False
    seen_ms = telemetry.clear_ms.get(slot.id)
    return seen_ms is not None and now - seen_ms <= state.limits.fresh_ms


def _is_past(late: Late, now: Millis) -> bool:
    return late.until_ms is not None and late.until_ms <= now


def refusals(state: State, lease: Lease, now: Millis) -> Iterator[tuple[GiveBackKind, Reason]]:
    """For each kind that would not work now, why."""
    for kind in KINDS:
        reason = refusal(state, lease, kind, now)
        if reason is not None:
            yield kind, reason
