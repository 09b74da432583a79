"""Commands that need no broker: run one, switch everything off and on."""

from __future__ import annotations

import click

from .options import json_option
from .outcome import Command


@click.command(
    cls=Command,
    context_settings={"ignore_unknown_options": True},
    add_help_option=False,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def broker(arguments: tuple[str, ...]) -> None:
    """Run the broker in the foreground. Options are the broker's own; see --help-all."""
    from ..broker.app import main

    main(list(arguments))


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


def _switch(is_off: bool, as_json: bool) -> None:
    from ..client import Places
    from . import render

    marker = Places.find().off_marker
    if is_off:
        marker.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        marker.touch()
    else:
        marker.unlink(missing_ok=True)
    if as_json:
        render.echo_json({"off": is_off})
    elif is_off:
        click.echo("gpubroker is off for what you start from now on; `gpubroker on` takes it back.")
    else:
        click.echo("gpubroker is on for what you start from now on.")
