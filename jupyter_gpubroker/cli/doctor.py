"""`gpubroker doctor`: a list of checks, each with what was found and, where something is wrong, what to do.

To extend it, add a function to `CHECKS`. None changes anything: a broker that is started to see whether it can be is ended
again. What one raises is a finding, too.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from .options import connect, json_option, looked_at, no_broker_left_behind
from .outcome import Command, Ended, Exit

if TYPE_CHECKING:
    from ..client import Places

# What hardware tests leave in the state folder once they have seen a give-back work here.
VERIFIED = {"parked": "park-verified.json", "checkpointed": "checkpoint-verified.json"}
ISOLATION = {
    "none": "Nothing keeps programs off any GPU: the broker only observes, and says who uses what.",
    "advisory": "Programs see only the GPUs that were lent to them, unless they set CUDA_VISIBLE_DEVICES themselves: then the "
    "broker finds them within seconds, and names them in `gpubroker gpus`. Only a fence stops them (docs/threat-model.md).",
    "fenced": "The kernel lets programs open only the GPUs that were lent to them.",
}
EXTENSION_CONFIG = Path("etc", "jupyter", "jupyter_server_config.d", "jupyter_gpubroker.json")


@dataclass(frozen=True, slots=True)
class Check:
    """What was found; of the same shape as `%gpu doctor`'s. `sentence` says what to do where it is not `ok`."""

    name: str
    ok: bool
    sentence: str


class Seen(NamedTuple):
    """Is it as it should be, and a sentence about it."""

    ok: bool
    sentence: str


def is_on(places: Places) -> Seen:
    """Has somebody switched everything off?"""
    from ..client.places import is_off_by_variable

    ways = []
    if is_off_by_variable(os.environ):
        ways.append("Unset GPUBROKER in this environment.")
    if places.off_marker.exists():
        ways.append(f"Run `gpubroker on` ({places.off_marker}).")
    if not ways:
        return Seen(True, "gpubroker is on.")
    off = "gpubroker is off, so kernels start as if it were not installed."
    return Seen(False, " ".join((off, *ways)))


def places_are_fit(places: Places) -> Seen:
    """Are the folders private, local, and their names short enough?"""
    places.prepare()
    return Seen(True, f"The socket's folder is {places.runtime}, the state's {places.state}.")


def broker_answers(places: Places) -> Seen:
    """Is a broker there, or can one be started?"""
    from ..client import routes

    with connect(as_it_is=True) as broker:
        health = broker.call(routes.HEALTH)
    return Seen(
        True,
        f"The broker {health.version} answers at {places.url}: {health.scope} scope, mode {health.mode}.",
    )


def devices_are_read(_places: Places) -> Seen:
    """Can the broker see GPUs, and those that were asked for?"""
    from ..client import routes, simulation

    with connect(as_it_is=True) as broker:
        health, gpus = looked_at(broker), broker.call(routes.GPUS).gpus
    if health.problem is not None:
        return Seen(False, health.problem.sentence)
    sick = [gpu for gpu in gpus if gpu.state != "ok"]
    if sick:
        return Seen(False, f"GPU {sick[0].index} ({sick[0].model}) is {sick[0].state}.")
    told = simulation.difference(health, os.environ)
    if told is not None:
        return Seen(False, told)
    kind = "simulated " if health.simulated else ""
    slots = sum(len(gpu.slots) for gpu in gpus)
    return Seen(bool(gpus), f"{len(gpus)} {kind}GPUs with {slots} slots are there.")


def use_is_seen(places: Places) -> Seen:
    """Can it be told of every slot whether it is in use? What cannot is never taken back when idle."""
    from ..client import routes
    from .probe import BLIND, blind_slots, look

    with connect(as_it_is=True) as broker:
        simulates = broker.call(routes.HEALTH).simulates
    found, _ = look(places, simulates)
    blind = blind_slots(found)
    if not found.gpus:
        return Seen(True, "There is no slot whose use could be seen.")
    if not blind:
        return Seen(True, "Of every slot a counter tells whether it is in use.")
    uuid, why = next(iter(blind.items()))
    more = f" and {len(blind) - 1} more" if len(blind) > 1 else ""
    return Seen(False, f"No counter tells whether {uuid}{more} is in use ({why}). {BLIND}")


