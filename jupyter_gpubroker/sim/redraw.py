"""Draws new workloads of a wanted load from recorded sessions and jobs, so that a comparison does not rest on one draw.

Sessions are drawn whole, without putting back, until their bursts make up the interactive share of the pool's capacity; jobs
likewise for the batch share. A longer recording of jobs is folded onto the days asked for: hours of the day stay, days mix.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from .workload import DAY_MS, BadTrace, BatchJob, Notebook, Workload

GPUS_MAX = 8  # larger jobs and jobs of several days are left out: a handful of them would decide every figure
DURATION_MS_MAX = 2 * DAY_MS
_TOLERANCE = 50  # a draw may miss its load by one part in so many

T = TypeVar("T", Notebook, BatchJob)


@dataclass(frozen=True, slots=True)
class Load:
    """Shares of the pool's capacity, in percent."""

    interactive_percent: int
    batch_percent: int


def redrawn(
    notebooks: Iterable[Notebook],
    jobs: Iterable[BatchJob],
    *,
    load: Load,
    gpus: int,
    days: int,
    seed: int,
) -> Workload:
    """One draw; the same seed draws the same. Raises BadTrace where the recording is too small for the load."""
    length_ms = days * DAY_MS
    capacity = gpus * length_ms
    chance = random.Random(seed)  # noqa: S311 - a workload, not a secret
    coming = [one for one in notebooks if one.start_ms < length_ms and one.gpus <= gpus]
    folded = [
        replace(job, submit_ms=job.submit_ms % length_ms)
        for job in jobs
        if job.gpus <= min(gpus, GPUS_MAX) and job.duration_ms <= DURATION_MS_MAX
    ]
    drawn_notebooks = _drawn(
        coming,
        lambda one: one.busy_gpu_ms(length_ms),
        capacity * load.interactive_percent // 100,
        chance,
        "sessions",
    )
    drawn_jobs = _drawn(
        folded,
        lambda job: job.gpus * job.duration_ms,
        capacity * load.batch_percent // 100,
        chance,
        "jobs",
    )
    return Workload(
        tuple(sorted(drawn_notebooks, key=lambda one: (one.start_ms, one.id))),
        tuple(sorted(drawn_jobs, key=lambda job: (job.submit_ms, job.id))),
        length_ms,
    )


def _drawn(
    recorded: list[T], work: Callable[[T], int], wanted: int, chance: random.Random, what: str
) -> list[T]:
    """In random order, passing over what would exceed the load wanted."""
    drawn: list[T] = []
    total = 0
    for one in chance.sample(recorded, len(recorded)):
        if total + work(one) <= wanted + wanted // _TOLERANCE:
            drawn.append(one)
            total += work(one)
        if total >= wanted:
            return drawn
    if total < wanted - wanted // _TOLERANCE:
        raise BadTrace(
            f"The recorded {what} make up {100 * total // max(wanted, 1)} % of the load asked for. "
            "Ask for less, for fewer days or for fewer GPUs."
        )
    return drawn
