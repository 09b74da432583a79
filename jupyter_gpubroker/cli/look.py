"""Commands that only look: status, gpus, queue, jobs, policies, why."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .options import json_option, looked_at, looking
from .outcome import Command, Ended, Exit

if TYPE_CHECKING:
    from ..wire.views import GpusView, HealthView, QueueView, SessionView, WhyView


@click.command(cls=Command)
@json_option
def status(as_json: bool) -> None:
    """Show what you hold and wait for, and what is free."""
    from ..client import routes
    from . import render

    with looking() as broker:
        health, gpus = looked_at(broker), broker.call(routes.GPUS)
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
    _say_broker(health, gpus)
    if gpus.gpus:
        render.echo_gpus(gpus.gpus)
    _say_ends(sessions.sessions)
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

    with looking() as broker:
        looked_at(broker)
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

    with looking() as broker:
        health, view = looked_at(broker), broker.call(routes.QUEUE)
    if as_json:
        render.echo_json(view)
        return
    if view.waiting:
        render.echo_queue(view.waiting)
    free = _free(view) + (f" They are simulated ({health.simulates})." if health.simulated else "")
    click.echo(free if view.waiting else f"Nobody waits. {free}")


@click.command(cls=Command)
@click.option("--all", "with_ended", is_flag=True, help="Also those that have ended.")
@json_option
def jobs(with_ended: bool, as_json: bool) -> None:
    """Show your batch jobs."""
    from ..client import routes
    from . import render

    with looking() as broker:
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
@click.option(
    "--replay", is_flag=True, help="Decide a lease's verdict again from the numbers kept."
)
@json_option
def why(thing_id: str, replay: bool, as_json: bool) -> None:
    """Tell why a lease, a request or a job is as it is, with the numbers."""
    from ..client import routes
    from . import render

    with looking() as broker:
        view = broker.call(routes.WHY, query={"of": thing_id})
    if replay:
        _replay(view, as_json)
        return
    if as_json:
        render.echo_json(view)
        return
    click.echo(view.sentence)
    render.echo_numbers(view.numbers)
    ruling = view.now or view.kept
    if ruling is not None:
        click.echo(f"  {ruling.sentence}")
    last = ""
    for step in view.story:
        told = step.reason.sentence
        if told != last:  # one event often changes several things for one reason
            click.echo(f"  {render.local_time(step.at)}  {told}")
        last = told


def _replay(view: WhyView, as_json: bool) -> None:
    """The verdict once more, by the rules of this program, from what the broker kept."""
    from ..sim.evidence import decided_again
    from . import render

    kept = view.kept
    if kept is None:
        raise Ended(
            Exit.REFUSED, "nothing_kept", "Nothing was decided of it yet from what was seen."
        )
    verdict, rule = decided_again(kept.evidence)
    is_same = (verdict, rule) == (kept.verdict, kept.rule)
    if as_json:
        again = {"verdict": verdict, "rule": rule}
        render.echo_json({"kept": kept, "again": again, "same": is_same})
    else:
        for name, value in kept.evidence.items():
            if value is not None:
                click.echo(f"  {name}: {value}")
        click.echo(kept.sentence)
        told = "the same" if is_same else f"kept was {kept.verdict} by {kept.rule}"
        click.echo(f"Decided again: {verdict} by the rule {rule}; {told}.")
    if not is_same:
        raise Ended(Exit.FAILED, "not_the_same", "The numbers kept give another verdict now.")


@click.command(cls=Command)
@json_option
def policies(as_json: bool) -> None:
    """Show the rules: when an idle GPU may go, and which line has which rules."""
    from ..client import routes
    from . import render

    with looking() as broker:
        rules = broker.call(routes.POLICIES)
    if as_json:
        render.echo_json(rules)
    else:
        render.echo_rules(rules)


def _free(view: QueueView) -> str:
    if not view.slots:
        return "There is no GPU here."
    what = "GPU or slice" if view.slots == 1 else "GPUs or slices"
    return f"Free: {view.free_slots} of {view.slots} {what}."


def _say_broker(health: HealthView, gpus: GpusView) -> None:
    from . import render

    there = render.devices(health, gpus)
    click.echo(f"gpubroker {health.version}, {health.scope} scope: {there}. {health.mode_sentence}")
    if health.problem is not None:
        click.echo(health.problem.sentence)


def _say_ends(sessions: tuple[SessionView, ...]) -> None:
    """What processes that live held last, and hold no more though nobody asked for that."""
    from ..quantities import say_duration
    from . import render

    for session in sessions:
        lease = session.last_lease
        if session.kind != "kernel" or lease is None or lease.reason is None:
            continue
        if lease.reason.code == "released":
            continue
        ago = "" if lease.ended_ago_ms is None else f", {say_duration(lease.ended_ago_ms)} ago"
        click.echo(f"{render.shortened(session.name)}{ago}: {lease.sentence}")
