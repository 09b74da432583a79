"""The mode becomes a row, changed and audited like any other; sessions know groups, limits when to stop a stranger."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "modes",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("gpus", sa.Text(), nullable=False),
        sa.Column("groups", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    # SQLite wants a default for the rows that are there, which the table shall not keep.
    with op.batch_alter_table("sessions") as sessions:
        sessions.add_column(sa.Column("groups", sa.Text(), nullable=False, server_default="[]"))
    with op.batch_alter_table("sessions") as sessions:
        sessions.alter_column("groups", server_default=None)
    with op.batch_alter_table("limits") as limits:
        limits.add_column(_number("unleased_stop_ms", 0))
        limits.add_column(_number("unleased_kill_ms", 10_000))
    with op.batch_alter_table("limits") as limits:
        limits.alter_column("unleased_stop_ms", server_default=None)
        limits.alter_column("unleased_kill_ms", server_default=None)
    op.drop_column("meta", "mode")


def _number(name: str, value: int) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger(), nullable=False, server_default=str(value))
