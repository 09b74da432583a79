"""Slots at hand, and the best of them for a request.

Best fit keeps what is scarce: the smallest slot that serves, a slice before a whole GPU, the slots it had before, all on one
node, and there where the fewest others are left over. Nothing here knows who waits; that is `grant` and `claim`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from .model import Slot, SlotId, SlotKind, SlotSpec
from .place import fits, wanted_count
from .table import Shape, shape_of


class Pool:
    """Slots by node and shape, so that those of a large site are looked through by the handful."""

    def __init__(self, slots: Iterable[Slot] = ()) -> None:
        self._nodes: dict[str, dict[Shape, dict[SlotId, Slot]]] = {}
        for slot in slots:
            self.put(slot)

    def __bool__(self) -> bool:
        return bool(self._nodes)

    def __iter__(self) -> Iterator[Slot]:
        for shapes in self._nodes.values():
            for slots in shapes.values():
                yield from slots.values()

    def put(self, slot: Slot) -> None:
        shapes = self._nodes.setdefault(slot.node_id, {})
        shapes.setdefault(shape_of(slot), {})[slot.id] = slot

    def take(self, slot: Slot) -> None:
        shapes = self._nodes[slot.node_id]
        shape = shape_of(slot)
        del shapes[shape][slot.id]
        if not shapes[shape]:
            del shapes[shape]
        if not shapes:
            del self._nodes[slot.node_id]

    def counts(self, spec: SlotSpec) -> dict[str, int]:
        """How many that could take part in serving `spec` there are on each node that has any."""
        found = {node_id: self._count(node_id, spec) for node_id in self._nodes}
        return {node_id: count for node_id, count in found.items() if count}

    def on(self, node_id: str, spec: SlotSpec, preferred: Collection[SlotId] = ()) -> list[Slot]:
        """Those of one node that could take part, the best first."""
        shapes = self._nodes.get(node_id, {})
        if spec.pinned:
            named = [slots[one] for slots in shapes.values() for one in spec.pinned if one in slots]
            return sorted(named, key=lambda slot: slot.id)
        fitting = [slot for shape in shapes if fits(shape, spec) for slot in shapes[shape].values()]
        return sorted(fitting, key=lambda slot: _slot_order(slot, preferred))

    def best(self, spec: SlotSpec, preferred: Collection[SlotId] = ()) -> tuple[Slot, ...] | None:
        """The best slots of one node for `spec`, or None where no node has enough."""
        count = wanted_count(spec)
        counts = self.counts(spec)
        enough = [node_id for node_id in counts if counts[node_id] >= count]
        if not enough:
            return None

        def order(node_id: str) -> tuple[int, int, int, str]:
            best = self.on(node_id, spec, preferred)[:count]
            strange = sum(slot.id not in preferred for slot in best)
            return sum(slot.memory_mib for slot in best), strange, counts[node_id], node_id

        node_id = enough[0] if len(enough) == 1 else min(enough, key=order)
        return tuple(self.on(node_id, spec, preferred)[:count])

    def only(self, is_meant: Callable[[Slot], bool]) -> Pool:
        """A pool of some of these."""
        return Pool(slot for slot in self if is_meant(slot))

    def _count(self, node_id: str, spec: SlotSpec) -> int:
        shapes = self._nodes[node_id]
        if spec.pinned:
            return sum(slot_id in slots for slots in shapes.values() for slot_id in spec.pinned)
        return sum(len(slots) for shape, slots in shapes.items() if fits(shape, spec))


def _slot_order(slot: Slot, preferred: Collection[SlotId]) -> tuple[int, bool, bool, int, str]:
    is_whole = slot.kind is SlotKind.GPU
    return slot.memory_mib, is_whole, slot.id not in preferred, slot.index, slot.id
