"""All regimes on one workload, or on several: the entry point of `gpubroker simulate`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from typing import Any

from ..core.decide import apply, step
from ..core.events import PolicyApplied
from ..core.model import Millis, State
from ..core.rules import Policy
from .meter import Figures
from .regimes import Regime, regimes
from .replay import replay
from .workload import Workload
from .world import Model

Comparison = Mapping[str, Figures]
Rules = PolicyApplied
NO_RULES = Rules()


def compare(
    workloads: Sequence[Workload],
    gpus: int,
    rules: Rules,
    *,
    model: Model,
    only: Iterable[str] = (),
    processes: int = 1,
) -> list[Comparison]:
    """For each workload the figures of each regime, by its name.

    rules: what the site's rules change; each policy they leave is a regime of its own.
    only: the names of the regimes wanted; all where there are none. Raises KeyError for a name that does not exist.
    """
    known = {one.name: one for one in regimes(_policies(rules))}
    chosen = [known[name] for name in only] or [*known.values()]
    tasks = [
        (workload.within(gpus), gpus, regime, rules, model)
        for workload in workloads
        for regime in chosen
    ]
    if processes > 1:
        with ProcessPoolExecutor(processes) as pool:
            figures = [*pool.map(_replay, tasks)]
    else:
        figures = [*map(_replay, tasks)]
    size = len(chosen)
    names = [regime.name for regime in chosen]
    return [
        dict(zip(names, figures[at : at + size], strict=True))
        for at in range(0, len(figures), size)
    ]


def as_data(comparison: Comparison) -> dict[str, Any]:
    """Plain data for JSON."""
    return {"policies": {name: asdict(figures) for name, figures in comparison.items()}}


def shipped_rules() -> State:
    """A state with nothing but the rules that the broker comes with."""
    return State()


def _replay(task: tuple[Workload, int, Regime, Rules, Model]) -> Figures:
    workload, gpus, regime, rules, model = task
    return replay(workload, gpus, regime, rules, model)


def _policies(rules: Rules) -> Iterable[Policy]:
    state = shipped_rules()
    return apply(state, step(state, rules, Millis(0)).changes).policies.values()
