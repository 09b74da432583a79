"""Batch jobs, as their owner submits them and as the owner's runner reports them."""

from __future__ import annotations

from ...core.events import JobCancelled, JobEnded, JobStarted, JobSubmitted
from ...core.model import Job, JobId, Reason, SessionId
from ...errors import NotFound
from ...processes import start_ticks
from ...wire import routes
from ...wire.bodies import JobBody, JobEndedBody, JobStartedBody
from ...wire.views import JobsView, JobView
from .call import Actions, Answer, Call, Reads
from .values import name_of, spec_of


def get_job(call: Call) -> Answer:
    job = own_job(call, call.thing_id)
    views = call.views
    return Answer(views.job_key(job), lambda: views.job(job))


def get_jobs(call: Call) -> Answer:
    """Ended ones too, as long as they are remembered."""
    session_id = call.query.get("session_id")
    views = call.views
    jobs = tuple(
        job
        for job in call.state.jobs.values()
        if job.owner == call.caller.owner and session_id in (None, job.session_id)
    )
    return Answer(
        tuple(views.job_key(job) for job in jobs),
        lambda: JobsView(tuple(views.job(job) for job in jobs)),
    )


async def put_job(call: Call) -> JobView:
    body = call.body_as(JobBody)
    await call.ask(
        JobSubmitted(
            call.caller.owner,
            JobId(call.thing_id),
            SessionId(body.session_id),
            name_of(body.name),
            spec_of(body.spec),
            body.queue,
            body.time_limit_ms,
            body.preemptible,
        )
    )
    return _view(call)


async def cancel_job(call: Call) -> JobView:
    await call.send(JobCancelled(call.caller.owner, JobId(call.thing_id)))
    return _view(call)


async def job_started(call: Call) -> JobView:
    """A job that was over before its start was told has no start ticks any more; the runner tells its end next."""
    body = call.body_as(JobStartedBody)
    ticks = start_ticks(body.pid) or 0
    job_id = JobId(call.thing_id)
    await call.send(JobStarted(call.caller.owner, job_id, body.attempt, body.pid, ticks))
    return _view(call)


async def job_ended(call: Call) -> JobView:
    body = call.body_as(JobEndedBody)
    job_id = JobId(call.thing_id)
    await call.send(JobEnded(call.caller.owner, job_id, body.attempt, body.exit_status))
    return _view(call)


def own_job(call: Call, job_id: str) -> Job:
    job = call.state.jobs.get(JobId(job_id))
    if job is None or job.owner != call.caller.owner:
        raise NotFound(Reason.of("no_such_job"))
    return job


def _view(call: Call) -> JobView:
    return call.views.job(own_job(call, call.thing_id))


READS: Reads = {routes.JOB: get_job, routes.JOBS: get_jobs}
ACTIONS: Actions = {
    routes.PUT_JOB: put_job,
    routes.CANCEL_JOB: cancel_job,
    routes.JOB_STARTED: job_started,
    routes.JOB_ENDED: job_ended,
}
