"""Who is on a slot, judged from one look at it.

A slot is clear when nobody is on it but parked holders with the residue that is noted for them, no more memory is in use than
on the empty slot, and nobody is left of a holder that is gone, since he could come on it yet. A residue is the quiet context of
the holder's own process: a child of it on the slot, or one that computes, is in the way as any other. Where processes cannot be
told (another pid namespace), memory alone decides, and the reason says so. What is unknown is None: neither clear nor taken.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from .events import ProcessOnSlot, ProcessOwner, SlotObservation
from .model import Lease, MiB, Owner, Reason, Slot, State
from .table import found


@dataclass(frozen=True, slots=True)
class Look:
    """`is_clear` None: it could not be told. `reason` says how it was judged, or what is in the way."""

    is_clear: bool | None
    reason: Reason


def look_at(state: State, slot: Slot, seen: SlotObservation, leaving: Lease | None = None) -> Look:
    """Judge one observation. `leaving` is a lease whose holder may stay with a quiet residue (it is about to be parked)."""
    residues = (
        tuple(residues_on(state, slot)) if seen.processes or _is_used(state, slot, seen) else ()
    )
    allowed_mib = floor_mib(state, slot) + sum(lease.residue_mib for lease in residues)
    if leaving is not None:
        residues += (leaving,)
        allowed_mib += state.limits.residue_mib_max
    explained = {state.sessions[lease.session_id].pid for lease in residues}
    return _judge(seen, explained, allowed_mib)


def residues_on(state: State, slot: Slot) -> Iterator[Lease]:
    """The leases whose holders left a residue on the slot (parked, or released while parked)."""
    return (lease for lease in found(Lease, state.leases, "residual") if slot.id in lease.home)


def admits(state: State, slot: Slot, owner: Owner) -> bool:
    """Whether the owner is let in: beside a parked holder's residue only that holder's own owner is."""
    return all(lease.owner == owner for lease in residues_on(state, slot))


def floor_mib(state: State, slot: Slot) -> int:
    """How much memory may be in use on the empty slot."""
    baseline = state.limits.floor_mib_max if slot.baseline_mib is None else slot.baseline_mib
    return baseline + state.limits.floor_tolerance_mib


def has_context(state: State, slot: Slot, lease: Lease, seen: SlotObservation) -> bool:
    """Whether the lease's holder is on the slot: by its processes, else by memory in use."""
    if is_mapped(seen):
        return any(belongs_to(process, lease) for process in seen.processes or ())
    return _is_used(state, slot, seen)


def belongs_to(process: ProcessOnSlot, lease: Lease) -> bool:
    return process.holder_id is not None and process.holder_id in (lease.session_id, lease.job_id)


def is_mapped(seen: SlotObservation) -> bool:
    """Whether it is known whose each process is."""
    return seen.processes is not None and not any(
        process.owned_by is ProcessOwner.UNMAPPED for process in seen.processes
    )


def residue_mib(state: State, slot: Slot, lease: Lease, seen: SlotObservation) -> int:
    """What the holder of `lease` left on the slot; at least 1 where its process is still listed."""
    is_listed = any(belongs_to(process, lease) for process in seen.processes or ())
    others = sum(other.residue_mib for other in residues_on(state, slot) if other.id != lease.id)
    used = 0 if seen.memory_used_mib is None else seen.memory_used_mib
    return max(used - (slot.baseline_mib or 0) - others, int(is_listed), 0)


def lowest_floor(state: State, slot: Slot, seen: SlotObservation) -> MiB | None:
    """The slot's baseline after a look at it while free: the least memory seen in use with nobody on it."""
    used = seen.memory_used_mib
    if seen.processes or used is None or used > state.limits.floor_mib_max:
        return slot.baseline_mib
    return used if slot.baseline_mib is None else MiB(min(used, slot.baseline_mib))


def _is_used(state: State, slot: Slot, seen: SlotObservation) -> bool:
    return seen.memory_used_mib is not None and seen.memory_used_mib > floor_mib(state, slot)


def _judge(seen: SlotObservation, explained: Collection[int], allowed_mib: int) -> Look:
    """`explained` are the processes that may have a quiet context there."""
    for process in seen.processes or ():
        if process.owned_by is not ProcessOwner.UNMAPPED and process.pid not in explained:
            return Look(
                False, Reason.of("process_on_slot", pid=process.pid, whose=process.owned_by.value)
            )
    if seen.left_behind:
        left = min(process.pid for process in seen.left_behind)
        return Look(False, Reason.of("left_behind", pid=left, count=len(seen.left_behind)))
    if explained and seen.busy:
        return Look(False, Reason.of("parked_computes"))
    used = seen.memory_used_mib
    if used is not None and used > allowed_mib:
        return Look(False, Reason.of("memory_in_use", memory_mib=used, floor_mib=allowed_mib))
    if seen.left_behind is None:
        return Look(None, Reason.of("not_observable"))
    if is_mapped(seen):
        return Look(True, Reason.of("seen_clear", judged_by="processes"))
    if used is not None:
        return Look(True, Reason.of("seen_clear", judged_by="memory"))
    return Look(None, Reason.of("not_observable"))
