"""Each rule that never breaks is broken once on purpose, and noticed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from jupyter_gpubroker.core.check import RULES, transition_violations, violations
from jupyter_gpubroker.core.decision import Put, apply
from jupyter_gpubroker.core.model import (
    Entity,
    GiveBackKind,
    Hold,
    JobOutcome,
    JobState,
    Lease,
    LeaseId,
    LeaseState,
    Millis,
    Notice,
    Order,
    Reason,
    RequestId,
    RequestState,
    SessionId,
    SessionState,
    SlotId,
    SlotKind,
    SlotState,
    State,
    Verdict,
)
from jupyter_gpubroker.core.table import Table
from tests.support.core_world import World, whole


def good() -> World:
    """Two leases in use, a third asked for, a job on the fourth GPU."""
    world = World().devices(*map(whole, range(3)))
    world.holds("a")
    world.holds("b")
    world.job_starts(world.submits(world.runner(), "job"))
    world.session("c")
    world.asks("c")
    return world


def put(state: State, *entities: Entity) -> State:
    return apply(state, [Put(entity) for entity in entities])


def lease(name: str = "a-lease", **fields: Any) -> Callable[[State], State]:
    return lambda state: put(state, replace(state.leases[LeaseId(name)], **fields))


def slot(name: str = "GPU-0", **fields: Any) -> Callable[[State], State]:
    return lambda state: put(state, replace(state.slots[SlotId(name)], **fields))


def request(name: str = "c-lease", **fields: Any) -> Callable[[State], State]:
    return lambda state: put(state, replace(state.requests[RequestId(name)], **fields))


def job(**fields: Any) -> Callable[[State], State]:
    return lambda state: put(state, replace(next(iter(state.jobs.values())), **fields))


def session(name: str, **fields: Any) -> Callable[[State], State]:
    return lambda state: put(state, replace(state.sessions[SessionId(name)], **fields))


def stale_index(state: State) -> State:
    table = Table(Lease, dict(state.leases))
    table.indices["live"].groups[True].popitem()
    return replace(state, leases=table)


def one_too_many(state: State) -> State:
    return replace(state, limits=replace(state.limits, waiting_max_per_owner=0))


NOTICE = Notice(1, RequestId("c-lease"), Millis(0), Millis(1), Reason.of("taken"))
ORDER = Order(1, GiveBackKind.EMPTY, Millis(0), Millis(1))

BROKEN: Mapping[str, tuple[str, Callable[[State], State]]] = {
    "two live leases on one slot": ("I1", lease(holds=(Hold(SlotId("GPU-1"), 1),))),
    "a GPU offered whole and in slices": ("I1", slot("GPU-1", gpu_id="GPU-0", kind=SlotKind.MIG)),
    "two leases of one process": ("I1", lease("b-lease", session_id="a")),
    "an epoch the slot has left behind": ("I3", slot(epoch=7)),
    "a hold of an unknown slot": ("I10", lease(holds=(Hold(SlotId("GPU-9"), 1),))),
    "a slot that does not know its lease": ("I10", slot(lease_id=None)),
    "a slot free beneath a lease": ("I10", slot(state=SlotState.FREE)),
    "a slot draining beneath a lease in use": ("I10", slot(state=SlotState.DRAINING)),
    "a slot of an unknown lease": ("I10", slot(lease_id="nobody")),
    "a lease in use without slots": ("I10", lease(holds=())),
    "a parked lease with slots": ("I10", lease(state=LeaseState.PARKED)),
    "a quarantine without a reason": ("I11", slot(state=SlotState.QUARANTINED)),
    "a request that waits and has ended": ("I5", request(ended_ms=1)),
    "a request granted nothing": ("I5", request(state=RequestState.GRANTED, ended_ms=1)),
    "a wish for a lease that is not parked": ("I5", request(lease_id="a-lease")),
    "a grant without a deadline": ("I5", lease(state=LeaseState.GRANTED)),
    "a lease in use with a deadline": ("I5", lease(deadline_ms=1)),
    "a wait for a session that is over": ("I6", session("c", state=SessionState.ENDED)),
    "a lease without its holder": ("I6", session("a", state=SessionState.ENDED)),
    "an order in use": ("I7", lease(order=ORDER)),
    "an order that outlives its lease": (
        "I7", lease(state=LeaseState.CLEARED, order=ORDER, holds=()),
    ),
    "a notice on the way out": (
        "I7", lease(state=LeaseState.DRAINING, deadline_ms=1, notice=NOTICE),
    ),
    "a job without a request": ("I5", job(request_id="nobody")),
    "a job queued with a grant": ("I5", job(state=JobState.QUEUED)),
    "a job that runs with an outcome": ("I5", job(outcome=JobOutcome.FINISHED)),
    "a job that stops without a deadline": ("I5", job(state=JobState.STOPPING)),
    "more waiting than allowed": ("I14", one_too_many),
    "an index that forgot somebody": ("I15", stale_index),
    "a verdict that its evidence does not give": ("I15", lease(verdict=Verdict.SUSPECT)),
    "a watch over somebody who has nothing": ("I15", lease(state=LeaseState.CLEARED, holds=())),
}  # fmt: skip


def test_a_good_state_has_no_violations() -> None:
    assert violations(good().state) == []


def test_evidence_of_before_a_restart_may_be_by_other_rules() -> None:
    before = lease(verdict=Verdict.SUSPECT)(good().state)
    assert violations(replace(before, watches={})) == []


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_rule_is_noticed(case: str) -> None:
    rule, break_it = BROKEN[case]
    found = violations(break_it(good().state))
    assert any(problem.startswith(rule + " ") for problem in found), found


def test_every_rule_was_broken_here() -> None:
    state = good().state
    assert {
        rule for _, break_it in BROKEN.values() for rule in RULES if [*rule(break_it(state))]
    } == {*RULES}


TRANSITIONS: Mapping[str, tuple[str, Callable[[State], State], Callable[[State], State]]] = {
    "an epoch that falls": ("I3", slot(epoch=5), slot(epoch=4)),
    "a grant at the same epoch": ("I3", slot(), slot(lease_id="b-lease")),
    "a leased slot that vanishes": (
        "I10", slot(), lambda s: replace(s, slots={k: v for k, v in s.slots.items() if k != "GPU-0"}),
    ),
    "a lease that comes back to life": (
        "I5", lease(state=LeaseState.CLEARED), lease(state=LeaseState.ACTIVE),
    ),
    "a request forgotten while it waits": ("I5", request(), lambda s: replace(s, requests={})),
    "a number that falls": ("I15", request(), lambda s: replace(s, number=0)),
}  # fmt: skip


@pytest.mark.parametrize("case", TRANSITIONS)
def test_a_broken_transition_is_noticed(case: str) -> None:
    rule, before, after = TRANSITIONS[case]
    state = good().state
    found = transition_violations(before(state), after(state))
    assert any(problem.startswith(rule + " ") for problem in found), found


def test_a_step_that_changes_nothing_breaks_nothing() -> None:
    state = good().state
    assert transition_violations(state, state) == []
