"""Where a request fits: which slots could serve it, and why none ever will.

Which of them are best is `pool`'s business, who waits for them `queue`'s.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from .model import Reason, Slot, SlotKind, SlotSpec, SlotState, State
from .table import Shape, groups, indexed, shape_of

_MEMO_MAX = 10_000

REMOVED_CODES = frozenset({"slot_removed", "no_longer_simulated"})
LOST_CODES = REMOVED_CODES | {"device_lost"}


def is_lost(slot: Slot) -> bool:
    """Whether the device is not there, or cannot be used, at present."""
    return (
        slot.state is SlotState.QUARANTINED
        and slot.reason is not None
        and slot.reason.code in LOST_CODES
    )


def is_sick(slot: Slot) -> bool:
    """Whether the device is there, but had a fault and is not trusted yet."""
    return (
        slot.state is SlotState.QUARANTINED
        and slot.reason is not None
        and slot.reason.code == "gpu_sick"
    )


def is_unusable(slot: Slot) -> bool:
    """Whether the slot cannot be granted however clear it is."""
    return is_lost(slot) or is_sick(slot)


def is_removed(slot: Slot) -> bool:
    """Whether it will not come back by itself: partitioned away, or no longer simulated."""
    return is_lost(slot) and slot.reason is not None and slot.reason.code in REMOVED_CODES


def is_forgotten(slot: Slot) -> bool:
    """Whether it was simulated once and nobody has to do with it: kept for its epoch alone, and not shown."""
    return slot.simulated and is_removed(slot) and slot.lease_id is None


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


class Usable(NamedTuple):
    """What could serve a request, now or when the holders are gone: shapes, all on nodes with enough of them."""

    shapes: frozenset[Shape]
    nodes: frozenset[str]


def usable(state: State, spec: SlotSpec) -> Usable:
    """Sick slots cannot serve. Worked out once for each inventory."""
    memo = indexed(Slot, state.slots).indices["usable"].memo
    found = memo.get(spec)
    if found is None:
        if len(memo) >= _MEMO_MAX:
            memo.clear()
        found = memo[spec] = _usable(state, spec)
    assert isinstance(found, Usable)
    return found


def _usable(state: State, spec: SlotSpec) -> Usable:
    if spec.pinned:
        slots = (state.slots[slot_id] for slot_id in spec.pinned if slot_id in state.slots)
        counts = Counter(shape_of(s) for s in slots if s.state is not SlotState.QUARANTINED)
    else:
        numbers = groups(Slot, state.slots, "usable").items()
        counts = Counter({shape: number for shape, number in numbers if fits(shape, spec)})
    return _on_nodes_with_enough(counts, spec)


def _on_nodes_with_enough(counts: Counter[Shape], spec: SlotSpec) -> Usable:
    of_node: Counter[str] = Counter()
    for shape, number in counts.items():
        of_node[shape.node_id] += number
    nodes = frozenset(one for one, number in of_node.items() if number >= wanted_count(spec))
    return Usable(frozenset(shape for shape in counts if shape.node_id in nodes), nodes)


def never_served(state: State, spec: SlotSpec) -> Reason | None:
    """Why no slot of the inventory will ever serve `spec`, with what there is; None where some could.

    A lost device may come back and counts; a slot that was partitioned away does not.
    """
    if spec.profile is not None and spec.count > 1:
        return Reason.of("several_slices", count=spec.count, profile=spec.profile)
    if usable(state, spec).nodes:
        return None
    slots = [slot for slot in state.slots.values() if not is_removed(slot)]
    counts = Counter(shape_of(slot) for slot in slots if serves(slot, spec))
    if _on_nodes_with_enough(counts, spec).nodes:
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
    """What there is, in a few words: `2 x NVIDIA H200 (140 GiB), NVIDIA A100 3g.40gb (40 GiB, simulated)`."""
    counts: dict[str, int] = {}
    for slot in sorted(slots, key=lambda slot: (slot.kind.value, -slot.memory_mib, slot.id)):
        name = " ".join(filter(None, (slot.model, slot.profile)))
        simulated = ", simulated" if slot.simulated else ""
        words = f"{name} ({round(slot.memory_mib / 1024)} GiB{simulated})"
        counts[words] = counts.get(words, 0) + 1
    parts = (words if count == 1 else f"{count} x {words}" for words, count in counts.items())
    return ", ".join(parts) or "-"
