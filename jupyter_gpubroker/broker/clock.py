"""Broker time: integer milliseconds that never run backwards, whatever happens to the machine's clocks.

It starts at the mark kept with the last commit. Within one boot it advances by CLOCK_BOOTTIME, which nobody can set and
which counts suspend; over a reboot by the wall clock, but only forwards and by no more than a cap, so that a wrong wall
clock ends nothing. Wall time is otherwise only shown to people. Deciding what a suspend means is left to the loop.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..core.model import Millis
from ..store.records import ClockMark

RESTART_GAP_MAX_MS = 60_000
_NS_PER_MS = 1_000_000
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Sources(Protocol):
    """The machine's clocks. `boot_id` is empty where the system has none; then every start counts as a reboot."""

    def boot_id(self) -> str: ...

    def boottime_ns(self) -> int: ...

    def monotonic_ns(self) -> int: ...

    def wall_ms(self) -> int: ...


class SystemSources:
    """This machine's. Where there is no CLOCK_BOOTTIME (not Linux), a suspend cannot be seen."""

    def boot_id(self) -> str:
        return _BOOT_ID.read_text(encoding="ascii").strip() if _BOOT_ID.exists() else ""

    def boottime_ns(self) -> int:
        return time.clock_gettime_ns(_BOOTTIME)

    def monotonic_ns(self) -> int:
        return time.monotonic_ns()

    def wall_ms(self) -> int:
        return time.time_ns() // _NS_PER_MS


@dataclass(frozen=True, slots=True)
class Reading:
    """`suspended_ms` is how much of the time since the last reading the machine slept, and never more than passed."""

    now: Millis
    suspended_ms: int


@dataclass(frozen=True, slots=True)
class _Asleep:
    """Bounds of BOOTTIME minus MONOTONIC, the time this machine slept since it booted.

    The two cannot be read at once: being stopped in between must not look like a suspend, so MONOTONIC is read on both sides
    of BOOTTIME. The bounds of two readings come apart only by a real suspend.
    """

    boottime_ns: int
    at_least_ns: int
    at_most_ns: int


class Clock:
    """Broker time from the moment of its making; one per process.

    `down_ms` is the broker time between the mark and that moment: how long no broker ran.
    """

    def __init__(
        self,
        mark: ClockMark | None,
        sources: Sources | None = None,
        restart_gap_max_ms: int = RESTART_GAP_MAX_MS,
    ) -> None:
        self._sources = sources or SystemSources()
        self._boot_id = self._sources.boot_id()
        self._started_ns = self._sources.boottime_ns()
        self.down_ms = self._gap_ms(mark, restart_gap_max_ms) if mark else 0
        self._started_ms = (mark.broker_ms if mark else 0) + self.down_ms
        self._latest_ms = self._read_ms = self._started_ms
        self._asleep_ns_max = self._asleep().at_most_ns

    def read(self) -> Reading:
        asleep = self._asleep()
        now = self._at(asleep.boottime_ns)
        suspended_ms = max(0, asleep.at_least_ns - self._asleep_ns_max) // _NS_PER_MS
        suspended_ms = min(suspended_ms, now - self._read_ms)
        self._read_ms = now
        if suspended_ms:
            self._asleep_ns_max += suspended_ms * _NS_PER_MS
        else:
            self._asleep_ns_max = min(self._asleep_ns_max, asleep.at_most_ns)
        return Reading(now, suspended_ms)

    def mark(self) -> ClockMark:
        """This moment, to be kept with the next commit."""
        boottime_ns = self._sources.boottime_ns()
        return ClockMark(
            broker_ms=self._at(boottime_ns),
            boot_id=self._boot_id,
            boottime_ms=boottime_ns // _NS_PER_MS,
            wall_ms=self._sources.wall_ms(),
        )

    def _at(self, boottime_ns: int) -> Millis:
        elapsed_ms = (boottime_ns - self._started_ns) // _NS_PER_MS
        self._latest_ms = max(self._latest_ms, self._started_ms + elapsed_ms)
        return Millis(self._latest_ms)

    def _gap_ms(self, mark: ClockMark, restart_gap_max_ms: int) -> int:
        """How much broker time passed since `mark`, which another process made.

        A boottime before the mark's within the "same" boot is a restored machine or another time namespace: a reboot to us.
        """
        since_mark_ms = self._started_ns // _NS_PER_MS - mark.boottime_ms
        if self._boot_id and self._boot_id == mark.boot_id and since_mark_ms >= 0:
            return since_mark_ms
        return min(max(0, self._sources.wall_ms() - mark.wall_ms), restart_gap_max_ms)

    def _asleep(self) -> _Asleep:
        before_ns = self._sources.monotonic_ns()
        boottime_ns = self._sources.boottime_ns()
        after_ns = self._sources.monotonic_ns()
        return _Asleep(boottime_ns, boottime_ns - after_ns, boottime_ns - before_ns)
