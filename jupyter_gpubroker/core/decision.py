"""What a step decides, as data: changes of entities, effects for the edges, reasons for the audit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .effects import Effect
from .model import Entity, Job, Reason, Request, State
from .table import SINGLE_FIELDS, STATE_FIELDS, Table


@dataclass(frozen=True, slots=True)
class Put:
    """The entity is new, or has these values now."""

    entity: Entity

    @property
    def entity_type(self) -> type[Entity]:
        return type(self.entity)

    @property
    def id(self) -> str:
        return self.entity.id


@dataclass(frozen=True, slots=True)
class Drop:
    """The entity is forgotten."""

    entity_type: type[Entity]
    id: str


Change = Put | Drop
AuditReason = tuple[str, str, Reason]  # table, id, why


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows from one event.

    changes: in order; an entity may change more than once.
    effects: to be run once the changes are durable.
    reasons: one for each change that is kept (`TABLE` is not None), in the order of the changes.
    """

    changes: tuple[Change, ...] = ()
    effects: tuple[Effect, ...] = ()
    reasons: tuple[AuditReason, ...] = ()


def apply(state: State, changes: Sequence[Change]) -> State:
    """The next state. `state` stays as it is."""
    if not changes:
        return state
    fields: dict[str, Any] = {}
    for change in changes:
        if isinstance(change, Put) and change.entity_type in SINGLE_FIELDS:
            fields[SINGLE_FIELDS[change.entity_type]] = change.entity
            continue
        name = STATE_FIELDS[change.entity_type]
        table = fields.get(name)
        if table is None:
            table = fields[name] = Table(change.entity_type, getattr(state, name))
        if isinstance(change, Put):
            table.put(change.entity)
        else:
            table.drop(change.id)
    return replace(state, number=last_number(state.number, changes), **fields)


def last_number(number: int, changes: Sequence[Change]) -> int:
    """The last number given to a request or job, after these changes."""
    given = (
        change.entity.number
        for change in changes
        if isinstance(change, Put) and isinstance(change.entity, (Request, Job))
    )
    return max(number, *given, number)
