"""Where a request fits: which slots could serve it, which are best, and why none ever will.

Best fit keeps what is scarce: the smallest slot that serves, a slice before a whole GPU, the slots it had before, all on one
node. Nothing here knows who waits; that is `queue`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from .model import Reason, Slot, SlotId, SlotKind, SlotSpec, SlotState, State
from .table import Shape, groups, shape_of

Pool = dict[Shape, dict[SlotId, Slot]]

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
    return slot.id in spec.pinned if spec.pinned else fits(slot, spec)


def fits(slot: Slot | Shape, spec: SlotSpec) -> bool:
    """Whether slots of this shape are what `spec`, which pins none, asks for."""
    if spec.model is not None and spec.model.casefold() not in slot.model.casefold():
        return False
    if spec.profile is not None:
        return slot.kind is SlotKind.MIG and slot.profile == spec.profile
    if spec.memory_mib_min is None or spec.count > 1:
        # One process can use only one MIG instance (pytorch/pytorch#130181), so several slots are whole GPUs.
        return slot.kind is SlotKind.GPU and slot.memory_mib >= (spec.memory_mib_min or 0)
    return slot.memory_mib >= spec.memory_mib_min


def wanted_count(spec: SlotSpec) -> int:
    """How many slots it asks for."""
    return len(spec.pinned) or spec.count


def serving(pool: Pool, spec: SlotSpec) -> dict[str, list[Slot]]:
    """By node, the slots of the pool that could take part in serving `spec`, whether or not they are enough."""
    by_node: dict[str, list[Slot]] = {}
    for shape, slots in pool.items():
        if spec.pinned:
            named = [slots[slot_id] for slot_id in spec.pinned if slot_id in slots]
            by_node.setdefault(shape.node_id, []).extend(named)
        elif fits(shape, spec):
            by_node.setdefault(shape.node_id, []).extend(slots.values())
    return by_node


def pooled(slots: Iterable[Slot]) -> Pool:
    """The slots by their shapes."""
    pool: Pool = {}
    for slot in slots:
        pool.setdefault(shape_of(slot), {})[slot.id] = slot
    return pool


def choose(
    pool: Pool, spec: SlotSpec, preferred: Collection[SlotId] = ()
) -> tuple[Slot, ...] | None:
    """The best slots of the pool for `spec`, or None where they do not suffice."""
    count = wanted_count(spec)

    def slot_order(slot: Slot) -> tuple[int, bool, bool, int, str]:
        is_whole = slot.kind is SlotKind.GPU
        return slot.memory_mib, is_whole, slot.id not in preferred, slot.index, slot.id

    def node_order(found: list[Slot]) -> tuple[int, int, int, str]:
        best = found[:count]
        strange = sum(slot.id not in preferred for slot in best)
        return sum(slot.memory_mib for slot in best), strange, len(found), best[0].node_id

    nodes = [found for found in serving(pool, spec).values() if len(found) >= count]
    for found in nodes:
        found.sort(key=slot_order)
    return tuple(min(nodes, key=node_order)[:count]) if nodes else None


def usable_shapes(state: State, spec: SlotSpec) -> frozenset[Shape]:
    """The shapes that could serve `spec`, on nodes with enough of them, now or when their holders are gone.

    Sick slots cannot serve.
    """
    counts: Counter[Shape] = Counter()
    if spec.pinned:
        slots = (state.slots[slot_id] for slot_id in spec.pinned if slot_id in state.slots)
        counts.update(shape_of(s) for s in slots if s.state is not SlotState.QUARANTINED)
    else:
        usable = groups(Slot, state.slots, "usable").items()
        counts.update({shape: number for shape, number in usable if fits(shape, spec)})
    of_node: Counter[str] = Counter()
    for shape, number in counts.items():
        of_node[shape.node_id] += number
    return frozenset(one for one in counts if of_node[one.node_id] >= wanted_count(spec))


def never_served(state: State, spec: SlotSpec) -> Reason | None:
    """Why no slot of the inventory will ever serve `spec`, with what there is; None where some could.

    A lost device may come back and counts; a slot that was partitioned away does not.
    """
    if spec.profile is not None and spec.count > 1:
        return Reason.of("several_slices", count=spec.count, profile=spec.profile)
    if usable_shapes(state, spec):
        return None
    slots = [slot for slot in state.slots.values() if not is_removed(slot)]
    nodes = serving(pooled(slots), spec).values()
    if any(len(found) >= wanted_count(spec) for found in nodes):
        return None
    return _what_is_missing(slots, spec) if slots else Reason.of("no_gpu")


def _what_is_missing(slots: Iterable[Slot], spec: SlotSpec) -> Reason:
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
