"""From an order to a clear slot, with everything that may go wrong on the way, and back again."""

from __future__ import annotations

import pytest

from jupyter_gpubroker.core.effects import InspectSlots
from jupyter_gpubroker.core.events import OrderAnswered, SlotObservation, SlotsObserved
from jupyter_gpubroker.core.giveback import kinds_now
from jupyter_gpubroker.core.model import (
    GiveBackKind,
    Hold,
    LeaseId,
    LeaseState,
    Owner,
    Reason,
    RequestState,
    SlotId,
    SlotSpec,
    SlotState,
    State,
)
from jupyter_gpubroker.errors import Conflict, Refused
from tests.support.core_world import MINUTE, NODE, SECOND, STEP_MS, World, whole

EMPTY, PARKED, CHECKPOINTED, RESTARTED = (
    GiveBackKind.EMPTY,
    GiveBackKind.PARKED,
    GiveBackKind.CHECKPOINTED,
    GiveBackKind.RESTARTED,
)


def working(world: World, *kinds: GiveBackKind) -> str:
    """A lease with a context on GPU-0; its side offers `kinds`."""
    lease_id = world.holds("k")
    world.uses("k", "GPU-0", busy=False)
    world.offers("k", *kinds)
    world.look()
    return lease_id


def park(world: World, lease_id: str, residue_mib: int = 300) -> None:
    world.releases(lease_id, PARKED)
    world.uses("k", "GPU-0", busy=False, memory_mib=residue_mib)
    world.answers(lease_id, residue_mib=residue_mib)
    world.look()


def order_of(world: World, lease_id: str) -> GiveBackKind | None:
    order = world.lease(lease_id).order
    return None if order is None else order.kind


def test_a_release_orders_the_mildest_way_and_has_the_slot_looked_at_after_the_answer() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.releases(lease_id)
    assert order_of(world, lease_id) is EMPTY
    world.look()
    assert (
        world.lease(lease_id).state is LeaseState.DRAINING
    )  # its process may still come to use it
    world.effects.clear()
    world.answers(lease_id)
    assert world.effects == [InspectSlots((SlotId("GPU-0"),))]
    world.look()
    assert world.lease(lease_id).state is LeaseState.CLEARED
    assert world.slot("GPU-0").state is SlotState.FREE


def test_a_release_that_is_done_already_needs_no_order() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.releases(lease_id, EMPTY, done=True)
    assert world.lease(lease_id).order is None
    world.look()
    assert world.lease(lease_id).state is LeaseState.CLEARED


def test_a_release_twice_is_a_release_once() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.releases(lease_id)
    before = world.state
    world.releases(lease_id)
    assert world.state == before
    world.answers(lease_id)
    world.look()
    before = world.state
    world.releases(lease_id)
    assert world.state == before


def test_a_release_by_a_way_that_would_not_work_is_refused_with_the_reason() -> None:
    world = World().devices(whole(0))
    lease_id = working(world, EMPTY)
    with pytest.raises(Refused) as refused:
        world.releases(lease_id, EMPTY)
    assert refused.value.reason.code == "context_on_slot"
    with pytest.raises(Refused) as refused:
        world.releases(lease_id, PARKED)
    assert refused.value.reason == Reason.of("not_offered", kind="parked")
    with pytest.raises(Refused) as refused:
        world.releases(lease_id)
    assert refused.value.reason.code == "holder_cannot_give_back"
    assert world.lease(lease_id).state is LeaseState.ACTIVE


def test_a_refusal_of_either_side_outweighs_an_offer_of_the_other() -> None:
    world = World().devices(whole(0))
    lease_id = working(world)
    world.offers("k", CHECKPOINTED, by_server=True)
    world.offers("k", refusals=((CHECKPOINTED, Reason.of("cell_running")),))
    with pytest.raises(Refused) as refused:
        world.releases(lease_id, CHECKPOINTED)
    assert refused.value.reason.code == "cell_running"


