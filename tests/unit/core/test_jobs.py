"""Batch jobs: started in time, stopped in time, never left without an end."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_gpubroker.core.jobs import lease_of
from jupyter_gpubroker.core.model import (
    Job,
    JobOutcome,
    JobState,
    LeaseState,
    Reason,
    RequestState,
    SlotSpec,
)
from jupyter_gpubroker.errors import Conflict, NotFound, Refused
from tests.support.core_world import MINUTE, SECOND, World, whole


def starting(world: World, **fields: Any) -> str:
    return world.submits(world.runner(), "job", **fields)


def running(world: World, **fields: Any) -> str:
    job_id = starting(world, **fields)
    world.job_starts(job_id)
    world.uses(job_id, "GPU-0")
    world.look()
    return job_id


def lease_state(world: World, job: Job) -> LeaseState:
    lease = lease_of(world.state, job)
    assert lease is not None
    return lease.state


def test_a_job_waits_by_a_request_of_the_same_id_and_runs_under_that_lease() -> None:
    world = World().devices(whole(0))
    world.holds("k")
    job_id = starting(world)
    assert world.job(job_id).state is JobState.QUEUED
    assert world.request("job").state is RequestState.WAITING
    world.ends("k")
    world.look()
    assert world.job(job_id).state is JobState.STARTING
    world.job_starts(job_id)
    assert world.job(job_id).state is JobState.RUNNING
    assert world.lease("job").state is LeaseState.ACTIVE


@pytest.mark.parametrize(
    ("exit_status", "outcome"),
    [
        (0, JobOutcome.FINISHED),
        (1, JobOutcome.FAILED),
        (-9, JobOutcome.FAILED),
        (None, JobOutcome.LOST),
    ],
)
def test_its_end_is_kept_and_its_slot_goes_on_when_clear(
    exit_status: int | None, outcome: JobOutcome
) -> None:
    world = World().devices(whole(0))
    job_id = running(world)
    world.job_ends(job_id, exit_status)
    job = world.job(job_id)
    assert (job.state, job.outcome, job.exit_status) == (JobState.ENDED, outcome, exit_status)
    assert lease_state(world, job) is LeaseState.DRAINING
    world.empties("GPU-0")
    world.look()
    assert lease_state(world, job) is LeaseState.CLEARED


def test_a_job_that_is_not_started_in_time_waits_again_at_its_old_place() -> None:
    world = World().devices(whole(0))
    job_id = starting(world)
    since_ms = world.request("job").since_ms
    world.passes(world.state.limits.ack_ms)
    job = world.job(job_id)
    assert (job.state, job.attempt) == (JobState.QUEUED, 2)
    assert job.request_id is not None
    assert job.request_id != "job"
    assert world.request(job.request_id).since_ms == since_ms
    world.look()
    assert world.job(job_id).state is JobState.STARTING
    assert world.slot("GPU-0").epoch == 2


def test_a_start_of_an_attempt_that_was_given_up_is_refused() -> None:
    world = World().devices(whole(0))
    job_id = starting(world)
    world.passes(world.state.limits.ack_ms)
    world.look()
    with pytest.raises(Conflict) as refused:
        world.job_starts(job_id, attempt=1)
    assert refused.value.reason == Reason.of("attempt_over", attempt=1, now=2)
    assert world.job(job_id).state is JobState.STARTING


def test_a_runner_that_never_starts_it_does_not_block_the_slot_for_ever() -> None:
    world = World().devices(whole(0))
    job_id = starting(world)
    world.wait(10 * MINUTE)
    job = world.job(job_id)
    assert job.outcome is JobOutcome.LOST
    assert job.cause == Reason.of("runner_silent", attempts=world.state.limits.job_attempts_max)


def test_a_late_start_after_requeueing_is_a_conflict() -> None:
    world = World().devices(whole(0))
    job_id = starting(world)
    world.passes(world.state.limits.ack_ms)
    with pytest.raises(Conflict):
        world.job_starts(job_id)


def test_a_queued_job_is_cancelled_at_once() -> None:
    world = World().devices(whole(0))
    world.holds("k")
    job_id = starting(world)
    world.cancels_job(job_id)
    assert world.job(job_id).outcome is JobOutcome.CANCELLED
    assert world.request("job").state is RequestState.CANCELLED


def test_a_running_job_is_asked_to_stop_and_has_its_grace() -> None:
    world = World().devices(whole(0))
    job_id = running(world)
    world.cancels_job(job_id)
    job = world.job(job_id)
    assert job.state is JobState.STOPPING
    assert job.kill_ms == world.now + world.state.limits.job_grace_ms
    world.cancels_job(job_id)
    assert world.job(job_id) == job
    world.job_ends(job_id, -15)
    assert world.job(job_id).outcome is JobOutcome.CANCELLED


def test_a_job_over_its_time_limit_is_stopped_and_counts_as_timed_out() -> None:
    world = World().devices(whole(0))
    job_id = running(world, time_limit_ms=10 * MINUTE)
    world.wait(10 * MINUTE - SECOND)
    assert world.job(job_id).state is JobState.RUNNING
    world.wait(SECOND)
    assert world.job(job_id).state is JobState.STOPPING
    world.job_ends(job_id, 0)
    assert world.job(job_id).outcome is JobOutcome.TIMED_OUT
    assert world.job(job_id).cause == Reason.of("job_time_limit", limit_ms=10 * MINUTE)


def test_a_job_whose_end_nobody_reports_is_lost_when_its_slot_is_clear() -> None:
    world = World().devices(whole(0))
    job_id = running(world)
    world.cancels_job(job_id)
    world.wait(2 * MINUTE)
    assert world.job(job_id).state is JobState.STOPPING
    assert world.slot("GPU-0").lease_id == "job"
    world.empties("GPU-0")
    world.look()
    assert world.job(job_id).outcome is JobOutcome.LOST


def test_a_job_stopped_before_its_start_was_told_is_stopped_all_the_same() -> None:
    world = World().devices(whole(0))
    job_id = starting(world)
    world.cancels_job(job_id)
    world.job_starts(job_id)
    job = world.job(job_id)
    assert (job.state, job.pid) == (JobState.STOPPING, 500)
    world.job_ends(job_id, -15)
    assert world.job(job_id).outcome is JobOutcome.CANCELLED


def test_a_stopping_job_that_was_never_started_ends() -> None:
    world = World().devices(whole(0))
    job_id = starting(world)
    world.cancels_job(job_id)
    world.wait(2 * MINUTE)
    assert world.job(job_id).state is JobState.ENDED


def test_the_same_job_again_is_the_same_and_another_content_a_conflict() -> None:
    world = World().devices(whole(0))
    job_id = starting(world)
    before = world.state
    world.submits("ada-runner", job_id)
    assert world.state == before
    with pytest.raises(Conflict):
        world.submits("ada-runner", job_id, SlotSpec(model="H200"))


def test_its_end_told_twice_happens_once() -> None:
    world = World().devices(whole(0))
    job_id = running(world)
    world.job_ends(job_id)
    before = world.state
    world.job_ends(job_id, 1)
    assert world.state == before


def test_a_job_that_can_never_run_is_refused_or_ends_once_that_is_known() -> None:
    world = World().devices(whole(0))
    with pytest.raises(Refused):
        starting(world, spec=SlotSpec(3))
    early = World()
    job_id = starting(early, spec=SlotSpec(3))
    early.devices(whole(0))
    assert early.job(job_id).outcome is JobOutcome.FAILED
    assert early.request("job").state is RequestState.REFUSED


def test_a_job_needs_a_runner_of_its_owner() -> None:
    world = World().devices(whole(0))
    world.session("k")
    with pytest.raises(Refused):
        world.submits("k", "job")
    world.runner("bob")
    with pytest.raises(NotFound):
        world.submits("bob-runner", "job", owner="ada")


def test_a_queued_job_cannot_end() -> None:
    world = World().devices(whole(0))
    world.holds("k")
    with pytest.raises(Conflict):
        world.job_ends(starting(world))


def test_releasing_a_jobs_lease_stops_the_job() -> None:
    world = World().devices(whole(0))
    job_id = running(world)
    world.releases(job_id)
    assert world.job(job_id).state is JobState.STOPPING


def test_an_idle_job_is_never_taken() -> None:
    world = World().devices(whole(0))
    job_id = running(world)
    world.uses(job_id, "GPU-0", busy=False)
    world.session("k")
    world.asks("k")
    world.wait(60 * MINUTE)
    assert world.lease("job").state is LeaseState.ACTIVE
    assert world.lease("job").notices == 0


def test_a_job_that_outlives_its_runner_keeps_its_slot_until_its_own_end() -> None:
    world = World().devices(whole(0))
    job_id = running(world)
    world.ends("ada-runner")
    world.empties("GPU-0")  # it has not used the device yet
    world.look()
    assert world.lease("job").state is LeaseState.ACTIVE
    world.job_ends(job_id, None)
    world.look()
    assert (world.job(job_id).outcome, world.lease("job").state) == (
        JobOutcome.LOST,
        LeaseState.CLEARED,
    )
