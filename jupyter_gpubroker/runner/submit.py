"""Submits a batch job: for `gpubroker submit`, and for others as `python -m jupyter_gpubroker.runner.submit`.

Run as a module it reads a `Submission` (JSON) from standard input; the job runs as that process runs, in the folder that is
its argument, else where it runs. It prints the job and ends with 0, or the broker's problem and ends with 3; without broker,
runner or folder, a sentence on standard error and 4.
"""

from __future__ import annotations

import os
import sys
import uuid
from typing import Annotated

import msgspec
from msgspec import Meta

from ..client import (
    BrokerClient,
    BrokerDown,
    BrokerError,
    PlaceRefused,
    Places,
    ensure_broker,
    routes,
)
from ..client.start import scrubbed
from ..wire.bodies import JobBody, SpecBody
from ..wire.views import JobView
from .spool import JobSpec, Spool
from .start import RunnerDown, ensure_runner, submitting

REFUSED = 3
NOBODY_THERE = 4


class Submission(msgspec.Struct, frozen=True):
    """What is to run (never through a shell), and what the broker needs to know of it: see `wire.bodies.JobBody`."""

    argv: Annotated[tuple[str, ...], Meta(min_length=1)]
    name: str
    spec: SpecBody = SpecBody()
    queue: str = "batch"
    time_limit_ms: int | None = None
    preemptible: bool = False


def submit(broker: BrokerClient, places: Places, submission: Submission) -> JobView:
    """Spec to the spool, runner, broker, in this order: whoever knows the job finds all of it.

    Raises BrokerError, BrokerDown, RunnerDown or PlaceRefused; then nothing is left of it.
    """
    job_id = uuid.uuid4().hex
    places.prepare()
    spool = Spool(places.state)
    spool.write(job_id, JobSpec.of_this_process(submission.argv))
    try:
        with submitting(places.runtime):
            session_id = ensure_runner(
                places.runtime, places.runner_log, places.url, scrubbed(os.environ)
            )
            body = JobBody(
                session_id=session_id,
                name=submission.name[:256],
                spec=submission.spec,
                queue=submission.queue,
                time_limit_ms=submission.time_limit_ms,
                preemptible=submission.preemptible,
            )
            return broker.call(routes.PUT_JOB, job_id, body)
    except (BrokerError, BrokerDown, RunnerDown):
        spool.forget(job_id)
        raise


def main() -> int:
    """The exit status."""
    try:
        # Only now: Python looks for modules where it was started.
        os.chdir(sys.argv[1] if len(sys.argv) > 1 else ".")
    except OSError as error:
        sys.stderr.write(f"The folder {error.filename} cannot be entered ({error.strerror}).\n")
        return NOBODY_THERE
    submission = msgspec.json.decode(sys.stdin.buffer.read(), type=Submission)
    places = Places.find()
    try:
        with BrokerClient(ensure_broker(places)) as broker:
            answer: msgspec.Struct = submit(broker, places, submission)
        status = 0
    except BrokerError as error:
        answer, status = error.problem, REFUSED
    except (BrokerDown, RunnerDown, PlaceRefused) as error:
        sys.stderr.write(f"{error}\n")
        return NOBODY_THERE
    sys.stdout.buffer.write(msgspec.json.encode(answer))
    return status


if __name__ == "__main__":
    sys.exit(main())
