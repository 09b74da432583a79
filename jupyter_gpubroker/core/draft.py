"""A decision in the making: a state that may be changed, and the record of how.

`Draft.state` is always the state as changed so far, so every rule reads one plain `State`. Its tables are copied at their
first change; the state it began with is never touched. Entities are values: fetch one anew after anything else changed it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from . import machine
from .decision import AuditReason, Change, Decision, Drop, Put
from .effects import Effect, InspectSlots
from .model import (
    Entity,
    Job,
    Lease,
    Millis,
    Reason,
    Request,
    Session,
    Slot,
    SlotId,
    State,
)
from .table import SINGLE_FIELDS, STATE_FIELDS, Table

M = TypeVar("M", bound=Slot | Session | Request | Lease | Job)

_MACHINES: Mapping[type, machine.Table[Any]] = {
    Slot: machine.SLOT,
    Session: machine.SESSION,
    Request: machine.REQUEST,
    Lease: machine.LEASE,
    Job: machine.JOB,
}


class Draft:
    """Made for one event at one moment; `decision` ends it."""

    def __init__(self, state: State, now: Millis) -> None:
        self.state = state
        self.now = now
        self._tables: dict[str, Table[Any, Any]] = {}
        self._changes: list[Change] = []
        self._reasons: list[AuditReason] = []
        self._effects: dict[Effect, None] = {}
        self._to_inspect: dict[SlotId, None] = {}

    @property
    def has_changed(self) -> bool:
        """Whether anything changed that is kept."""
        return bool(self._reasons)

    def put(self, entity: Entity, reason: Reason) -> None:
        """Record the entity's new values; none where it has them already."""
        single = SINGLE_FIELDS.get(type(entity))
        if single is not None:
            if entity == getattr(self.state, single):
                return
            changed: dict[str, Any] = {single: entity}
            self.state = replace(self.state, **changed)
        else:
            if self._known(type(entity)).get(entity.id) == entity:
                return
            self._table(type(entity)).put(entity)
        self._changes.append(Put(entity))
        if entity.TABLE is not None:
            self._reasons.append((entity.TABLE, entity.id, reason))

    def drop(self, entity: Entity, reason: Reason) -> None:
        self._table(type(entity)).drop(entity.id)
        self._changes.append(Drop(type(entity), entity.id))
        if entity.TABLE is not None:
            self._reasons.append((entity.TABLE, entity.id, reason))

    def move(self, entity: M, arc: str, why: Reason, /, **fields: Any) -> M:
        """Take the arc of the entity's state table. Raises InvalidTransition where there is none."""
        state = machine.move(_MACHINES[type(entity)], entity.state, arc)
        fields["ended_ms" if isinstance(entity, Request) else "since_ms"] = self.now
        moved = replace(entity, state=state, **fields)
        self.put(moved, why)
        return moved

    def run(self, effect: Effect) -> None:
        self._effects[effect] = None

    def inspect(self, slot_ids: tuple[SlotId, ...]) -> None:
        """Have these slots looked at now."""
        self._to_inspect.update(dict.fromkeys(slot_ids))

    def changed_leases(self) -> list[Lease]:
        """The leases that this decision has touched so far, as they are now."""
        ids = dict.fromkeys(
            change.entity.id
            for change in self._changes
            if isinstance(change, Put) and isinstance(change.entity, Lease)
        )
        return [self.state.leases[one] for one in ids if one in self.state.leases]

    def next_number(self) -> int:
        self.state = replace(self.state, number=self.state.number + 1)
        return self.state.number

    def decision(self) -> Decision:
        inspect = (InspectSlots(tuple(self._to_inspect)),) if self._to_inspect else ()
        effects = (*self._effects, *inspect)
        return Decision(tuple(self._changes), effects, tuple(self._reasons))

    def _known(self, entity_type: type[Entity]) -> Mapping[Any, Any]:
        known: Mapping[Any, Any] = getattr(self.state, STATE_FIELDS[entity_type])
        return known

    def _table(self, entity_type: type[Entity]) -> Table[Any, Any]:
        name = STATE_FIELDS[entity_type]
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = Table(entity_type, self._known(entity_type))
            changed: dict[str, Any] = {name: table}
            self.state = replace(self.state, **changed)
        return table