def simulation_is_known(places: Places) -> Seen:
    """What will a broker simulate that is started by somebody who does not say?"""
    setting = places.remembered_simulation()
    what = f"Without an NVIDIA device, {setting.removeprefix('auto:')}" if setting else "No GPU"
    return Seen(
        True,
        f"{what} is simulated where nobody says otherwise (GPUBROKER_SIMULATE, `gpubroker admin simulation`).",
    )


def gpus_are_kept_apart(_places: Places) -> Seen:
    """What keeps a program off GPUs that were not lent to it?"""
    from ..client import routes

    with connect(as_it_is=True) as broker:
        return Seen(True, ISOLATION[broker.call(routes.HEALTH).isolation])


def give_backs_work(places: Places) -> Seen:
    """Which ways of giving a GPU back, beyond those that need nothing, were seen to work on this machine?"""
    from ..client import routes

    with connect(as_it_is=True) as broker:
        is_simulated = broker.call(routes.HEALTH).simulated
    if is_simulated:
        return Seen(True, "On simulated GPUs every give-back is tried for real.")
    off = [kind for kind, record in VERIFIED.items() if not (places.state / record).exists()]
    if not off:
        return Seen(True, "Parking and checkpointing were seen to work with these GPUs.")
    return Seen(
        True,
        f"{' and '.join(off)} stay off, since nobody has seen them work with these GPUs yet.",
    )


def server_uses_us(_places: Places) -> Seen:
    """Does a Jupyter server of this environment load the extension and find the provisioner?"""
    config = Path(sys.prefix) / EXTENSION_CONFIG
    named = entry_points(group="jupyter_client.kernel_provisioners", name="gpubroker-provisioner")
    if not named:
        return Seen(
            False,
            "The kernel provisioner is not registered here. Reinstall jupyter_gpubroker.",
        )
    if not config.exists():
        return Seen(
            False,
            f"{config} is missing, so Jupyter does not load the extension. Run: "
            "jupyter server extension enable --sys-prefix jupyter_gpubroker",
        )
    return Seen(True, f"Jupyter servers of {sys.prefix} load the extension.")


def kernels_can_start(_places: Places) -> Seen:
    """Is a Python kernel installed here? Those of other environments are found by Jupyter itself."""
    if find_spec("ipykernel") is None:
        return Seen(False, f"{sys.prefix} has no Python kernel. Run: pip install ipykernel")
    return Seen(True, "A Python kernel is installed in this environment.")


Look = Callable[["Places"], Seen]
CHECKS: Mapping[str, Look] = {
    "on": is_on,
    "places": places_are_fit,
    "broker": broker_answers,
    "devices": devices_are_read,
    "use": use_is_seen,
    "simulation": simulation_is_known,
    "isolation": gpus_are_kept_apart,
    "give_backs": give_backs_work,
    "server": server_uses_us,
    "kernels": kernels_can_start,
}


@click.command(cls=Command)
@json_option
@click.pass_context
def doctor(ctx: click.Context, as_json: bool) -> None:
    """Check what can go wrong, and say what to do. Ends with 1 if something is wrong."""
    from ..client import Places
    from . import render

    places = Places.find()
    with no_broker_left_behind():
        found = [Check(name, *_look(look, places)) for name, look in CHECKS.items()]
    if as_json:
        render.echo_json({"checks": [asdict(check) for check in found]})
    else:
        for check in found:
            mark = click.style("ok  ", fg="green") if check.ok else click.style("FAIL", fg="red")
            click.echo(f"{mark} {check.name}: {check.sentence}")
    ctx.exit(Exit.OK if all(check.ok for check in found) else Exit.FAILED)


def _look(look: Look, places: Places) -> Seen:
    from ..client import BrokerDown, BrokerError, PlaceRefused

    try:
        return look(places)
    except (BrokerDown, BrokerError, Ended, PlaceRefused, OSError) as error:
        return Seen(False, str(error))