@pytest.mark.parametrize("kind", [EMPTY, PARKED, CHECKPOINTED])
def test_nobody_else_acts_while_somebody_may_still_be_about_a_late_order(
    kind: GiveBackKind,
) -> None:
    world = World().devices(whole(0))
    lease_id = late(world, kind)
    lease = world.lease(lease_id)
    assert (lease.state, lease.order, lease.gave_back) == (LeaseState.ACTIVE, None, None)
    assert lease.cause == Reason.of("order_overdue", kind=kind.value)
    assert world.slot("GPU-0").state is SlotState.LEASED
    assert kinds_now(world.state, lease, world.now) == (kind,)
    with pytest.raises(Refused) as refused:
        world.releases(lease_id, RESTARTED)
    assert refused.value.reason == Reason.of("still_giving_back", kind=kind.value)


def test_a_late_answer_ends_the_doubt_at_once_or_when_what_was_done_is_undone() -> None:
    for is_done, wait_ms in ((False, 0), (True, State().limits.resume_ms)):
        world = World().devices(whole(0))
        lease_id = late(world, PARKED)
        world.do(OrderAnswered(Owner("ada"), LeaseId(lease_id), 1, ok=is_done))
        assert world.lease(lease_id).state is LeaseState.ACTIVE
        if is_done:
            world.wait(wait_ms - STEP_MS)
            assert RESTARTED not in kinds_now(world.state, world.lease(lease_id), world.now)
            world.wait(STEP_MS)
        assert RESTARTED in kinds_now(world.state, world.lease(lease_id), world.now)


def test_another_process_is_not_held_back_by_what_the_one_before_was_about() -> None:
    world = World().devices(whole(0))
    lease_id = late(world, PARKED)
    world.restarts("k")
    world.session("k2", predecessor="k")
    world.offers("k2", RESTARTED)
    world.applies(lease_id)
    assert kinds_now(world.state, world.lease(lease_id), world.now) == (RESTARTED,)


def late(world: World, kind: GiveBackKind) -> str:
    """A lease whose order ran out unanswered."""
    lease_id = world.holds("k") if kind is EMPTY else working(world, PARKED)
    world.offers("k", *({kind, RESTARTED} - {CHECKPOINTED}))
    world.offers("k", CHECKPOINTED, by_server=True)
    world.releases(lease_id, kind)
    world.wait(world.state.limits.give_back_ms)
    return lease_id


def test_an_order_that_fails_is_followed_by_the_next_kind_and_then_by_none() -> None:
    world = World().devices(whole(0))
    lease_id = working(world, PARKED, RESTARTED)
    world.offers("k", CHECKPOINTED, by_server=True)
    world.releases(lease_id)
    assert order_of(world, lease_id) is PARKED
    world.answers(lease_id, ok=False, reason=Reason.of("callback_late"))
    assert order_of(world, lease_id) is CHECKPOINTED
    world.answers(lease_id, ok=False, reason=Reason.of("checkpoint_failed"))
    assert order_of(world, lease_id) is RESTARTED
    world.answers(lease_id, ok=False, reason=Reason.of("save_failed", error="disk full"))
    lease = world.lease(lease_id)
    assert lease.state is LeaseState.ACTIVE
    assert lease.order is None
    assert lease.cause == Reason.of("save_failed", error="disk full")
    assert world.slot("GPU-0").state is SlotState.LEASED
    assert lease.holds[0].epoch == world.slot("GPU-0").epoch


def test_an_answer_to_an_older_order_changes_nothing() -> None:
    world = World().devices(whole(0))
    lease_id = working(world, PARKED, RESTARTED)
    world.releases(lease_id)
    world.answers(lease_id, ok=False)
    lease = world.lease(lease_id)
    world.do(OrderAnswered(lease.owner, lease.id, 1, ok=True))
    assert world.lease(lease_id) == lease
    with pytest.raises(Conflict):
        world.do(OrderAnswered(lease.owner, lease.id, 99, ok=True))


def test_a_slot_that_is_not_clear_after_the_answer_is_not_handed_on_while_the_holder_lives() -> (
    None
):
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.releases(lease_id)
    world.uses("k", "GPU-0", busy=False)
    world.answers(lease_id)
    world.wait(35 * SECOND)
    lease = world.lease(lease_id)
    assert lease.state is LeaseState.ACTIVE
    assert lease.cause == Reason.of("not_clear_in_time", kind="empty")


