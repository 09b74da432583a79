"""`gpubroker probe`: what this machine's devices are and what can be known of them, past the broker.

The document that `--json` prints can be simulated (`GPUBROKER_SIMULATE=@/path/to/probe.json`), so that
somebody's hardware can be replayed where it is not.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from .options import json_option
from .outcome import Command, Ended, Exit

if TYPE_CHECKING:
    from ..client import Places
    from ..devices.choice import Choice
    from ..devices.dump import ProbeDump
    from ..devices.reader import SlotReading

# What it means that no counter tells whether a slot is in use, and what to do.
BLIND = (
    "So it is not taken back when idle. A DCGM exporter can tell: gpubroker admin sources add prometheus URL "
    "(docs/devices.md)."
)
_NOTHING = "There is no NVIDIA GPU on this machine. GPUBROKER_SIMULATE=2xH200 simulates two."
_MISSING = {
    "not_supported": "the device has none",
    "no_permission": "this user may not read it",
    "failed": "it could not be read",
}


@click.command(cls=Command)
@click.argument("device", required=False)
@json_option
def probe(device: str | None, as_json: bool) -> None:
    """Read the devices, past the broker: what they are, what can be known of them, and who is on them.

    DEVICE shows one alone, by any of its names: a UUID or its beginning, 0, 0:3, GPU-UUID/GI/CI, nvidia0/gi7.
    With --json, the devices and what can be known of them: no processes, nothing about people.
    """
    from ..client import Places
    from . import render

    places = Places.find()
    places.prepare()  # simulated GPUs lie there, in a folder that must be closed to others
    found, readings = look(places, os.environ.get("GPUBROKER_SIMULATE"))
    if device is not None:
        found = _only(found, device)
    if as_json:
        render.echo_json(found)
    else:
        _echo(found, {reading.uuid: reading for reading in readings})


def look(places: Places, simulate: str | None) -> tuple[ProbeDump, Sequence[SlotReading]]:
    """Everything that the devices tell now. Ends the command where they cannot be read."""
    from ..devices.choice import choose
    from ..devices.simulated_spec import SpecError

    try:
        choice = choose(simulate, places.simulated)
    except SpecError as error:
        raise Ended(Exit.USAGE, "bad_simulation", f"GPUBROKER_SIMULATE: {error}") from error
    return asyncio.run(_look(replace(choice, sources=places.sources)))


def _only(found: ProbeDump, name: str) -> ProbeDump:
    """The document with one slot alone."""
    import msgspec

    from ..devices.dump import inventory_of
    from ..devices.mig import canonical

    uuid = canonical(name, inventory_of(found))
    if uuid is None:
        detail = f"'{name[:80]}' means no slot of this machine, or several. `gpubroker probe` shows them all."
        raise Ended(Exit.REFUSED, "unknown_device", detail)
    gpus = [
        msgspec.structs.replace(gpu, mig=tuple(mig for mig in gpu.mig if mig.uuid == uuid))
        for gpu in found.gpus
    ]
    kept = tuple(gpu for gpu in gpus if gpu.mig or gpu.uuid == uuid)
    return msgspec.structs.replace(found, gpus=kept)


def blind_slots(found: ProbeDump) -> dict[str, str]:
    """The slots of which no counter tells whether they are in use, and why."""
    blind = {}
    for gpu in found.gpus:
        slots = [(mig.uuid, mig.signals) for mig in gpu.mig] or [(gpu.uuid, gpu.signals)]
        for uuid, signals in slots:
            why = {signals.get("utilisation", "failed"), signals.get("engines", "failed")}
            if gpu.state == "ok" and "ok" not in why:
                blind[uuid] = _MISSING[min(why - {"not_supported"}, default="not_supported")]
    return blind


async def _look(choice: Choice) -> tuple[ProbeDump, Sequence[SlotReading]]:
    """In a child that a sick driver may block."""
    from ..devices.child import ChildUnavailable
    from ..devices.dump import dump_of
    from ..devices.probe_client import ProbeClient, probe_argv

    client = ProbeClient(probe_argv(choice))
    try:
        inventory = await client.inventory()
        found = dump_of(inventory, await client.capabilities(), await client.health())
        return found, await client.observe()
    except ChildUnavailable as error:
        detail = (
            f"the devices cannot be read ({error}). `nvidia-smi` shows whether the driver answers."
        )
        raise Ended(Exit.FAILED, "devices_unavailable", detail) from error
    finally:
        await client.close()


def _echo(found: ProbeDump, readings: Mapping[str, SlotReading]) -> None:
    from ..devices.reader import NO_NVIDIA_DEVICE
    from . import render

    for problem in found.problems:
        click.echo(
            _NOTHING if problem == NO_NVIDIA_DEVICE else f"The driver does not work: {problem}."
        )
    if not found.gpus:
        return
    rows: list[tuple[str, ...]] = []
    for gpu in found.gpus:
        slots = [(mig.profile or render.UNKNOWN, mig.uuid) for mig in gpu.mig]
        for kind, uuid in slots or [("whole", gpu.uuid)]:
            rows.append(
                (str(gpu.index), gpu.model, kind, gpu.state, *_use(readings.get(uuid)), uuid)
            )
    render.echo_table(("GPU", "MODEL", "SLICE", "STATE", "USED", "PIDS", "ID"), rows)
    for gpu in found.gpus:
        for problem in gpu.problems:
            click.echo(f"{gpu.uuid}: {problem}.")
    for uuid, why in blind_slots(found).items():
        click.echo(f"{uuid}: no counter tells whether it is in use ({why}). {BLIND}")


def _use(reading: SlotReading | None) -> tuple[str, str]:
    from ..quantities import say_memory
    from . import render

    if reading is None:
        return render.UNKNOWN, render.UNKNOWN
    memory_mib, processes = reading.memory_used_mib, reading.processes or ()
    used = render.UNKNOWN if memory_mib is None else say_memory(memory_mib)
    return used, ", ".join(str(process.pid) for process in processes) or render.UNKNOWN
