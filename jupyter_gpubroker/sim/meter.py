"""Measures a replay: GPU time while it passes, waits and ends as they come.

Only what lies between the end of the warm-up and the end of the workload counts: GPU time by when it passes, waits and jobs by
when they were asked for. What still waits at the end counts for the longest wait and against the share done, for nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Percentiles:
    """In seconds; None where there was nothing to measure."""

    p50: float | None
    p95: float | None
    p99: float | None


@dataclass(frozen=True, slots=True)
class Completion:
    """From submission to end, in seconds."""

    p50: float | None
    mean: float | None
    p95: float | None


@dataclass(frozen=True, slots=True)
class Figures:
    """What one regime came to. Shares are of 1.

    wanted_idle_gpu_h:   idle while leased, and somebody waited.
    release_wait_s:      waits for a GPU again after one was taken.
    false_reclaim_share: of the reclaims, after how many the user came back within ten minutes.
    lost_gpu_h:          what preempted jobs had to do again.
    jain:                fairness between the groups of batch jobs: of the time that a group had or waited for GPUs, the
                         share that it had, as R. Jain's index (1: all alike).
    estimate_error_p50:  seconds between the start that was expected on asking and the real one.
    """

    utilisation: float
    idle_leased_gpu_h: float
    wanted_idle_gpu_h: float
    first_wait_s: Percentiles
    release_wait_s: Percentiles
    batch_completion_s: Completion
    batch_done_share: float | None
    reclaims: int
    false_reclaim_share: float | None
    preemptions: int
    lost_gpu_h: float
    starvation_max_s: float
    jain: float | None
    estimate_error_p50: float | None


@dataclass(slots=True)
class Meter:
    """Told of everything that happens, in the order of time."""

    gpus: int
    from_ms: int
    until_ms: int
    leased: int = 0  # GPUs of notebooks' leases
    bursting: int = 0  # of these, at work
    batch: int = 0  # GPUs of running jobs
    waiting: int = 0  # requests
    reclaims: int = 0
    false_reclaims: int = 0
    preemptions: int = 0
    jobs_asked: int = 0
    _now: int = 0
    _busy: int = 0
    _idle: int = 0
    _wanted: int = 0
    _lost: int = 0
    _first_waits: list[int] = field(default_factory=list)
    _release_waits: list[int] = field(default_factory=list)
    _completions: list[int] = field(default_factory=list)
    _errors: list[int] = field(default_factory=list)
    _longest_wait: int = 0
    _had: Counter[str] = field(default_factory=Counter)
    _awaited: Counter[str] = field(default_factory=Counter)

    def passes(self, now: int) -> None:
        """Time passes with everything as it is."""
        lasted = max(0, min(now, self.until_ms) - max(self._now, self.from_ms))
        if lasted:
            idle = self.leased - self.bursting
            self._busy += lasted * (self.bursting + self.batch)
            self._idle += lasted * idle
            if self.waiting:
                self._wanted += lasted * idle
        self._now = now

    def counts(self, at_ms: int) -> bool:
        return self.from_ms <= at_ms < self.until_ms

    def waited(self, since_ms: int, *, is_first: bool, is_return: bool) -> None:
        """A notebook's wait is over."""
        if self.counts(since_ms):
            wait = self._now - since_ms
            self._longest_wait = max(self._longest_wait, wait)
            if is_first:
                self._first_waits.append(wait)
            if is_return:
                self._release_waits.append(wait)

    def job_waited(self, since_ms: int, group: str, gpus: int) -> None:
        if self.counts(since_ms):
            wait = self._now - since_ms
            self._longest_wait = max(self._longest_wait, wait)
            self._awaited[group] += wait * gpus

    def still_waiting(self, since_ms: int) -> None:
        """At the end of the workload."""
        if self.counts(since_ms):
            self._longest_wait = max(self._longest_wait, self.until_ms - since_ms)

    def ran(self, group: str, gpu_ms: int) -> None:
        if self.counts(self._now):
            self._had[group] += gpu_ms

    def lost(self, gpu_ms: int) -> None:
        if self.counts(self._now):
            self.preemptions += 1
            self._lost += gpu_ms

    def taken(self) -> None:
        if self.counts(self._now):
            self.reclaims += 1

    def came_back(self, taken_ms: int, within_ms: int) -> None:
        """A user asks again after a reclaim."""
        if self.counts(taken_ms) and self._now - taken_ms < within_ms:
            self.false_reclaims += 1

    def job_asked(self) -> None:
        if self.counts(self._now):
            self.jobs_asked += 1

    def job_done(self, submit_ms: int) -> None:
        if self.counts(submit_ms) and self._now <= self.until_ms:
            self._completions.append(self._now - submit_ms)

    def estimated(self, error_ms: int) -> None:
        self._errors.append(error_ms)

    def figures(self) -> Figures:
        owned = self.gpus * (self.until_ms - self.from_ms)
        done = self._completions
        return Figures(
            utilisation=round((self._busy - self._lost) / owned, 4),
            idle_leased_gpu_h=_hours(self._idle),
            wanted_idle_gpu_h=_hours(self._wanted),
            first_wait_s=_percentiles(self._first_waits),
            release_wait_s=_percentiles(self._release_waits),
            batch_completion_s=Completion(
                _at(done, 50),
                round(sum(done) / len(done) / 1_000, 1) if done else None,
                _at(done, 95),
            ),
            batch_done_share=_share(len(done), self.jobs_asked),
            reclaims=self.reclaims,
            false_reclaim_share=_share(self.false_reclaims, self.reclaims),
            preemptions=self.preemptions,
            lost_gpu_h=_hours(self._lost),
            starvation_max_s=self._longest_wait / 1_000,
            jain=_jain(self._had, self._awaited),
            estimate_error_p50=_at(self._errors, 50),
        )


def _percentiles(waits: Sequence[int]) -> Percentiles:
    return Percentiles(_at(waits, 50), _at(waits, 95), _at(waits, 99))


def _at(values: Iterable[int], percent: int) -> float | None:
    """The nearest-rank percentile, in seconds."""
    ordered = sorted(values)
    if not ordered:
        return None
    rank = -(-percent * len(ordered) // 100)
    return ordered[max(rank, 1) - 1] / 1_000


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def _hours(gpu_ms: int) -> float:
    return round(gpu_ms / _HOUR_MS, 1)


def _jain(had: Mapping[str, int], awaited: Mapping[str, int]) -> float | None:
    """(sum x)^2 / (n sum x^2) over the groups' shares x."""
    totals = {group: had.get(group, 0) + awaited.get(group, 0) for group in {*had, *awaited}}
    shares = [had.get(group, 0) / total for group, total in sorted(totals.items()) if total]
    squares = sum(share * share for share in shares)
    return round(sum(shares) ** 2 / (len(shares) * squares), 4) if squares else None
