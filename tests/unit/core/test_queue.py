"""The waiting line: order, no overtaking, places and expected starts."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_gpubroker.core.model import (
    GiveBackKind,
    JobState,
    LeaseState,
    MiB,
    RequestState,
    SlotSpec,
)
from jupyter_gpubroker.core.queue import expected_ms, line, place_in_line
from jupyter_gpubroker.errors import Conflict, NotFound, Refused, TooMany
from tests.support.core_world import MINUTE, SECOND, World, inventory, slice_of, whole


def taken(world: World, *names: str) -> None:
    """Kernels at work, one on each slot."""
    for lease_id in [world.holds(name) for name in names]:
        slot_id = world.lease(lease_id).holds[0].slot_id
        world.uses(world.lease(lease_id).session_id, slot_id, busy=True)


def waits(world: World, name: str, **fields: Any) -> str:
    world.session(name)
    return world.asks(name, name + "-lease", **fields)


def leaves(world: World, name: str) -> None:
    slot_id = next(
        hold.slot_id
        for lease in world.state.leases.values()
        if lease.session_id == name
        for hold in lease.holds
    )
    world.ends(name)
    world.empties(slot_id)
    world.look()


def test_the_line_is_by_tier_then_age() -> None:
    world = World().devices(whole(0))
    taken(world, "k")
    runner_id = world.runner()
    world.submits(runner_id, "scavenger", queue="scavenger")
    world.submits(runner_id, "batch-1")
    world.submits(runner_id, "batch-2")
    waits(world, "first")
    waits(world, "second")
    assert [request.id for request in line(world.state)] == [
        "first-lease",
        "second-lease",
        "batch-1",
        "batch-2",
        "scavenger",
    ]


def test_nobody_overtakes_who_waits_for_more_of_the_same() -> None:
    """I13: the one free GPU is held back for the request for two."""
    world = World().devices(whole(0), whole(1))
    taken(world, "k")
    two = waits(world, "two", spec=SlotSpec(2))
    one = waits(world, "one")
    world.wait(MINUTE)
    assert one not in world.state.leases
    leaves(world, "k")
    assert world.lease(two).state is LeaseState.GRANTED
    assert one not in world.state.leases


def test_who_waits_for_one_kind_does_not_hold_up_another() -> None:
    """kubernetes-sigs/kueue#2270: A, B, C wait for whole GPUs; E, F want slices, G another model. They start."""
    devices = (
        whole(0),
        whole(1),
        slice_of(2, "a", "3g.40gb", 40_000),
        slice_of(2, "b", "3g.40gb", 40_000),
    )
    world = World().devices(*devices, whole(3, "NVIDIA L40S", 46_068))
    world.holds("k", spec=SlotSpec(model="H200"))
    big = [waits(world, name, spec=SlotSpec(2, model="H200")) for name in "ABC"]
    small = [waits(world, name, spec=SlotSpec(profile="3g.40gb")) for name in "EF"]
    other = waits(world, "G", spec=SlotSpec(model="L40S"))
    assert {world.lease(one).state for one in (*small, other)} == {LeaseState.GRANTED}
    assert not set(big) & set(world.state.leases)
    leaves(world, "k")
    assert world.lease(big[0]).state is LeaseState.GRANTED


def test_a_sick_gpu_is_not_waited_for_at_others_cost() -> None:
    world = World().devices(whole(0), whole(1))
    world.do(inventory(whole(0), whole(1), sick=["GPU-1"]))
    two = waits(world, "two", spec=SlotSpec(2))
    one = waits(world, "one")
    assert two not in world.state.leases
    assert world.lease(one).state is LeaseState.GRANTED


