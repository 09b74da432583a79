"""Takes slots back from idle holders, on demand: who is given notice for whom, and what follows when it is due.

Only a request that stands in line now, and that these very slots would serve, is a reason; what comes free anyway is counted
first, and no more is taken than needed. Notices are worked out anew at each step, so one whose reason is gone is withdrawn.
A lease taken "for" a time (`ends_ms`) ends by the same way without demand.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from . import giveback
from .draft import Draft
from .idle import is_fresh, policy_of, reclaimable_ms
from .model import (
    Lease,
    LeaseId,
    Millis,
    Mode,
    Notice,
    Reason,
    Request,
    RequestId,
    Slot,
    SlotId,
    SlotState,
    State,
)
from .queue import could_serve, line, may_be_served
from .table import live


def update_notices(draft: Draft) -> None:
    """Give notice where it is needed now, withdraw it where it is not."""
    wanted = takings(draft.state, draft.now)
    for lease in live(draft.state.leases):
        request_id = wanted.get(lease.id)
        if lease.notice is None and request_id is not None:
            _give_notice(draft, lease, request_id)
        elif lease.notice is None or _is_for_end(lease):
            continue
        elif request_id is None:
            _withdraw(draft, lease)
        elif request_id != lease.notice.request_id:
            notice = replace(lease.notice, request_id=request_id)
            draft.put(replace(lease, notice=notice), Reason.of("notice_reassigned"))


def takings(state: State, now: Millis) -> Mapping[LeaseId, RequestId]:
    """Which leases must be taken, for whom: longest idle first, only as many as the line needs."""
    if state.mode is Mode.OBSERVE:
        return {}
    takeable = [one for one in live(state.leases) if _is_takeable(state, one, now)]
    takeable.sort(key=lambda one: _taking_order(state, one, now))
    rank: dict[LeaseId | None, int] = {lease.id: place for place, lease in enumerate(takeable)}
    taken: dict[LeaseId, RequestId] = {}
    spoken_for: set[SlotId] = set()
    for request in line(state) if takeable else ():
        if may_be_served(state, request):
            slots, leases = _cheapest(state, request, rank, spoken_for)
            spoken_for.update(slot.id for slot in slots)
            taken.update(dict.fromkeys(leases, request.id))
    return taken


def due(draft: Draft, lease: Lease) -> None:
    """The countdown of the lease's notice is over."""
    notice = lease.notice
    assert notice is not None
    is_for_end = _is_for_end(lease)
    if not is_for_end and not is_fresh(draft.state, lease, draft.now):
        draft.put(replace(lease, notice=None), Reason.of("samples_stale"))
    elif draft.state.mode is not Mode.ENFORCE:
        giveback.stay(draft, lease, Reason.of("only_advised"))
    elif not (is_for_end or notice.shown or notice.doubled):
        longer = Millis(2 * notice.due_ms - notice.issued_ms)
        doubled = replace(notice, due_ms=longer, doubled=True)
        draft.put(replace(lease, notice=doubled), Reason.of("notice_not_seen"))
    else:
        _take(draft, lease, Reason.of("time_was_over") if is_for_end else _taken(draft, lease))


def announce_end(draft: Draft, lease: Lease) -> None:
    """The time that the lease was asked for is nearly over."""
    assert lease.ends_ms is not None
    due_ms = Millis(max(lease.ends_ms, draft.now))
    reason = Reason.of("time_over", in_ms=due_ms - draft.now)
    _put_notice(draft, lease, RequestId(lease.id), due_ms, reason)


def end_notice_ms(state: State, lease: Lease) -> Millis | None:
    """When the end of a lease with a time is to be announced."""
    if lease.ends_ms is None or lease.notice is not None:
        return None
    policy = policy_of(state, lease)
    return Millis(lease.ends_ms - (0 if policy is None else policy.notice_ms))


# --- whose slots ----------------------------------------------------------------------------------------------------------


def _is_takeable(state: State, lease: Lease, now: Millis) -> bool:
    from_ms = reclaimable_ms(state, lease)
    return from_ms is not None and now >= from_ms and is_fresh(state, lease, now)


def _taking_order(state: State, lease: Lease, now: Millis) -> tuple[bool, bool, int, str]:
    """Who has notice keeps it; who can give back comes first; then who is idle longest."""
    can_give = bool(giveback.kinds_now(state, lease, now))
    return lease.notice is None, not can_give, lease.verdict_since_ms, lease.id


def _cheapest(
    state: State,
    request: Request,
    rank: Mapping[LeaseId | None, int],
    spoken_for: Collection[SlotId],
) -> tuple[list[Slot], list[LeaseId]]:
    """What serves the request with the fewest leases taken: slots and leases, all on one node; none where nothing would."""
    count = len(request.spec.pinned) or request.spec.count
    best: tuple[list[Slot], list[LeaseId]] | None = None
    for slots in _by_node(state, request, spoken_for):
        # What comes free by itself first, then whose lease is taken first.
        coming = [slot for slot in slots if slot.state is not SlotState.LEASED]
        held = [slot for slot in slots if slot.state is SlotState.LEASED and slot.lease_id in rank]
        held.sort(key=lambda slot: (rank[slot.lease_id], slot.id))
        chosen = (coming + held)[:count]
        leases = list(dict.fromkeys(s.lease_id for s in chosen if s in held and s.lease_id))
        if len(chosen) == count and (best is None or len(leases) < len(best[1])):
            best = chosen, leases
    return best or ([], [])


def _by_node(
    state: State, request: Request, spoken_for: Collection[SlotId]
) -> Iterator[list[Slot]]:
    by_node: dict[str, list[Slot]] = {}
    for slot in could_serve(state, request.spec):
        if slot.id not in spoken_for:
            by_node.setdefault(slot.node_id, []).append(slot)
    return (by_node[node_id] for node_id in sorted(by_node))


# --- notices --------------------------------------------------------------------------------------------------------------


def _give_notice(draft: Draft, lease: Lease, request_id: RequestId) -> None:
    policy = policy_of(draft.state, lease)
    assert policy is not None
    reason = Reason.of(
        "idle_and_wanted",
        verdict=lease.verdict.value,
        idle_ms=draft.now - lease.verdict_since_ms,
        notice_ms=policy.notice_ms,
    )
    _put_notice(draft, lease, request_id, Millis(draft.now + policy.notice_ms), reason)


def _put_notice(
    draft: Draft, lease: Lease, request_id: RequestId, due_ms: Millis, reason: Reason
) -> None:
    number = lease.notices + 1
    notice = Notice(number, request_id, draft.now, due_ms, reason)
    draft.put(replace(lease, notice=notice, notices=number, cause=None), reason)


def _withdraw(draft: Draft, lease: Lease) -> None:
    is_idle = _is_takeable(draft.state, lease, draft.now)
    why = "no_longer_wanted" if is_idle else "no_longer_idle"
    draft.put(replace(lease, notice=None), Reason.of("notice_withdrawn", why=why))


def _take(draft: Draft, lease: Lease, reason: Reason) -> None:
    kinds = giveback.kinds_now(draft.state, lease, draft.now)
    if kinds:
        giveback.order(draft, lease, kinds[0], reason)
    else:
        giveback.stay(draft, lease, Reason.of("holder_cannot_give_back"))


def _taken(draft: Draft, lease: Lease) -> Reason:
    idle_ms = draft.now - lease.verdict_since_ms
    return Reason.of("taken", verdict=lease.verdict.value, idle_ms=idle_ms)


def _is_for_end(lease: Lease) -> bool:
    return lease.notice is not None and lease.notice.request_id == RequestId(lease.id)
