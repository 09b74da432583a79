"""The waiting line: who is before whom, and when one's turn comes.

Order is tier, then age, then number. Who gets what is decided in `grant`, who must make way in `claim`; both walk the line
demand by demand, so that a thousand requests for the same thing, which cannot be had, cost no more than one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from heapq import heapify, heappop, heapreplace, nsmallest
from itertools import chain

from . import modes
from .model import (
    JobState,
    Lease,
    LeaseState,
    Millis,
    Mode,
    Request,
    RequestId,
    RequestState,
    SessionState,
    Slot,
    SlotId,
    SlotSpec,
    SlotState,
    State,
)
from .place import usable, wanted_count
from .pool import Pool
from .rules import Tier
from .table import Demand, Place, groups

_TIERS = tuple(Tier)


def tier_rank(state: State, queue: str) -> int:
    """0 is served first."""
    row = state.queues.get(queue)
    return _TIERS.index(Tier.SCAVENGER if row is None else row.tier)


def line(state: State) -> list[Request]:
    """Everybody who waits, first in line first."""
    return [*Turns(state)]


def may_be_served(state: State, request: Request) -> bool:
    """Whether its holder is there to take a grant (not in the middle of a restart)."""
    return state.sessions[request.session_id].state is SessionState.LIVE


class Turns(Iterator[Request]):
    """Walks the line, first in line first; `pass_over` leaves out the rest of those who want what the last one wants."""

    def __init__(self, state: State) -> None:
        self._requests = state.requests
        lines = groups(Request, state.requests, "lines")
        self._lines: list[tuple[Demand, list[Place]]] = [*lines.items()]
        self._heap = [
            (tier_rank(state, demand.queue), places[0], number, 0)
            for number, (demand, places) in enumerate(self._lines)
        ]
        heapify(self._heap)
        self._is_at_top = False  # whether the last one handed out is still on the heap

    def __next__(self) -> Request:
        if self._is_at_top:
            tier, _, number, at = self._heap[0]
            places = self._lines[number][1]
            if at + 1 < len(places):
                heapreplace(self._heap, (tier, places[at + 1], number, at + 1))
            else:
                heappop(self._heap)
        self._is_at_top = bool(self._heap)
        if not self._heap:
            raise StopIteration
        return self._requests[RequestId(self._heap[0][1].request_id)]

    def __bool__(self) -> bool:
        return bool(self._heap)

    def pass_over(self) -> None:
        heappop(self._heap)
        self._is_at_top = False


# --- places ---------------------------------------------------------------------------------------------------------------


def place_in_line(state: State, request: Request) -> tuple[int | None, int]:
    """Its place, counted from 1 among those who compete for the same slots, and how many wait there.

    The place is None once it waits no longer.
    """
    tier = tier_rank(state, request.queue)
    place = Place(request.in_line_since_ms, request.number, request.id)
    before = waiting = 0
    for demand, places in groups(Request, state.requests, "lines").items():
        if demand.spec != request.spec and not _are_rivals(state, demand.spec, request.spec):
            continue
        waiting += len(places)
        other_tier = tier_rank(state, demand.queue)
        if other_tier < tier:
            before += len(places)
        elif other_tier == tier:
            before += bisect_left(places, place)
    return (before + 1 if request.state is RequestState.WAITING else None), waiting


def _are_rivals(state: State, one: SlotSpec, other: SlotSpec) -> bool:
    """Whether a slot could serve both, now or when its holder is gone."""
    if one.pinned and other.pinned:
        return not set(one.pinned).isdisjoint(other.pinned)
    return not usable(state, one).shapes.isdisjoint(usable(state, other).shapes)


# --- when one's turn comes ------------------------------------------------------------------------------------------------


def expected_ms(state: State, request: Request, now: Millis) -> int | None:
    """In how many ms its turn comes, by what is known: notices, ends of leases, time limits of jobs. None: nobody can say."""
    if request.state is not RequestState.WAITING:
        return None
    coming = _Coming(state, now)
    for other in Turns(state):
        if not coming:
            return None
        start_ms = coming.take(other.spec, other.duration_ms)
        if other.id == request.id:
            return None if start_ms is None else max(0, start_ms - now)
    return None


class _Coming:
    """The slots of which it is known when they come free, each with that moment, as they are taken in turn."""

    def __init__(self, state: State, now: Millis) -> None:
        self._free_ms: dict[SlotId, Millis] = {}
        for slot in state.slots.values():
            free_ms = free_from_ms(state, slot, now)
            if free_ms is not None:
                self._free_ms[slot.id] = free_ms
        self._pool = Pool(state.slots[slot_id] for slot_id in self._free_ms)

    def __bool__(self) -> bool:
        return bool(self._free_ms)

    def take(self, spec: SlotSpec, duration_ms: int | None) -> Millis | None:
        """When enough slots of one node are free; they are taken for so long. None where that is not known."""
        count = wanted_count(spec)
        nodes = [self._pool.on(node_id, spec) for node_id in self._pool.counts(spec)]
        chosen = min(
            (nsmallest(count, slots, key=self._order) for slots in nodes if len(slots) >= count),
            key=lambda slots: self._free_ms[slots[-1].id],
            default=None,
        )
        if chosen is None:  # it will take some of these, at a time that nobody knows
            for slot in chain.from_iterable(nodes):
                self._forget(slot)
            return None
        start_ms = self._free_ms[chosen[-1].id]
        for slot in chosen:
            if duration_ms is None:
                self._forget(slot)
            else:
                self._free_ms[slot.id] = Millis(start_ms + duration_ms)
        return start_ms

    def _forget(self, slot: Slot) -> None:
        del self._free_ms[slot.id]
        self._pool.take(slot)

    def _order(self, slot: Slot) -> tuple[int, int, str]:
        return self._free_ms[slot.id], slot.memory_mib, slot.id


def free_from_ms(state: State, slot: Slot, now: Millis) -> Millis | None:
    """From when on the slot is free, by what is known; None where nobody can say."""
    if slot.state is SlotState.FREE:
        return now
    lease = None if slot.lease_id is None else state.leases.get(slot.lease_id)
    if lease is None or slot.state is SlotState.QUARANTINED:
        return None
    if lease.state is LeaseState.DRAINING:
        return now if lease.order is None else lease.order.due_ms
    known = [_job_end_ms(state, lease)]
    if modes.of_lease(state, lease) is Mode.ENFORCE:  # else neither is more than a wish
        known += [lease.ends_ms, None if lease.notice is None else lease.notice.due_ms]
    return min((at for at in known if at is not None), default=None)


def _job_end_ms(state: State, lease: Lease) -> Millis | None:
    job = None if lease.job_id is None else state.jobs.get(lease.job_id)
    if job is None:
        return None
    if job.state is JobState.STOPPING:
        return job.kill_ms
    if job.time_limit_ms is None:
        return None
    return Millis((job.started_ms or lease.granted_ms) + job.time_limit_ms - job.saved_ms)
