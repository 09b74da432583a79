"""The waiting line: who is before whom, who may be served now, and when one's turn comes.

Order is tier, then age, then number. Nobody overtakes: who cannot be served yet holds back the free slots that could serve it.
Requests for different slots do not hold each other up (kubernetes-sigs/kueue#2270).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .clear import residues_on
from .giveback import was_seen_clear
from .model import (
    JobState,
    Lease,
    LeaseState,
    Millis,
    Owner,
    Request,
    RequestState,
    SessionState,
    Slot,
    SlotId,
    SlotSpec,
    SlotState,
    State,
    Tier,
)
from .place import choose, serving_slots
from .table import live

_TIERS = tuple(Tier)


def line(state: State) -> list[Request]:
    """Everybody who waits, first in line first."""
    return sorted(live(state.requests), key=lambda request: _rank(state, request))


def grants(state: State, now: Millis) -> Iterator[tuple[Request, tuple[Slot, ...]]]:
    """Who can be served now, and with which slots. Reads `state` as it is at the first step only."""
    free = {slot.id: slot for slot in grantable(state, now)}
    for request in line(state) if free else ():
        usable = [slot for slot in free.values() if _admits(state, slot, request.owner)]
        slots = choose(usable, request.spec) if may_be_served(state, request) else None
        if slots is None:
            for slot in could_serve(state, request.spec):
                free.pop(slot.id, None)
            continue
        slots = choose(usable, request.spec, _previous_slots(state, request)) or slots
        for slot in slots:
            del free[slot.id]
        yield request, slots


def grantable(state: State, now: Millis) -> Iterator[Slot]:
    """The free slots that were seen clear just now."""
    return (
        slot
        for slot in state.slots.values()
        if slot.state is SlotState.FREE and was_seen_clear(state, slot, now)
    )


def may_be_served(state: State, request: Request) -> bool:
    """Whether its holder is there to take a grant (not in the middle of a restart)."""
    return state.sessions[request.session_id].state is SessionState.LIVE


def could_serve(state: State, spec: SlotSpec) -> tuple[Slot, ...]:
    """The slots that could serve `spec`, now or when their holders are gone; sick ones cannot."""
    return serving_slots(
        (slot for slot in state.slots.values() if slot.state is not SlotState.QUARANTINED), spec
    )


def place_in_line(state: State, request: Request) -> tuple[int | None, int]:
    """Its place, counted from 1 among those who compete for the same slots, and how many wait there.

    The place is None once it waits no longer.
    """
    wanted = _ids(could_serve(state, request.spec))
    rivals = [
        other
        for other in line(state)
        if other.id == request.id or not wanted.isdisjoint(_ids(could_serve(state, other.spec)))
    ]
    places = [place for place, other in enumerate(rivals, 1) if other.id == request.id]
    return (places[0] if places else None), len(rivals)


def expected_ms(state: State, request: Request, now: Millis) -> int | None:
    """In how many ms its turn comes, by what is known: notices, ends of leases, time limits of jobs. None: nobody can say."""
    if request.state is not RequestState.WAITING:
        return None
    coming = {
        slot.id: _Coming(slot, _free_ms(state, slot, now))
        for slot in state.slots.values()
        if slot.state is not SlotState.QUARANTINED
    }
    for other in line(state):
        start_ms, taken = _first_start(coming.values(), other.spec)
        if other.id == request.id:
            return None if start_ms is None else max(0, start_ms - now)
        duration_ms = _duration_ms(state, other)
        known = start_ms is not None and duration_ms is not None
        end_ms = Millis((start_ms or 0) + (duration_ms or 0)) if known else None
        for slot in taken:
            coming[slot.id] = _Coming(slot, end_ms)
    return None


# --- when slots come free -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Coming:
    """A slot and when it is free; None: nobody knows."""

    slot: Slot
    free_ms: Millis | None


def _free_ms(state: State, slot: Slot, now: Millis) -> Millis | None:
    if slot.state is SlotState.FREE:
        return now
    lease = None if slot.lease_id is None else state.leases.get(slot.lease_id)
    if lease is None:
        return None
    if lease.state is LeaseState.DRAINING:
        return now if lease.order is None else lease.order.due_ms
    known = [
        lease.ends_ms,
        None if lease.notice is None else lease.notice.due_ms,
        _job_end_ms(state, lease),
    ]
    return min((at for at in known if at is not None), default=None)


def _job_end_ms(state: State, lease: Lease) -> Millis | None:
    job = None if lease.job_id is None else state.jobs.get(lease.job_id)
    if job is None:
        return None
    if job.state is JobState.STOPPING:
        return job.kill_ms
    if job.time_limit_ms is None:
        return None
    return Millis((job.started_ms or lease.granted_ms) + job.time_limit_ms)


def _duration_ms(state: State, request: Request) -> int | None:
    """How long the request will hold what it gets."""
    job = None if request.job_id is None else state.jobs.get(request.job_id)
    return request.duration_ms if job is None else job.time_limit_ms


def _first_start(coming: Iterable[_Coming], spec: SlotSpec) -> tuple[Millis | None, list[Slot]]:
    """When enough slots of one node are free, and which; without a time where some of them are not known."""
    slots = {one.slot.id: one for one in coming}
    serving = serving_slots([one.slot for one in slots.values()], spec)
    by_node: dict[str, list[_Coming]] = {}
    for slot in serving:
        if slots[slot.id].free_ms is not None:
            by_node.setdefault(slot.node_id, []).append(slots[slot.id])
    count = len(spec.pinned) or spec.count
    best: tuple[Millis, list[Slot]] | None = None
    for found in by_node.values():
        found.sort(key=lambda one: (one.free_ms or 0, one.slot.memory_mib, one.slot.id))
        if len(found) < count:
            continue
        start_ms = found[count - 1].free_ms
        assert start_ms is not None
        if best is None or start_ms < best[0]:
            best = start_ms, [one.slot for one in found[:count]]
    return best if best is not None else (None, list(serving))


# --- small things ---------------------------------------------------------------------------------------------------------


def _rank(state: State, request: Request) -> tuple[int, int, int, str]:
    queue = state.queues.get(request.queue)
    tier = Tier.SCAVENGER if queue is None else queue.tier
    return _TIERS.index(tier), request.since_ms, request.number, request.id


def _ids(slots: Iterable[Slot]) -> frozenset[SlotId]:
    return frozenset(slot.id for slot in slots)


def _admits(state: State, slot: Slot, owner: Owner) -> bool:
    """Beside a parked holder's residue only its own owner is let in."""
    return all(lease.owner == owner for lease in residues_on(state, slot))


def _previous_slots(state: State, request: Request) -> tuple[SlotId, ...]:
    """The slots that its session had last."""
    mine = [lease for lease in state.leases.values() if lease.session_id == request.session_id]
    return (
        max(mine, key=lambda lease: lease.granted_ms).home
        if mine and request.job_id is None
        else ()
    )