def test_a_holder_that_dies_while_it_gives_back_needs_no_answer() -> None:
    world = World().devices(whole(0))
    lease_id = working(world, PARKED)
    world.releases(lease_id)
    world.ends("k")
    world.empties("GPU-0")
    world.look()
    assert world.lease(lease_id).state is LeaseState.CLEARED
    assert world.lease(lease_id).gave_back is None


# --- parking --------------------------------------------------------------------------------------------------------


def test_a_parked_lease_holds_nothing_and_knows_its_home() -> None:
    world = World().devices(whole(0))
    lease_id = working(world, PARKED)
    park(world, lease_id)
    lease = world.lease(lease_id)
    assert (lease.state, lease.holds, lease.home) == (LeaseState.PARKED, (), ("GPU-0",))
    assert lease.gave_back is PARKED


def test_too_large_a_residue_is_no_parking_and_is_ordered_back() -> None:
    world = World().devices(whole(0))
    lease_id = working(world, PARKED)
    park(world, lease_id, residue_mib=3_000)
    assert world.lease(lease_id).state is LeaseState.DRAINING
    world.wait(35 * SECOND)
    lease = world.lease(lease_id)
    assert lease.state is LeaseState.ACTIVE
    assert lease.order is not None
    assert lease.order.resume
    world.answers(lease_id)
    assert world.lease(lease_id).order is None


def test_unpark_brings_the_same_lease_home_under_a_new_epoch() -> None:
    world = World().devices(whole(0), whole(1))
    lease_id = working(world, PARKED)
    park(world, lease_id)
    request_id = world.unparks(lease_id)
    lease = world.lease(lease_id)
    assert world.request(request_id).state is RequestState.GRANTED
    assert world.request(request_id).lease_id == lease_id
    assert lease.state is LeaseState.GRANTED
    assert lease.holds == (Hold(SlotId("GPU-0"), 2),)
    assert lease.order is not None
    assert (lease.order.kind, lease.order.resume) == (PARKED, True)
    world.uses("k", "GPU-0", busy=False)
    world.answers(lease_id)
    assert world.lease(lease_id).state is LeaseState.ACTIVE
    assert world.lease(lease_id).gave_back is None


def test_unpark_waits_for_its_home_though_another_slot_is_free() -> None:
    world = World().devices(whole(0), whole(1))
    lease_id = working(world, PARKED)
    park(world, lease_id)
    job_id = world.submits(world.runner(), "job", SlotSpec(2))
    world.job_starts(job_id)
    request_id = world.unparks(lease_id)
    world.look()
    assert world.request(request_id).state is RequestState.WAITING
    world.job_ends(job_id)
    world.look()
    assert world.lease(lease_id).state is LeaseState.GRANTED


def test_unpark_now_or_never_is_refused_while_the_home_is_taken() -> None:
    world = World().devices(whole(0))
    lease_id = working(world, PARKED)
    park(world, lease_id)
    world.job_starts(world.submits(world.runner(), "job"))
    with pytest.raises(Refused) as refused:
        world.unparks(lease_id, wait_ms=0)
    assert refused.value.reason.code == "nothing_free"
    assert "unpark" not in world.state.requests


def test_what_cannot_be_brought_back_is_parked_again_and_may_be_tried_again() -> None:
    world = World().devices(whole(0))
    lease_id = working(world, PARKED)
    park(world, lease_id)
    world.unparks(lease_id)
    world.answers(lease_id, ok=False, reason=Reason.of("gpu_memory_short"))
    assert world.lease(lease_id).state is LeaseState.DRAINING
    world.look()
    lease = world.lease(lease_id)
    assert lease.state is LeaseState.PARKED
    assert lease.cause == Reason.of("gpu_memory_short")
    world.unparks(lease_id, "again")
    assert world.lease(lease_id).state is LeaseState.GRANTED


