"""Every statement that changes the database, built once: they cost more to build than to run."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite import insert

from ..core.model import Entity, State
from .audit import Head
from .tables import ENTITY_TABLES, audit, lease_slots, meta

Statement = sa.sql.expression.UpdateBase


def _upsert(table: sa.Table) -> Statement:
    statement = insert(table)
    others = {c.name: statement.excluded[c.name] for c in table.columns if not c.primary_key}
    return statement.on_conflict_do_update(index_elements=list(table.primary_key), set_=others)


def _delete(table: sa.Table) -> Statement:
    (key,) = table.primary_key
    return sa.delete(table).where(key == sa.bindparam("dropped"))


PUT: Mapping[type[Entity], Statement] = MappingProxyType(
    {entity_type: _upsert(table) for entity_type, table in ENTITY_TABLES.items()}
)
DROP: Mapping[type[Entity], Statement] = MappingProxyType(
    {entity_type: _delete(table) for entity_type, table in ENTITY_TABLES.items()}
)
RETIRE_LEASE_SLOTS = (
    sa.update(lease_slots)
    .where(lease_slots.c.lease_id == sa.bindparam("retired"), lease_slots.c.live)
    .values(live=False)
)
HOLD_LEASE_SLOTS = _upsert(lease_slots)
APPEND_AUDIT = sa.insert(audit)
# Changes nothing where a newer broker has opened the database.
SET_META = (
    sa.update(meta)
    .where(meta.c.incarnation == sa.bindparam("mine"))
    .values(
        {
            c.name: sa.bindparam(c.name)
            for c in meta.c
            if c.name not in {"id", "incarnation", "mode"}
        }
    )
)
_first = insert(meta).values(
    id=1,
    incarnation=1,
    mode=State().mode.value,
    number=State().number,
    audit_sequence=Head().sequence,
    audit_hash=Head().hash,
)
ENTER = _first.on_conflict_do_update(
    index_elements=[meta.c.id], set_={"incarnation": meta.c.incarnation + 1}
).returning(*meta.c)
