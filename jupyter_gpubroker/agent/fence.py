"""The highest epoch seen of each slot: an older holder is never taken for the present one.

A broker whose database was restored from a backup would believe in leases that have long ended. The agent remembers
more than that, and leaves such a slot unobserved until the broker has caught up.
"""

from __future__ import annotations

from ..core.model import SlotId


class Fence:
    def __init__(self) -> None:
        self._highest: dict[SlotId, int] = {}

    def admits(self, slot_id: SlotId, epoch: int) -> bool:
        """Whether nobody has held the slot later; remembers the epoch if so."""
        if epoch < self._highest.get(slot_id, 0):
            return False
        self._highest[slot_id] = epoch
        return True