def test_a_place_counts_only_those_who_compete_for_the_same_slots() -> None:
    world = World().devices(whole(0), slice_of(1, "a", "3g.40gb", 40_000))
    taken(world, "k")
    world.holds("s", spec=SlotSpec(profile="3g.40gb"))
    world.uses("s", "MIG-1-a", busy=True)
    whole_gpus = [waits(world, f"w{n}") for n in range(2)]
    slices = [waits(world, f"s{n}", spec=SlotSpec(profile="3g.40gb")) for n in range(2)]
    assert [place_in_line(world.state, world.request(one)) for one in whole_gpus] == [
        (1, 2),
        (2, 2),
    ]
    assert [place_in_line(world.state, world.request(one)) for one in slices] == [(1, 2), (2, 2)]
    either = waits(world, "either", spec=SlotSpec(memory_mib_min=MiB(1_000)))
    assert place_in_line(world.state, world.request(either)) == (5, 5)


def test_who_was_served_has_no_place() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    assert place_in_line(world.state, world.request(lease_id))[0] is None
    assert expected_ms(world.state, world.request(lease_id), world.now) is None


def test_nobody_can_say_when_an_open_ended_lease_comes_free() -> None:
    world = World().devices(whole(0))
    taken(world, "k")
    assert expected_ms(world.state, world.request(waits(world, "next")), world.now) is None


def test_the_start_is_expected_by_time_limits_and_ends() -> None:
    world = World().devices(whole(0), whole(1))
    job_id = world.submits(world.runner(), "job", time_limit_ms=30 * MINUTE)
    world.job_starts(job_id)
    world.holds("k", duration_ms=60 * MINUTE)
    world.uses("k", "GPU-1", busy=True)
    first, second = waits(world, "a", duration_ms=10 * MINUTE), waits(world, "b")
    assert expected_ms(world.state, world.request(first), world.now) == 30 * MINUTE
    assert expected_ms(world.state, world.request(second), world.now) == 40 * MINUTE
    third = waits(world, "c")
    assert expected_ms(world.state, world.request(third), world.now) == 60 * MINUTE


def test_a_slot_that_is_held_back_counts_as_free_for_whom_it_is_held() -> None:
    world = World().devices(whole(0), whole(1))
    job_id = world.submits(world.runner(), "job", time_limit_ms=30 * MINUTE)
    world.job_starts(job_id)
    two = waits(world, "two", spec=SlotSpec(2))
    assert expected_ms(world.state, world.request(two), world.now) == 30 * MINUTE


def test_behind_somebody_open_ended_nothing_is_promised() -> None:
    world = World().devices(whole(0))
    job_id = world.submits(world.runner(), "job", time_limit_ms=30 * MINUTE)
    world.job_starts(job_id)
    first, second = waits(world, "a"), waits(world, "b")
    assert expected_ms(world.state, world.request(first), world.now) == 30 * MINUTE
    assert expected_ms(world.state, world.request(second), world.now) is None


def test_the_start_is_expected_when_a_notice_is_due() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    waiting = waits(world, "next")
    world.wait(16 * MINUTE)
    notice = world.lease(lease_id).notice
    assert notice is not None
    assert expected_ms(world.state, world.request(waiting), world.now) == notice.due_ms - world.now


# --- asking -----------------------------------------------------------------------------------------------------------


def test_before_any_device_is_known_a_request_waits_and_is_then_judged() -> None:
    world = World()
    possible, impossible = waits(world, "a"), waits(world, "b", spec=SlotSpec(9))
    world.devices(whole(0))
    assert world.lease(possible).state is LeaseState.GRANTED
    request = world.request(impossible)
    assert request.state is RequestState.REFUSED
    assert request.reason is not None
    assert request.reason.code == "too_many_slots"


def test_now_or_never_is_granted_or_refused_and_leaves_nothing() -> None:
    world = World().devices(whole(0))
    granted = waits(world, "a", wait_ms=0)
    assert world.lease(granted).state is LeaseState.GRANTED
    world.session("b")
    before = world.state
    with pytest.raises(Refused) as refused:
        world.asks("b", wait_ms=0)
    assert refused.value.reason.code == "nothing_free"
    assert world.state is before


def test_a_wait_ends_when_its_time_is_over() -> None:
    world = World().devices(whole(0))
    taken(world, "k")
    waiting = waits(world, "next", wait_ms=10 * MINUTE)
    world.wait(10 * MINUTE - SECOND)
    assert world.request(waiting).state is RequestState.WAITING
    world.wait(SECOND)
    assert world.request(waiting).state is RequestState.EXPIRED


