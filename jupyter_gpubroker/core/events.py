"""What can happen to the broker. Events are in the past tense; `decide.step` says what follows.

Client events carry the caller's `owner`; the core refuses what is not theirs (as not found, so that ids tell nothing).
Ids of sessions, requests and jobs are chosen by the client (random 128 bit, hex): the same id with the same content again is
the same event, which makes every change idempotent.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from .model import (
    Activity,
    GiveBackKind,
    Gpu,
    GpuId,
    JobId,
    LeaseId,
    MiB,
    Mode,
    NodeId,
    Offer,
    Owner,
    Reason,
    RequestId,
    Session,
    SessionId,
    SlotId,
    SlotKind,
    SlotSpec,
)
from .rules import FaultRule, Limits, Policy, Queue

# --- from the node agent -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SlotSeen:
    """A leasable slot as the agent finds it; joins the state's `Slot` by id.

    `generation` grows when an instance is another one under the id of the last.
    """

    id: SlotId
    gpu_id: GpuId
    kind: SlotKind
    model: str
    memory_mib: MiB
    profile: str | None = None
    index: int = 0
    simulated: bool = False
    generation: int = 0


@dataclass(frozen=True, slots=True)
class InventoryReported:
    node_id: NodeId
    gpus: tuple[Gpu, ...]
    slots: tuple[SlotSeen, ...]


class ProcessOwner(str, Enum):
    """Whose process is on a slot. `session` and `job` come with the id; `foreign` is anybody else's."""

    SESSION = "session"
    JOB = "job"
    FOREIGN = "foreign"
    UNMAPPED = "unmapped"  # a pid that cannot be seen from here (another pid namespace)


@dataclass(frozen=True, slots=True)
class ProcessOnSlot:
    """A compute process the device lists (graphics processes are left out by the agent). None is unknown.

    computes:  the device's counter of this process moved in the window.
    is_exempt: a display server, a service of the driver or an allowed user's: not told as a use without lease, never stopped.
    """

    pid: int
    owned_by: ProcessOwner
    holder_id: str | None = None
    uid: int | None = None
    memory_mib: MiB | None = None
    start_ticks: int | None = None
    computes: bool | None = None
    is_exempt: bool = False


@dataclass(frozen=True, slots=True)
class HostUse:
    """What the whole process tree of a slot's worker did on the host in the window. None is unknown.

    listens: a process of it waits for connections by TCP at a port that is not the kernel's or the debugger's own; looked at
             only while the device is quiet.
    """

    processes: int
    cpu_percent: int | None = None
    io_kib_per_s: int | None = None
    listens: bool | None = None


@dataclass(frozen=True, slots=True)
class SlotObservation:
    """One slot over the last window. None is unknown, never zero and never idle.

    busy:      the holder's own processes (where the device can tell, else anybody) worked on the device in the window.
    host_busy: the holder's process tree used the CPU or did I/O in the window.
    window_ms: the time up to the look that `busy` speaks of; None: all of it since the look before.
    source:    what `busy` was read from (`device` is a counter of the whole GPU, which says nothing of a slice of it).
    sm_percent, dram_percent, power_above_idle_mw: what tells work from spinning, of the slot itself.
    left_behind: of a slot whose holder let go: living processes of the tree of a first process that is gone, on the device or
               not (yet); None where that could not be told.
    """

    slot_id: SlotId
    busy: bool | None
    host_busy: bool | None
    memory_used_mib: MiB | None
    processes: tuple[ProcessOnSlot, ...] | None
    utilisation_percent: int | None = None
    window_ms: int | None = None
    source: str | None = None
    sm_percent: int | None = None
    dram_percent: int | None = None
    power_above_idle_mw: int | None = None
    left_behind: tuple[ProcessOnSlot, ...] | None = ()
    host: HostUse | None = None


@dataclass(frozen=True, slots=True)
class SlotsObserved:
    """`leaving` are the leases whose holders had let go when the reading began: only for these can it show a slot clear.

    is_fenced: the kernel refuses to open devices that were not lent; for show.
    """

    node_id: NodeId
    slots: tuple[SlotObservation, ...]
    leaving: frozenset[LeaseId]
    is_fenced: bool = False


@dataclass(frozen=True, slots=True)
class GpuFault:
    """What a GPU complained of: an `xid` with its number, or without one that uncorrectable memory errors (`ecc`) were counted.

    `slot_id`: of that MIG instance alone.
    """

    kind: str
    code: int = 0
    slot_id: SlotId | None = None


@dataclass(frozen=True, slots=True)
class GpuSeen:
    """The health of one GPU. `recovery_action` is what the driver asks for, `none` or its word; None: it cannot be asked."""

    gpu_id: GpuId
    recovery_action: str | None = None
    faults: tuple[GpuFault, ...] = ()


@dataclass(frozen=True, slots=True)
class GpusObserved:
    """`faults` are those since the last such event."""

    node_id: NodeId
    gpus: tuple[GpuSeen, ...]


@dataclass(frozen=True, slots=True)
class NodeUnobserved:
    """The devices could not be read: nothing is granted and nothing reclaimed there until they can be again."""

    node_id: NodeId
    reason: Reason


# --- sessions ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """A process that may hold leases is there. `predecessor` is the incarnation it replaces after a restart."""

    session: Session
    predecessor: SessionId | None = None


@dataclass(frozen=True, slots=True)
class SessionReported:
    owner: Owner
    session_id: SessionId
    activity: Activity
    front_ends: int


