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

    grace_ms:     nothing is taken for so long after its holder began with it; of use where it is longer than the limits.
    serving_ms:   so long may a server that has answered before be without a request.
    host_decides: where the GPU tells nothing of its use (a slice without counters), a holder at a prompt none of whose
                  processes works on the host counts as waiting.
    """

    TABLE: ClassVar[str] = "policies"
    name: str
    idle_ms: int
    notice_ms: int
    never_used_ms: int
    host_busy_ms: int
    keep_ms: int
    keeps_max: int
    grace_ms: int = 0
    serving_ms: int = 4 * 3_600_000
    host_decides: bool = False

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
BALANCED = Policy(
    "balanced", 20 * _MIN, 3 * _MIN, 10 * _MIN, 60 * _MIN, 30 * _MIN, 2, serving_ms=120 * _MIN
)
DEFAULT_POLICIES = (GENTLE, BALANCED)
DEFAULT_QUEUES = (
    Queue("interactive", Tier.INTERACTIVE, policy="gentle"),
    Queue("batch", Tier.BATCH),
    Queue("scavenger", Tier.SCAVENGER, preemptible=True),
)


class Remedy(str, Enum):
    """What helps after a fault of a GPU. The user's own program is restarted by its user; the rest is the admin's business."""

    IGNORE = "ignore"
    RESTART_APP = "restart_app"
    DRAIN = "drain"
    RESET = "reset"
    REBOOT = "reboot"


@dataclass(frozen=True, slots=True)
class FaultRule:
    """What a fault means. The id is its kind and number (`xid-79`), or the kind alone for all others of it.

    probation_ms: so long must nothing new be seen before the GPU is trusted again.
    """

    TABLE: ClassVar[str] = "faults"
    id: str
    remedy: Remedy
    probation_ms: int = 10 * _MIN


def _xids(remedy: Remedy, *codes: int) -> tuple[FaultRule, ...]:
    return tuple(FaultRule(f"xid-{code}", remedy) for code in codes)


# NVIDIA's catalogue of Xid errors. Of those that a program can cause, its device plugin for Kubernetes ignores the same but
# for 109, where the two disagree (k8s-device-plugin#1974).
DEFAULT_FAULTS = (
    FaultRule("xid", Remedy.DRAIN),
    FaultRule("ecc", Remedy.DRAIN),
    FaultRule("recovery", Remedy.RESET),
    *_xids(Remedy.IGNORE, 63, 92, 154),
    *_xids(Remedy.RESTART_APP, 13, 31, 43, 45, 68, 94),
    *_xids(Remedy.DRAIN, 48, 74),
    *_xids(Remedy.RESET, 61, 62, 64, 95, 109, 119, 120, 140),
    *_xids(Remedy.REBOOT, 79),
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
    `settle_ms`: a holder works until the device has been quiet for so long; shorter pauses are none.
    `patience_ms`: so long may nothing be known of a device before its holder's clock starts anew; until then it pauses.
    `host_ms`: so long must a holder's processes work on the host, while it executes nothing, to count as working.
    `suspect_ms`: so long must a device be busy at the power of an idle one to be told of.
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
    settle_ms: int = 10_000
    patience_ms: int = 60_000
    host_ms: int = 10_000
    suspect_ms: int = 600_000
