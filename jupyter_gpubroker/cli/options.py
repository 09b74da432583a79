"""What several commands share: quantities as click types, the options that say which slots, JSON, ids, the broker."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from .. import quantities
from .outcome import Ended, Exit

if TYPE_CHECKING:
    from ..client import BrokerClient
    from ..wire.bodies import SpecBody
    from ..wire.views import HealthView

Function = TypeVar("Function", bound=Callable[..., Any])

LOOK_S = 5.0

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class Quantity(click.ParamType):  # type: ignore[type-arg] # generic since click 8.5 only
    """A click type from a parser of `quantities`."""

    def __init__(self, name: str, parse: Callable[[str], int | str]) -> None:
        self.name = name
        self._parse = parse

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        """The parsed value; what is parsed already stays."""
        if not isinstance(value, str):
            assert isinstance(value, int)
            return value
        try:
            return self._parse(value)
        except quantities.QuantityError as error:
            self.fail(str(error), param, ctx)


WAIT = Quantity("duration", quantities.duration_ms)
DURATION = Quantity("duration", lambda text: quantities.duration_ms(text, least_ms=1_000))
MEMORY = Quantity("size", quantities.memory_mib)
COUNT = Quantity("number", quantities.slot_count)
PROFILE = Quantity("profile", quantities.mig_profile)


def spec_options(function: Function) -> Function:
    """Which slots are wanted: passed on as `count`, `profile`, `memory` and `model`."""
    options = (
        click.option("--gpus", "count", type=COUNT, default=1, show_default=True, help="How many."),
        click.option(
            "--slice", "profile", type=PROFILE, help="A MIG slice of this profile, such as 1g.18gb."
        ),
        click.option(
            "--memory", type=MEMORY, help="Any slot with at least this much memory, such as 20G."
        ),
        click.option("--model", help="Only GPUs whose name contains this, such as h200."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def limit_option(name: str, what: str) -> Callable[[Function], Function]:
    """After how long `what` is stopped: `--time`, or `--for` as in `%gpu request`."""
    return click.option(
        "--time",
        "--for",
        name,
        type=DURATION,
        help=f"Stop the {what} after so long, such as 1h30m.",
    )


def slot_spec(count: int, profile: str | None, memory: int | None, model: str | None) -> SpecBody:
    """The wish as the broker reads it."""
    from ..wire.bodies import SpecBody

    if profile is not None and memory is not None:
        raise click.UsageError(
            "--slice and --memory exclude each other: a slice's profile says how much memory it has."
        )
    return SpecBody(count=count, model=model, memory_mib_min=memory, profile=profile)


def connect(*, as_it_is: bool = False) -> BrokerClient:
    """The broker; the user's own is started where none is there and none is configured.

    One that ends meanwhile is started again. One that has other GPUs than GPUBROKER_SIMULATE asks for is replaced where
    nobody uses it, unless it is wanted `as_it_is`; where it goes on, that is said on standard error.
    """
    from ..client import BrokerClient, Places, ensure_broker, routes, simulation
    from ..client.start import answers

    places = Places.find()
    url = places.url if as_it_is and answers(places.url) else ensure_broker(places)
    revive = partial(ensure_broker, places) if places.may_start else None
    broker = BrokerClient(url, revive=revive)
    if simulation.wished(os.environ) is not None:
        told = simulation.difference(broker.call(routes.HEALTH), os.environ)
        if told is not None:
            click.echo(f"gpubroker: {told}", err=True)
    return broker


@contextmanager
def looking() -> Iterator[BrokerClient]:
    """The broker, for a command that only looks."""
    with no_broker_left_behind(), connect(as_it_is=True) as broker:
        yield broker


def looked_at(broker: BrokerClient) -> HealthView:
    """How the broker is once it has looked at its devices, which takes a moment after its start."""
    from ..client import routes

    until_s = time.monotonic() + LOOK_S
    for health in broker.watch(routes.HEALTH, wait_s=1):
        if health.ready or health.problem is not None or time.monotonic() > until_s:
            return health
    raise AssertionError("a watch never ends")


@contextmanager
def no_broker_left_behind() -> Iterator[None]:
    """Ends what was started meanwhile, unless it turned out to be needed: whoever only looks decides nothing for others."""
    from ..client import BrokerDown, BrokerError, Places
    from ..client.start import answers, stop_broker

    url = Places.find().url
    was_there = answers(url)
    try:
        yield
    finally:
        if not was_there:
            with suppress(BrokerDown, BrokerError):
                stop_broker(url)


def one_id(prefix: str, ids: Iterable[str], what: str) -> str:
    """The only one of `ids` that begins with `prefix`. Ends the command where there is none or are several."""
    matches: Sequence[str] = sorted({known for known in ids if known.startswith(prefix.lower())})
    if not matches:
        raise Ended(
            Exit.REFUSED, "unknown_id", f"You have no {what} whose id begins with '{prefix[:40]}'."
        )
    if len(matches) > 1:
        listed = ", ".join(match[:12] for match in matches[:5])
        raise Ended(
            Exit.REFUSED,
            "ambiguous_id",
            f"'{prefix[:40]}' may be any of {listed}. Write more of the id.",
        )
    return matches[0]
