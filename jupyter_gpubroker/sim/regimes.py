"""The ways of taking GPUs back that are compared. They differ in this alone: line, placement and preemption are the same.

`policy` is decided by the core: on demand, with notice. The baselines are what people have today: nothing, or a timer beside
the broker that ends what stood idle so long, whether or not somebody waits; and the bound, which nobody can reach.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..core.rules import Policy

_MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Regime:
    """`timer_ms`: taken after so long without a burst. `is_oracle`: held while a burst runs, at no cost for anybody."""

    name: str
    policy: Policy | None = None
    timer_ms: int | None = None
    is_oracle: bool = False


BASELINES = (
    Regime("hold"),
    Regime("cull-60m", timer_ms=60 * _MINUTE_MS),
    Regime("fixed-30m", timer_ms=30 * _MINUTE_MS),
    Regime("fixed-20m", timer_ms=20 * _MINUTE_MS),
    Regime("oracle", timer_ms=0, is_oracle=True),
)


def regimes(policies: Iterable[Policy]) -> tuple[Regime, ...]:
    """The baselines and one regime for each policy."""
    return (*BASELINES, *(Regime(policy.name, policy) for policy in policies))
