"""The broker itself: run it, end it; and switch everything off and on."""

from __future__ import annotations

import os

import click

from .options import json_option
from .outcome import Command, Ended, Exit


@click.command(
    cls=Command,
    context_settings={"ignore_unknown_options": True},
    add_help_option=False,
)
@click.option("--stop", is_flag=True, help="End the broker that runs, unless it is in use.")
@click.option("--force", is_flag=True, help="With --stop: also where it is in use.")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def broker(stop: bool, force: bool, arguments: tuple[str, ...]) -> None:
    """Run the broker in the foreground, or end the one that runs. Options are the broker's own; see --help-all.

    `gpubroker broker --stop` ends your broker unless somebody holds, waits for or queued something; with --force also then.
    """
    if stop:
        _stop(force)
    elif force:
        raise click.UsageError("--force goes with --stop.")
    else:
        from ..broker.app import main

        main(list(arguments))


def _stop(force: bool) -> None:
    from ..client import BrokerError, Places
    from ..client.start import answers, stop_broker

    url = Places.find().url
    if not answers(url):
        click.echo("No broker runs.")
        return
    try:
        stopped = stop_broker(url, force=force)
    except BrokerError as error:
        if error.code != "broker_in_use":
            raise
        advice = (
            "Leases and jobs would live on without it, but nothing is granted or taken back until another is started. "
            "`gpubroker broker --stop --force` ends it all the same."
        )
        raise Ended(Exit.REFUSED, error.code, f"{error} {advice}") from error
    click.echo(stopped.sentence)


@click.command(cls=Command)
@json_option
def off(as_json: bool) -> None:
    """Keep the broker out of what you start from now on, as if it were not installed."""
    _switch(True, as_json)


@click.command(cls=Command)
@json_option
def on(as_json: bool) -> None:
    """Take `gpubroker off` back."""
    _switch(False, as_json)


def _switch(to_off: bool, as_json: bool) -> None:
    from ..client import Places
    from ..client.places import is_off_by_variable
    from . import render

    marker = Places.find().off_marker
    stays_off = is_off_by_variable(os.environ)
    if to_off:
        marker.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        marker.touch()
    else:
        marker.unlink(missing_ok=True)
    if as_json:
        render.echo_json({"off": to_off or stays_off})
    elif to_off:
        click.echo("gpubroker is off for what you start from now on; `gpubroker on` takes it back.")
    elif stays_off:
        click.echo(
            "`gpubroker off` is taken back, but GPUBROKER=off in this environment still switches it off for what you start "
            "from here. Unset it (`unset GPUBROKER`), and start Jupyter anew if it was started with it."
        )
    else:
        click.echo("gpubroker is on for what you start from now on.")
