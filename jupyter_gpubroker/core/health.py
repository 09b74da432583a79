"""Sick GPUs: what a fault means, when the GPU leaves the pool, and when it is trusted again.

The table says for each fault what helps (`rules.FaultRule`; sites change its rows). What the user's own program caused is told
to its holder and nothing else happens. Anything worse withdraws the GPU's slots: nobody new is let in, and who is there is
told and may finish. A GPU comes back by itself after its probation, counted from the last fault, unless the driver still asks
for more; a fault that is seen again begins it anew.
"""

from __future__ import annotations

from dataclasses import replace

from .draft import Draft
from .events import GpuFault, GpuSeen, GpusObserved
from .model import Fault, Gpu, LeaseState, Millis, Reason, Slot, SlotState, State
from .place import is_lost, is_sick
from .rules import FaultRule, Remedy

RECOVERY = "recovery"
_HELD = frozenset({LeaseState.GRANTED, LeaseState.ACTIVE})
_WITHDRAWS = frozenset({Remedy.DRAIN, Remedy.RESET, Remedy.REBOOT})
_RECOVERY_REMEDY = {
    "drain_p2p": Remedy.DRAIN,
    "node_reboot": Remedy.REBOOT,
    "system_reboot": Remedy.REBOOT,
}


def observed(draft: Draft, event: GpusObserved) -> None:
    for seen in event.gpus:
        if seen.gpu_id in draft.state.gpus:
            _recovery_seen(draft, seen)
            for fault in seen.faults:
                _fault_seen(draft, seen, fault)


def slots_of(state: State, gpu: Gpu) -> list[Slot]:
    return [slot for slot in state.slots.values() if slot.gpu_id == gpu.id]


def rule_for(state: State, kind: str, code: int) -> FaultRule:
    """The row of this very fault, else the one of its kind."""
    rules = state.faults
    return rules.get(f"{kind}-{code}") or rules.get(kind) or FaultRule(kind, Remedy.DRAIN)


def well_from_ms(gpu: Gpu) -> Millis | None:
    """From when on the GPU is trusted again if nothing new is seen; None where it is well, or the driver asks for help."""
    fault = gpu.fault
    if fault is None or fault.is_open:
        return None
    return Millis(fault.seen_ms + fault.probation_ms)


def probation_over(draft: Draft, gpu: Gpu) -> None:
    """It is trusted again; or its time begins anew, if it cannot be used now."""
    assert gpu.fault is not None
    node = draft.state.telemetry.get(gpu.node_id)
    if gpu.state != "ok" or node is None or node.problem is not None:
        fault = replace(gpu.fault, seen_ms=draft.now)
        draft.put(replace(gpu, fault=fault), _on_probation(fault))
        return
    trust(draft, gpu, Reason.of("gpu_well", probation_ms=gpu.fault.probation_ms))


def trust(draft: Draft, gpu: Gpu, reason: Reason) -> None:
    """The fault is over: its holders go on, and its other slots are free once they are seen clear."""
    draft.put(replace(gpu, fault=None), reason)
    for slot in slots_of(draft.state, gpu):
        if is_sick(slot):
            let_back(draft, slot, reason)


def let_back(draft: Draft, slot: Slot, reason: Reason) -> None:
    """A slot whose device can be used again. A holder goes on; one without must be seen clear first."""
    lease = None if slot.lease_id is None else draft.state.leases[slot.lease_id]
    if lease is not None and lease.state in _HELD:
        draft.move(slot, "device_back", reason, reason=None)
        draft.put(replace(lease, cause=None), reason)
    else:
        draft.put(replace(slot, reason=reason), reason)


def sickness(gpu: Gpu) -> Reason:
    """Why the slots of a sick GPU are withdrawn, and what helps."""
    fault = gpu.fault
    assert fault is not None
    return Reason.of("gpu_sick", error=_error(fault.kind, fault.code), remedy=fault.remedy.value)


def withdraw(draft: Draft, slot: Slot, reason: Reason, arc: str) -> None:
    """The slot cannot be granted; its holder keeps it and is told why."""
    if slot.state is SlotState.QUARANTINED:
        draft.put(replace(slot, reason=reason), reason)
    else:
        draft.move(slot, arc, reason, reason=reason)
    _tell(draft, slot, reason)


# --- faults ---------------------------------------------------------------------------------------------------------------


def _fault_seen(draft: Draft, seen: GpuSeen, fault: GpuFault) -> None:
    gpu = draft.state.gpus[seen.gpu_id]
    rule = rule_for(draft.state, fault.kind, fault.code)
    if rule.remedy is Remedy.RESTART_APP:
        reason = Reason.of("program_fault", error=_error(fault.kind, fault.code))
        for slot in slots_of(draft.state, gpu):
            if fault.slot_id in (None, slot.id):
                _tell(draft, slot, reason)
    elif rule.remedy in _WITHDRAWS:
        is_open = gpu.fault is not None and gpu.fault.is_open
        new = Fault(fault.kind, fault.code, rule.remedy, draft.now, rule.probation_ms, is_open)
        _fall_sick(draft, gpu, new)


def _recovery_seen(draft: Draft, seen: GpuSeen) -> None:
    """What the driver asks for is a state: it tells of faults that nobody saw, and of their end."""
    gpu = draft.state.gpus[seen.gpu_id]
    if seen.recovery_action is None:
        return
    if seen.recovery_action == "none":
        if gpu.fault is not None and gpu.fault.is_open:
            fault = replace(gpu.fault, is_open=False, seen_ms=draft.now)
            draft.put(replace(gpu, fault=fault), _on_probation(fault))
        return
    rule = rule_for(draft.state, RECOVERY, 0)
    remedy = _RECOVERY_REMEDY.get(seen.recovery_action, Remedy.RESET)
    if gpu.fault is None or not gpu.fault.is_open:
        _fall_sick(
            draft, gpu, Fault(RECOVERY, 0, remedy, draft.now, rule.probation_ms, is_open=True)
        )


def _fall_sick(draft: Draft, gpu: Gpu, fault: Fault) -> None:
    gpu = replace(gpu, fault=fault)
    reason = sickness(gpu)
    draft.put(gpu, reason)
    for slot in slots_of(draft.state, gpu):
        if not is_lost(slot):
            withdraw(draft, slot, reason, "fault_seen")


def _on_probation(fault: Fault) -> Reason:
    return Reason.of("gpu_on_probation", probation_ms=fault.probation_ms)


def _error(kind: str, code: int) -> str:
    return f"Xid {code}" if kind == "xid" else kind


def _tell(draft: Draft, slot: Slot, reason: Reason) -> None:
    lease = None if slot.lease_id is None else draft.state.leases[slot.lease_id]
    if lease is not None and lease.state in _HELD:
        draft.put(replace(lease, cause=reason), reason)
