"""What the agents see: which devices there are, who is on them, and that they cannot be seen.

Samples that show nothing new change nothing that is kept. A device that is lost keeps its lease: a reader's hiccup must not
cost anybody the GPU, and its holder is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from . import audit, giveback, health, idle, requests
from .clear import Look, belongs_to, look_at, lowest_floor, residues_on
from .draft import Draft
from .events import (
    InventoryReported,
    NodeUnobserved,
    SlotObservation,
    SlotSeen,
    SlotsObserved,
)
from .model import (
    Gpu,
    Lease,
    LeaseState,
    Millis,
    NodeId,
    Reason,
    Slot,
    SlotId,
    SlotState,
    State,
    Telemetry,
)
from .place import is_lost, is_sick
from .table import found, live
from .watch import Glance

_WITH_HOLDER = frozenset({LeaseState.GRANTED, LeaseState.ACTIVE, LeaseState.DRAINING})


def inventory_reported(draft: Draft, event: InventoryReported) -> None:
    reason = Reason.of("device_reported")
    gpus = {gpu.id: gpu for gpu in event.gpus}
    for gpu in [*draft.state.gpus.values()]:
        if gpu.node_id == event.node_id and gpu.id not in gpus:
            draft.put(replace(gpu, state="lost"), Reason.of("device_lost", state="lost"))
    for gpu in event.gpus:
        known = draft.state.gpus.get(gpu.id)
        draft.put(gpu if known is None else replace(gpu, fault=known.fault), reason)
    seen = {slot.id: slot for slot in event.slots}
    for slot_seen in event.slots:
        _slot_reported(draft, event.node_id, slot_seen, gpus[slot_seen.gpu_id])
    for slot in [*draft.state.slots.values()]:
        if slot.node_id == event.node_id and slot.id not in seen:
            why = _why_missing(slot, gpus.get(slot.gpu_id))
            health.withdraw(draft, slot, why, "device_lost")
    if not event.gpus:
        nothing = Reason.of("no_gpu")
        draft.put(Telemetry(event.node_id, draft.now, nothing), nothing)
    requests.refuse_unservable(draft)


def node_unobserved(draft: Draft, event: NodeUnobserved) -> None:
    old = draft.state.telemetry.get(event.node_id)
    seen_ms = Millis(0) if old is None else old.observed_ms
    draft.put(Telemetry(event.node_id, seen_ms, event.reason), event.reason)
    for lease in live(draft.state.leases):
        if lease.state is LeaseState.ACTIVE and _is_on(draft.state, lease, event.node_id):
            idle.unobserved(draft, lease)


def slots_observed(draft: Draft, event: SlotsObserved) -> None:
    looks = {look.slot_id: look for look in event.slots if look.slot_id in draft.state.slots}
    for lease in found(Lease, draft.state.leases, "leaving"):
        if lease.id in event.leaving and _is_on(draft.state, lease, event.node_id):
            giveback.observed(draft, lease.id, looks)
    clear: dict[SlotId, bool] = {}
    for slot_id, look in looks.items():
        clear[slot_id] = _slot_observed(draft, draft.state.slots[slot_id], look)
    _remember(draft, event.node_id, clear)
    audit.observed(draft, event.node_id, looks)
    holders = dict.fromkeys(draft.state.slots[slot_id].lease_id for slot_id in looks)
    for lease in [draft.state.leases[lease_id] for lease_id in holders if lease_id is not None]:
        own = [
            Glance(draft.state.slots[hold.slot_id], looks[hold.slot_id], clear[hold.slot_id])
            for hold in lease.holds
            if hold.slot_id in looks
        ]
        if lease.state is LeaseState.ACTIVE and len(own) == len(lease.holds):
            idle.observed(draft, lease, own)


# --- inventory ------------------------------------------------------------------------------------------------------------


def _slot_reported(draft: Draft, node_id: NodeId, seen: SlotSeen, gpu: Gpu) -> None:
    old = draft.state.slots.get(seen.id)
    reason = Reason.of("device_reported")
    slot = replace(
        old or Slot(seen.id, seen.gpu_id, node_id, seen.kind, seen.model, seen.memory_mib),
        gpu_id=seen.gpu_id,
        node_id=node_id,
        kind=seen.kind,
        model=seen.model,
        memory_mib=seen.memory_mib,
        profile=seen.profile,
        index=seen.index,
        simulated=seen.simulated,
        generation=seen.generation,
        since_ms=draft.now if old is None else old.since_ms,
    )
    draft.put(slot, reason)
    if gpu.state != "ok":
        reason = Reason.of("device_lost", state=gpu.state)
        health.withdraw(draft, slot, reason, "device_lost")
    elif is_lost(slot):
        _find_again(draft, slot, draft.state.gpus[gpu.id])
    # The counts begin anew with the broker: less than before tells nothing.
    if old is not None and old.generation < slot.generation:
        _end_holder(draft, slot)


def _find_again(draft: Draft, slot: Slot, gpu: Gpu) -> None:
    if gpu.fault is None:
        health.let_back(draft, slot, Reason.of("device_back"))
    else:
        health.withdraw(draft, slot, health.sickness(gpu), "fault_seen")


def _end_holder(draft: Draft, slot: Slot) -> None:
    """The instance that was leased is gone, and this is another one under its id."""
    lease = None if slot.lease_id is None else draft.state.leases[slot.lease_id]
    if lease is not None and lease.state in _WITH_HOLDER and not lease.is_leaving:
        giveback.let_go(draft, lease, Reason.of("slot_renewed"))


def _why_missing(slot: Slot, gpu: Gpu | None) -> Reason:
    if gpu is None and slot.simulated:
        return Reason.of("no_longer_simulated")
    if gpu is None or gpu.state != "ok":
        return Reason.of("device_lost", state="lost" if gpu is None else gpu.state)
    return Reason.of("slot_removed")


# --- samples --------------------------------------------------------------------------------------------------------------


def _slot_observed(draft: Draft, slot: Slot, seen: SlotObservation) -> bool:
    """Whether the slot is clear; a free one that is not is quarantined, one without holder that is again becomes free."""
    if is_lost(slot):
        return False
    look = look_at(draft.state, slot, seen)
    if slot.gpu_id in draft.state.withdrawals and slot.state is SlotState.QUARANTINED:
        return look.is_clear is True
    if slot.state is SlotState.QUARANTINED and slot.lease_id is None and not is_sick(slot):
        slot = _held_back(draft, slot, look)
    if slot.state is SlotState.FREE:
        floor_mib = lowest_floor(draft.state, slot, seen)
        if floor_mib != slot.baseline_mib:
            slot = replace(slot, baseline_mib=floor_mib)
            draft.put(slot, Reason.of("floor_measured", floor_mib=floor_mib))
            look = look_at(draft.state, slot, seen)
        if look.is_clear is False:
            draft.move(slot, "foreign_use_seen", look.reason, reason=look.reason)
    elif slot.state is SlotState.LEASED:
        _tell_of_strangers(draft, slot, seen)
    elif slot.state is SlotState.DRAINING and look.is_clear is False:
        _say_why(draft, slot, look)
    return look.is_clear is True


def _held_back(draft: Draft, slot: Slot, look: Look) -> Slot:
    """A slot without holder that is held back: free again when it is clear, else with the reason of today."""
    if look.is_clear:
        return draft.move(slot, "seen_clear", look.reason, reason=None)
    if look.is_clear is False:
        _say_why(draft, slot, look)
    return slot


def _say_why(draft: Draft, slot: Slot, look: Look) -> None:
    """What is in the way on a slot that nobody gets; numbers that wobble are no news."""
    if slot.reason is None or slot.reason.code != look.reason.code:
        draft.put(replace(slot, reason=look.reason), look.reason)


def _tell_of_strangers(draft: Draft, slot: Slot, seen: SlotObservation) -> None:
    """A process beside the holder's that nobody can explain is told of, for as long as it is there."""
    assert slot.lease_id is not None
    lease = draft.state.leases[slot.lease_id]
    parked = (
        {other.session_id for other in residues_on(draft.state, slot)} if seen.processes else set()
    )
    strangers = [
        process
        for process in seen.processes or ()
        if process.holder_id is not None or process.owned_by.value == "foreign"
        if not belongs_to(process, lease) and process.holder_id not in parked
    ]
    reason = None
    if strangers:
        first = min(strangers, key=lambda process: process.pid)
        reason = Reason.of("process_on_slot", pid=first.pid, whose=first.owned_by.value)
    if reason != slot.reason:
        draft.put(replace(slot, reason=reason), reason or Reason.of("alone_again"))


def _remember(draft: Draft, node_id: NodeId, clear: Mapping[SlotId, bool]) -> None:
    old = draft.state.telemetry.get(node_id)
    clear_ms = {} if old is None else dict(old.clear_ms)
    for slot_id, is_clear in clear.items():
        if is_clear:
            clear_ms[slot_id] = draft.now
        else:
            clear_ms.pop(slot_id, None)
    uses = () if old is None else old.uses
    draft.put(Telemetry(node_id, draft.now, None, clear_ms, uses), Reason.of("observed"))


def _is_on(state: State, lease: Lease, node_id: NodeId) -> bool:
    """Whether the lease holds slots of the node."""
    return any(state.slots[hold.slot_id].node_id == node_id for hold in lease.holds)
