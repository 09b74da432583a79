"""Batch jobs: queued, started by their owner's runner, stopped in time, never left without an end.

A job waits by a request of its own and runs under that request's lease. What the runner does not start in time is taken back
and queued again with its old place; so is a job that is preempted. A runner that dies takes its jobs with it: `lost`, once
nobody is left on their slots.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

from ..errors import Conflict, NotFound, Refused
from . import giveback
from .asking import check_room, check_servable, end, live_session, queue_named
from .draft import Draft
from .events import JobCancelled, JobEnded, JobStarted, JobSubmitted
from .model import (
    Job,
    JobId,
    JobOutcome,
    JobState,
    Lease,
    LeaseId,
    LeaseState,
    Millis,
    Owner,
    Reason,
    Request,
    RequestId,
    RequestState,
    SessionKind,
    SessionState,
    State,
)
from .table import live

_HELD = frozenset({LeaseState.GRANTED, LeaseState.ACTIVE})
_WITH_PROCESS = frozenset({JobState.RUNNING, JobState.STOPPING})


def submitted(draft: Draft, event: JobSubmitted) -> None:
    state = draft.state
    existing = state.jobs.get(event.job_id)
    if existing is not None:
        _same(existing, event)
        return
    runner = live_session(state, event.owner, event.session_id)
    if runner.kind is not SessionKind.RUNNER:
        raise Refused(Reason.of("not_a_runner"))
    queue = queue_named(state, event.queue)
    check_servable(state, event.spec)
    check_room(state, event.owner)
    job = Job(
        id=event.job_id,
        number=draft.next_number(),
        owner=event.owner,
        name=event.name,
        session_id=runner.id,
        spec=event.spec,
        queue=queue.name,
        since_ms=draft.now,
        submitted_ms=draft.now,
        time_limit_ms=event.time_limit_ms,
        checkpoint_ms=event.checkpoint_ms,
        preemptible=event.preemptible or queue.preemptible,
    )
    _queue(draft, job, RequestId(job.id), draft.now, Reason.of("submitted"))


def started(draft: Draft, event: JobStarted) -> None:
    job = _attempted(draft.state, event)
    process: dict[str, Any] = {"pid": event.pid, "start_ticks": event.start_ticks}
    if job.state is JobState.STARTING:
        reason = Reason.of("job_started")
        draft.move(job, "started", reason, started_ms=draft.now, **process)
        _acknowledge(draft, job)
    elif job.state is JobState.STOPPING and job.pid is None:
        draft.put(replace(job, started_ms=draft.now, **process), Reason.of("job_started"))
        _acknowledge(draft, job)
    elif job.pid != event.pid or job.state is JobState.QUEUED:
        raise Conflict(Reason.of("job_not_starting"))


def ended(draft: Draft, event: JobEnded) -> None:
    job = _attempted(draft.state, event)
    if job.state is JobState.ENDED:
        return
    if job.state is JobState.QUEUED:
        raise Conflict(Reason.of("job_not_running"))
    lease = lease_of(draft.state, job)
    outcome = _outcome(job, event.exit_status)
    reason = Reason.of("job_ended", outcome=outcome.value, exit_status=event.exit_status)
    if is_preempted(job) and outcome is not JobOutcome.FINISHED:
        _requeue_preempted(draft, job)
    else:
        _end(draft, job, outcome, job.cause or reason, event.exit_status)
    if lease is not None and lease.state in _HELD:
        giveback.let_go(draft, lease, reason)


def cancelled(draft: Draft, event: JobCancelled) -> None:
    stop(draft, _owned(draft.state, event.owner, event.job_id), Reason.of("job_cancelled"))


def stop(draft: Draft, job: Job, cause: Reason) -> None:
    """End the job: at once while it waits, else by its runner, with TERM now and KILL after the grace."""
    if job.state is JobState.QUEUED:
        _end_request(draft, job, "cancelled", cause)
        _end(draft, job, JobOutcome.CANCELLED, cause)
    elif job.state in (JobState.STARTING, JobState.RUNNING):
        kill_ms = Millis(draft.now + draft.state.limits.job_grace_ms)
        draft.move(job, "stop_asked", cause, kill_ms=kill_ms, cause=cause)
    elif is_preempted(job):  # it was to run again, and is not any more
        draft.put(replace(job, cause=cause), cause)


def preempt(draft: Draft, lease: Lease, request: Request) -> None:
    """The job makes way for a request of a higher tier, and waits again."""
    assert lease.job_id is not None
    ran_ms = draft.now - lease.granted_ms
    reason = Reason.of("preempted", queue=request.queue, ran_ms=ran_ms)
    stop(draft, draft.state.jobs[lease.job_id], reason)


def is_stoppable(state: State, job: Job) -> bool:
    """Whether it has begun, and its runner is there to stop it and to start it again."""
    has_begun = job.state in (JobState.STARTING, JobState.RUNNING)
    return has_begun and state.sessions[job.session_id].state is SessionState.LIVE


def is_preempted(job: Job) -> bool:
    return (
        job.state is JobState.STOPPING and job.cause is not None and job.cause.code == "preempted"
    )


def lost_ms(job: Job, now: Millis) -> int:
    """The run time that is lost if the job is stopped now."""
    ran_ms = 0 if job.state is not JobState.RUNNING else now - (job.started_ms or now)
    return ran_ms if job.checkpoint_ms is None else ran_ms % job.checkpoint_ms


# --- what happens to a job ----------------------------------------------------------------------------------------------


def granted(draft: Draft, job_id: JobId, reason: Reason) -> None:
    draft.move(draft.state.jobs[job_id], "granted", reason)


def refused(draft: Draft, job_id: JobId, reason: Reason) -> None:
    """Its request can never be served, as is known by now."""
    _end(draft, draft.state.jobs[job_id], JobOutcome.FAILED, reason)


def not_started(draft: Draft, lease: Lease) -> None:
    """The runner did not start the job in time: the slots are taken back, the job is queued again with its old place."""
    assert lease.job_id is not None
    job = draft.state.jobs[lease.job_id]
    reason = Reason.of("not_started", attempt=job.attempt, after_ms=draft.state.limits.ack_ms)
    giveback.let_go(draft, lease, reason, arc="not_acknowledged")
    if job.state is not JobState.STARTING:
        return
    if job.attempt - job.preemptions >= draft.state.limits.job_attempts_max:
        _end(draft, job, JobOutcome.LOST, Reason.of("runner_silent", attempts=job.attempt))
        return
    _requeue(draft, job, reason)


def has_process(state: State, lease: Lease) -> bool:
    """Whether a batch job's process holds the lease: it lives on without its runner, and its end is seen by the broker."""
    job = None if lease.job_id is None else state.jobs.get(lease.job_id)
    return job is not None and job.pid is not None and job.state in _WITH_PROCESS


