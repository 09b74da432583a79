"""`gpubroker admin simulation`: which GPUs brokers simulate on machines without an NVIDIA device."""

from __future__ import annotations

import click

from .options import json_option
from .outcome import Command, Ended, Exit


@click.command(cls=Command)
@click.argument("what", metavar="[GPUS|none]", required=False)
@json_option
def simulation(what: str | None, as_json: bool) -> None:
    """Show or set the GPUs that are simulated where there is no NVIDIA device: such as 2xH200, or none.

    It holds for every broker that is started by somebody who does not say otherwise (GPUBROKER_SIMULATE, config.py).
    """
    from ..client import BrokerDown, BrokerError, Places
    from ..client.start import answers, stop_broker
    from ..devices.simulated_devices import check_spec
    from ..devices.simulated_spec import SpecError
    from . import render

    places = Places.find()
    if not places.may_start:
        detail = (
            f"The broker at {places.url} is not started by you: what it simulates stands in the configuration it is "
            "started with."
        )
        raise Ended(Exit.REFUSED, "not_your_broker", detail)
    goes_on = False
    if what is not None:
        spec = "" if what == "none" else what.removeprefix("auto:")
        try:
            if spec:
                check_spec(spec)
        except SpecError as error:
            raise Ended(Exit.USAGE, "bad_simulation", str(error)) from error
        places.prepare()
        places.remember_simulation(spec)
        if answers(places.user_url):
            try:
                stop_broker(places.user_url)
            except (BrokerError, BrokerDown):
                goes_on = True
    setting = places.remembered_simulation()
    if as_json:
        render.echo_json({"simulates": setting.removeprefix("auto:"), "broker_goes_on": goes_on})
        return
    click.echo(
        f"Simulated where there is no NVIDIA device: {setting.removeprefix('auto:') or 'nothing'}."
    )
    if goes_on:
        click.echo(
            "The broker that runs is in use and goes on as it is; the next one will be like this."
        )
