"""`gpubroker demo`: plays the whole story with real processes on simulated GPUs, and shows what was seen of it."""

from __future__ import annotations

import click

from ..options import json_option
from ..outcome import Command, Exit


@click.command(cls=Command)
@json_option
@click.pass_context
def demo(ctx: click.Context, as_json: bool) -> None:
    """Play the whole story by itself, on simulated GPUs, in at most 90 s.

    A real broker, a real Jupyter server with real kernels and a real batch job, in temporary folders of their own.
    A notebook leases a GPU, goes idle at a breakpoint, and the waiting batch job gets it; once for each way in which a
    GPU can come back. Ends with 1 if a step did not happen.
    """
    from .play import play

    ctx.exit(Exit.OK if play(as_json) else Exit.FAILED)
