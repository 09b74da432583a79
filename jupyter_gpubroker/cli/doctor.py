"""`gpubroker doctor`: a list of checks, each with what was found and, where something is wrong, what to do.

To extend it, add a function to `CHECKS`. A check never changes anything but what every command does: start a broker where
none is. One that raises is a finding, too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .options import connect, json_option
from .outcome import Command, Exit

if TYPE_CHECKING:
    from ..client import Places

EXTENSION_CONFIG = Path("etc", "jupyter", "jupyter_server_config.d", "jupyter_gpubroker.json")


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found. `sentence` says what to do where it is not `ok`."""

    name: str
    ok: bool
    sentence: str


def is_on(places: Places) -> Finding:
    """Has somebody switched everything off?"""
    from ..client import is_off

    if not is_off():
        return Finding("on", True, "gpubroker is on.")
    way = (
        f"Remove it with `gpubroker on` ({places.off_marker})"
        if places.off_marker.exists()
        else "Unset GPUBROKER"
    )
    return Finding(
        "on", False, f"gpubroker is off, so kernels start as if it were not installed. {way}."
    )


def places_are_fit(places: Places) -> Finding:
    """Are the folders private, local, and their names short enough?"""
    places.prepare()
    return Finding(
        "places", True, f"The socket's folder is {places.runtime}, the state's {places.state}."
    )


def broker_answers(places: Places) -> Finding:
    """Is a broker there, or can one be started?"""
    from ..client import routes

    with connect() as broker:
        health = broker.call(routes.HEALTH)
    return Finding(
        "broker",
        True,
        f"The broker {health.version} answers at {places.url}: {health.scope} scope, mode {health.mode}.",
    )


def devices_are_read(_places: Places) -> Finding:
    """Can the broker see GPUs?"""
    from ..client import routes

    with connect() as broker:
        health = next(
            view for view in broker.watch(routes.HEALTH) if view.ready or view.problem is not None
        )
        gpus = broker.call(routes.GPUS).gpus
    if health.problem is not None:
        return Finding("devices", False, health.problem.sentence)
    sick = [gpu for gpu in gpus if gpu.state != "ok"]
    if sick:
        return Finding(
            "devices", False, f"GPU {sick[0].index} ({sick[0].model}) is {sick[0].state}."
        )
    kind = "simulated " if health.simulated else ""
    slots = sum(len(gpu.slots) for gpu in gpus)
    return Finding("devices", bool(gpus), f"{len(gpus)} {kind}GPUs with {slots} slots are there.")


def server_uses_us(_places: Places) -> Finding:
    """Does a Jupyter server of this environment load the extension and find the provisioner?"""
    config = Path(sys.prefix) / EXTENSION_CONFIG
    named = entry_points(group="jupyter_client.kernel_provisioners", name="gpubroker-provisioner")
    if not named:
        return Finding(
            "server",
            False,
            "The kernel provisioner is not registered here. Reinstall jupyter_gpubroker.",
        )
    if not config.exists():
        return Finding(
            "server",
            False,
            f"{config} is missing, so Jupyter does not load the extension. Run: "
            "jupyter server extension enable --sys-prefix jupyter_gpubroker",
        )
    return Finding("server", True, f"Jupyter servers of {sys.prefix} load the extension.")


def kernels_can_start(_places: Places) -> Finding:
    """Is a Python kernel installed here? Those of other environments are found by Jupyter itself."""
    if find_spec("ipykernel") is None:
        return Finding(
            "kernels", False, f"{sys.prefix} has no Python kernel. Run: pip install ipykernel"
        )
    return Finding("kernels", True, "A Python kernel is installed in this environment.")


CHECKS: tuple[Callable[[Places], Finding], ...] = (
    is_on,
    places_are_fit,
    broker_answers,
    devices_are_read,
    server_uses_us,
    kernels_can_start,
)


@click.command(cls=Command)
@json_option
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Check what can go wrong, and say what to do. Ends with 1 if something is wrong."""
    from ..client import Places
    from . import render

    places = Places.find()
    findings = [_look(check, places) for check in CHECKS]
    if as_json:
        render.echo_json({"checks": [asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            mark = click.style("ok  ", fg="green") if finding.ok else click.style("FAIL", fg="red")
            click.echo(f"{mark} {finding.name}: {finding.sentence}")
    ctx.exit(Exit.OK if all(finding.ok for finding in findings) else Exit.FAILED)


def _look(check: Callable[[Places], Finding], places: Places) -> Finding:
    from ..client import BrokerDown, BrokerError, PlaceRefused

    try:
        return check(places)
    except (BrokerDown, BrokerError, PlaceRefused, OSError) as error:
        return Finding(check.__name__, False, str(error))
