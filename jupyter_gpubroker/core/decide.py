"""The core's front door: what follows from an event.

    step(state, event, now) -> Decision        apply(state, changes) -> the next state

One handler per event type says what the event itself changes. Then `settle` draws the consequences, always in this order:
deadlines that passed, grants along the line, notices for who still waits, notices that are due. Same state, event and time
give the same bytes. Raises `errors.Refused` and its kinds where the caller asked for what cannot be; nothing changes then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..errors import Refused, Unusable
from . import administer, devices, health, history, jobs, leases, modes, reclaim, requests, sessions
from .deadlines import next_deadline, pass_due, pass_due_notices
from .decision import AuditReason, Change, Decision, Drop, Put, apply, last_number
from .draft import Draft
from .effects import AdmitHold, Effect, InspectSlots
from .events import (
    Event,
    GpuDisabled,
    GpuEnabled,
    GpusObserved,
    InventoryReported,
    JobCancelled,
    JobEnded,
    JobStarted,
    JobSubmitted,
    LeaseAcknowledged,
    LeaseKept,
    LeaseReleased,
    LeaseRevoked,
    ModeSet,
    NodeUnobserved,
    NoticeShown,
    OfferMade,
    OrderAnswered,
    PolicyApplied,
    QuarantineCleared,
    RequestAbandoned,
    RequestCancelled,
    RequestMade,
    SessionEnded,
    SessionOpened,
    SessionReported,
    SessionRestarting,
    SlotsObserved,
    Ticked,
    UnparkRequested,
)
from .grant import grant_waiting
from .model import LeaseState, Millis, Reason, RequestState, State
from .table import live

__all__ = [
    "AuditReason", "Change", "Decision", "Drop", "Put",
    "advance", "apply", "effects_of", "last_number", "next_deadline", "step",
]  # fmt: skip


_SEEN = (
    InventoryReported,
    SlotsObserved,
    GpusObserved,
    NodeUnobserved,
    SessionEnded,
    RequestAbandoned,
    Ticked,
)


def step(state: State, event: Event, now: Millis) -> Decision:
    """What follows from `event` at the moment `now`. Raises Refused; never changes `state`."""
    return advance(state, event, now)[0]


def advance(state: State, event: Event, now: Millis) -> tuple[Decision, State]:
    """As `step`, with the state that follows, which is the one that `apply` would make of the changes."""
    if state.contradiction is not None:
        return _nothing_follows(state, event), state
    draft = Draft(state, now)
    HANDLERS[type(event)](draft, event)
    if draft.has_changed or _may_change_by_itself(state, event):
        settle(draft)
    _refuse_to_wait(draft, event)
    if history.is_due(state, draft.state):
        history.sweep(draft)
    return draft.decision(), draft.state


def _nothing_follows(state: State, event: Event) -> Decision:
    """From a contradiction anything would. Who asks for something is told; what is merely seen changes nothing."""
    if not isinstance(event, _SEEN):
        raise Unusable(Reason.of("state_contradicts", why=state.contradiction))
    return Decision()


def settle(draft: Draft) -> None:
    """Draw the consequences of what changed, or of time that passed."""
    pass_due(draft)
    jobs.lose_abandoned(draft)
    administer.withhold(draft)
    grant_waiting(draft)
    reclaim.make_way(draft)
    pass_due_notices(draft)


def effects_of(state: State) -> tuple[Effect, ...]:
    """Every effect that may not have run, for after a restart."""
    if state.contradiction is not None:
        return ()
    admit = [
        AdmitHold(hold.slot_id, hold.epoch, lease.id)
        for lease in live(state.leases)
        for hold in lease.holds
    ]
    leaving = [
        hold.slot_id
        for lease in live(state.leases)
        if lease.state is LeaseState.DRAINING
        for hold in lease.holds
    ]
    return (*admit, InspectSlots(tuple(leaving))) if leaving else tuple(admit)


def _policy_applied(draft: Draft, event: PolicyApplied) -> None:
    names = {*draft.state.policies, *(policy.name for policy in event.policies)}
    for queue in event.queues:
        if queue.policy is not None and queue.policy not in names:
            raise Refused(Reason.of("unknown_policy", queue=queue.name, policy=queue.policy))
    reason = Reason.of("policy_applied")
    if event.by is not None:
        reason = Reason.of("policy_applied_by", by=event.by)
    for policy in event.policies:
        draft.put(policy, reason)
    for queue in event.queues:
        draft.put(queue, reason)
    for fault in event.faults:
        draft.put(fault, reason)
    if event.limits is not None:
        draft.put(event.limits, reason)


def _ticked(draft: Draft, event: Ticked) -> None:
    """Time is `settle`'s business."""


HANDLERS: Mapping[type[Event], Callable[[Draft, Any], None]] = {
    InventoryReported: devices.inventory_reported,
    SlotsObserved: devices.slots_observed,
    NodeUnobserved: devices.node_unobserved,
    GpusObserved: health.observed,
    SessionOpened: sessions.opened,
    SessionReported: sessions.reported,
    OfferMade: sessions.offered,
    SessionRestarting: sessions.restarting,
    SessionEnded: sessions.ended,
    RequestMade: requests.made,
    RequestCancelled: requests.cancelled,
    RequestAbandoned: requests.abandoned,
    LeaseAcknowledged: leases.acknowledged,
    LeaseKept: leases.kept,
    LeaseReleased: leases.released,
    UnparkRequested: requests.unpark_asked,
    NoticeShown: leases.notice_shown,
    OrderAnswered: leases.order_answered,
    JobSubmitted: jobs.submitted,
    JobStarted: jobs.started,
    JobEnded: jobs.ended,
    JobCancelled: jobs.cancelled,
    PolicyApplied: _policy_applied,
    ModeSet: modes.mode_set,
    GpuDisabled: administer.gpu_disabled,
    GpuEnabled: administer.gpu_enabled,
    QuarantineCleared: administer.quarantine_cleared,
    LeaseRevoked: administer.lease_revoked,
    Ticked: _ticked,
}


def _may_change_by_itself(state: State, event: Event) -> bool:
    """Time may have brought deadlines; samples of free or idle slots matter where somebody waits for them."""
    return isinstance(event, Ticked) or (
        isinstance(event, SlotsObserved) and any(True for _ in live(state.requests))
    )


def _refuse_to_wait(draft: Draft, event: Event) -> None:
    """Who asked for now or never, and cannot have it now, has asked for nothing."""
    if isinstance(event, (RequestMade, UnparkRequested)) and event.wait_ms == 0:
        request = draft.state.requests[event.request_id]
        if request.state is RequestState.WAITING:
            raise Refused(Reason.of("nothing_free"))
