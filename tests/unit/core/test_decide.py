"""The front door: pure, repeatable, cheap when nothing happens, bounded in what it remembers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest

from jupyter_gpubroker.core.decide import HANDLERS, apply, effects_of, next_deadline, step
from jupyter_gpubroker.core.decision import Decision, Drop, Put, last_number
from jupyter_gpubroker.core.draft import Draft
from jupyter_gpubroker.core.effects import AdmitHold, InspectSlots
from jupyter_gpubroker.core.events import Event, PolicyApplied, RequestMade, Ticked
from jupyter_gpubroker.core.explain import sentence
from jupyter_gpubroker.core.model import (
    LeaseId,
    Millis,
    Owner,
    Reason,
    Request,
    RequestId,
    SessionId,
    SlotId,
    SlotSpec,
    SlotState,
    State,
)
from jupyter_gpubroker.core.rules import GENTLE, Queue, Tier
from jupyter_gpubroker.core.table import Table, live
from jupyter_gpubroker.errors import InvalidTransition, Refused
from tests.support.core_world import MINUTE, SECOND, World, whole


def test_every_event_has_its_handler() -> None:
    assert set(HANDLERS) == set(get_args(Event))


def test_a_step_leaves_the_state_as_it_was_and_gives_the_same_bytes_again() -> None:
    """I15."""
    world = World().devices(whole(0))
    world.session("k")
    before = repr(world.state)
    event = RequestMade(Owner("ada"), RequestId("r"), SessionId("k"), SlotSpec())
    first, second = (step(world.state, event, world.now) for _ in range(2))
    assert repr(first) == repr(second)
    apply(world.state, first.changes)
    assert repr(world.state) == before


def test_a_replay_of_the_past_gives_the_same_state() -> None:
    world = World().devices(whole(0), whole(1))
    lease_id = world.holds("k")
    world.job_starts(world.submits(world.runner(), "job"))
    world.session("next")
    world.asks("next")
    world.wait(30 * MINUTE)
    state = State()
    for now, event in world.history:
        state = apply(state, step(state, event, now).changes)
    assert state == world.state
    assert lease_id in state.leases


def test_a_state_loaded_as_plain_maps_decides_the_same() -> None:
    world = World().devices(whole(0))
    world.holds("k")
    world.session("next")
    world.asks("next")
    names = ("gpus", "slots", "sessions", "requests", "leases", "jobs")
    maps: dict[str, Any] = {name: dict(getattr(world.state, name)) for name in names}
    plain = replace(world.state, **maps)
    assert step(plain, Ticked(), world.now) == step(world.state, Ticked(), world.now)


def test_each_kept_change_has_one_reason_in_the_same_order() -> None:
    world = World().devices(whole(0))
    world.session("k")
    event = RequestMade(Owner("ada"), RequestId("r"), SessionId("k"), SlotSpec())
    decision = step(world.state, event, world.now)
    assert [(c.entity_type.TABLE, c.id) for c in decision.changes] == [
        (table, entity_id) for table, entity_id, _ in decision.reasons
    ]
    assert decision.reasons[0][2].code == "asked"


def test_a_sample_that_shows_nothing_new_changes_nothing_that_is_kept() -> None:
    world = World().devices(whole(0))
    world.holds("k")
    world.look()
    world.now = Millis(world.now + SECOND)
    decision = world.look()
    assert [change.entity_type.TABLE for change in decision.changes] == [None, None]
    assert decision.effects == ()


def test_a_tick_with_nothing_due_changes_nothing() -> None:
    world = World().devices(whole(0))
    world.holds("k")
    before = world.state
    decision = step(before, Ticked(), world.now)
    assert (decision.changes, decision.effects) == ((), ())
    assert apply(before, decision.changes) is before


def test_the_next_deadline_is_the_earliest_of_all() -> None:
    world = World().devices(whole(0), whole(1))
    assert next_deadline(world.state) is None
    world.session("a")
    world.asks("a")
    assert next_deadline(world.state) == world.now + world.state.limits.ack_ms
    world.applies("a-lease")
    assert next_deadline(world.state) is None
    world.submits(world.runner(), "job", time_limit_ms=MINUTE)
    world.job_starts("job")
    assert next_deadline(world.state) == world.now + MINUTE
    world.session("b")
    world.asks("b", wait_ms=5 * SECOND)
    assert next_deadline(world.state) == world.now + 5 * SECOND


def test_after_a_restart_every_hold_is_admitted_and_what_leaves_is_looked_at() -> None:
    world = World().devices(whole(0), whole(1))
    world.holds("a")
    world.holds("b")
    world.ends("b")
    assert effects_of(world.state) == (
        AdmitHold(SlotId("GPU-0"), 1, LeaseId("a-lease")),
        AdmitHold(SlotId("GPU-1"), 1, LeaseId("b-lease")),
        InspectSlots((SlotId("GPU-1"),)),
    )


def test_the_number_is_that_of_the_last_request_or_job() -> None:
    world = World().devices(whole(0))
    world.holds("k")
    world.submits(world.runner(), "job")
    assert world.state.number == world.job("job").number == 2
    assert last_number(5, [Put(world.job("job"))]) == 5
    assert last_number(0, [Put(world.job("job")), Drop(Request, "r")]) == 2


# --- rules as data ----------------------------------------------------------------------------------------------------


def test_applied_rules_act_from_then_on() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.session("next")
    world.asks("next")
    world.wait(MINUTE)
    world.do(PolicyApplied((replace(GENTLE, never_used_ms=30 * SECOND),)))
    assert world.lease(lease_id).notice is not None
    world.do(PolicyApplied((GENTLE,)))
    assert world.lease(lease_id).notice is None


def test_a_queue_with_an_unknown_policy_is_refused() -> None:
    world = World()
    with pytest.raises(Refused) as refused:
        world.do(PolicyApplied((), (Queue("q", Tier.BATCH, policy="nice"),)))
    assert refused.value.reason.get("policy") == "nice"
    world.do(
        PolicyApplied((replace(GENTLE, name="nice"),), (Queue("q", Tier.BATCH, policy="nice"),))
    )
    assert world.state.queues["q"].policy == "nice"


# --- memory -----------------------------------------------------------------------------------------------------------


def test_what_is_long_over_is_forgotten_and_what_lives_is_not() -> None:
    """I19."""
    world = World().devices(whole(0), whole(1)).limits(keep_history_ms=60 * MINUTE)
    living = world.holds("living")
    runner_id = world.runner()
    for number in range(5):
        job_id = world.submits(runner_id, f"job-{number}")
        world.job_starts(job_id)
        world.job_ends(job_id)
        world.look()
    world.ends(runner_id)
    world.passes(61 * MINUTE)
    world.look()
    world.session("newcomer")
    assert [*world.state.leases] == [*map(LeaseId, world.state.requests)] == [living]
    assert world.state.jobs == {}
    assert set(world.state.sessions) == {"living", "newcomer"}


def test_memory_is_swept_though_only_requests_come() -> None:
    world = World().devices(whole(0)).limits(keep_history_ms=MINUTE)
    world.session("k")
    for number in range(200):
        world.cancels(world.asks("k", f"r{number}"))
        world.passes(MINUTE)
        world.look()
    assert len(world.state.requests) <= 2 * 64


def test_a_device_that_is_gone_for_good_is_forgotten_in_the_end() -> None:
    world = World().devices(whole(0), whole(1)).limits(keep_history_ms=MINUTE)
    world.shown.pop("GPU-1")
    world.devices(whole(0))
    world.passes(2 * MINUTE)
    world.session("newcomer")
    assert [*world.state.slots] == ["GPU-0"]
    assert [*world.state.gpus] == ["GPU-0"]


def test_live_is_what_is_not_over() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.ends("k")
    world.look()
    assert live(world.state.leases) == live(dict(world.state.leases)) == []
    assert isinstance(world.state.leases, Table)
    assert lease_id in world.state.leases


# --- draft ------------------------------------------------------------------------------------------------------------


def test_a_missing_arc_is_a_bug_and_raises() -> None:
    world = World().devices(whole(0))
    draft = Draft(world.state, world.now)
    with pytest.raises(InvalidTransition):
        draft.move(world.slot("GPU-0"), "seen_clear", Reason.of("seen_clear"))


def test_a_draft_records_only_what_differs() -> None:
    world = World().devices(whole(0))
    draft = Draft(world.state, world.now)
    slot = world.slot("GPU-0")
    draft.put(slot, Reason.of("device_reported"))
    assert draft.decision().changes == ()
    assert not draft.has_changed
    moved = draft.move(
        slot, "foreign_use_seen", Reason.of("process_on_slot"), reason=Reason.of("x")
    )
    assert draft.state.slots[slot.id] == moved
    assert world.slot("GPU-0").state is SlotState.FREE
    assert isinstance(draft.decision().changes[0], Put)


def test_from_a_state_that_contradicts_itself_nothing_follows_and_whoever_asks_is_told() -> None:
    world = World().devices(whole(0))
    world.session("a")
    state = replace(world.state, contradiction="I1 slot GPU-0 has 2 live leases")
    asked = RequestMade(Owner("ada"), RequestId("r"), SessionId("a"), SlotSpec())
    with pytest.raises(Refused) as refused:
        step(state, asked, world.now)
    assert refused.value.status == 503
    assert "GPU-0 has 2 live leases" in sentence(refused.value.reason)[0]
    seen = world.history[1][1]
    assert step(state, seen, world.now) == Decision()
    assert step(state, Ticked(), world.now) == Decision()
    assert next_deadline(state) is None
    assert effects_of(state) == ()