def test_the_same_request_again_is_the_same_and_another_content_a_conflict() -> None:
    world = World().devices(whole(0))
    lease_id = waits(world, "k")
    before = world.state
    world.asks("k", lease_id)
    assert world.state == before
    with pytest.raises(Conflict) as refused:
        world.asks("k", lease_id, spec=SlotSpec(model="H200"))
    assert refused.value.reason.code == "other_content"


def test_a_session_holds_and_waits_for_one_lease_at_a_time() -> None:
    """A process that saw two slices could use only one."""
    world = World().devices(whole(0), whole(1))
    lease_id = world.holds("k")
    with pytest.raises(Conflict) as refused:
        world.asks("k", "second")
    assert refused.value.reason.code == "already_holds"
    world.releases(lease_id)
    with pytest.raises(Conflict) as refused:
        world.asks("k", "second")
    assert refused.value.reason.code == "giving_back"
    world.answers(lease_id)
    world.asks("k", "second")
    with pytest.raises(Conflict):
        world.asks("k", "third")


def test_a_second_wait_of_the_same_session_is_a_conflict_that_names_the_first() -> None:
    world = World().devices(whole(0))
    taken(world, "k")
    waiting = waits(world, "next")
    with pytest.raises(Conflict) as refused:
        world.asks("next", "second")
    assert refused.value.reason.get("request_id") == waiting


def test_a_session_with_a_parked_lease_may_ask_for_another() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    world.uses("k", "GPU-0", busy=False)
    world.releases(lease_id, GiveBackKind.PARKED, done=True, residue_mib=400)
    world.look()
    assert world.lease(lease_id).state is LeaseState.PARKED
    assert world.lease(world.asks("k", "second")).state is LeaseState.GRANTED


def test_a_cancelled_or_abandoned_request_leaves_the_line_once() -> None:
    world = World().devices(whole(0))
    taken(world, "k")
    first, second = waits(world, "a"), waits(world, "b")
    world.cancels(first)
    world.cancels(first)
    world.abandons(second)
    assert world.request(first).state is world.request(second).state is RequestState.CANCELLED


def test_cancelling_a_grant_that_is_not_applied_gives_it_back() -> None:
    world = World().devices(whole(0))
    lease_id = waits(world, "k")
    world.cancels(lease_id)
    world.look()
    assert world.lease(lease_id).state is LeaseState.CLEARED


def test_cancelling_what_is_applied_changes_nothing() -> None:
    world = World().devices(whole(0))
    lease_id = world.holds("k")
    before = world.state
    world.cancels(lease_id)
    assert world.state == before


def test_a_jobs_request_is_not_abandoned_and_cancelling_it_cancels_the_job() -> None:
    world = World().devices(whole(0))
    taken(world, "k")
    job_id = world.submits(world.runner(), "job")
    world.abandons(job_id)
    assert world.job(job_id).state is JobState.QUEUED
    world.cancels(job_id)
    assert world.job(job_id).state is JobState.ENDED


def test_an_owner_may_not_fill_the_line() -> None:
    world = World().devices(whole(0)).limits(waiting_max_per_owner=2)
    taken(world, "k")
    waits(world, "a")
    waits(world, "b")
    with pytest.raises(TooMany):
        waits(world, "c")
    world.session("x", "bob")
    world.asks("x")


def test_nobody_can_ask_for_others_or_for_what_is_over() -> None:
    world = World().devices(whole(0))
    world.session("k", "ada")
    world.session("other", "bob")
    with pytest.raises(NotFound):
        world.asks("k", owner="bob")
    world.ends("k")
    with pytest.raises(Conflict) as refused:
        world.asks("k")
    assert refused.value.reason.code == "session_over"


def test_an_unknown_queue_is_refused_with_the_known_ones() -> None:
    world = World().devices(whole(0))
    world.session("k")
    with pytest.raises(Refused) as refused:
        world.asks("k", queue="fast")
    assert refused.value.reason.get("known") == "batch, interactive, scavenger"