def runner_gone(draft: Draft, session_id: str, cause: Reason) -> None:
    for job in live(draft.state.jobs):
        if job.session_id != session_id:
            continue
        if job.state in (JobState.QUEUED, JobState.STARTING):
            _end_request(draft, job, "holder_gone", cause)
            _end(draft, job, JobOutcome.LOST, cause)
        else:
            draft.put(replace(job, cause=cause), cause)


def lose_abandoned(draft: Draft) -> None:
    """A job that nobody reports on any more is over once its slots are clear."""
    for lease in draft.changed_leases():
        job = None if lease.job_id is None else draft.state.jobs.get(lease.job_id)
        if job is None or lease_of(draft.state, job) != lease or job.state not in _WITH_PROCESS:
            continue
        if lease.state is LeaseState.CLEARED:
            _end(draft, job, JobOutcome.LOST, job.cause or Reason.of("lease_lost"))


def overdue_ms(state: State, job: Job) -> Millis | None:
    """When the KILL of a job that is being stopped is overdue; None once its slots are let go."""
    assert job.kill_ms is not None
    lease = lease_of(state, job)
    if lease is None or lease.state not in _HELD:
        return None
    return Millis(job.kill_ms + state.limits.clear_grace_ms)


def overdue(draft: Draft, job: Job) -> None:
    """Its time limit, or `overdue_ms`, is reached."""
    if job.state is JobState.RUNNING:
        stop(draft, job, Reason.of("job_time_limit", limit_ms=job.time_limit_ms))
        return
    lease = lease_of(draft.state, job)
    assert lease is not None
    giveback.let_go(draft, lease, Reason.of("job_not_stopped"))