def test_who_does_not_bring_it_back_in_time_is_parked_again() -> None:
    world = World().devices(whole(0))
    lease_id = working(world, PARKED)
    park(world, lease_id)
    world.unparks(lease_id)
    world.wait(world.state.limits.resume_ms)
    world.look()
    lease = world.lease(lease_id)
    assert lease.state is LeaseState.PARKED
    assert lease.cause == Reason.of("resume_overdue", after_ms=world.state.limits.resume_ms)


def test_only_a_parked_lease_can_be_unparked() -> None:
    world = World().devices(whole(0))
    lease_id = working(world, PARKED)
    with pytest.raises(Conflict) as refused:
        world.unparks(lease_id)
    assert refused.value.reason.code == "not_parked"


def test_an_idle_parked_lease_is_left_alone() -> None:
    world = World().devices(whole(0))
    lease_id = working(world, PARKED)
    park(world, lease_id)
    world.session("next")
    world.asks("next")
    world.wait(100 * MINUTE)
    assert world.lease(lease_id).state is LeaseState.PARKED
    assert world.lease(lease_id).notices == 0


def test_the_end_of_its_process_ends_a_parked_lease() -> None:
    world = World().devices(whole(0))
    lease_id = working(world, PARKED)
    park(world, lease_id)
    world.ends("k")
    assert world.lease(lease_id).state is LeaseState.CLEARED


def test_a_checkpointed_process_is_not_on_the_slot() -> None:
    world = World().devices(whole(0))
    lease_id = working(world)
    world.offers("k", CHECKPOINTED, by_server=True)
    world.releases(lease_id)
    world.empties("GPU-0")
    world.answers(lease_id)
    world.look()
    assert world.lease(lease_id).state is LeaseState.PARKED
    assert world.lease(lease_id).gave_back is CHECKPOINTED
    assert world.lease(lease_id).residue_mib == 0


# --- grants that are not applied ------------------------------------------------------------------------------------


def test_a_grant_that_nobody_applies_is_taken_back() -> None:
    """I6."""
    world = World().devices(whole(0))
    world.session("k")
    lease_id = world.asks("k")
    world.wait(world.state.limits.ack_ms)
    world.look()
    lease = world.lease(lease_id)
    assert lease.state is LeaseState.CLEARED
    assert lease.cause == Reason.of("not_acknowledged", after_ms=world.state.limits.ack_ms)
    assert world.request(lease_id).state is RequestState.GRANTED
    with pytest.raises(Conflict):
        world.applies(lease_id)


def test_a_grant_is_applied_once_and_saying_so_again_changes_nothing() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    before = world.state
    world.applies(lease_id)
    assert world.state == before


def test_a_grant_given_back_unapplied_needs_no_order() -> None:
    world = World().devices(whole(0))
    world.session("k")
    lease_id = world.asks("k")
    world.releases(lease_id)
    world.look()
    assert world.lease(lease_id).state is LeaseState.CLEARED


def test_a_release_that_fails_leaves_the_end_of_a_lease_for_a_time_as_it_was() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k", duration_ms=60 * MINUTE)
    ends_ms = world.lease(lease_id).ends_ms
    world.releases(lease_id)
    world.answers(lease_id, ok=False)
    assert world.lease(lease_id).state is LeaseState.ACTIVE
    assert world.lease(lease_id).ends_ms == ends_ms


def test_time_while_parked_does_not_count_for_a_lease_for_a_time() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k", duration_ms=60 * MINUTE)
    world.uses("k", "GPU-0", busy=False)
    world.offers("k", PARKED)
    park(world, lease_id)
    world.wait(90 * MINUTE)
    assert world.lease(lease_id).state is LeaseState.PARKED
    world.unparks(lease_id)
    assert world.lease(lease_id).ends_ms == world.now + 60 * MINUTE


def test_a_reading_that_began_before_the_holder_let_go_clears_nothing() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    early = SlotsObserved(
        NODE, (SlotObservation(SlotId("GPU-0"), False, None, None, ()),), frozenset()
    )
    world.ends("k")
    world.do(early)
    assert world.lease(lease_id).state is LeaseState.DRAINING
    world.look()
    assert world.lease(lease_id).state is LeaseState.CLEARED
