"""Commands for batch jobs: submit, logs, cancel."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import (
    connect,
    json_option,
    limit_option,
    looking,
    one_id,
    slot_spec,
    spec_options,
)
from .outcome import Command, Ended, Exit

if TYPE_CHECKING:
    from ..client import BrokerClient
    from ..runner.spool import Spool
    from ..wire.views import JobView, RequestView


@click.command(cls=Command, context_settings={"allow_interspersed_args": False})
@spec_options
@limit_option("time_limit_ms", "job")
@click.option("--name", help="What to call it (default: the command's name).")
@click.option("--queue", default="batch", show_default=True, help="The line to stand in.")
@click.option(
    "--preemptible", is_flag=True, help="A higher tier may stop it; it is then queued again."
)
@json_option
@click.argument("command", metavar="-- COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
def submit(
    count: int,
    profile: str | None,
    memory: int | None,
    model: str | None,
    time_limit_ms: int | None,
    name: str | None,
    queue: str,
    preemptible: bool,
    as_json: bool,
    command: tuple[str, ...],
) -> None:
    """Queue COMMAND as a batch job and print its id.

    It runs as you, here, with this environment, as soon as its slots are free; `gpubroker logs` shows its output. It is
    stopped by TERM to all its processes, and KILL when the grace is over.
    """
    from ..client import Places, is_off
    from ..runner.submit import Submission
    from ..runner.submit import submit as submit_job
    from . import render
    from .child import check_command

    if is_off():
        raise Ended(
            Exit.REFUSED,
            "off",
            "gpubroker is off, so nothing is queued. Unset GPUBROKER, or `gpubroker on`.",
        )
    submission = Submission(
        command,
        name or Path(command[0]).name,
        slot_spec(count, profile, memory, model),
        queue,
        time_limit_ms,
        preemptible,
    )
    with connect() as broker:
        job = submit_job(broker, Places.find(), submission)
    if as_json:
        render.echo_json(job)
    else:
        click.echo(job.id)
        click.echo(f"gpubroker: {job.sentence}", err=True)
    try:
        check_command(command, os.environ)
    except Ended as fault:  # what the job runs may come to be before it starts
        click.echo(
            f"gpubroker: {fault.detail} The job fails unless this has changed when it starts.",
            err=True,
        )


@click.command(cls=Command)
@click.argument("job_id", metavar="ID")
@click.option("-f", "--follow", is_flag=True, help="Go on until the job has ended.")
@json_option
def logs(job_id: str, follow: bool, as_json: bool) -> None:
    """Show what a batch job wrote: its standard output and, on standard error, its standard error.

    With --json one object a line: the stream and a piece of text.
    """
    from ..client import Places
    from ..runner.spool import Spool
    from .tail import echo_output, follow_output

    spool = Spool(Places.find().state)
    with looking() as broker:
        found = _find_job(broker, spool, job_id)
        if follow:
            follow_output(broker, spool, found, as_json)
        else:
            echo_output(spool, found, as_json)


@click.command(cls=Command)
@click.argument("thing_id", metavar="ID")
@json_option
def cancel(thing_id: str, as_json: bool) -> None:
    """Stop a batch job (TERM, then KILL when the grace is over), or take a waiting request out of the line."""
    from ..client import routes
    from . import render

    with connect() as broker:
        jobs = {job.id for job in broker.call(routes.JOBS).jobs if job.state != "ended"}
        requests = {request.id for request in broker.call(routes.REQUESTS).requests}
        found = one_id(thing_id, jobs | requests, "open job or request")
        if found in jobs:
            view: JobView | RequestView = broker.call(routes.CANCEL_JOB, found)
        else:
            view = broker.call(routes.CANCEL_REQUEST, found)
    if as_json:
        render.echo_json(view)
    else:
        click.echo(view.sentence)


def _find_job(broker: BrokerClient, spool: Spool, prefix: str) -> str:
    """A job the broker knows, or one it has forgotten whose output is still there."""
    from ..client import routes

    known = [job.id for job in broker.call(routes.JOBS).jobs]
    return one_id(prefix, [*known, *spool.job_ids()], "job")
