"""The agent of the broker's own host: in its process, with the probe as a child."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ..core.model import NodeId, State
from ..devices.choice import choose
from ..devices.probe_client import ProbeClient, probe_argv
from ..processes import boot_id
from .agent import Agent, AgentEvent
from .holdings import holdings


def local_agent(
    node_id: NodeId,
    simulate: str,
    folder: Path,
    state: Callable[[], State],
    emit: Callable[[AgentEvent], None],
    interval_s: float,
    sources: Path | None = None,
) -> Agent:
    """`simulate` is a GPUBROKER_SIMULATE value, `folder` where simulated GPUs live, `sources` the file of exporters.

    Raises `SpecError` for a bad value.
    """
    choice = replace(choose(simulate, folder), sources=sources)
    probe = ProbeClient(probe_argv(choice))
    this_boot = boot_id()
    return Agent(
        node_id,
        probe,
        holdings=lambda: holdings(state(), this_boot),
        emit=emit,
        interval_s=interval_s,
    )
