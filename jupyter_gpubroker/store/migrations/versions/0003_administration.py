"""GPUs that admins took out, GPU time by owner and hour, and an index of what the rules took or would have taken."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_table(
        "withdrawals",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "usage",
        sa.Column("hour", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("held", sa.BigInteger(), nullable=False),
        sa.Column("productive", sa.BigInteger(), nullable=False),
        sa.Column("idle", sa.BigInteger(), nullable=False),
        sa.Column("wanted", sa.BigInteger(), nullable=False),
        sa.Column("outside", sa.BigInteger(), nullable=False),
        sa.Column("spared", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("hour", "owner"),
    )
    op.create_index(
        "audit_of_takings",
        "audit",
        ["wall_time"],
        unique=False,
        sqlite_where=sa.text("reason_code IN ('taken', 'only_advised', 'only_observed')"),
    )
