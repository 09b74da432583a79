"""Taking idle slots back: only on demand, with notice, along a way that destroys nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jupyter_gpubroker.core.model import (
    Activity,
    GiveBackKind,
    JobState,
    LeaseState,
    Reason,
    RequestId,
    SlotSpec,
    Verdict,
)
from jupyter_gpubroker.core.rules import GENTLE
from jupyter_gpubroker.errors import Conflict, Refused
from tests.support.core_world import MINUTE, SECOND, World, inventory, slice_of, whole

EMPTY, PARKED, CHECKPOINTED, RESTARTED = (
    GiveBackKind.EMPTY,
    GiveBackKind.PARKED,
    GiveBackKind.CHECKPOINTED,
    GiveBackKind.RESTARTED,
)
NEVER_USED_MS, NOTICE_MS = GENTLE.never_used_ms, GENTLE.notice_ms


def noticed(world: World, *, seen: bool = True) -> str:
    """A never used lease that has notice, for a kernel that waits."""
    lease_id = world.holds("k")
    world.session("next")
    world.asks("next", "next-lease")
    world.wait(NEVER_USED_MS + 10 * SECOND)
    assert world.lease(lease_id).notice is not None
    if seen:
        world.sees_notice(lease_id)
    return lease_id


def test_without_demand_nobody_is_asked_however_idle() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.wait(100 * MINUTE)
    assert world.lease(lease_id).notice is None


def test_with_demand_nobody_is_asked_before_the_limit() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.session("next")
    world.asks("next")
    world.wait(NEVER_USED_MS - 10 * SECOND)
    assert world.lease(lease_id).notice is None


def test_the_story_of_an_idle_kernel_and_a_waiting_job() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    job_id = world.submits(world.runner(), "job")
    world.wait(NEVER_USED_MS + 10 * SECOND)
    notice = world.lease(lease_id).notice
    assert notice is not None
    assert notice.request_id == "job"
    assert notice.reason.get("verdict") == "never_used"
    world.sees_notice(lease_id)
    world.wait(NOTICE_MS)
    order = world.lease(lease_id).order
    assert order is not None
    assert order.kind is EMPTY
    assert world.job(job_id).state is JobState.QUEUED
    world.answers(lease_id)
    assert world.job(job_id).state is JobState.QUEUED  # not before the agent looked
    world.look()
    assert world.lease(lease_id).state is LeaseState.CLEARED
    assert world.lease(lease_id).gave_back is EMPTY
    assert world.job(job_id).state is JobState.STARTING
    assert world.slot("GPU-0").epoch == 2


def test_the_shown_deadline_is_the_moment_of_reclaim() -> None:
    world = World().devices(whole(0))
    lease_id = noticed(world)
    notice = world.lease(lease_id).notice
    assert notice is not None
    world.wait(notice.due_ms - world.now - 1)
    assert world.lease(lease_id).state is LeaseState.ACTIVE
    world.wait(1)
    assert world.lease(lease_id).state is LeaseState.DRAINING


def test_who_has_been_idle_longest_is_asked_first_and_no_more_than_needed() -> None:
    """Idle before active, whatever else the numbers say."""
    world = World().devices(whole(0), whole(1), whole(2))
    busy = world.holds("busy")
    world.uses("busy", "GPU-0", busy=True)
    longest = world.holds("longest")
    world.wait(5 * MINUTE)
    shorter = world.holds("shorter")
    world.session("next")
    world.asks("next")
    world.wait(12 * MINUTE)
    assert world.lease(longest).notice is not None
    assert world.lease(shorter).notice is None
    assert world.lease(busy).notice is None


def test_only_a_slot_that_would_serve_is_taken() -> None:
    world = World().devices(whole(0), slice_of(1, "a", "3g.40gb", 40_000))
    whole_gpu = world.holds("w")
    small = world.holds("s", spec=SlotSpec(profile="3g.40gb"))
    world.session("next")
    world.asks("next", spec=SlotSpec(profile="3g.40gb"))
    world.wait(16 * MINUTE)
    assert world.lease(small).notice is not None
    assert world.lease(whole_gpu).notice is None


def test_two_gpus_that_cannot_come_together_are_not_taken_one_by_one() -> None:
    world = World().devices(whole(0), whole(1))
    idle = world.holds("idle")
    world.holds("busy")
    world.uses("busy", "GPU-1", busy=True)
    world.session("next")
    world.asks("next", spec=SlotSpec(2))
    world.wait(60 * MINUTE)
    assert world.lease(idle).notice is None


def test_what_comes_free_anyway_is_counted_first() -> None:
    world = World().devices(whole(0), whole(1))
    first, second = world.holds("a"), world.holds("b")
    world.wait(16 * MINUTE)
    world.uses("b", "GPU-1", busy=False)
    world.ends("b")  # its child stays for a while
    world.session("next")
    world.asks("next")
    world.look()
    assert world.lease(second).state is LeaseState.DRAINING
    assert world.lease(first).notice is None


def test_a_notice_is_withdrawn_when_the_demand_is_gone() -> None:
    world = World().devices(whole(0))
    lease_id = noticed(world)
    world.ends("next")
    assert world.lease(lease_id).notice is None
    world.wait(20 * MINUTE)
    assert world.lease(lease_id).state is LeaseState.ACTIVE


def test_a_notice_goes_on_for_the_next_in_line() -> None:
    world = World().devices(whole(0))
    lease_id = noticed(world)
    before = world.lease(lease_id).notice
    world.session("third")
    world.asks("third", "third-lease")
    world.ends("next")
    after = world.lease(lease_id).notice
    assert before is not None
    assert after == replace(before, request_id=RequestId("third-lease"))


@pytest.mark.parametrize("activity", [Activity.RUNNING, Activity.UNKNOWN])
def test_a_notice_is_withdrawn_when_the_holder_runs_a_cell_or_cannot_be_seen(
    activity: Activity,
) -> None:
    world = World().devices(whole(0))
    lease_id = noticed(world)
    world.says("k", activity)
    assert world.lease(lease_id).notice is None


def test_a_notice_is_withdrawn_when_the_gpu_is_used() -> None:
    world = World().devices(whole(0))
    lease_id = noticed(world)
    world.uses("k", "GPU-0", busy=True)
    world.look()
    assert world.lease(lease_id).notice is None
    assert world.lease(lease_id).verdict is Verdict.ACTIVE


def test_a_notice_that_nobody_could_see_runs_twice_as_long() -> None:
    world = World().devices(whole(0))
    lease_id = noticed(world, seen=False)
    world.says("k", Activity.IDLE, front_ends=0)
    world.sees_notice(lease_id)  # shown, but on no screen
    world.wait(NOTICE_MS)
    notice = world.lease(lease_id).notice
    assert notice is not None
    assert notice.doubled
    assert world.lease(lease_id).state is LeaseState.ACTIVE
    world.wait(NOTICE_MS)
    assert world.lease(lease_id).state is LeaseState.DRAINING


def test_who_sees_a_notice_late_has_the_whole_countdown() -> None:
    world = World().devices(whole(0))
    lease_id = noticed(world, seen=False)
    world.wait(4 * MINUTE)
    world.sees_notice(lease_id)
    notice = world.lease(lease_id).notice
    assert notice is not None
    assert notice.due_ms == world.now + NOTICE_MS
    assert notice.due_ms <= notice.issued_ms + 2 * NOTICE_MS


def test_without_fresh_samples_nothing_is_taken() -> None:
    """I22: the machine slept, or the agent fell silent."""
    world = World().devices(whole(0))
    lease_id = noticed(world)
    world.passes(8 * 60 * MINUTE)
    assert world.lease(lease_id).state is LeaseState.ACTIVE
    assert world.lease(lease_id).notice is None
    world.look()
    assert world.lease(lease_id).notice is not None  # again, with its whole countdown


def test_after_a_reclaim_the_kernel_may_ask_again_and_lives() -> None:
    world = World().devices(whole(0), whole(1))
    lease_id = world.holds("k")
    world.holds("other")
    world.uses("other", "GPU-1", busy=True)
    world.session("next")
    world.asks("next")
    world.wait(16 * MINUTE)
    world.sees_notice(lease_id)
    world.wait(5 * MINUTE)
    world.answers(lease_id)
    world.look()
    world.ends("other")
    world.empties("GPU-1")
    world.look()
    again = world.asks("k", "again")
    world.applies(again)
    world.wait(5 * MINUTE)
    assert world.lease(again).state is LeaseState.ACTIVE
    assert world.lease(again).notice is None


# --- keep -----------------------------------------------------------------------------------------------------------


def test_keep_withdraws_the_notice_and_holds_for_its_time_and_no_longer() -> None:
    world = World().devices(whole(0))
    lease_id = noticed(world)
    world.keeps(lease_id)
    assert world.lease(lease_id).notice is None
    world.wait(GENTLE.keep_ms - 10 * SECOND)
    assert world.lease(lease_id).notice is None
    world.wait(20 * SECOND)
    assert world.lease(lease_id).notice is not None


def test_keep_is_counted_and_refused_after_the_last() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    for _ in range(GENTLE.keeps_max):
        world.keeps(lease_id)
    with pytest.raises(Conflict) as refused:
        world.keeps(lease_id)
    assert refused.value.reason == Reason.of("no_keeps_left", keeps_max=GENTLE.keeps_max)


def test_keep_is_never_longer_than_the_policy_says() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.keeps(lease_id, keep_ms=10 * GENTLE.keep_ms)
    assert world.lease(lease_id).keep_until_ms == world.now + GENTLE.keep_ms
    world.keeps(lease_id, keep_ms=MINUTE)
    assert world.lease(lease_id).keep_until_ms == world.now + MINUTE


def test_there_is_nothing_to_keep_where_nothing_is_taken() -> None:
    world = World().devices(whole(0))
    world.session("k")
    lease_id = world.asks("k", queue="batch")
    world.applies(lease_id)
    with pytest.raises(Refused) as refused:
        world.keeps(lease_id)
    assert refused.value.reason.code == "never_taken"


# --- which way ------------------------------------------------------------------------------------------------------


def with_context(world: World) -> str:
    lease_id = world.holds("k")
    world.uses("k", "GPU-0", busy=False)
    world.session("next")
    world.asks("next", "next-lease")
    world.wait(GENTLE.idle_ms + 10 * SECOND)
    world.sees_notice(lease_id)
    return lease_id


@pytest.mark.parametrize(
    ("by_kernel", "by_server", "kind"),
    [
        ({EMPTY, PARKED}, {CHECKPOINTED, RESTARTED}, PARKED),
        ({EMPTY}, {CHECKPOINTED, RESTARTED}, CHECKPOINTED),
        ({EMPTY, RESTARTED}, set(), RESTARTED),
    ],
)
def test_the_mildest_way_that_is_offered_is_taken_and_never_empty_with_a_context(
    by_kernel: set[GiveBackKind], by_server: set[GiveBackKind], kind: GiveBackKind
) -> None:
    world = World().devices(whole(0))
    lease_id = with_context(world)
    world.offers("k", *by_kernel)
    world.offers("k", *by_server, by_server=True)
    world.wait(NOTICE_MS)
    order = world.lease(lease_id).order
    assert order is not None
    assert order.kind is kind


def test_where_nothing_works_the_holder_keeps_its_slot_and_the_waiter_is_told() -> None:
    world = World().devices(whole(0))
    lease_id = with_context(world)
    world.wait(NOTICE_MS)
    lease = world.lease(lease_id)
    assert lease.state is LeaseState.ACTIVE
    assert lease.cause == Reason.of("holder_cannot_give_back")
    world.wait(GENTLE.idle_ms - 10 * SECOND)
    assert world.lease(lease_id).notice is None
    world.wait(20 * SECOND)
    assert world.lease(lease_id).notice is not None


def test_a_restart_without_consent_is_never_ordered() -> None:
    """I23."""
    world = World().devices(whole(0))
    lease_id = with_context(world)
    world.offers("k", RESTARTED, by_server=True)
    world.offers("k", refusals=((RESTARTED, Reason.of("no_consent")),))
    world.wait(NOTICE_MS)
    assert world.lease(lease_id).state is LeaseState.ACTIVE


def test_who_can_give_back_is_asked_before_who_cannot() -> None:
    world = World().devices(whole(0), whole(1))
    stuck = world.holds("stuck")
    world.uses("stuck", "GPU-0", busy=False)
    world.wait(MINUTE)
    able = world.holds("able")
    world.session("next")
    world.asks("next")
    world.wait(60 * MINUTE)
    assert world.lease(stuck).notice is None
    assert world.lease(able).notices > 0


# --- a lease for a time ---------------------------------------------------------------------------------------------


def test_a_lease_for_a_time_is_announced_and_ends_without_demand() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k", duration_ms=60 * MINUTE)
    world.wait(54 * MINUTE)
    assert world.lease(lease_id).notice is None
    world.wait(2 * MINUTE)
    notice = world.lease(lease_id).notice
    assert notice is not None
    assert notice.due_ms == world.lease(lease_id).ends_ms
    world.wait(4 * MINUTE)
    assert world.lease(lease_id).order is not None
    world.answers(lease_id)
    world.look()
    assert world.lease(lease_id).state is LeaseState.CLEARED


def test_keep_prolongs_a_lease_for_a_time() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k", duration_ms=60 * MINUTE)
    world.wait(56 * MINUTE)
    world.keeps(lease_id)
    world.wait(20 * MINUTE)
    assert world.lease(lease_id).state is LeaseState.ACTIVE
    assert world.lease(lease_id).notice is None


def test_a_lease_for_a_time_that_cannot_be_given_back_stays_and_says_so() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k", duration_ms=60 * MINUTE)
    world.uses("k", "GPU-0", busy=True)
    world.wait(61 * MINUTE)
    lease = world.lease(lease_id)
    assert lease.state is LeaseState.ACTIVE
    assert lease.cause == Reason.of("holder_cannot_give_back")
    assert lease.ends_ms is None


def test_a_lost_device_is_not_asked_back() -> None:
    world = World().devices(whole(0), whole(1))
    lost, there = world.holds("lost"), world.holds("there")
    world.do(inventory(whole(1)))
    world.shown.pop("GPU-0")
    world.session("next")
    world.asks("next")
    world.wait(16 * MINUTE)
    assert world.lease(lost).notice is None
    assert world.lease(there).notice is not None


def test_a_kernel_in_the_middle_of_a_restart_is_not_asked() -> None:
    world = World().devices(whole(0))
    lease_id = noticed(world)
    world.restarts("k")
    assert world.lease(lease_id).notice is None


def test_work_makes_forgotten_that_nothing_could_be_given_back() -> None:
    world = World().devices(whole(0))
    lease_id = with_context(world)
    world.wait(NOTICE_MS)
    assert world.lease(lease_id).cause is not None
    world.uses("k", "GPU-0", busy=True)
    world.look()
    assert world.lease(lease_id).cause is None
