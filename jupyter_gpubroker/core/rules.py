"""The rules as data: rows that a site may change, and the ones the product comes with."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import ClassVar


class Tier(str, Enum):
    """Who is served first; the order of the members is the order of the line."""

    INTERACTIVE = "interactive"
    BATCH = "batch"
    SCAVENGER = "scavenger"


@dataclass(frozen=True, slots=True)
class Policy:
    """When an idle lease may be taken. All limits act only on demand.

    The shipped rows are the presets of the design; sites change them by API or TOML.
    """

    TABLE: ClassVar[str] = "policies"
    name: str
    idle_ms: int
    notice_ms: int
    never_used_ms: int
    host_busy_ms: int
    keep_ms: int
    keeps_max: int

    @property
    def id(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Queue:
    """A named waiting line. `policy` is None where idleness is never a reason (batch jobs).

    A preemptible job makes way for a higher tier once it has run for `protected_ms`.
    """

    TABLE: ClassVar[str] = "queues"
    name: str
    tier: Tier
    policy: str | None = None
    preemptible: bool = False
    protected_ms: int = 0

    @property
    def id(self) -> str:
        return self.name


_MIN = 60_000
GENTLE = Policy("gentle", 30 * _MIN, 5 * _MIN, 15 * _MIN, 120 * _MIN, 30 * _MIN, 3)
BALANCED = Policy("balanced", 20 * _MIN, 3 * _MIN, 10 * _MIN, 60 * _MIN, 30 * _MIN, 2)
DEFAULT_POLICIES = (GENTLE, BALANCED)
DEFAULT_QUEUES = (
    Queue("interactive", Tier.INTERACTIVE, policy="gentle"),
    Queue("batch", Tier.BATCH),
    Queue("scavenger", Tier.SCAVENGER, preemptible=True),
)


@dataclass(frozen=True, slots=True)
class Limits:
    """Deadlines of the protocol itself, in ms; rows, not constants, so that tests and sites may shorten them.

    `floor_mib_max`: a slot with more memory in use than this is not empty, whatever was measured before.
    `job_attempts_max`: so often a job is offered to a runner that does not start it.
    `overtaking_ms`: so long may a request that does not fit yet be overtaken by later ones of its tier that do; from then on
    free slots are held back for it. 0: nobody ever overtakes.
    `unleased_stop_ms`: a process that has used a slot without a lease for so long gets TERM, and KILL `unleased_kill_ms` later,
    where rules are enforced. 0: it is told of, and never stopped.
    """

    TABLE: ClassVar[str] = "limits"
    id: str = "limits"
    ack_ms: int = 15_000
    restart_gap_ms: int = 60_000
    give_back_ms: int = 60_000
    resume_ms: int = 120_000
    clear_grace_ms: int = 30_000
    fresh_ms: int = 10_000
    job_grace_ms: int = 30_000
    keep_history_ms: int = 7 * 24 * 3_600_000
    floor_tolerance_mib: int = 64
    residue_mib_max: int = 1_024
    overtaking_ms: int = 0
    waiting_max_per_owner: int = 1_000
    floor_mib_max: int = 1_024
    job_attempts_max: int = 5
    unleased_stop_ms: int = 0
    unleased_kill_ms: int = 10_000
