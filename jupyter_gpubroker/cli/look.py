"""Commands that only look: status, gpus, queue, jobs, why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .options import connect, json_option, one_id
from .outcome import Command, Ended, Exit

if TYPE_CHECKING:
    from ..client import BrokerClient
    from ..wire.views import HealthView, WhyView


@click.command(cls=Command)
@json_option
def status(as_json: bool) -> None:
    """Show what you hold and wait for, and what is free."""
    from ..client import routes
    from . import render

    with connect() as broker:
        health, gpus = broker.call(routes.HEALTH), broker.call(routes.GPUS)
        leases, requests = broker.call(routes.LEASES), broker.call(routes.REQUESTS)
        jobs, sessions = broker.call(routes.JOBS), broker.call(routes.SESSIONS)
    open_jobs = [job for job in jobs.jobs if job.state != "ended"]
    if as_json:
        render.echo_json(
            {
                "broker": health,
                "gpus": gpus.gpus,
                "leases": leases.leases,
                "requests": requests.requests,
                "jobs": open_jobs,
            }
        )
        return
    _say_broker(health)
    render.echo_gpus(gpus.gpus)
    if leases.leases:
        click.echo()
        render.echo_leases(
            leases.leases, {session.id: session.name for session in sessions.sessions}
        )
    if requests.requests:
        click.echo()
        render.echo_requests(requests.requests)
    if open_jobs:
        click.echo()
        render.echo_jobs(open_jobs)


@click.command(cls=Command)
@json_option
def gpus(as_json: bool) -> None:
    """Show all GPUs and their slots."""
    from ..client import routes
    from . import render

    with connect() as broker:
        view = broker.call(routes.GPUS)
    if as_json:
        render.echo_json(view)
        return
    if view.problem is not None:
        click.echo(view.problem.sentence)
    if view.gpus:
        render.echo_gpus(view.gpus)


@click.command(cls=Command)
@json_option
def queue(as_json: bool) -> None:
    """Show who waits, in order."""
    from ..client import routes
    from . import render

    with connect() as broker:
        view = broker.call(routes.QUEUE)
    if as_json:
        render.echo_json(view)
        return
    if view.waiting:
        render.echo_queue(view.waiting)
    else:
        click.echo(f"Nobody waits. {view.free_slots} of {view.slots} slots are free.")


@click.command(cls=Command)
@click.option("--all", "with_ended", is_flag=True, help="Also those that have ended.")
@json_option
def jobs(with_ended: bool, as_json: bool) -> None:
    """Show your batch jobs."""
    from ..client import routes
    from . import render

    with connect() as broker:
        view = broker.call(routes.JOBS)
    shown = [job for job in view.jobs if with_ended or job.state != "ended"]
    if as_json:
        render.echo_json({"jobs": shown})
    elif shown:
        render.echo_jobs(shown)
    else:
        click.echo(
            "You have no batch jobs."
            if with_ended
            else "You have no open batch jobs; --all shows the ended ones."
        )


@click.command(cls=Command)
@click.argument("thing_id", metavar="ID")
@json_option
def why(thing_id: str, as_json: bool) -> None:
    """Tell why a lease, a request or a job is as it is, with the numbers."""
    from . import render

    with connect() as broker:
        view = _why(broker, thing_id)
    if as_json:
        render.echo_json(view)
        return
    click.echo(view.sentence)
    for name, value in view.numbers.items():
        click.echo(f"  {name}: {render.UNKNOWN if value is None else value}")
    last = ""
    for step in view.story:
        told = step.reason.sentence
        if told != last:  # one event often changes several things for one reason
            click.echo(f"  {step.at}  {told}")
        last = told


def _why(broker: BrokerClient, thing_id: str) -> WhyView:
    """Ask of whatever has that id. One that is whole may also be of something that is over."""
    from ..client import BrokerError, routes

    leases = {lease.id: routes.WHY_LEASE for lease in broker.call(routes.LEASES).leases}
    requests = {request.id: routes.WHY_REQUEST for request in broker.call(routes.REQUESTS).requests}
    jobs = {job.id: routes.WHY_JOB for job in broker.call(routes.JOBS).jobs}
    known = requests | leases | jobs
    if len(thing_id) == 32 and thing_id not in known:
        for route in (routes.WHY_JOB, routes.WHY_LEASE, routes.WHY_REQUEST):
            try:
                return broker.call(route, thing_id)
            except BrokerError as error:
                if error.status not in {404, 422}:
                    raise
        raise Ended(
            Exit.REFUSED,
            "unknown_id",
            f"You have nothing with the id {thing_id}, and had nothing lately.",
        )
    found = one_id(thing_id, known, "lease, request or job")
    return broker.call(known[found], found)


def _say_broker(health: HealthView) -> None:
    kind = "simulated GPUs" if health.simulated else "NVIDIA GPUs"
    click.echo(f"gpubroker {health.version}: {health.scope} scope, mode {health.mode}, {kind}.")
    if health.problem is not None:
        click.echo(health.problem.sentence)
