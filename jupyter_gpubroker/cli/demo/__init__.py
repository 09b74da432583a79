"""`gpubroker demo`: plays the whole story with real processes on simulated GPUs, and shows what was seen of it."""

from __future__ import annotations

import click

from ..options import DURATION, json_option
from ..outcome import Command, Exit


@click.command(cls=Command)
@click.option(
    "--limit",
    "limit_ms",
    type=DURATION,
    default="82s",
    show_default=True,
    help="How long it may play. A machine with much else to do needs more.",
)
@json_option
@click.pass_context
def demo(ctx: click.Context, limit_ms: int, as_json: bool) -> None:
    """Play the whole story by itself, on simulated GPUs, in at most 90 s.

    A real broker, a real Jupyter server with real kernels and a real batch job, in temporary folders of their own.
    A notebook leases a GPU, goes idle at a breakpoint, and the waiting batch job gets it; once for each way in which a
    GPU can come back. Ends with 1 if a step did not happen.
    """
    from .play import play

    ctx.exit(Exit.OK if play(limit_ms / 1000, as_json) else Exit.FAILED)
