"""`gpubroker run -- cmd`: wait for slots, run a command with them, give them back.

While it waits, Ctrl-C leaves the queue at once. While the command runs, signals go to it and its end is ours: the slots
are held as long as this process lives, whatever becomes of the broker meanwhile.
"""

from __future__ import annotations

import json
import os
import signal
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

import click

from .options import WAIT, connect, json_option, limit_option, slot_spec, spec_options
from .outcome import Command, Ended, Exit

# A broker that hangs is noticed after one poll and the time that an answer may take.
POLL_S = 5
PAUSE_S = 0.5

if TYPE_CHECKING:
    from ..client import BrokerClient
    from ..wire.bodies import RequestBody
    from ..wire.views import LeaseView, RequestView


@click.command(cls=Command, context_settings={"allow_interspersed_args": False})
@spec_options
@click.option(
    "--wait",
    "wait_ms",
    type=WAIT,
    help="Wait at most so long, such as 10m (default: as long as it takes).",
)
@click.option("--no-wait", is_flag=True, help="Now or never.")
@limit_option("duration_ms", "command")
@click.option("--queue", default="interactive", show_default=True, help="The line to stand in.")
@json_option
@click.argument("command", metavar="-- COMMAND...", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def run(
    ctx: click.Context,
    count: int,
    profile: str | None,
    memory: int | None,
    model: str | None,
    wait_ms: int | None,
    no_wait: bool,
    duration_ms: int | None,
    queue: str,
    as_json: bool,
    command: tuple[str, ...],
) -> None:
    """Wait for a GPU, run COMMAND with it, and give it back.

    COMMAND sees the GPU in CUDA_VISIBLE_DEVICES. Its standard streams are this terminal's; what gpubroker has to say
    goes to standard error, with --json as one object a line.
    """
    from ..client import is_off
    from ..runner.environment import lent_environment
    from ..wire.bodies import RequestBody
    from .child import check_command, run_child

    if no_wait and wait_ms is not None:
        raise click.UsageError("--wait and --no-wait exclude each other.")
    spec = slot_spec(count, profile, memory, model)
    if is_off():
        _Voice(as_json).say(
            "off",
            "gpubroker is off (GPUBROKER=off, or `gpubroker off`): the command runs without a lease.",
        )
        ctx.exit(run_child(command, dict(os.environ), limit_s=None))
    check_command(command, os.environ)
    session_id = uuid.uuid4().hex
    body = RequestBody(
        session_id=session_id,
        spec=spec,
        queue=queue,
        wait_ms=0 if no_wait else wait_ms,
        duration_ms=duration_ms,
    )
    limit_s = None if duration_ms is None else duration_ms / 1000
    with _session(session_id, command) as broker:
        lease = _acquire(broker, body, _Voice(as_json))
        try:
            environment = lent_environment(
                os.environ, broker.url, lease, "GPUBROKER_SESSION", session_id
            )
            status = run_child(command, environment, limit_s)
        finally:
            _give_back(broker, lease.id)
    ctx.exit(status)


class _Voice:
    """Says on standard error what happens, a line each, for people or programs; the same line never twice in a row."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._last = ""

    def say(self, event: str, sentence: str, **values: str | int | None) -> None:
        line = (
            json.dumps({"event": event, **values, "detail": sentence})
            if self._as_json
            else f"gpubroker: {sentence}"
        )
        if line != self._last:
            click.echo(line, err=True)
        self._last = line


@contextmanager
def _session(session_id: str, command: tuple[str, ...]) -> Iterator[BrokerClient]:
    """The broker, to which this process is known as one that may hold leases. Its end would be noticed without a word, too."""
    from ..client import BrokerClient, BrokerDown, BrokerError, routes
    from ..wire.bodies import SessionBody
    from .render import shortened

    body = SessionBody(kind="command", name=shortened(" ".join(command), 200), pid=os.getpid())
    with connect() as broker:
        broker.call(routes.PUT_SESSION, session_id, body)
    # One that goes away from now on is told of (`_acquire`), and not started for the sake of giving back.
    with BrokerClient(broker.url) as broker:
        try:
            yield broker
        finally:
            with suppress(BrokerDown, BrokerError):
                broker.call(routes.END_SESSION, session_id)


def _acquire(broker: BrokerClient, body: RequestBody, voice: _Voice) -> LeaseView:
    """Wait until the slots are ours, through restarts of the broker. Leaves the line when interrupted."""
    from ..client import BrokerDown, PlaceRefused, ensure_broker

    request_id = uuid.uuid4().hex
    with _terminable():
        try:
            while True:
                try:
                    return _await_grant(broker, request_id, body, voice)
                except BrokerDown as error:
                    voice.say("broker_down", f"{error} This command waits on.")
                    time.sleep(PAUSE_S)
                with suppress(BrokerDown, PlaceRefused):
                    ensure_broker()
        except KeyboardInterrupt:
            _leave_line(broker, request_id)


def _await_grant(
    broker: BrokerClient, request_id: str, body: RequestBody, voice: _Voice
) -> LeaseView:
    """Ask, which may be repeated under the same id, and wait; what was granted is acknowledged."""
    from ..client import routes
    from .render import lent_devices

    broker.call(routes.PUT_REQUEST, request_id, body)
    for request in broker.watch(routes.REQUEST, request_id, wait_s=POLL_S):
        if request.state == "waiting":
            voice.say("waiting", request.sentence, request=request.id, place=request.place)
            continue
        lease = _granted(request)
        acknowledged = broker.call(routes.ACKNOWLEDGE, lease.id)
        said = f"{lent_devices(lease)} is lent to this command."
        voice.say("granted", said, lease=lease.id, devices=lease.visible_devices)
        return acknowledged
    raise AssertionError("a watch never ends")


def _granted(request: RequestView) -> LeaseView:
    if request.lease is not None and request.state == "granted":
        return request.lease
    code = {"expired": Exit.WAITED_IN_VAIN, "refused": Exit.REFUSED}.get(request.state, Exit.FAILED)
    raise Ended(code, request.state, request.sentence)


def _leave_line(broker: BrokerClient, request_id: str) -> NoReturn:
    from ..client import BrokerDown, BrokerError, routes

    with suppress(BrokerDown, BrokerError):
        broker.call(routes.CANCEL_REQUEST, request_id)
    raise Ended(128 + signal.SIGINT, "interrupted", "interrupted; the line was left.")


def _give_back(broker: BrokerClient, lease_id: str) -> None:
    """The command has ended, so nothing is left on the slots. A broker that is away sees the end of this process."""
    from ..client import BrokerDown, BrokerError, routes
    from ..wire.bodies import ReleaseBody

    with suppress(BrokerDown, BrokerError):
        broker.call(routes.RELEASE, lease_id, ReleaseBody(kind="empty", done=True))


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM and SIGHUP interrupt as Ctrl-C does."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    earlier = {
        number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)
