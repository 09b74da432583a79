"""How a command ends: exit codes, and what is printed when it cannot do what it was asked."""

from __future__ import annotations

import json
from enum import IntEnum
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ..client import BrokerError


class Exit(IntEnum):
    """The exit codes of all commands. `run` ends with the status of its own command instead."""

    OK = 0
    FAILED = 1
    USAGE = 2
    REFUSED = 3
    BROKER_DOWN = 4
    WAITED_IN_VAIN = 5


EXIT_CODES = (
    "Exit codes: 0 done; 1 failed; 2 wrong usage; 3 refused; 4 no broker answers; 5 waited in vain. "
    "`run` ends as its command did (128 + n if that was ended by signal n)."
)


class Ended(Exception):
    """A command ends without having done what was asked: with this code, a word for programs and a sentence for people."""

    def __init__(self, exit_code: int, code: str, detail: str) -> None:
        super().__init__(detail)
        self.exit_code = exit_code
        self.code = code
        self.detail = detail


class Command(click.Command):
    """A command whose failures are one sentence on standard error, and with --json an object on standard output."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.epilog = self.epilog or EXIT_CODES

    def invoke(self, ctx: click.Context) -> Any:
        """Run it; end with the code of what went wrong."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            ended = _ended(error)
            if ended is None:
                raise
            if ctx.params.get("as_json"):
                click.echo(json.dumps({"error": {"code": ended.code, "detail": ended.detail}}))
            click.echo(f"gpubroker: {ended.detail}", err=True)
            ctx.exit(ended.exit_code)


def _ended(error: Exception) -> Ended | None:
    """What an exception means for the caller of a command; None for a bug of ours."""
    if isinstance(error, Ended):
        return error
    from ..client import BrokerDown, BrokerError, PlaceRefused
    from ..runner.start import RunnerDown

    if isinstance(error, BrokerError):
        return Ended(_refused(error), error.code, str(error))
    if isinstance(error, BrokerDown):
        return Ended(Exit.BROKER_DOWN, "broker_down", str(error))
    if isinstance(error, RunnerDown):
        return Ended(Exit.BROKER_DOWN, "runner_down", str(error))
    if isinstance(error, PlaceRefused):
        return Ended(Exit.BROKER_DOWN, "place_refused", str(error))
    return None


def _refused(error: BrokerError) -> Exit:
    if error.status >= 500:
        return Exit.FAILED
    # "Now or never" is a wait, too: one of no length.
    return Exit.WAITED_IN_VAIN if error.code == "nothing_free" else Exit.REFUSED
