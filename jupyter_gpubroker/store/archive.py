"""Reads what happened: the audit log by what one looks for, and GPU time by owner. Beside the writer, never in its way.

Each question opens the database anew, for reading only (in WAL mode a reader waits for nobody and nobody for it). Blocking:
call it from a thread.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from .errors import StoreRefused
from .records import AuditRow, UsageRow
from .tables import TAKING_CODES, audit, usage

ROWS_MAX = 1_000
LOOKED_AT_MAX = 200_000


@dataclass(frozen=True, slots=True)
class Sought:
    """Which audit rows. `after` a sequence number the oldest first; else the newest, oldest first."""

    after: int | None = None
    limit: int = 100
    table: str | None = None
    entity_id: str | None = None
    event: str | None = None
    code: str | None = None


class Archive:
    def __init__(self, path: Path) -> None:
        url = f"sqlite:///file:{path}?mode=ro&uri=true"
        self._engine = sa.create_engine(url, poolclass=sa.NullPool)

    def audit(self, sought: Sought) -> tuple[list[AuditRow], int]:
        """One to ROWS_MAX rows, of the LOOKED_AT_MAX that are next or newest, and how far was looked. Raises StoreRefused."""
        limit = max(1, min(sought.limit, ROWS_MAX))
        query = sa.select(audit).where(*_conditions(sought)).limit(limit)
        with self._connected() as connection:
            newest = connection.execute(sa.select(sa.func.max(audit.c.sequence))).scalar() or 0
            if sought.after is None:
                query = query.where(audit.c.sequence > newest - LOOKED_AT_MAX)
                rows = connection.execute(query.order_by(audit.c.sequence.desc())).all()
                return [AuditRow(*row) for row in reversed(rows)], newest
            until = max(sought.after, min(sought.after + LOOKED_AT_MAX, newest))
            query = query.where(audit.c.sequence.between(sought.after + 1, until))
            found = [AuditRow(*row) for row in connection.execute(query.order_by(audit.c.sequence))]
        return found, found[-1].sequence if len(found) == limit else until

    def takings(self, since: str) -> list[AuditRow]:
        """What the rules took or would have taken since then (RFC 3339), oldest first."""
        codes: list[sa.ColumnElement[str]] = [
            sa.literal_column(f"'{code}'") for code in TAKING_CODES
        ]  # literally, as the index has them
        query = (
            sa.select(audit)
            .where(audit.c.reason_code.in_(codes), audit.c.wall_time >= since)
            .where(audit.c.entity_table == "leases")
            .order_by(audit.c.wall_time)
            .limit(LOOKED_AT_MAX)
        )
        with self._connected() as connection:
            return [AuditRow(*row) for row in connection.execute(query)]

    def usage(self, since_hour: int) -> Sequence[UsageRow]:
        """By owner, over all hours from that one on. `hour` is the first of them."""
        amounts = [sa.func.sum(usage.c[name]) for name in UsageRow.AMOUNTS]
        query = (
            sa.select(sa.func.min(usage.c.hour), usage.c.owner, *amounts)
            .where(usage.c.hour >= since_hour)
            .group_by(usage.c.owner)
            .order_by(usage.c.owner)
        )
        with self._connected() as connection:
            return [UsageRow(*row) for row in connection.execute(query)]

    @contextmanager
    def _connected(self) -> Iterator[sa.Connection]:
        try:
            with self._engine.connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise StoreRefused(f"The database cannot be read now: {error}.") from error


def _conditions(sought: Sought) -> Iterator[sa.ColumnElement[bool]]:
    wanted = {
        audit.c.entity_table: sought.table,
        audit.c.entity_id: sought.entity_id,
        audit.c.event: sought.event,
        audit.c.reason_code: sought.code,
    }
    return (column == value for column, value in wanted.items() if value is not None)
