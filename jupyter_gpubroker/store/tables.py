"""The tables. Those of entities come from the codec's columns; `lease_slots`, `audit` and `meta` are written here.

A change here needs a migration (`migrations/versions`) and a new `SCHEMA`; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from .codec import CODECS, Codec, Column, ColumnKind

SCHEMA = "0005"

metadata = sa.MetaData()

_TYPES: Mapping[ColumnKind, type[sa.types.TypeEngine[Any]]] = {
    ColumnKind.TEXT: sa.Text,
    ColumnKind.JSON: sa.Text,
    ColumnKind.INTEGER: sa.BigInteger,
    ColumnKind.BOOLEAN: sa.Boolean,
}


def _entity_table(codec: Codec[Any]) -> sa.Table:
    key = codec.columns[0].name

    def column(source: Column) -> sa.Column[Any]:
        return sa.Column(
            source.name,
            _TYPES[source.kind],
            primary_key=source.name == key,
            nullable=source.nullable,
        )

    return sa.Table(codec.table, metadata, *map(column, codec.columns))


ENTITY_TABLES = {entity_type: _entity_table(codec) for entity_type, codec in CODECS.items()}

# Who held which slot in which epoch. Two constraints make the worst bugs impossible here too: a slot has at most one live
# lease, and an epoch of a slot is given once.
lease_slots = sa.Table(
    "lease_slots",
    metadata,
    sa.Column(
        "lease_id", sa.Text, sa.ForeignKey("leases.id", ondelete="CASCADE"), primary_key=True
    ),
    sa.Column("slot_id", sa.Text, primary_key=True),
    sa.Column("epoch", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("live", sa.Boolean, nullable=False),
    sa.UniqueConstraint("slot_id", "epoch", name="lease_slots_one_lease_per_epoch"),
)
sa.Index(
    "lease_slots_one_live_lease",
    lease_slots.c.slot_id,
    unique=True,
    sqlite_where=lease_slots.c.live,
)

audit = sa.Table(
    "audit",
    metadata,
    sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("broker_ms", sa.BigInteger, nullable=False),
    sa.Column("wall_time", sa.Text, nullable=False),
    sa.Column("event", sa.Text, nullable=False),
    sa.Column("cause_id", sa.Text, nullable=False),
    sa.Column("entity_table", sa.Text, nullable=False),
    sa.Column("entity_id", sa.Text, nullable=False),
    sa.Column("before", sa.Text),
    sa.Column("after", sa.Text),
    sa.Column("reason_code", sa.Text, nullable=False),
    sa.Column("reason_values", sa.Text, nullable=False),
    sa.Column("changed", sa.Text),
    sa.Column("hash", sa.Text, nullable=False),
    sa.Index("audit_by_entity", "entity_id", "sequence"),
)
# What the rules took, and would have taken: few rows of many.
TAKING_CODES = ("taken", "only_advised", "only_observed")
sa.Index(
    "audit_of_takings",
    audit.c.wall_time,
    sqlite_where=audit.c.reason_code.in_([sa.literal_column(f"'{code}'") for code in TAKING_CODES]),
)

# GPU time by owner and hour (Unix time / 3600 s), in thousandths of a GPU x ms.
usage = sa.Table(
    "usage",
    metadata,
    sa.Column("hour", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("owner", sa.Text, primary_key=True),
    sa.Column("held", sa.BigInteger, nullable=False),
    sa.Column("productive", sa.BigInteger, nullable=False),
    sa.Column("idle", sa.BigInteger, nullable=False),
    sa.Column("wanted", sa.BigInteger, nullable=False),
    sa.Column("outside", sa.BigInteger, nullable=False),
    sa.Column("spared", sa.BigInteger, nullable=False),
)

# One row. `incarnation` counts the brokers that opened this database; a commit of any but the newest fails. The clock's
# columns are null until the first commit.
meta = sa.Table(
    "meta",
    metadata,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("incarnation", sa.BigInteger, nullable=False),
    sa.Column("number", sa.BigInteger, nullable=False),
    sa.Column("audit_sequence", sa.BigInteger, nullable=False),
    sa.Column("audit_hash", sa.Text, nullable=False),
    sa.Column("broker_ms", sa.BigInteger),
    sa.Column("boot_id", sa.Text),
    sa.Column("boottime_ms", sa.BigInteger),
    sa.Column("wall_ms", sa.BigInteger),
    sa.CheckConstraint("id = 1", name="meta_one_row"),
)

# Alembic's own table, under a name that says what it is; written by us where the tables are made at once.
schema_version = sa.Table(
    "schema_version",
    metadata,
    sa.Column("version_num", sa.String(32), nullable=False),
    sa.PrimaryKeyConstraint("version_num", name="schema_version_pkc"),
)
