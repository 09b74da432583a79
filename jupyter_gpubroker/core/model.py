"""The nouns of the broker: what a state consists of.

Every entity is a frozen dataclass; a change is a new value. Times are integers of *broker milliseconds* (`Millis`, see
`broker/clock.py`), memory is MiB. The states and their arcs live in `machine`; the rules that always hold in `check`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar, NewType, get_args

from .rules import (
    DEFAULT_FAULTS,
    DEFAULT_POLICIES,
    DEFAULT_QUEUES,
    FaultRule,
    Limits,
    Policy,
    Queue,
    Remedy,
)
from .seen import Telemetry, UnleasedUse, Watch
from .verdicts import Activity, Evidence, Verdict

# Re-exported: nouns with files of their own.
__all__ = ["Activity", "Telemetry", "UnleasedUse", "Verdict", "Watch"]

Millis = NewType("Millis", int)
MiB = NewType("MiB", int)
NodeId = NewType("NodeId", str)
GpuId = NewType("GpuId", str)
SlotId = NewType("SlotId", str)
SessionId = NewType("SessionId", str)
RequestId = NewType("RequestId", str)
LeaseId = NewType("LeaseId", str)
JobId = NewType("JobId", str)
Owner = NewType("Owner", str)

Value = str | int | bool | None


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something is so, as a code and its numbers; `explain` renders the sentence."""

    code: str
    values: tuple[tuple[str, Value], ...] = ()

    @staticmethod
    def of(code: str, **values: Value) -> Reason:
        return Reason(code, tuple(sorted(values.items())))

    def get(self, name: str) -> Value:
        return dict(self.values).get(name)


class Mode(str, Enum):
    OBSERVE = "observe"
    ADVISE = "advise"
    ENFORCE = "enforce"


# --- devices -----------------------------------------------------------------------------------------------------------


class SlotKind(str, Enum):
    GPU = "gpu"
    MIG = "mig"


