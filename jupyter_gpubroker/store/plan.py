"""What one transaction writes: a batch of decisions turned into rows. Pure; `store` runs it.

An entity that changed several times in the batch is written once, as it is in the end, but has an audit row for each
change. A batch that changes nothing that is kept makes an empty plan.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..core.decision import Change, Drop, last_number
from ..core.model import HOLDING, Entity, Lease, Reason
from .audit import Head, rfc3339, seal
from .codec import CODECS, Row, json_text
from .records import AuditRow, ClockMark, Committed

Key = tuple[type[Entity], str]
Kept = Mapping[Key, Entity]


@dataclass(frozen=True, slots=True)
class Scalars:
    """What is kept besides entities: the last number given to a request or job, and the newest audit row."""

    number: int
    head: Head


@dataclass(slots=True)
class Plan:
    """The outcome of a batch. `entities` are the last values by key, None where dropped."""

    scalars: Scalars
    entities: dict[Key, Entity | None] = field(default_factory=dict)
    audit: list[AuditRow] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not self.audit


@dataclass(slots=True)
class LeaseRows:
    """Changes of `lease_slots`: leases whose live rows go first, then the rows of what is held."""

    retired: list[Row] = field(default_factory=list)
    held: list[Row] = field(default_factory=list)


def make_plan(scalars: Scalars, kept: Kept, batch: Sequence[Committed], mark: ClockMark) -> Plan:
    planner = _Planner(scalars, kept, rfc3339(mark.wall_ms))
    for committed in batch:
        planner.add(committed)
    return planner.plan


def rows_by_table(
    plan: Plan,
) -> tuple[dict[type[Entity], list[Row]], dict[type[Entity], list[Row]]]:
    """The rows to put and the keys to drop, by entity type."""
    put: dict[type[Entity], list[Row]] = {}
    dropped: dict[type[Entity], list[Row]] = {}
    for (entity_type, entity_id), entity in plan.entities.items():
        if entity is None:
            dropped.setdefault(entity_type, []).append({"dropped": entity_id})
        else:
            put.setdefault(entity_type, []).append(CODECS[entity_type].to_row(entity))
    return put, dropped


def lease_rows(plan: Plan, kept: Kept) -> LeaseRows:
    """What the changed leases of a plan hold now. A lease's rows of earlier epochs stay, no longer live."""
    rows = LeaseRows()
    for key, after in plan.entities.items():
        if not isinstance(after, Lease):
            continue
        before = kept.get(key)
        live = after.state in HOLDING
        if isinstance(before, Lease):
            if before.holds == after.holds and (before.state in HOLDING) == live:
                continue
            rows.retired.append({"retired": after.id})
        rows.held += [
            {"lease_id": after.id, "slot_id": hold.slot_id, "epoch": hold.epoch, "live": live}
            for hold in after.holds
        ]
    return rows


class _Planner:
    """Goes through a batch with the newest audit row in hand."""

    def __init__(self, scalars: Scalars, kept: Kept, wall_time: str) -> None:
        self.plan = Plan(scalars)
        self._kept = kept
        self._wall_time = wall_time

    def add(self, committed: Committed) -> None:
        decision = committed.decision
        changes = [change for change in decision.changes if change.entity_type in CODECS]
        for change, (_, _, reason) in zip(changes, decision.reasons, strict=True):
            self._add(committed, change, reason)
        number = last_number(self.plan.scalars.number, changes)
        self.plan.scalars = replace(self.plan.scalars, number=number)

    def _add(self, committed: Committed, change: Change, reason: Reason) -> None:
        key = (change.entity_type, change.id)
        entities = self.plan.entities
        before = entities[key] if key in entities else self._kept.get(key)
        after = None if isinstance(change, Drop) else change.entity
        if after == before:
            return
        entities[key] = after
        codec = CODECS[change.entity_type]
        row = seal(
            self.plan.scalars.head,
            broker_ms=committed.now,
            wall_time=self._wall_time,
            event=committed.event,
            cause_id=committed.cause_id,
            entity_table=codec.table,
            entity_id=change.id,
            before=_word(before),
            after=_word(after),
            reason_code=reason.code,
            reason_values=json_text(dict(reason.values)),
            changed=None if after is None else json_text(codec.changed_fields(before, after)),
        )
        self.plan.audit.append(row)
        self.plan.scalars = replace(self.plan.scalars, head=Head(row.sequence, row.hash))


def _word(entity: Entity | None) -> str | None:
    """One word for where an entity stands: its state, `present` for rows without one, None where there is none."""
    if entity is None:
        return None
    state = getattr(entity, "state", "present")
    return str(getattr(state, "value", state))
