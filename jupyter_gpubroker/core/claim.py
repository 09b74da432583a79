"""Who must make way for whom, tried out before anything is done.

Each request in line, in turn, is given what comes free anyway; what it lacks is taken from idle holders past their limit,
longest idle first, else from preemptible jobs of a lower tier past their protected time, least lost work first. All on one
node, all or nothing, and then whatever turns out not to be needed is given back. An idle holder that could only be taken
later than a notice's length after the request came does not count before the jobs: who waited once for a notice in vain
need not wait for another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from . import giveback, modes
from .clear import admits
from .idle import is_fresh, policy_of, reclaimable_ms
from .jobs import is_stoppable, lease_of, lost_ms
from .model import (
    Job,
    Lease,
    LeaseId,
    LeaseState,
    Millis,
    Mode,
    Request,
    RequestId,
    Slot,
    State,
)
from .place import serves, usable, wanted_count
from .pool import Pool
from .queue import Turns, may_be_served, tier_rank
from .table import found, groups

ONLY_OBSERVED = "only_observed"


@dataclass(frozen=True, slots=True)
class Claims:
    """Whose lease is asked back, and whose job is stopped, for which request."""

    idle: Mapping[LeaseId, RequestId] = field(default_factory=dict)
    jobs: Mapping[LeaseId, RequestId] = field(default_factory=dict)


def claims(state: State, now: Millis) -> Claims:
    """What the line needs, as things are."""
    turns = Turns(state)
    if not turns:
        return Claims()
    ground = _Ground(state, now)
    idle: dict[LeaseId, RequestId] = {}
    jobs: dict[LeaseId, RequestId] = {}
    for request in turns:
        if not ground.has_any_for(request):
            break
        if not may_be_served(state, request):
            continue
        candidates = ground.claim(request)
        if candidates is None:
            turns.pass_over()
            continue
        for candidate in candidates:
            taken = jobs if candidate.is_job else idle
            taken[candidate.lease.id] = request.id
    return Claims(idle, jobs)


def is_takeable(state: State, lease: Lease, now: Millis, after_ms: int = 0) -> bool:
    """Whether its holder has been idle, by `after_ms`, for longer than it may be when somebody wants the slots."""
    from_ms = reclaimable_ms(state, lease)
    return from_ms is not None and now >= from_ms + after_ms and is_fresh(state, lease, now)


def _is_claimable(state: State, lease: Lease, now: Millis) -> bool:
    """As `is_takeable`; who is only observed gets no notice, so is claimed when it would be over, and once."""
    if modes.of_lease(state, lease) is not Mode.OBSERVE:
        return is_takeable(state, lease, now)
    policy = policy_of(state, lease)
    is_noted = lease.cause is not None and lease.cause.code == ONLY_OBSERVED
    return policy is not None and not is_noted and is_takeable(state, lease, now, policy.notice_ms)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A lease that could make way. `cost` orders them, the first to be taken first."""

    lease: Lease
    slots: tuple[Slot, ...]
    cost: tuple[int, ...]
    is_job: bool = False

    @property
    def node_id(self) -> str:
        return self.slots[0].node_id


