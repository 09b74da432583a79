"""The rules that never break, as functions of the state: each returns what is wrong, in words for who repairs it.

Tests run them after each step, the broker when it loads a state: with violations it grants nothing. They derive everything
anew and trust no index. The names (I1, I3, ...) are used all over the project; rules about the outside are judged by the tests.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from .jobs import has_process
from .model import (
    HOLDING,
    JobState,
    Lease,
    LeaseState,
    RequestState,
    SessionState,
    Slot,
    SlotKind,
    SlotState,
    State,
)
from .place import is_lost
from .table import INDICES, STATE_FIELDS, Table, is_over
from .verdicts import judge

_SLOT_OF_LEASE = {
    LeaseState.GRANTED: SlotState.LEASED,
    LeaseState.ACTIVE: SlotState.LEASED,
    LeaseState.DRAINING: SlotState.DRAINING,
}
_REQUEST_OF_JOB = {
    JobState.QUEUED: RequestState.WAITING,
    JobState.STARTING: RequestState.GRANTED,
    JobState.RUNNING: RequestState.GRANTED,
    JobState.STOPPING: RequestState.GRANTED,
}
_TIMED = frozenset({LeaseState.GRANTED, LeaseState.DRAINING})


def violations(state: State) -> list[str]:
    """What is wrong with the state; empty where nothing is."""
    return [problem for rule in RULES for problem in rule(state)]


def transition_violations(before: State, after: State) -> list[str]:
    """What is wrong with how `after` followed `before`."""
    return [*_epochs_never_fall(before, after), *_what_is_over_stays_so(before, after)]


def _one_live_lease_per_slot(state: State) -> Iterator[str]:
    held = Counter(
        hold.slot_id
        for lease in state.leases.values()
        if lease.state in HOLDING
        for hold in lease.holds
    )
    yield from (f"I1 slot {slot_id} has {n} live leases" for slot_id, n in held.items() if n > 1)


def _no_gpu_beside_its_slices(state: State) -> Iterator[str]:
    kinds: dict[str, set[SlotKind]] = {}
    for slot in state.slots.values():
        if not is_lost(slot):
            kinds.setdefault(slot.gpu_id, set()).add(slot.kind)
    yield from (
        f"I1 GPU {gpu_id} is offered whole and in slices"
        for gpu_id in kinds
        if len(kinds[gpu_id]) > 1
    )


def _holds_match_slots(state: State) -> Iterator[str]:
    for lease in state.leases.values():
        if bool(lease.holds) is not (lease.state in HOLDING):
            yield f"I10 lease {lease.id} is {lease.state.value} with {len(lease.holds)} slots"
        for hold in lease.holds:
            slot = state.slots.get(hold.slot_id)
            if slot is None:
                yield f"I10 lease {lease.id} holds the unknown slot {hold.slot_id}"
            else:
                yield from _hold_matches(lease, slot, hold.epoch)


def _hold_matches(lease: Lease, slot: Slot, epoch: int) -> Iterator[str]:
    if slot.lease_id != lease.id:
        yield f"I10 slot {slot.id} does not know its lease {lease.id}"
    if slot.epoch != epoch:
        yield f"I3 lease {lease.id} has epoch {epoch} of slot {slot.id}, which is at {slot.epoch}"
    expected = _SLOT_OF_LEASE.get(lease.state)
    if expected is not None and slot.state not in (expected, SlotState.QUARANTINED):
        yield f"I10 slot {slot.id} is {slot.state.value}, its lease {lease.state.value}"


def _slots_match_holds(state: State) -> Iterator[str]:
    for slot in state.slots.values():
        lease = None if slot.lease_id is None else state.leases.get(slot.lease_id)
        is_taken = slot.state in (SlotState.LEASED, SlotState.DRAINING)
        if slot.state is SlotState.FREE and slot.lease_id is not None:
            yield f"I10 slot {slot.id} is free and leased"
        if is_taken and lease is None:
            yield f"I10 slot {slot.id} is {slot.state.value} by nobody"
        if slot.lease_id is not None and lease is None:
            yield f"I10 slot {slot.id} names the unknown lease {slot.lease_id}"
        if lease is not None and slot.id not in {hold.slot_id for hold in lease.holds}:
            yield f"I10 slot {slot.id} names lease {lease.id}, which does not hold it"
        if slot.state is SlotState.QUARANTINED and slot.reason is None:
            yield f"I11 slot {slot.id} is quarantined without a reason"


def _requests_end_once(state: State) -> Iterator[str]:
    for request in state.requests.values():
        is_waiting = request.state is RequestState.WAITING
        if is_waiting is not (request.ended_ms is None):
            yield f"I5 request {request.id} is {request.state.value}, ended at {request.ended_ms}"
        if request.state is RequestState.GRANTED and request.lease_id is None:
            yield f"I5 request {request.id} was granted no lease"
        if is_waiting and request.lease_id is not None:
            lease = state.leases.get(request.lease_id)
            if lease is None or lease.state is not LeaseState.PARKED:
                yield f"I5 request {request.id} wants a lease back that is not parked"


def _everything_has_an_owner(state: State) -> Iterator[str]:
    """I6: who waits or holds is there: its session, or for a batch job its process. Leases may be on their way out."""
    present = {s.id for s in state.sessions.values() if s.state is not SessionState.ENDED}
    for request in state.requests.values():
        if request.state is RequestState.WAITING and request.session_id not in present:
            yield f"I6 request {request.id} waits for a session that is over"
    for lease in state.leases.values():
        needs_holder = lease.state in (LeaseState.GRANTED, LeaseState.ACTIVE, LeaseState.PARKED)
        if needs_holder and lease.session_id not in present and not has_process(state, lease):
            yield f"I6 lease {lease.id} is {lease.state.value} without its holder"


def _leases_have_deadlines(state: State) -> Iterator[str]:
    for lease in state.leases.values():
        if lease.state in _TIMED and lease.deadline_ms is None:
            yield f"I5 lease {lease.id} is {lease.state.value} without a deadline"
        if lease.state not in _TIMED and lease.deadline_ms is not None:
            yield f"I5 lease {lease.id} is {lease.state.value} with a deadline"
        if lease.notice is not None and lease.state is not LeaseState.ACTIVE:
            yield f"I7 lease {lease.id} has a notice while {lease.state.value}"
        if lease.order is not None and not _order_fits(lease):
            yield f"I7 lease {lease.id} has an order while {lease.state.value}"
        if is_over(lease) and lease.order is not None:
            yield f"I7 lease {lease.id} is over with an order"


def _order_fits(lease: Lease) -> bool:
    assert lease.order is not None
    if lease.order.resume:
        return lease.state in (LeaseState.GRANTED, LeaseState.ACTIVE)
    return lease.state is LeaseState.DRAINING


def _verdicts_follow_from_evidence(state: State) -> Iterator[str]:
    """I15: what is kept of a verdict's evidence gives that verdict again; and only who holds is watched.

    Of who is watched, that is: evidence of before a restart may be by the rules of another version.
    """
    for lease_id in state.watches:
        lease = state.leases.get(lease_id)
        if lease is None or lease.state is not LeaseState.ACTIVE:
            yield f"I15 lease {lease_id} is watched and not in use"
        elif lease.evidence is not None and judge(lease.evidence).verdict is not lease.verdict:
            yield f"I15 the evidence of lease {lease_id} does not say {lease.verdict.value}"


def _jobs_match_requests(state: State) -> Iterator[str]:
    for job in state.jobs.values():
        request = None if job.request_id is None else state.requests.get(job.request_id)
        if job.state is not JobState.ENDED and request is None:
            yield f"I5 job {job.id} has no request"
        expected = _REQUEST_OF_JOB.get(job.state)
        if request is not None and expected is not None and request.state is not expected:
            yield f"I5 job {job.id} is {job.state.value}, its request {request.state.value}"
        if (job.outcome is None) is (job.state is JobState.ENDED):
            yield f"I5 job {job.id} is {job.state.value} with the outcome {job.outcome}"
        if job.state is JobState.STOPPING and job.kill_ms is None:
            yield f"I5 job {job.id} stops without a deadline"


def _keeps_within_bounds(state: State) -> Iterator[str]:
    """I14: what is limited stays within its limit; a policy may have been tightened since."""
    waiting = Counter(r.owner for r in state.requests.values() if r.state is RequestState.WAITING)
    most = state.limits.waiting_max_per_owner
    yield from (f"I14 {owner} waits {n} times" for owner, n in waiting.items() if n > most)


def _one_lease_per_process(state: State) -> Iterator[str]:
    """A process must never see two MIG instances, so no session but a runner has two leases in use."""
    in_use = Counter(
        lease.session_id
        for lease in state.leases.values()
        if lease.state in (LeaseState.GRANTED, LeaseState.ACTIVE) and lease.job_id is None
    )
    yield from (f"I1 session {sid} uses {n} leases" for sid, n in in_use.items() if n > 1)


def _indices_are_right(state: State) -> Iterator[str]:
    for entity_type in INDICES:
        name = STATE_FIELDS[entity_type]
        table = getattr(state, name)
        if not isinstance(table, Table):
            continue
        anew = Table(entity_type, dict(table))
        for index, found in table.indices.items():
            if found.groups != anew.indices[index].groups:
                yield f"I15 the index {index} of {name} is wrong"


RULES: tuple[Callable[[State], Iterator[str]], ...] = (
    _one_live_lease_per_slot,
    _no_gpu_beside_its_slices,
    _holds_match_slots,
    _slots_match_holds,
    _requests_end_once,
    _everything_has_an_owner,
    _leases_have_deadlines,
    _verdicts_follow_from_evidence,
    _jobs_match_requests,
    _keeps_within_bounds,
    _one_lease_per_process,
    _indices_are_right,
)


def _epochs_never_fall(before: State, after: State) -> Iterator[str]:
    for slot_id, slot in before.slots.items():
        now = after.slots.get(slot_id)
        if now is not None and now.epoch < slot.epoch:
            yield f"I3 the epoch of slot {slot_id} fell from {slot.epoch} to {now.epoch}"
        if now is None and slot.lease_id is not None:
            yield f"I10 the leased slot {slot_id} vanished"
        if (
            now is not None
            and now.lease_id not in (None, slot.lease_id)
            and now.epoch == slot.epoch
        ):
            yield f"I3 slot {slot_id} was granted anew at the same epoch"


def _what_is_over_stays_so(before: State, after: State) -> Iterator[str]:
    if after.number < before.number:
        yield f"I15 the number fell from {before.number} to {after.number}"
    for name in ("sessions", "requests", "leases", "jobs"):
        now = getattr(after, name)
        for key, entity in getattr(before, name).items():
            if is_over(entity) and key in now and now[key].state is not entity.state:
                yield f"I5 {name} {key} was {entity.state.value} and is {now[key].state.value}"
            if not is_over(entity) and key not in now:
                yield f"I5 {name} {key} was forgotten while {entity.state.value}"
