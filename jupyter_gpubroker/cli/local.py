"""Commands that need no broker: run one, read the devices, switch everything off and on."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any

import click

from .options import json_option
from .outcome import Command, Ended, Exit

if TYPE_CHECKING:
    from ..devices.choice import Choice


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
def probe(as_json: bool) -> None:
    """Read the devices, past the broker: what they are and who is on them."""
    from ..client import Places
    from ..devices.choice import choose
    from ..devices.simulated_spec import SpecError
    from . import render

    places = Places.find()
    places.prepare()  # simulated GPUs lie there, in a folder that must be closed to others
    try:
        choice = choose(os.environ.get("GPUBROKER_SIMULATE"), places.simulated)
    except SpecError as error:
        raise Ended(Exit.USAGE, "bad_simulation", f"GPUBROKER_SIMULATE: {error}") from error
    found = asyncio.run(_probe(choice))
    if as_json:
        render.echo_json(found)
    else:
        render.echo_probe(found)


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


async def _probe(choice: Choice) -> dict[str, Any]:
    """The inventory and one reading of each slot, in a child that a sick driver may block."""
    from ..devices.child import ChildUnavailable
    from ..devices.probe_client import ProbeClient, probe_argv

    client = ProbeClient(probe_argv(choice))
    try:
        return {"inventory": await client.inventory(), "slots": await client.observe()}
    except ChildUnavailable as error:
        detail = (
            f"the devices cannot be read ({error}). `nvidia-smi` shows whether the driver answers."
        )
        raise Ended(Exit.FAILED, "devices_unavailable", detail) from error
    finally:
        await client.close()


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