class _Ground:
    """What is left to be claimed, as one request after the other claims its share."""

    def __init__(self, state: State, now: Millis) -> None:
        self._state = state
        self._now = now
        quiet = found(Lease, state.leases, "quiet")
        self._idle = _by_cost(
            _idle(state, one, now) for one in quiet if _is_claimable(state, one, now)
        )
        self._jobs: dict[LeaseId, _Candidate] | None = None  # looked for when needed
        self._pool: Pool | None = None  # what comes free anyway, as far as nobody has claimed it
        # Beside a parked holder's residue only its own owner is let in.
        self._is_picky = bool(found(Lease, state.leases, "residual"))

    def has_any_for(self, request: Request) -> bool:
        """Whether anything could be taken for this request, or for one behind it."""
        return bool(self._idle) or self._may_preempt(request)

    def claim(self, request: Request) -> list[_Candidate] | None:
        """Who must make way for it; None where it cannot be served whoever does, and keeps only what comes free."""
        count = wanted_count(request.spec)
        coming = self._coming(request)
        have = {
            node_id: number
            for node_id, number in coming.counts(request.spec).items()
            if node_id in usable(self._state, request.spec).nodes
        }
        most = max(have, key=lambda node_id: (have[node_id], node_id), default=None)
        if most is not None and have[most] >= count:
            self._speak_for(coming.on(most, request.spec)[:count])
            return []
        makers = self._makers(request, have.copy())
        if makers is not None:
            self._give_way(makers)
            free = self._coming(request).on(makers[0].node_id, request.spec)
            self._speak_for(free[:count])
        elif most is not None:
            self._speak_for(coming.on(most, request.spec))
        return makers

    def _makers(self, request: Request, have: dict[str, int]) -> list[_Candidate] | None:
        """The first candidates that are enough on one node, without those of them that are not needed after all."""
        count = wanted_count(request.spec)
        nodes = usable(self._state, request.spec).nodes
        picked: dict[str, list[tuple[_Candidate, int]]] = {}
        for candidate in self._candidates(request):
            node_id = candidate.node_id
            gain = sum(serves(slot, request.spec) for slot in candidate.slots)
            if not gain or node_id not in nodes:
                continue
            picked.setdefault(node_id, []).append((candidate, gain))
            have[node_id] = have.get(node_id, 0) + gain
            if have[node_id] >= count:
                return _needed(picked[node_id], have[node_id] - count)
        return None

    def _candidates(self, request: Request) -> Iterator[_Candidate]:
        """In the order in which they are taken."""
        if not self._may_preempt(request):
            return iter([*self._idle.values()])
        soon: list[_Candidate] = []
        late: list[_Candidate] = []
        for candidate in self._idle.values():
            (soon if self._is_in_time(candidate, request) else late).append(candidate)
        tier = tier_rank(self._state, request.queue)
        jobs = [
            candidate
            for candidate in self._preemptible().values()
            if tier_rank(self._state, candidate.lease.queue) > tier
        ]
        return chain(soon, jobs, late)

    def _may_preempt(self, request: Request) -> bool:
        tier = tier_rank(self._state, request.queue)
        queues = groups(Lease, self._state.leases, "preemptible")
        return any(tier_rank(self._state, queue) > tier for queue in queues)

    def _is_in_time(self, candidate: _Candidate, request: Request) -> bool:
        """Whether an idle holder can give back, and by the time that a notice lasts from when the request came."""
        lease = candidate.lease
        policy = policy_of(self._state, lease)
        assert policy is not None
        due_ms = self._now + policy.notice_ms if lease.notice is None else lease.notice.due_ms
        in_time_ms = request.since_ms + policy.notice_ms + self._state.limits.ack_ms
        return due_ms <= in_time_ms and bool(giveback.kinds_now(self._state, lease, self._now))

    def _preemptible(self) -> dict[LeaseId, _Candidate]:
        if self._jobs is None:
            self._jobs = _by_cost(_victims(self._state, self._now))
        return self._jobs

    def _coming(self, request: Request) -> Pool:
        """What comes free anyway, as far as the request's owner is let in there."""
        if self._pool is None:
            self._pool = Pool(_loose(self._state))
        if not self._is_picky:
            return self._pool
        return self._pool.only(lambda slot: admits(self._state, slot, request.owner))

    def _speak_for(self, slots: Iterable[Slot]) -> None:
        assert self._pool is not None
        for slot in slots:
            self._pool.take(slot)

    def _give_way(self, makers: Iterable[_Candidate]) -> None:
        assert self._pool is not None
        for candidate in makers:
            (self._preemptible() if candidate.is_job else self._idle).pop(candidate.lease.id)
            for slot in candidate.slots:
                self._pool.put(slot)


def _idle(state: State, lease: Lease, now: Millis) -> _Candidate:
    """Who must, before who is only advised or observed; who has notice keeps it; who can give back; who is idle longest."""
    can_give = bool(giveback.kinds_now(state, lease, now))
    leniency = -modes.MILDNESS.index(modes.of_lease(state, lease))
    cost = (leniency, lease.notice is None, not can_give, lease.verdict_since_ms)
    return _Candidate(lease, giveback.slots_of(state, lease), cost)


def _victims(state: State, now: Millis) -> Iterator[_Candidate]:
    """Jobs that may be stopped for a higher tier: least lost work for each GPU first, then the larger."""
    for queue, lease_ids in groups(Lease, state.leases, "preemptible").items():
        row = state.queues.get(queue)
        protected_ms = 0 if row is None else row.protected_ms
        for lease_id in lease_ids:
            lease = state.leases[lease_id]
            assert lease.job_id is not None
            job = state.jobs[lease.job_id]
            if modes.of_lease(state, lease) is not Mode.ENFORCE:
                continue
            if is_stoppable(state, job) and now - lease.granted_ms >= protected_ms:
                cost = (lost_ms(job, now), -len(lease.holds), job.number)
                yield _Candidate(lease, giveback.slots_of(state, lease), cost, is_job=True)


def _loose(state: State) -> Iterator[Slot]:
    """The slots that are free or on their way to be."""
    for slot_ids in groups(Slot, state.slots, "loose").values():
        yield from (state.slots[slot_id] for slot_id in slot_ids)
    for job in found(Job, state.jobs, "stopping"):
        lease = lease_of(state, job)
        if lease is not None and lease.state in (LeaseState.GRANTED, LeaseState.ACTIVE):
            yield from giveback.slots_of(state, lease)


def _by_cost(candidates: Iterable[_Candidate]) -> dict[LeaseId, _Candidate]:
    ordered = sorted(candidates, key=lambda one: (one.cost, one.lease.id))
    return {candidate.lease.id: candidate for candidate in ordered}


def _needed(picked: list[tuple[_Candidate, int]], surplus: int) -> list[_Candidate]:
    """Without those that the surplus makes up for, the last picked first."""
    needed: list[_Candidate] = []
    for candidate, gain in reversed(picked):
        if gain <= surplus:
            surplus -= gain
        else:
            needed.insert(0, candidate)
    return needed
