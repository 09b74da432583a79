"""The last look at each slot, for people who want live numbers. Decisions never read it."""

from __future__ import annotations

from ..core.events import Event, InventoryReported, SlotObservation, SlotsObserved
from ..core.model import NodeId, SlotId


class Latest:
    """Bounded by the number of slots. `has_looked` says whether any agent has spoken since the start."""

    def __init__(self) -> None:
        self._by_node: dict[NodeId, dict[SlotId, SlotObservation]] = {}
        self._fenced: dict[NodeId, bool] = {}
        self.has_looked = False

    @property
    def is_fenced(self) -> bool:
        """Whether on every node the kernel refuses to open what was not lent."""
        return bool(self._fenced) and all(self._fenced.values())

    def note(self, event: Event) -> None:
        """Remember what an event of the agent says."""
        self.has_looked = True
        if isinstance(event, InventoryReported):
            ids = {slot.id for slot in event.slots}
            seen = self._by_node.get(event.node_id, {})
            self._by_node[event.node_id] = {key: seen[key] for key in seen if key in ids}
        elif isinstance(event, SlotsObserved):
            seen = self._by_node.setdefault(event.node_id, {})
            self._fenced[event.node_id] = event.is_fenced
            seen.update((slot.slot_id, slot) for slot in event.slots)

    def of(self, node_id: NodeId, slot_id: SlotId) -> SlotObservation | None:
        return self._by_node.get(node_id, {}).get(slot_id)
