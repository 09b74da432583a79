"""Which GPUs a client wants simulated, and whether the broker that runs simulates them.

The wish is GPUBROKER_SIMULATE; without the variable every broker will do. A wish that begins with `auto:` is for machines
without any NVIDIA device: a real one, or one whose driver is broken, satisfies it as it is.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..wire.views import HealthView
from .places import AUTO, SIMULATE


def wished(environ: Mapping[str, str]) -> str | None:
    """The wish; None where nothing is said, empty where nothing shall be simulated."""
    return environ.get(SIMULATE)


def contradicts(health: HealthView, wish: str) -> bool:
    """Whether a broker has other GPUs than `wish` asks for. Never of one that has not looked at its devices yet."""
    if not health.ready:
        return False
    if wish.removeprefix(AUTO) == health.simulates:
        return False
    if wish.startswith(AUTO) and not health.simulates:
        return health.problem is not None and health.problem.code == "no_gpu"
    return True


def difference(health: HealthView, environ: Mapping[str, str]) -> str | None:
    """A sentence for whoever asked for other GPUs than there are, with what to do; None where all is as asked."""
    wish = wished(environ)
    if wish is None or not contradicts(health, wish):
        return None
    wanted = f"simulated GPUs ({wish.removeprefix(AUTO)})" if wish else "no simulated GPUs"
    there = f"simulates {health.simulates}" if health.simulates else "simulates none"
    return (
        f"{SIMULATE} asks for {wanted}, but the broker that runs {there} and goes on as it is. To change that, end what "
        "uses it and run `gpubroker broker --stop`: the next one is as asked."
    )
