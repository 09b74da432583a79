"""Making way: idle holders first, then jobs of lower tiers, never more than needed, and never for nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from jupyter_gpubroker.core.events import JobCancelled, PolicyApplied
from jupyter_gpubroker.core.model import (
    JobOutcome,
    JobState,
    LeaseState,
    Mode,
    Modes,
    Owner,
    SlotSpec,
)
from jupyter_gpubroker.core.queue import line
from jupyter_gpubroker.core.rules import GENTLE, Queue, Tier
from tests.support.core_world import MINUTE, SECOND, World, whole


def gpus(count: int) -> World:
    world = World().devices(*map(whole, range(count)))
    world.runner()
    return world


def runs(world: World, name: str, count: int = 1, **fields: Any) -> str:
    """A preemptible job at work."""
    fields = {"preemptible": True, **fields}
    job_id = world.submits("ada-runner", name, SlotSpec(count), **fields)
    world.job_starts(job_id)
    for hold in world.lease(job_id).holds:
        world.uses(job_id, hold.slot_id)
    world.look()
    return job_id


def stops(world: World, job_id: str, exit_status: int = -15) -> None:
    """The job's runner does as it is told, and nobody is left on its slots."""
    request_id = world.job(job_id).request_id
    assert request_id is not None
    held = [hold.slot_id for hold in world.lease(request_id).holds]
    world.job_ends(job_id, exit_status)
    for slot_id in held:
        world.empties(slot_id)
    world.look()


def asks(world: World, name: str, count: int = 1, **fields: Any) -> str:
    world.session(name, "bob")
    return world.asks(name, name + "-lease", SlotSpec(count), **fields)


def stopping(world: World) -> set[str]:
    return {job.id for job in world.state.jobs.values() if job.state is JobState.STOPPING}


def test_a_preemptible_job_makes_way_for_a_higher_tier_and_runs_again_afterwards() -> None:
    world = gpus(1)
    job_id = runs(world, "job")
    world.wait(10 * MINUTE)
    kernel = asks(world, "k")
    job = world.job(job_id)
    assert job.state is JobState.STOPPING
    assert job.kill_ms == world.now + world.state.limits.job_grace_ms
    assert job.cause is not None
    assert job.cause.code == "preempted"
    stops(world, job_id)
    assert world.lease(kernel).state is LeaseState.GRANTED
    job = world.job(job_id)
    assert (job.state, job.attempt, job.preemptions, job.pid) == (JobState.QUEUED, 2, 1, None)
    world.ends("k")
    world.look()
    assert world.job(job_id).state is JobState.STARTING
    world.job_starts(job_id)
    world.job_ends(job_id)
    assert world.job(job_id).outcome is JobOutcome.FINISHED


def test_a_preempted_job_waits_before_all_who_came_later() -> None:
    world = gpus(1)
    job_id = runs(world, "job")
    later = world.submits("ada-runner", "later")
    asks(world, "k")
    stops(world, job_id)
    assert [request.job_id for request in line(world.state)] == [job_id, later]


def test_a_job_that_finishes_while_it_is_asked_to_stop_has_finished() -> None:
    world = gpus(1)
    job_id = runs(world, "job")
    asks(world, "k")
    stops(world, job_id, exit_status=0)
    assert world.job(job_id).outcome is JobOutcome.FINISHED


def test_a_job_cancelled_while_it_makes_way_does_not_run_again() -> None:
    world = gpus(1)
    job_id = runs(world, "job")
    asks(world, "k")
    world.do(JobCancelled(Owner("ada"), world.job(job_id).id))
    stops(world, job_id)
    assert world.job(job_id).outcome is JobOutcome.CANCELLED


def test_who_is_not_preemptible_and_who_is_of_the_same_tier_goes_on() -> None:
    world = gpus(2)
    runs(world, "firm", preemptible=False)
    runs(world, "equal", queue="batch")
    world.submits("ada-runner", "other")
    assert stopping(world) == set()
    asks(world, "k", 2)
    assert stopping(world) == set()


def test_a_job_whose_runner_is_gone_goes_on_as_nobody_would_run_it_again() -> None:
    world = gpus(1)
    runs(world, "job")
    world.ends("ada-runner")
    asks(world, "k")
    assert stopping(world) == set()


def test_a_protected_job_runs_for_its_time() -> None:
    world = gpus(1)
    world.do(PolicyApplied(queues=(Queue("batch", Tier.BATCH, None, True, 20 * MINUTE),)))
    job_id = runs(world, "job")
    asks(world, "k")
    world.wait(20 * MINUTE - SECOND)
    assert stopping(world) == set()
    world.wait(SECOND)
    assert stopping(world) == {job_id}


@pytest.mark.parametrize("mode", [Mode.OBSERVE, Mode.ADVISE])
def test_only_enforcing_stops_jobs(mode: Mode) -> None:
    world = gpus(1)
    world.state = replace(world.state, modes=Modes(mode=mode))
    runs(world, "job")
    asks(world, "k")
    assert stopping(world) == set()


