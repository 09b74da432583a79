"""The last look at each slot, for people who want live numbers. Decisions never read it."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from ..core.events import (
    Event,
    InventoryReported,
    NodeUnobserved,
    SlotObservation,
    SlotsObserved,
)
from ..core.model import NodeId, SlotId


class Latest:
    """Bounded by the number of slots. `has_looked`: an agent has looked at its slots since the start, or cannot."""

    def __init__(self) -> None:
        self._by_node: dict[NodeId, dict[SlotId, SlotObservation]] = {}
        self._fenced: dict[NodeId, bool] = {}
        self._looked = asyncio.Event()

    @property
    def has_looked(self) -> bool:
        return self._looked.is_set()

    async def first_look(self, at_most_s: float) -> None:
        """Return once there was a look, or when the time is over: a driver that hangs must not stop anybody."""
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._looked.wait(), at_most_s)

    @property
    def is_fenced(self) -> bool:
        """Whether on every node the kernel refuses to open what was not lent."""
        return bool(self._fenced) and all(self._fenced.values())

    def note(self, event: Event) -> None:
        """Remember what an event of the agent says."""
        if _is_look(event):
            self._looked.set()
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


def _is_look(event: Event) -> bool:
    """Whether what can be granted is known after it: the slots were seen, there are none, or they cannot be seen."""
    if isinstance(event, InventoryReported):
        return not event.slots
    return isinstance(event, SlotsObserved | NodeUnobserved)
