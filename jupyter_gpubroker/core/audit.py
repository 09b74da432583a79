"""Who uses a slot without a lease on it: since when, whom to tell, and whether the policy has it stopped.

Found in what the agent sees, at every look: a process of nobody, of a holder of other slots, of a holder that should be gone,
and a parked holder that computes. Exempt are display servers and whom the admin allows; a process that cannot be told is none
of these. Only a policy stops anybody (`limits.unleased_stop_ms`), only where rules are enforced, with TERM first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from . import modes
from .clear import belongs_to, residues_on
from .draft import Draft
from .effects import StopProcess, TellOfUse
from .events import ProcessOnSlot, ProcessOwner, SlotObservation
from .model import (
    Lease,
    LeaseState,
    Mode,
    NodeId,
    Reason,
    Session,
    Slot,
    SlotId,
    State,
    UnleasedUse,
)


def observed(draft: Draft, node_id: NodeId, looks: Mapping[SlotId, SlotObservation]) -> None:
    """New samples of a node: remember the uses that go on, tell of new ones, stop whom the policy stops."""
    telemetry = draft.state.telemetry[node_id]
    before = {_key(use): use for use in telemetry.uses}
    elsewhere = [use for use in telemetry.uses if use.slot_id not in looks]
    seen = [use for slot_id, look in looks.items() for use in _uses(draft, slot_id, look)]
    now_on = [_continued(use, before.get(_key(use))) for use in seen]
    draft.put(replace(telemetry, uses=(*elsewhere, *now_on)), Reason.of("observed"))
    for use in now_on:
        if _key(use) not in before:
            draft.run(TellOfUse(use))
        if any(process.pid == use.pid for process in looks[use.slot_id].processes or ()):
            _stop_if_due(draft, use)  # who is left behind beside the device is told only


def warnings(state: State, session: Session) -> tuple[Reason, ...]:
    """What the session's user is to be told of uses by its processes; where the broker only observes, nothing is forbidden."""
    own = [
        (use, state.slots[use.slot_id])
        for telemetry in state.telemetry.values()
        for use in telemetry.uses
        if use.holder_id == session.id and use.slot_id in state.slots
    ]
    return tuple(
        Reason.of(f"own_use_{use.kind}", pid=use.pid, slot=_name(slot))
        for use, slot in own
        if modes.of_slot(state, slot) is not Mode.OBSERVE
    )


def _continued(use: UnleasedUse, before: UnleasedUse | None) -> UnleasedUse:
    """As it is seen now, since it began."""
    if before is None:
        return use
    quiet_ms = before.quiet_since_ms
    is_still_quiet = use.quiet_since_ms is not None and quiet_ms is not None
    return replace(
        use,
        since_ms=before.since_ms,
        quiet_since_ms=quiet_ms if is_still_quiet else use.quiet_since_ms,
    )


def _uses(draft: Draft, slot_id: SlotId, look: SlotObservation) -> Iterator[UnleasedUse]:
    state, slot = draft.state, draft.state.slots[slot_id]
    lease = None if slot.lease_id is None else state.leases[slot.lease_id]
    left = look.left_behind or () if _is_overdue(lease) else ()
    processes = {process.pid: process for process in (*left, *(look.processes or ()))}
    for process in processes.values():
        if process.owned_by is ProcessOwner.UNMAPPED or process.is_exempt:
            continue
        kind = _kind(state, slot, lease, process)
        if kind is not None:
            is_alone = len(processes) == 1 and process.computes is None
            computes = look.busy if is_alone else process.computes
            yield UnleasedUse(
                slot_id=slot_id,
                pid=process.pid,
                kind=kind,
                since_ms=draft.now,
                start_ticks=process.start_ticks,
                uid=process.uid,
                holder_id=process.holder_id,
                computes=computes,
                quiet_since_ms=draft.now if computes is False else None,
            )


def _kind(state: State, slot: Slot, lease: Lease | None, process: ProcessOnSlot) -> str | None:
    """What is wrong with the process' being there; None where nothing is."""
    if lease is not None and belongs_to(process, lease):
        return "left" if _is_overdue(lease) else None
    for residue in residues_on(state, slot):
        if belongs_to(process, residue) and process.pid == state.sessions[residue.session_id].pid:
            return "parked" if process.computes else None
    return "unleased"


def _is_overdue(lease: Lease | None) -> bool:
    """Whether its slots should be clear by now: whoever is left of the holder stands in somebody's way."""
    return lease is not None and lease.state is LeaseState.QUARANTINED


def _stop_if_due(draft: Draft, use: UnleasedUse) -> None:
    limits, slot = draft.state.limits, draft.state.slots[use.slot_id]
    if modes.of_slot(draft.state, slot) is not Mode.ENFORCE or not limits.unleased_stop_ms:
        return
    # A pid alone names nobody, and whoever has the slot may put up with other programs of his own there.
    if use.start_ticks is None or _is_at_home(draft.state, slot, use):
        return
    for_ms = draft.now - use.since_ms
    if for_ms >= limits.unleased_stop_ms:
        is_over = for_ms >= limits.unleased_stop_ms + limits.unleased_kill_ms
        draft.run(StopProcess(use.pid, use.start_ticks, force=is_over))


def _is_at_home(state: State, slot: Slot, use: UnleasedUse) -> bool:
    """Whether the slot is lent to the user whose process it is."""
    lease = None if slot.lease_id is None else state.leases[slot.lease_id]
    if lease is None or _is_overdue(lease):
        return False
    return use.uid is not None and use.uid == state.sessions[lease.session_id].uid


def _key(use: UnleasedUse) -> tuple[object, ...]:
    return use.slot_id, use.pid, use.start_ticks, use.kind


def _name(slot: Slot) -> str:
    return slot.model if slot.profile is None else f"{slot.model} {slot.profile}"
