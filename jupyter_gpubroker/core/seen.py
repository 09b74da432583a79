"""What was seen lately, of nodes and of who is on their devices. Nothing of it is kept: after a restart nothing is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from .model import LeaseId, Millis, NodeId, Reason, SlotId


@dataclass(frozen=True, slots=True)
class UnleasedUse:
    """A process that is on a slot without a lease there, since when.

    `kind`: `unleased`; `parked`, a parked holder that computes; `left`, one whose holder should be gone. `holder_id` is whose
    it is, if anybody's that the broker knows. `quiet_since_ms`: since when it has not computed; None if it does, or nobody
    can tell (`computes`).
    """

    slot_id: SlotId
    pid: int
    kind: str
    since_ms: Millis
    start_ticks: int | None = None
    uid: int | None = None
    holder_id: str | None = None
    computes: bool | None = None
    quiet_since_ms: Millis | None = None


@dataclass(frozen=True, slots=True)
class Telemetry:
    """When a node's devices were last seen. Not persisted: after a restart nothing is known until the agent looked again.

    `clear_ms` says when each slot that was clear at the last look was looked at, `uses` who is on one without a lease.
    """

    TABLE: ClassVar[str | None] = None
    id: NodeId
    observed_ms: Millis
    problem: Reason | None = None
    clear_ms: Mapping[SlotId, Millis] = field(default_factory=dict)
    uses: tuple[UnleasedUse, ...] = ()


@dataclass(frozen=True, slots=True)
class Watch:
    """What was seen of an active lease's holder, look by look (`watch` keeps it). Not persisted, as telemetry.

    seen_ms:        the last look, whatever it told.
    spell_since_ms: the holder has executed nothing since, nor worked on the host by itself.
    quiet_since_ms: the device has been quiet since; None: in use at the last look that told.
    blind_since_ms: no look has told anything since; None: the last one did.
    spinning_since_ms: the device has been busy at the power of an idle one since.
    host_ms:        how much work on the host counts at present: it fills as the host works and leaks as it rests.
    host_works:     there was enough of it to count, and it has not leaked away since.
    host_blind_ms:  so long nothing was known of the host since it was last seen at rest.
    host_quiet_since_ms: no process of the holder has worked on the host since; None: at the last look one did, or unknown.
    """

    TABLE: ClassVar[str | None] = None
    id: LeaseId
    seen_ms: Millis
    spell_since_ms: Millis
    quiet_since_ms: Millis | None
    blind_since_ms: Millis | None = None
    spinning_since_ms: Millis | None = None
    bursts: int = 0
    listens: bool | None = None
    source: str | None = None
    host_ms: int = 0
    host_works: bool = False
    host_blind_ms: int = 0
    host_quiet_since_ms: Millis | None = None