# --- whose -----------------------------------------------------------------------------------------------------------


def test_least_lost_work_first() -> None:
    world = gpus(2)
    runs(world, "old")
    world.wait(10 * MINUTE)
    young = runs(world, "young")
    world.wait(MINUTE)
    asks(world, "k")
    assert stopping(world) == {young}


def test_a_job_that_saves_its_work_loses_only_what_came_since() -> None:
    world = gpus(2)
    saving = runs(world, "saving", checkpoint_ms=30 * MINUTE)
    world.wait(21 * MINUTE)
    runs(world, "young")
    world.wait(10 * MINUTE)
    asks(world, "k")
    assert stopping(world) == {saving}
    stops(world, saving)
    assert world.job(saving).saved_ms == 30 * MINUTE


def test_what_was_saved_counts_against_the_time_limit() -> None:
    world = gpus(1)
    job_id = runs(world, "job", time_limit_ms=60 * MINUTE, checkpoint_ms=10 * MINUTE)
    world.wait(25 * MINUTE)
    asks(world, "k")
    stops(world, job_id)
    world.ends("k")
    world.look()
    world.job_starts(job_id)
    request = world.request(str(world.job(job_id).request_id))
    assert request.duration_ms == 40 * MINUTE
    world.wait(40 * MINUTE - SECOND)
    assert world.job(job_id).state is JobState.RUNNING
    world.wait(SECOND)
    assert world.job(job_id).state is JobState.STOPPING


def test_no_more_jobs_are_stopped_than_needed() -> None:
    """The small ones that lose least are let go on when a large one has to stop anyway."""
    world = gpus(6)
    runs(world, "large", 4)
    world.wait(MINUTE)
    for name in ("a", "b"):
        runs(world, name)
    world.wait(MINUTE)
    asks(world, "k", 4)
    assert stopping(world) == {"large"}


def test_several_gpus_come_together_or_nobody_is_stopped() -> None:
    world = gpus(2)
    runs(world, "job")
    world.holds("busy")
    world.uses("busy", "GPU-1", busy=True)
    world.look()
    asks(world, "k", 2)
    assert stopping(world) == set()


def test_one_stopping_job_serves_one_who_waits() -> None:
    world = gpus(2)
    runs(world, "a")
    runs(world, "b")
    asks(world, "k")
    first = stopping(world)
    assert len(first) == 1
    world.wait(10 * SECOND)
    assert stopping(world) == first
    asks(world, "k2")
    assert stopping(world) == {"a", "b"}


def test_what_comes_free_goes_to_who_caused_it_and_not_past_a_larger_request() -> None:
    world = gpus(3)
    for name in ("a", "b", "c"):
        runs(world, name)
    large = asks(world, "large", 2)
    small = asks(world, "small")
    assert stopping(world) == {"a", "b", "c"}
    stops(world, "a")
    assert {large, small}.isdisjoint(world.state.leases)
    stops(world, "b")
    assert world.lease(large).state is LeaseState.GRANTED
    assert small not in world.state.leases
    stops(world, "c")
    assert world.lease(small).state is LeaseState.GRANTED


# --- idle holders and jobs ----------------------------------------------------------------------------------------


def idle_and_job() -> World:
    """A kernel that was idle for long, and a job at work."""
    world = gpus(2)
    world.holds("idle")
    runs(world, "job")
    world.wait(GENTLE.never_used_ms + 10 * SECOND)
    return world


def test_an_idle_holder_is_asked_before_a_job_is_stopped() -> None:
    world = idle_and_job()
    waiting = asks(world, "k")
    assert stopping(world) == set()
    notice = world.lease("idle-lease").notice
    assert notice is not None
    assert notice.request_id == waiting


def test_an_idle_holder_who_cannot_give_back_does_not_spare_the_job() -> None:
    world = idle_and_job()
    world.offers("idle")
    asks(world, "k")
    assert stopping(world) == {"job"}
    assert world.lease("idle-lease").notice is None


def test_who_waited_for_a_notice_in_vain_waits_for_no_other() -> None:
    world = gpus(3)
    world.holds("idle")
    world.wait(MINUTE)
    world.holds("also-idle")
    runs(world, "job")
    world.wait(GENTLE.never_used_ms + MINUTE)
    asks(world, "k")
    world.wait(2 * MINUTE)
    assert stopping(world) == set()
    world.uses("idle", "GPU-0", busy=True)
    world.look()
    assert world.lease("idle-lease").notice is None
    assert stopping(world) == {"job"}


def test_a_stopped_jobs_own_wait_is_a_reason_to_ask_idle_holders() -> None:
    world = gpus(2)
    world.holds("idle")
    runs(world, "job")
    kernel = asks(world, "k")
    assert stopping(world) == {"job"}
    stops(world, "job")
    world.applies(kernel)
    world.uses("k", "GPU-1", busy=True)
    world.wait(GENTLE.never_used_ms + 10 * SECOND)
    notice = world.lease("idle-lease").notice
    assert notice is not None
    assert notice.request_id == world.job("job").request_id