class SlotState(str, Enum):
    FREE = "free"
    LEASED = "leased"
    DRAINING = "draining"
    QUARANTINED = "quarantined"


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a GPU is not trusted: the last fault seen, and when. `is_open`: the driver still asks for a recovery."""

    kind: str
    code: int
    remedy: Remedy
    seen_ms: Millis
    probation_ms: int
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Gpu:
    """A physical device. `state` is `ok` or the reader's word for what is wrong (`lost`, `no_permission`, ...).

    `fault` is there as long as the device is not trusted (`health`).
    """

    TABLE: ClassVar[str] = "gpus"
    id: GpuId
    node_id: NodeId
    index: int
    pci_bus_id: str
    model: str
    memory_mib: MiB
    mig_enabled: bool = False
    simulated: bool = False
    state: str = "ok"
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class Slot:
    """What can be leased: a whole GPU or one MIG instance.

    `epoch` counts grants and never falls. `lease_id` is the holder while leased or draining. `baseline_mib` is the memory
    in use on the empty slot as measured (`None`: never seen empty). `generation` tells instances apart that had one id.
    """

    TABLE: ClassVar[str] = "slots"
    id: SlotId
    gpu_id: GpuId
    node_id: NodeId
    kind: SlotKind
    model: str
    memory_mib: MiB
    profile: str | None = None
    index: int = 0
    simulated: bool = False
    state: SlotState = SlotState.FREE
    since_ms: Millis = Millis(0)
    epoch: int = 0
    lease_id: LeaseId | None = None
    reason: Reason | None = None
    baseline_mib: MiB | None = None
    generation: int = 0


# --- people's side ------------------------------------------------------------------------------------------------------


class SessionKind(str, Enum):
    KERNEL = "kernel"
    COMMAND = "command"  # `gpubroker run -- cmd`
    RUNNER = "runner"  # a user's runner of batch jobs; holds no lease itself


class SessionState(str, Enum):
    LIVE = "live"
    RESTARTING = "restarting"
    ENDED = "ended"


class GiveBackKind(str, Enum):
    """How a slot comes free, mildest first; the order of the members is the order of preference."""

    EMPTY = "empty"
    PARKED = "parked"
    CHECKPOINTED = "checkpointed"
    RESTARTED = "restarted"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class Offer:
    """Which give-backs a session's process allows right now, as found by the process itself.

    kinds:    what would work, mildest first (never contains `kept`).
    refusals: for each kind that would not, why.
    """

    kinds: tuple[GiveBackKind, ...] = ()
    refusals: tuple[tuple[GiveBackKind, Reason], ...] = ()


@dataclass(frozen=True, slots=True)
class Session:
    """One process incarnation that may hold leases; a restart is a new session that names its predecessor.

    `pid`, `start_ticks` (field 22 of /proc/PID/stat) and `boot_id` identify the process for good. `predecessor` is the
    incarnation it replaced, if it did. `is_gone`: the process of a restarting session has ended, its successor is due.
    `groups` are the groups of people that its owner is in.
    """

    TABLE: ClassVar[str] = "sessions"
    id: SessionId
    owner: Owner
    uid: int
    kind: SessionKind
    name: str
    pid: int
    start_ticks: int
    boot_id: str
    kernel_id: str | None = None
    server_id: str | None = None
    headless: bool = False
    state: SessionState = SessionState.LIVE
    since_ms: Millis = Millis(0)
    activity: Activity = Activity.UNKNOWN
    activity_since_ms: Millis = Millis(0)
    front_ends: int = 0
    kernel_offer: Offer = Offer()
    server_offer: Offer = Offer()
    predecessor: SessionId | None = None
    is_gone: bool = False
    groups: tuple[str, ...] = ()


# --- waiting and holding -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SlotSpec:
    """What a request asks for: `count` slots of one kind on one node.

    Neither `profile` nor `memory_mib_min` given means a whole GPU. `profile` asks for one MIG instance of that profile;
    `memory_mib_min` for any slot with at least that much memory. `pinned` names the very slots (a parked lease returns home).
    """

    count: int = 1
    model: str | None = None
    memory_mib_min: MiB | None = None
    profile: str | None = None
    pinned: tuple[SlotId, ...] = ()


class RequestState(str, Enum):
    WAITING = "waiting"
    GRANTED = "granted"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Request:
    """Somebody waits for slots. `lease_id` is the lease it became, or, while waiting, the parked lease it wants back.

    It was made at `since_ms`, and that is its place in line, unless it took an older one over from a process that crashed,
    `place_ms`; ties are broken by `number`. `ended_ms` is when it stopped waiting, for whatever reason.
    """

    TABLE: ClassVar[str] = "requests"
    id: RequestId
    number: int
    owner: Owner
    session_id: SessionId
    spec: SlotSpec
    queue: str
    job_id: JobId | None = None
    state: RequestState = RequestState.WAITING
    since_ms: Millis = Millis(0)
    expires_ms: Millis | None = None
    duration_ms: int | None = None
    preemptible: bool = False
    lease_id: LeaseId | None = None
    reason: Reason | None = None
    ended_ms: Millis | None = None
    place_ms: Millis | None = None

    @property
    def in_line_since_ms(self) -> Millis:
        """What its place in line counts from."""
        return self.since_ms if self.place_ms is None else self.place_ms


class LeaseState(str, Enum):
    GRANTED = "granted"
    ACTIVE = "active"
    DRAINING = "draining"
    PARKED = "parked"
    CLEARED = "cleared"
    QUARANTINED = "quarantined"


# The states of a lease that has slots.
HOLDING = frozenset(
    {LeaseState.GRANTED, LeaseState.ACTIVE, LeaseState.DRAINING, LeaseState.QUARANTINED}
)


@dataclass(frozen=True, slots=True)
class Hold:
    slot_id: SlotId
    epoch: int


@dataclass(frozen=True, slots=True)
class Notice:
    """The announcement that a lease will be taken back unless its holder objects.

    It counts once somebody can have seen it (`shown`); with no channel at all the countdown runs twice as long (`doubled`).
    """

    number: int
    request_id: RequestId
    issued_ms: Millis
    due_ms: Millis
    reason: Reason
    shown: bool = False
    doubled: bool = False


@dataclass(frozen=True, slots=True)
class Order:
    """What the holder's side must do now, and by when. `number` grows per lease; answers name it.

    kind `empty`, `parked`: the kernel's own process acts; `checkpointed`, `restarted`: its Jupyter server (or runner) acts.
    `resume` is True for the way back (unpark). `tried` are the kinds that already failed for this give-back.
    """

    number: int
    kind: GiveBackKind
    issued_ms: Millis
    due_ms: Millis
    resume: bool = False
    tried: tuple[GiveBackKind, ...] = ()


@dataclass(frozen=True, slots=True)
class Late:
    """An order that ran out unanswered: its executor may still be at it. `until_ms`: it undoes by then what it did too late."""

    number: int
    kind: GiveBackKind
    until_ms: Millis | None = None


@dataclass(frozen=True, slots=True)
class Lease:
    """A holder has slots, from grant to *cleared*. Its id is the id of the request that got it.

    `holds` are the slots with their epochs, empty once parked or cleared; `home` names the slots it was granted last, where
    a parked lease must return to. `context_seen` says whether the device ever showed a process of the holder. `gave_back` is
    the kind by which the holder let go of the slots, once it did. `cause` says why it drains, ended or could not give back.
    `evidence` is what the verdict rests on, or the last step towards taking the lease back.
    `keep_until_ms`: not taken before this, by the user's keep or since nobody could give it back. `orders` and `notices`
    number what was issued so far; `late` is the last order that ran out, until it is known to be over.
    """

    TABLE: ClassVar[str] = "leases"
    id: LeaseId
    owner: Owner
    session_id: SessionId
    queue: str
    holds: tuple[Hold, ...]
    spec: SlotSpec
    job_id: JobId | None = None
    state: LeaseState = LeaseState.GRANTED
    since_ms: Millis = Millis(0)
    granted_ms: Millis = Millis(0)
    deadline_ms: Millis | None = None
    ends_ms: Millis | None = None
    home: tuple[SlotId, ...] = ()
    residue_mib: MiB = MiB(0)
    context_seen: bool = False
    verdict: Verdict = Verdict.UNKNOWN
    verdict_since_ms: Millis = Millis(0)
    keep_until_ms: Millis | None = None
    keeps_used: int = 0
    notice: Notice | None = None
    notices: int = 0
    order: Order | None = None
    orders: int = 0
    gave_back: GiveBackKind | None = None
    preemptible: bool = False
    cause: Reason | None = None
    evidence: Evidence | None = None
    late: Late | None = None

    @property
    def is_leaving(self) -> bool:
        """Whether its holder has let go and its slots were not seen clear since."""
        return self.state in (LeaseState.DRAINING, LeaseState.QUARANTINED) and self.order is None


class JobState(str, Enum):
    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    ENDED = "ended"


class JobOutcome(str, Enum):
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Job:
    """A batch job as the broker knows it: never its command line, which stays in its owner's spool under this id.

    `session_id` is the owner's runner, which starts and stops it. `exit_status` is negative for a signal, as in
    `subprocess`. While `stopping`, the runner sends TERM at once and KILL at `kill_ms`. A job that saves its work every
    `checkpoint_ms` goes on from there after it was preempted: `saved_ms` is the run time of earlier attempts that counts.
    """

    TABLE: ClassVar[str] = "jobs"
    id: JobId
    number: int
    owner: Owner
    name: str
    session_id: SessionId
    spec: SlotSpec
    queue: str
    state: JobState = JobState.QUEUED
    since_ms: Millis = Millis(0)
    submitted_ms: Millis = Millis(0)
    started_ms: Millis | None = None
    ended_ms: Millis | None = None
    time_limit_ms: int | None = None
    checkpoint_ms: int | None = None
    preemptible: bool = False
    attempt: int = 1
    preemptions: int = 0
    saved_ms: int = 0
    request_id: RequestId | None = None
    pid: int | None = None
    start_ticks: int | None = None
    kill_ms: Millis | None = None
    exit_status: int | None = None
    outcome: JobOutcome | None = None
    cause: Reason | None = None


@dataclass(frozen=True, slots=True)
class Modes:
    """How far the broker goes (`core/modes.py`): for all, and where it differs for single GPUs and for groups of people."""

    TABLE: ClassVar[str] = "modes"
    id: str = "modes"
    mode: Mode = Mode.ENFORCE
    gpus: tuple[tuple[str, Mode], ...] = ()
    groups: tuple[tuple[str, Mode], ...] = ()


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """An admin took this GPU out: it lends nothing new."""

    TABLE: ClassVar[str] = "withdrawals"
    id: GpuId
    by: Owner
    why: str


Entity = (
    Gpu
    | Slot
    | Session
    | Request
    | Lease
    | Job
    | Policy
    | Queue
    | FaultRule
    | Telemetry
    | Watch
    | Limits
    | Modes
    | Withdrawal
)
ENTITY_TYPES: tuple[type[Entity], ...] = get_args(Entity)


@dataclass(frozen=True, slots=True)
class State:
    """Everything the broker knows. Maps are never changed in place: `apply` makes new ones.

    `contradiction` says what is wrong with a state that was loaded so: it can be read, and nothing follows from it.
    """

    modes: Modes = field(default_factory=Modes)
    number: int = 0  # the last number given to a request or job
    gpus: Mapping[GpuId, Gpu] = field(default_factory=dict)
    slots: Mapping[SlotId, Slot] = field(default_factory=dict)
    sessions: Mapping[SessionId, Session] = field(default_factory=dict)
    requests: Mapping[RequestId, Request] = field(default_factory=dict)
    leases: Mapping[LeaseId, Lease] = field(default_factory=dict)
    jobs: Mapping[JobId, Job] = field(default_factory=dict)
    policies: Mapping[str, Policy] = field(
        default_factory=lambda: {p.name: p for p in DEFAULT_POLICIES}
    )
    queues: Mapping[str, Queue] = field(default_factory=lambda: {q.name: q for q in DEFAULT_QUEUES})
    faults: Mapping[str, FaultRule] = field(
        default_factory=lambda: {rule.id: rule for rule in DEFAULT_FAULTS}
    )
    telemetry: Mapping[NodeId, Telemetry] = field(default_factory=dict)
    watches: Mapping[LeaseId, Watch] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    contradiction: str | None = None
    withdrawals: Mapping[GpuId, Withdrawal] = field(default_factory=dict)
