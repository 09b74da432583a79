"""The agent of the broker's own host: in its process, with the probe as a child."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ..core.model import NodeId, State
from ..devices.choice import choose
from ..devices.probe_client import ProbeClient, probe_argv
from ..processes import boot_id
from .agent import Agent, AgentEvent
from .device_fence import DeviceFence, rules_that_work
from .exempt import of_users
from .fencing import Fencing
from .holdings import holdings
from .processes import ProcessTable


def local_agent(
    node_id: NodeId,
    simulate: str,
    folder: Path,
    state: Callable[[], State],
    emit: Callable[[AgentEvent], None],
    interval_s: float,
    sources: Path | None = None,
    allowed_users: Sequence[str] = (),
    is_fenced: bool = False,
) -> Agent:
    """`simulate` is a GPUBROKER_SIMULATE value, `folder` where simulated GPUs live, `sources` the file of exporters.

    `allowed_users` may use any GPU; `is_fenced` keeps everybody else off what was not lent to them.
    Raises ValueError for a bad simulation, a user nobody is, and a fence that this process may not put up.
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
        exempt=of_users(allowed_users),
        fencing=_fencing() if is_fenced else None,
    )


def simulated_spec(simulate: str, folder: Path) -> str:
    """What a GPUBROKER_SIMULATE value has simulated on this host, empty for nothing. Raises ValueError for a bad one."""
    return choose(simulate, folder).spec or ""


def _fencing() -> Fencing:
    rules = rules_that_work()
    if rules is None:
        raise ValueError(
            "The kernels cannot be fenced off from GPUs here: this process may not make cgroups and judge what they open. "
            "Set `fence` to False, or give the broker the rights that docs/threat-model.md names."
        )
    return Fencing(DeviceFence(rules, ProcessTable()))