def lease_of(state: State, job: Job) -> Lease | None:
    """The lease of the present attempt, if it was granted."""
    return None if job.request_id is None else state.leases.get(LeaseId(job.request_id))


# --- small things ---------------------------------------------------------------------------------------------------------


def _queue(draft: Draft, job: Job, request_id: RequestId, since_ms: Millis, reason: Reason) -> None:
    draft.put(replace(job, request_id=request_id), reason)
    request = Request(
        id=request_id,
        number=job.number,
        owner=job.owner,
        session_id=job.session_id,
        spec=job.spec,
        queue=job.queue,
        job_id=job.id,
        since_ms=since_ms,
        duration_ms=None if job.time_limit_ms is None else job.time_limit_ms - job.saved_ms,
        preemptible=job.preemptible,
    )
    draft.put(request, reason)


def _requeue(draft: Draft, job: Job, reason: Reason, **fields: Any) -> None:
    """The job waits again, with its old place."""
    assert job.request_id is not None
    since_ms = draft.state.requests[job.request_id].since_ms
    job = draft.move(job, "requeued", reason, attempt=job.attempt + 1, **fields)
    _queue(draft, job, _attempt_id(job), since_ms, reason)


def _requeue_preempted(draft: Draft, job: Job) -> None:
    assert job.cause is not None
    ran_ms = 0 if job.started_ms is None else draft.now - job.started_ms
    kept_ms = 0 if job.checkpoint_ms is None else ran_ms - ran_ms % job.checkpoint_ms
    fields: dict[str, Any] = {
        "preemptions": job.preemptions + 1,
        "saved_ms": job.saved_ms + kept_ms,
    }
    process = {"pid": None, "start_ticks": None, "started_ms": None, "kill_ms": None}
    _requeue(draft, job, job.cause, **fields, **process)


def _end(
    draft: Draft, job: Job, outcome: JobOutcome, cause: Reason, exit_status: int | None = None
) -> None:
    fields: dict[str, Any] = {"outcome": outcome, "cause": cause, "exit_status": exit_status}
    draft.move(job, "ended", cause, ended_ms=draft.now, **fields)


def _end_request(draft: Draft, job: Job, arc: str, reason: Reason) -> None:
    request = None if job.request_id is None else draft.state.requests.get(job.request_id)
    if request is not None and request.state is RequestState.WAITING:
        end(draft, request, arc, reason)


def _acknowledge(draft: Draft, job: Job) -> None:
    lease = lease_of(draft.state, job)
    if lease is not None and lease.state is LeaseState.GRANTED:
        draft.move(lease, "acknowledged", Reason.of("job_started"), deadline_ms=None)


def _outcome(job: Job, exit_status: int | None) -> JobOutcome:
    if exit_status is None:
        return JobOutcome.LOST
    if is_preempted(job) and exit_status == 0:
        return JobOutcome.FINISHED
    if job.state is JobState.STOPPING:
        is_late = job.cause is not None and job.cause.code == "job_time_limit"
        return JobOutcome.TIMED_OUT if is_late else JobOutcome.CANCELLED
    return JobOutcome.FINISHED if exit_status == 0 else JobOutcome.FAILED


def _attempt_id(job: Job) -> RequestId:
    """The id of a later attempt's request: the same in every replay."""
    return RequestId(hashlib.sha256(f"{job.id}:{job.attempt}".encode()).hexdigest()[:32])


def _owned(state: State, owner: Owner, job_id: JobId) -> Job:
    job = state.jobs.get(job_id)
    if job is None or job.owner != owner:
        raise NotFound(Reason.of("no_such_job"))
    return job


def _attempted(state: State, event: JobStarted | JobEnded) -> Job:
    """The job, if what is told is of its present attempt."""
    job = _owned(state, event.owner, event.job_id)
    if event.attempt != job.attempt:
        raise Conflict(Reason.of("attempt_over", attempt=event.attempt, now=job.attempt))
    return job


def _same(existing: Job, event: JobSubmitted) -> None:
    before = (existing.owner, existing.name, existing.spec, existing.queue, existing.time_limit_ms)
    asked = (event.owner, event.name, event.spec, event.queue, event.time_limit_ms)
    if before != asked or existing.checkpoint_ms != event.checkpoint_ms:
        raise Conflict(Reason.of("other_content"))
