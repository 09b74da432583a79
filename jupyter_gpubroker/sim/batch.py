"""Batch jobs and their runners: submitted, started, preempted and begun again, done."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..core.events import JobEnded, JobStarted, JobSubmitted
from ..core.model import Job, JobId, JobState, Owner, SlotSpec
from ..core.queue import expected_ms
from .meter import Meter
from .workload import BatchJob
from .world import Model, World, runner_of

_TERMINATED = -15


@dataclass(slots=True)
class _Work:
    """A job. `left_ms` is what it has still to do, `started_ms` is set while it runs."""

    job: BatchJob
    left_ms: int
    since_ms: int = 0
    runs: int = 0
    started_ms: int | None = None
    expected_ms: int | None = None


class Batch:
    """All jobs, in one world."""

    def __init__(self, jobs: Iterable[BatchJob], world: World, meter: Meter, model: Model) -> None:
        self._world = world
        self._meter = meter
        self._model = model
        self._works = {JobId(job.id): _Work(job, job.duration_ms) for job in jobs}
        self._must_wait = 0
        for work in self._works.values():
            world.at(work.job.submit_ms, self._submit, work)

    def changed(self, job: Job) -> None:
        """What the runner does about a decision on the job."""
        work = self._works[job.id]
        if job.state is JobState.STARTING:
            self._world.then(JobStarted(job.owner, job.id, job.attempt, 1, 1))
        elif job.state is JobState.RUNNING and work.started_ms is None:
            self._start(work, job)
        elif job.state is JobState.STOPPING and work.started_ms is not None:
            self._preempt(work)
            self._world.then(JobEnded(job.owner, job.id, job.attempt, _TERMINATED))

    def close(self) -> None:
        """The workload is over."""
        for work in self._works.values():
            is_waiting = work.started_ms is None and work.left_ms
            if is_waiting and work.job.submit_ms < self._world.now:
                self._meter.still_waiting(work.since_ms)

    def _submit(self, work: _Work) -> None:
        work.since_ms = self._world.now
        self._meter.job_asked()
        self._meter.waiting += 1
        job = work.job
        self._world.do(
            JobSubmitted(
                Owner(job.group),
                JobId(job.id),
                runner_of(job.group),
                job.id,
                SlotSpec(job.gpus),
                checkpoint_ms=self._model.checkpoint_ms,
            )
        )
        if work.started_ms is None:
            self._must_wait += 1
            if self._must_wait % self._model.estimate_every == 0:
                self._estimate(work)

    def _estimate(self, work: _Work) -> None:
        request_id = self._world.state.jobs[JobId(work.job.id)].request_id
        assert request_id is not None
        request = self._world.state.requests[request_id]
        wait_ms = expected_ms(self._world.state, request, self._world.now)
        work.expected_ms = None if wait_ms is None else self._world.now + wait_ms

    def _start(self, work: _Work, job: Job) -> None:
        now = self._world.now
        self._meter.waiting -= 1
        self._meter.batch += work.job.gpus
        self._meter.job_waited(work.since_ms, work.job.group, work.job.gpus)
        if work.expected_ms is not None:
            self._meter.estimated(abs(now - work.expected_ms))
            work.expected_ms = None
        work.started_ms = now
        work.runs += 1
        overhead_ms = self._overhead_ms(work)
        self._world.at(now + overhead_ms + work.left_ms, self._finish, work, job.attempt, work.runs)

    def _finish(self, work: _Work, attempt: int, run: int) -> None:
        if work.runs != run or work.started_ms is None:
            return  # preempted meanwhile
        self._stop(work)
        work.left_ms = 0
        self._meter.job_done(work.job.submit_ms)
        self._world.do(JobEnded(Owner(work.job.group), JobId(work.job.id), attempt, 0))

    def _preempt(self, work: _Work) -> None:
        ran_ms = self._stop(work)
        useful_ms = max(0, ran_ms - self._overhead_ms(work))
        saved_ms = useful_ms - useful_ms % self._model.checkpoint_ms
        work.left_ms -= saved_ms
        work.since_ms = self._world.now
        self._meter.lost((ran_ms - saved_ms) * work.job.gpus)
        self._meter.waiting += 1

    def _stop(self, work: _Work) -> int:
        """The job is off its GPUs; says how long it was on them."""
        assert work.started_ms is not None
        ran_ms = self._world.now - work.started_ms
        work.started_ms = None
        self._meter.batch -= work.job.gpus
        self._meter.ran(work.job.group, ran_ms * work.job.gpus)
        return ran_ms

    def _overhead_ms(self, work: _Work) -> int:
        """What the present run loses at its beginning."""
        return self._model.restart_ms if work.runs > 1 else 0
