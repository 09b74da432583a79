"""Plain data that crosses the border of the store. No SQLAlchemy here: the clock and tests import it alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..core.decision import Decision
from ..core.model import Millis


@dataclass(frozen=True, slots=True)
class ClockMark:
    """One moment on all clocks, kept so that broker time never runs backwards (see `broker/clock.py`).

    `boottime_ms` is CLOCK_BOOTTIME and counts only within the boot `boot_id`; `wall_ms` is Unix time, for people and for
    the distance between two boots.
    """

    broker_ms: Millis
    boot_id: str
    boottime_ms: int
    wall_ms: int


@dataclass(frozen=True, slots=True)
class Committed:
    """One decision with what led to it. `event` is the event's name, `cause_id` what the log lines of its cause carry."""

    event: str
    cause_id: str
    now: Millis
    decision: Decision


@dataclass(frozen=True, slots=True)
class UsageRow:
    """GPU time of one owner within an hour (Unix time / 3600 s), in thousandths of a GPU x ms."""

    AMOUNTS: ClassVar[tuple[str, ...]] = (
        "held",
        "productive",
        "idle",
        "wanted",
        "outside",
        "spared",
    )
    hour: int
    owner: str
    held: int = 0
    productive: int = 0
    idle: int = 0
    wanted: int = 0
    outside: int = 0
    spared: int = 0


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One change of one entity. Rows are never changed or deleted; each `hash` covers the row and the hash before it.

    `before` and `after` are the entity's state words, None where it did not (or does no longer) exist. `changed` is a JSON
    object of the fields that took another value, None where the entity was dropped.
    """

    sequence: int
    broker_ms: Millis
    wall_time: str
    event: str
    cause_id: str
    entity_table: str
    entity_id: str
    before: str | None
    after: str | None
    reason_code: str
    reason_values: str
    changed: str | None
    hash: str
