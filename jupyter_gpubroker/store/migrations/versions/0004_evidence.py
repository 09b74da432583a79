"""What verdicts rest on, faults of GPUs and what they mean, and the limits that go with both."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "faults",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("remedy", sa.Text(), nullable=False),
        sa.Column("probation_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    _add("gpus", {}, sa.Column("fault", sa.Text(), nullable=True))
    _add("slots", {"generation": 0}, sa.Column("generation", sa.BigInteger(), nullable=False))
    _add(
        "leases",
        {},
        sa.Column("evidence", sa.Text(), nullable=True),
        sa.Column("late", sa.Text(), nullable=True),
    )
    _point_at_new_leases()
    _add(
        "policies",
        {"grace_ms": 0, "serving_ms": 4 * 3_600_000, "host_decides": False},
        sa.Column("grace_ms", sa.BigInteger(), nullable=False),
        sa.Column("serving_ms", sa.BigInteger(), nullable=False),
        sa.Column("host_decides", sa.Boolean(), nullable=False),
    )
    _add(
        "limits",
        {"settle_ms": 10_000, "patience_ms": 60_000, "host_ms": 10_000, "suspect_ms": 600_000},
        sa.Column("settle_ms", sa.BigInteger(), nullable=False),
        sa.Column("patience_ms", sa.BigInteger(), nullable=False),
        sa.Column("host_ms", sa.BigInteger(), nullable=False),
        sa.Column("suspect_ms", sa.BigInteger(), nullable=False),
    )


def _add(table: str, values: dict[str, Any], *columns: sa.Column[Any]) -> None:
    """Add columns, with `values` in the rows there are. SQLite itself adds them behind the keys, and only with a default for
    ever; so the table is made anew."""
    connection = op.get_bind()
    old = sa.Table(table, sa.MetaData(), autoload_with=connection)
    op.rename_table(table, f"old_{table}")
    kept = [sa.Column(one.name, one.type, nullable=one.nullable) for one in old.columns]
    keys = sa.PrimaryKeyConstraint(*[one.name for one in old.primary_key])
    new = op.create_table(table, *kept, *columns, keys)
    _move(connection, table, new, [one.name for one in old.columns], values)
    if table != "leases":
        op.drop_table(f"old_{table}")


def _point_at_new_leases() -> None:
    """SQLite lets a reference follow the table that was renamed, so what refers to leases is made anew as well."""
    connection = op.get_bind()
    op.drop_index("lease_slots_one_live_lease", "lease_slots")
    op.rename_table("lease_slots", "old_lease_slots")
    new = op.create_table(
        "lease_slots",
        sa.Column("lease_id", sa.Text(), nullable=False),
        sa.Column("slot_id", sa.Text(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("live", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("lease_id", "slot_id", "epoch"),
        sa.UniqueConstraint("slot_id", "epoch", name="lease_slots_one_lease_per_epoch"),
        sa.ForeignKeyConstraint(["lease_id"], ["leases.id"], ondelete="CASCADE"),
    )
    _move(connection, "lease_slots", new, ["lease_id", "slot_id", "epoch", "live"], {})
    op.drop_table("old_lease_slots")
    op.drop_table("old_leases")
    op.create_index(
        "lease_slots_one_live_lease",
        "lease_slots",
        ["slot_id"],
        unique=True,
        sqlite_where=sa.text("live"),
    )


def _move(
    connection: sa.Connection, table: str, new: Any, names: list[str], values: dict[str, Any]
) -> None:
    old = sa.table(f"old_{table}", *map(sa.column, names))
    rows = sa.select(*old.columns, *[sa.literal(value) for value in values.values()])
    connection.execute(new.insert().from_select([*names, *values], rows))
