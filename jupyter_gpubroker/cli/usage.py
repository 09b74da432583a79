"""`gpubroker usage`: who had how much of the GPUs, and what the rules took or would have taken."""

from __future__ import annotations

import click

from .options import DURATION, json_option, looking
from .outcome import Command

HOUR_MS = 3_600_000


@click.command(cls=Command)
@click.option(
    "--since",
    "since_ms",
    type=DURATION,
    default="7d",
    show_default=True,
    help="How far back, in whole hours.",
)
@json_option
def usage(since_ms: int, as_json: bool) -> None:
    """GPU-hours held, at work, idle and wanted while idle, by person. Admins see everybody, others themselves."""
    from ..client import routes
    from . import render

    with looking() as broker:
        hours = max(1, -(-since_ms // HOUR_MS))
        view = broker.call(routes.USAGE, query={"hours": str(hours)})
    if as_json:
        render.echo_json(view)
        return
    click.echo(view.sentence)
    rows = [
        (
            one.owner,
            *(
                _hours(ms)
                for ms in (
                    one.held_ms,
                    one.productive_ms,
                    one.idle_ms,
                    one.wanted_ms,
                    one.outside_ms,
                    one.spared_ms,
                )
            ),
            str(one.taken),
        )
        for one in view.people
    ]
    if rows:
        headings = ("WHO", "HELD", "AT WORK", "IDLE", "WANTED", "OUTSIDE", "WOULD FREE", "TAKEN")
        render.echo_table(headings, rows)


def _hours(ms: int) -> str:
    return f"{ms / HOUR_MS:.1f} h"
