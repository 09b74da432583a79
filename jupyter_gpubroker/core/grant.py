"""Hands free slots to those whose turn it is.

Nobody overtakes, or only for so long as `limits.overtaking_ms` says: who cannot be served yet has the free slots held back
that it will need, on the node where it lacks the fewest. Requests for different slots do not hold each other up
(kubernetes-sigs/kueue#2270). What is held back may be lent to a batch job whose time limit ends it before the one in front
can start, as far as time limits tell (EASY backfilling; Mu'alem and Feitelson, IEEE TPDS 12(6), 2001); where they do not
tell, nothing is lent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from . import jobs
from .clear import admits
from .draft import Draft
from .effects import AdmitHold
from .giveback import was_seen_clear
from .model import (
    Hold,
    Lease,
    LeaseId,
    MiB,
    Millis,
    Order,
    Owner,
    Reason,
    Request,
    Slot,
    SlotId,
    SlotSpec,
    SlotState,
    State,
)
from .place import serves, usable, wanted_count
from .pool import Pool
from .queue import Turns, free_from_ms, may_be_served, tier_rank
from .table import found, groups

_NEVER = Millis(0)


def grant_waiting(draft: Draft) -> None:
    for request, slots in list(grants(draft.state, draft.now)):
        _grant(draft, request, slots)


def grants(state: State, now: Millis) -> Iterator[tuple[Request, tuple[Slot, ...]]]:
    """Who can be served now, and with which slots. Reads `state` as it is at the first step only."""
    turns = Turns(state)
    free = _Free(state, now) if turns else None
    tier = 0
    for request in turns:
        if tier != (tier := tier_rank(state, request.queue)) and free:
            free.hold_back_for_overtaken()  # by their own tier at most
        if not free:
            return
        slots = free.choose(request)
        if slots is None:
            free.blocked(request)
            if not free.is_picky:
                turns.pass_over()
            continue
        free.take(slots)
        if may_be_served(state, request):
            yield request, slots


class _Free:
    """The free slots that were seen clear just now, as they are given away and held back in turn."""

    def __init__(self, state: State, now: Millis) -> None:
        self._state = state
        self._now = now
        self._pool = Pool(_grantable(state, now))
        self._lent_until: dict[SlotId, Millis] = {}  # of what is held back
        self._held = Pool()
        self._overtaken: list[SlotSpec] = []
        self._may_lend = any(
            demand.is_job and demand.duration_ms is not None
            for demand in groups(Request, state.requests, "lines")
        )
        # Beside a parked holder's residue only its own owner is let in, so equal demands need not fare alike.
        self.is_picky = bool(found(Lease, state.leases, "residual"))

    def __bool__(self) -> bool:
        return bool(self._pool) or (self._may_lend and bool(self._held))

    def choose(self, request: Request) -> tuple[Slot, ...] | None:
        preferred = _previous_slots(self._state, request)
        slots = self._admitting(self._pool, request.owner).best(request.spec, preferred)
        if slots is None and request.job_id is not None and request.duration_ms is not None:
            return self._with_lent(request.owner, request.duration_ms).best(request.spec)
        return slots

    def take(self, slots: Iterable[Slot]) -> None:
        for slot in slots:
            pool = self._pool if self._lent_until.pop(slot.id, None) is None else self._held
            pool.take(slot)

    def blocked(self, request: Request) -> None:
        """The request cannot be served yet: nobody overtakes it, or nobody of a lower tier."""
        if self._now - request.in_line_since_ms >= self._state.limits.overtaking_ms:
            self._hold_back(request.spec)
        else:
            self._overtaken.append(request.spec)

    def hold_back_for_overtaken(self) -> None:
        for spec in self._overtaken:
            self._hold_back(spec)
        self._overtaken.clear()

    def _hold_back(self, spec: SlotSpec) -> None:
        """Keep what is free for who wants it next, on the node that lacks the fewest."""
        counts = self._pool.counts(spec)
        nodes = [node_id for node_id in counts if node_id in usable(self._state, spec).nodes]
        if not nodes:
            return
        node_id = min(nodes, key=lambda one: (-counts[one], one))
        until_ms = self._start_ms(spec, node_id) if self._may_lend else _NEVER
        for slot in self._pool.on(node_id, spec):
            self._pool.take(slot)
            self._held.put(slot)
            self._lent_until[slot.id] = until_ms

    def _start_ms(self, spec: SlotSpec, node_id: str) -> Millis:
        """When the first in line can start there, as far as is known."""
        slots = self._state.slots.values()
        known = sorted(
            free_ms
            for slot in slots
            if slot.node_id == node_id and serves(slot, spec)
            if (free_ms := free_from_ms(self._state, slot, self._now)) is not None
        )
        count = wanted_count(spec)
        return known[count - 1] if len(known) >= count else _NEVER

    def _with_lent(self, owner: Owner, duration_ms: int) -> Pool:
        """What is free, and what is held back for longer than the job can take."""
        limits = self._state.limits
        end_ms = self._now + duration_ms + limits.job_grace_ms + limits.clear_grace_ms
        pool = self._held.only(lambda slot: self._lent_until[slot.id] >= end_ms)
        for slot in self._pool:
            pool.put(slot)
        return self._admitting(pool, owner)

    def _admitting(self, pool: Pool, owner: Owner) -> Pool:
        if not self.is_picky:
            return pool
        return pool.only(lambda slot: admits(self._state, slot, owner))


def _grantable(state: State, now: Millis) -> Iterator[Slot]:
    for slot_ids in groups(Slot, state.slots, "loose").values():
        for slot_id in slot_ids:
            slot = state.slots[slot_id]
            if slot.state is SlotState.FREE and was_seen_clear(state, slot, now):
                yield slot


def _previous_slots(state: State, request: Request) -> tuple[SlotId, ...]:
    """The slots that its session had last."""
    if request.job_id is not None:
        return ()
    mine = found(Lease, state.leases, "by_session", request.session_id)
    return max(mine, key=lambda lease: lease.granted_ms).home if mine else ()


# --- granting -------------------------------------------------------------------------------------------------------------


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
    """To be acknowledged in time, else it is taken back. A job has its own clock, which stands until it is started."""
    duration_ms = None if request.job_id is not None else request.duration_ms
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
