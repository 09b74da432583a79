"""What the edges must do after a decision is committed. Effects are imperative and harmless when repeated.

Everything else the edges do is level-triggered: a kernel, server or runner looks at its leases and jobs and acts on the
`Order` or state it finds there, so a lost message can only delay. After a restart `decide.effects_of(state)` yields every
effect that may not have run; there is no other outbox.
"""

from __future__ import annotations

from dataclasses import dataclass

from .model import LeaseId, SlotId, UnleasedUse


@dataclass(frozen=True, slots=True)
class AdmitHold:
    """The agent shall admit this epoch, and only this, on the slot."""

    slot_id: SlotId
    epoch: int
    lease_id: LeaseId


@dataclass(frozen=True, slots=True)
class InspectSlots:
    """The agent shall look at these slots now instead of at its next turn."""

    slot_ids: tuple[SlotId, ...]


@dataclass(frozen=True, slots=True)
class TellOfUse:
    """The admin shall hear of it: somebody has begun to use a slot without a lease on it."""

    use: UnleasedUse


@dataclass(frozen=True, slots=True)
class StopProcess:
    """The agent shall end this process, by TERM or by force."""

    pid: int
    start_ticks: int
    force: bool


Effect = AdmitHold | InspectSlots | TellOfUse | StopProcess
