"""Where a request fits: which slots could serve it, which are best, and why none ever will.

Best fit keeps what is scarce: the smallest slot that serves, a slice before a whole GPU, the slots it had before, all on one
node. Nothing here knows who waits; that is `queue`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from .model import Reason, Slot, SlotId, SlotKind, SlotSpec, SlotState, State

LOST_CODES = frozenset({"device_lost", "slot_removed"})


def is_lost(slot: Slot) -> bool:
    """Whether the device is not there, or cannot be used, at present."""
    return (
        slot.state is SlotState.QUARANTINED
        and slot.reason is not None
        and slot.reason.code in LOST_CODES
    )


def is_removed(slot: Slot) -> bool:
    """Whether its GPU is there but no longer offers this slot (it was partitioned anew)."""
    return is_lost(slot) and slot.reason is not None and slot.reason.code == "slot_removed"


def serves(slot: Slot, spec: SlotSpec) -> bool:
    """Whether the slot could be (one of) those that `spec` asks for."""
    if spec.pinned:
        return slot.id in spec.pinned
    if spec.model is not None and spec.model.casefold() not in slot.model.casefold():
        return False
    if spec.profile is not None:
        return slot.kind is SlotKind.MIG and slot.profile == spec.profile
    if spec.memory_mib_min is None or spec.count > 1:
        # One process can use only one MIG instance (pytorch/pytorch#130181), so several slots are whole GPUs.
        return slot.kind is SlotKind.GPU and slot.memory_mib >= (spec.memory_mib_min or 0)
    return slot.memory_mib >= spec.memory_mib_min


def serving_slots(slots: Iterable[Slot], spec: SlotSpec) -> tuple[Slot, ...]:
    """All slots that could take part in serving `spec`: on each node either enough of them or none."""
    by_node = _by_node(slots, spec)
    enough = (found for found in by_node.values() if len(found) >= _count(spec))
    return tuple(slot for found in enough for slot in found)


def choose(
    slots: Iterable[Slot], spec: SlotSpec, preferred: Collection[SlotId] = ()
) -> tuple[Slot, ...] | None:
    """The best of `slots` for `spec`, or None where they do not suffice."""

    def slot_order(slot: Slot) -> tuple[int, bool, bool, int, str]:
        is_whole = slot.kind is SlotKind.GPU
        return slot.memory_mib, is_whole, slot.id not in preferred, slot.index, slot.id

    def node_order(found: list[Slot]) -> tuple[int, int, int, str]:
        best = found[: _count(spec)]
        strange = sum(slot.id not in preferred for slot in best)
        return sum(slot.memory_mib for slot in best), strange, len(found), best[0].node_id

    nodes = [sorted(found, key=slot_order) for found in _by_node(slots, spec).values()]
    nodes = [found for found in nodes if len(found) >= _count(spec)]
    return tuple(min(nodes, key=node_order)[: _count(spec)]) if nodes else None


def never_served(state: State, spec: SlotSpec) -> Reason | None:
    """Why no slot of the inventory will ever serve `spec`, with what there is; None where some could.

    A lost device may come back and counts; a slot that was partitioned away does not.
    """
    if spec.profile is not None and spec.count > 1:
        return Reason.of("several_slices", count=spec.count, profile=spec.profile)
    slots = [slot for slot in state.slots.values() if not is_removed(slot)]
    if not slots:
        return Reason.of("no_gpu")
    if serving_slots(slots, spec):
        return None
    available = describe(slots)
    if spec.model is not None and not any(
        spec.model.casefold() in slot.model.casefold() for slot in slots
    ):
        return Reason.of("unknown_model", model=spec.model, available=available)
    if spec.profile is not None and not any(slot.profile == spec.profile for slot in slots):
        return Reason.of("unknown_profile", profile=spec.profile, available=available)
    if spec.count > 1:
        return Reason.of("too_many_slots", count=spec.count, available=available)
    if spec.memory_mib_min is not None:
        return Reason.of("too_much_memory", memory_mib=spec.memory_mib_min, available=available)
    return Reason.of("no_whole_gpu", available=available)


def describe(slots: Iterable[Slot]) -> str:
    """What there is, in a few words: `2 x NVIDIA H200 (140 GiB), NVIDIA A100 3g.40gb (40 GiB)`."""
    counts: dict[str, int] = {}
    for slot in sorted(slots, key=lambda slot: (slot.kind.value, -slot.memory_mib, slot.id)):
        name = " ".join(filter(None, (slot.model, slot.profile)))
        words = f"{name} ({round(slot.memory_mib / 1024)} GiB)"
        counts[words] = counts.get(words, 0) + 1
    parts = (words if count == 1 else f"{count} x {words}" for words, count in counts.items())
    return ", ".join(parts) or "-"


def _count(spec: SlotSpec) -> int:
    return len(spec.pinned) or spec.count


def _by_node(slots: Iterable[Slot], spec: SlotSpec) -> Mapping[str, list[Slot]]:
    by_node: dict[str, list[Slot]] = {}
    for slot in slots:
        if serves(slot, spec):
            by_node.setdefault(slot.node_id, []).append(slot)
    return by_node
