"""The place in line that a request takes over from a process that crashed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    with op.batch_alter_table("requests", recreate="always") as requests:
        requests.add_column(sa.Column("place_ms", sa.BigInteger(), nullable=True))
