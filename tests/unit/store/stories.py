"""Batches for the store, made without the core: what the store keeps does not depend on whether it makes sense."""

from __future__ import annotations

from typing import Any

from jupyter_gpubroker.core.decision import Decision, Drop, Put
from jupyter_gpubroker.core.model import Entity, Millis, Reason
from jupyter_gpubroker.store import ClockMark, Committed

MARK = ClockMark(Millis(70), "boot-1", 5_000, 1_795_000_000_000)
WHY = Reason.of("told", by="the test")


def put(*entities: Entity, event: str = "Happened") -> Committed:
    return _committed(event, tuple(Put(entity) for entity in entities))


def drop(*entities: Entity, event: str = "Happened") -> Committed:
    return _committed(event, tuple(Drop(type(entity), entity.id) for entity in entities))


def _committed(event: str, changes: tuple[Any, ...]) -> Committed:
    reasons = tuple(
        (change.entity_type.TABLE, change.id, WHY)
        for change in changes
        if change.entity_type.TABLE is not None
    )
    return Committed(event, "cause-1", Millis(60), Decision(changes, reasons=reasons))
