"""Every statement that changes the database, turned into SQL once: SQLAlchemy does not cache upserts, and building one
costs ten times what running it does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType

import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.dialects.sqlite import insert

from ..core.model import Entity, State
from .audit import Head
from .codec import Row
from .records import UsageRow
from .tables import ENTITY_TABLES, audit, lease_slots, meta, usage

_DIALECT = sqlite.dialect()


class Prepared:
    """A statement whose SQL is made at its first use. Every value of it is a parameter."""

    def __init__(self, statement: sa.sql.expression.UpdateBase) -> None:
        self._statement = statement

    def run(self, connection: sa.Connection, rows: Sequence[Row]) -> int:
        """Run it once for each row; the number of rows changed."""
        sql, names = self._sql
        values = [tuple([row[name] for name in names]) for row in rows]
        return connection.exec_driver_sql(sql, values).rowcount

    @cached_property
    def _sql(self) -> tuple[str, Sequence[str]]:
        compiled = self._statement.compile(dialect=_DIALECT)
        assert isinstance(compiled, sa.sql.compiler.SQLCompiler)
        assert compiled.positiontup is not None
        return compiled.string, compiled.positiontup


def _upsert(table: sa.Table) -> Prepared:
    statement = insert(table)
    others = {c.name: statement.excluded[c.name] for c in table.columns if not c.primary_key}
    return Prepared(
        statement.on_conflict_do_update(index_elements=list(table.primary_key), set_=others)
    )


def _delete(table: sa.Table) -> Prepared:
    (key,) = table.primary_key
    return Prepared(sa.delete(table).where(key == sa.bindparam("dropped")))


PUT: Mapping[type[Entity], Prepared] = MappingProxyType(
    {entity_type: _upsert(table) for entity_type, table in ENTITY_TABLES.items()}
)
DROP: Mapping[type[Entity], Prepared] = MappingProxyType(
    {entity_type: _delete(table) for entity_type, table in ENTITY_TABLES.items()}
)
RETIRE_LEASE_SLOTS = Prepared(
    sa.update(lease_slots)
    .where(lease_slots.c.lease_id == sa.bindparam("retired"), lease_slots.c.live)
    .values(live=sa.false())
)
HOLD_LEASE_SLOTS = _upsert(lease_slots)
APPEND_AUDIT = Prepared(sa.insert(audit))
# What is there is added to.
_more = insert(usage)
ADD_USAGE = Prepared(
    _more.on_conflict_do_update(
        index_elements=list(usage.primary_key),
        set_={name: usage.c[name] + _more.excluded[name] for name in UsageRow.AMOUNTS},
    )
)
# Changes nothing where a newer broker has opened the database.
SET_META = Prepared(
    sa.update(meta)
    .where(meta.c.incarnation == sa.bindparam("mine"))
    .values({c.name: sa.bindparam(c.name) for c in meta.c if c.name not in {"id", "incarnation"}})
)
_first = insert(meta).values(
    id=1,
    incarnation=1,
    number=State().number,
    audit_sequence=Head().sequence,
    audit_hash=Head().hash,
)
ENTER = _first.on_conflict_do_update(
    index_elements=[meta.c.id], set_={"incarnation": meta.c.incarnation + 1}
).returning(*meta.c)