@dataclass(frozen=True, slots=True)
class OfferMade:
    """The session's own process (`by_server` False) or its Jupyter server says which give-backs would work now."""

    owner: Owner
    session_id: SessionId
    offer: Offer
    by_server: bool = False


@dataclass(frozen=True, slots=True)
class SessionRestarting:
    """Announced before the process ends: its leases wait for the successor."""

    owner: Owner
    session_id: SessionId


@dataclass(frozen=True, slots=True)
class SessionEnded:
    """The process is gone (seen by pidfd) or was shut down on purpose."""

    session_id: SessionId
    reason: Reason


# --- requests and leases ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RequestMade:
    owner: Owner
    request_id: RequestId
    session_id: SessionId
    spec: SlotSpec
    queue: str = "interactive"
    wait_ms: int | None = None  # None: for ever; 0: now or refused
    duration_ms: int | None = None
    preemptible: bool = False


@dataclass(frozen=True, slots=True)
class RequestCancelled:
    owner: Owner
    request_id: RequestId
    reason: Reason


@dataclass(frozen=True, slots=True)
class RequestAbandoned:
    """Nobody listens for the answer any more (its client went away without cancelling)."""

    request_id: RequestId


@dataclass(frozen=True, slots=True)
class LeaseAcknowledged:
    """The holder applied the grant: its process sees the devices."""

    owner: Owner
    lease_id: LeaseId


@dataclass(frozen=True, slots=True)
class LeaseKept:
    owner: Owner
    lease_id: LeaseId
    keep_ms: int | None = None  # None: the policy's


@dataclass(frozen=True, slots=True)
class LeaseReleased:
    """The holder gives the slots back. `kind` None lets the core choose; `done` says that the holder already did it."""

    owner: Owner
    lease_id: LeaseId
    kind: GiveBackKind | None = None
    done: bool = False
    residue_mib: MiB = MiB(0)


@dataclass(frozen=True, slots=True)
class UnparkRequested:
    owner: Owner
    lease_id: LeaseId
    request_id: RequestId
    wait_ms: int | None = None


@dataclass(frozen=True, slots=True)
class NoticeShown:
    owner: Owner
    lease_id: LeaseId
    number: int


@dataclass(frozen=True, slots=True)
class OrderAnswered:
    """The holder's side carried out order `number`, or could not (`reason`)."""

    owner: Owner
    lease_id: LeaseId
    number: int
    ok: bool
    residue_mib: MiB = MiB(0)
    reason: Reason | None = None


# --- batch jobs ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JobSubmitted:
    owner: Owner
    job_id: JobId
    session_id: SessionId
    name: str
    spec: SlotSpec
    queue: str = "batch"
    time_limit_ms: int | None = None
    preemptible: bool = False
    checkpoint_ms: int | None = None  # it saves its work so often, and goes on from there


@dataclass(frozen=True, slots=True)
class JobStarted:
    """`attempt` is the job's that was started: one that the broker has given up meanwhile is refused."""

    owner: Owner
    job_id: JobId
    attempt: int
    pid: int
    start_ticks: int


@dataclass(frozen=True, slots=True)
class JobEnded:
    owner: Owner
    job_id: JobId
    attempt: int
    exit_status: int | None  # None: it could not be learned


@dataclass(frozen=True, slots=True)
class JobCancelled:
    owner: Owner
    job_id: JobId


# --- administration and time --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PolicyApplied:
    """Rows that replace those of the same name; `limits` replaces the protocol's deadlines.

    `by` is None for the file that is read at the start.
    """

    policies: tuple[Policy, ...] = ()
    queues: tuple[Queue, ...] = ()
    limits: Limits | None = None
    by: Owner | None = None
    faults: tuple[FaultRule, ...] = ()


@dataclass(frozen=True, slots=True)
class ModeSet:
    """An admin changed how far the broker goes: for a GPU, for a group of people, or for all.

    Without a mode, what is named has none of its own any more.
    """

    by: Owner
    mode: Mode | None
    gpu_id: GpuId | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True)
class GpuDisabled:
    """An admin takes a GPU out of the pool; who is on it stays."""

    by: Owner
    gpu_id: GpuId
    why: str


@dataclass(frozen=True, slots=True)
class GpuEnabled:
    by: Owner
    gpu_id: GpuId


@dataclass(frozen=True, slots=True)
class QuarantineCleared:
    """An admin vouches that nobody is on the slot."""

    by: Owner
    slot_id: SlotId
    why: str


@dataclass(frozen=True, slots=True)
class LeaseRevoked:
    """An admin wants a lease back, after a notice; whatever the mode."""

    by: Owner
    lease_id: LeaseId
    why: str
    notice_ms: int


@dataclass(frozen=True, slots=True)
class Ticked:
    """Nothing but time passed."""


Event = (
    InventoryReported
    | SlotsObserved
    | NodeUnobserved
    | GpusObserved
    | SessionOpened
    | SessionReported
    | OfferMade
    | SessionRestarting
    | SessionEnded
    | RequestMade
    | RequestCancelled
    | RequestAbandoned
    | LeaseAcknowledged
    | LeaseKept
    | LeaseReleased
    | UnparkRequested
    | NoticeShown
    | OrderAnswered
    | JobSubmitted
    | JobStarted
    | JobEnded
    | JobCancelled
    | PolicyApplied
    | ModeSet
    | GpuDisabled
    | GpuEnabled
    | QuarantineCleared
    | LeaseRevoked
    | Ticked
)
