"""The store: state as last committed, and the one transaction per batch that changes it.

One thread at a time is inside (a lock sees to it), so a reader never sees half a batch. A failed commit is final: what is
durable is unknown, every later commit fails too, and the process must end.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from ..core.model import Entity, State
from ..core.table import SINGLE_FIELDS
from . import statements
from .audit import Head, first_broken, to_row
from .codec import CODECS, Row
from .errors import StoreFailed, StoreRefused
from .plan import Key, Plan, Scalars, lease_rows, make_plan, rows_by_table
from .records import AuditRow, ClockMark, Committed, UsageRow
from .schema import prepare
from .sqlite import DatabaseFile
from .tables import ENTITY_TABLES, audit

HISTORY_ROWS_MAX = 500


class Store:
    """A database of which this process is the only writer. Made by `open`.

    `incarnation` numbers the brokers that opened it; `mark` is the clock's at the newest commit, None in a new database.
    """

    def __init__(self, file: DatabaseFile, engine: sa.Engine) -> None:
        self._file = file
        self._engine = engine
        self._lock = threading.Lock()
        self._failed = False
        self._connection = engine.connect()
        with self._connection.begin():
            prepare(self._connection)
            row = self._connection.execute(statements.ENTER).one()
            self._kept = _read_entities(self._connection)
        self.incarnation: int = row.incarnation
        self.mark = _mark(row)
        self._scalars = Scalars(row.number, Head(row.audit_sequence, row.audit_hash))

    @classmethod
    def open(cls, path: Path) -> Store:
        """Open the database at `path`, made if it is not there. Raises StoreRefused with the next step."""
        file = DatabaseFile(path)
        with ExitStack() as on_failure:
            on_failure.callback(file.close)
            engine = file.engine()
            on_failure.callback(engine.dispose)
            try:
                store = cls(file, engine)
            except SQLAlchemyError as error:
                raise StoreRefused(
                    f"The database {path} cannot be read: {_cause(error)}. "
                    "Put a copy of it in its place, or move it away to begin with an empty one."
                ) from error
            on_failure.pop_all()
        return store

    def load_state(self) -> State:
        """The state as last committed. Shipped policies and queues are there too unless a kept row has their name."""
        state = State(number=self._scalars.number)
        fields: dict[str, Any] = {
            codec.table: dict(getattr(state, codec.table))
            for entity_type, codec in CODECS.items()
            if entity_type not in SINGLE_FIELDS
        }
        for (entity_type, entity_id), entity in self._kept.items():
            if entity_type in SINGLE_FIELDS:
                fields[SINGLE_FIELDS[entity_type]] = entity
            else:
                fields[CODECS[entity_type].table][entity_id] = entity
        return replace(state, **fields)

    def commit(self, batch: Sequence[Committed], mark: ClockMark) -> None:
        """Write the changes of a batch, all or none; durable on return. Without a kept change nothing is written.

        Raises StoreFailed, after which the process must end: the transaction may or may not be there.
        """
        plan = make_plan(self._scalars, self._kept, batch, mark)
        if plan.is_empty:
            return
        with self._lock, self._transaction():
            self._write(plan)
            self._write_meta(plan.scalars, mark)
        self._adopt(plan, mark)

    def keep_time(self, mark: ClockMark) -> None:
        """Write the clock's mark alone, so that a reboot finds broker time where it was. Raises StoreFailed."""
        with self._lock, self._transaction():
            self._write_meta(self._scalars, mark)
        self.mark = mark

    def add_usage(self, rows: Sequence[UsageRow]) -> None:
        """Add GPU time to what is there. Raises StoreFailed."""
        with self._lock, self._transaction():
            self._run(statements.ADD_USAGE, [asdict(row) for row in rows])

    def history(self, entity_id: str) -> list[AuditRow]:
        """The newest audit rows of whatever has this id, oldest first; at most HISTORY_ROWS_MAX."""
        query = (
            sa.select(audit)
            .where(audit.c.entity_id == entity_id)
            .order_by(audit.c.sequence.desc())
            .limit(HISTORY_ROWS_MAX)
        )
        with self._lock, self._transaction():
            rows = [AuditRow(*row) for row in self._connection.execute(query)]
        return rows[::-1]

    def audit_broken_at(self) -> int | None:
        """The first sequence number at which the audit log is not as it was written, None where all of it is."""
        query = sa.select(audit).order_by(audit.c.sequence)
        with self._lock, self._transaction():
            rows = (AuditRow(*row) for row in self._connection.execute(query))
            return first_broken(rows, self._scalars.head)

    def close(self) -> None:
        """Let another process open the database. Closing twice is closing."""
        with self._lock:
            self._connection.close()
            self._engine.dispose()
            self._file.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        if self._failed:
            raise StoreFailed("an earlier transaction failed; this process must end")
        try:
            with self._connection.begin():
                yield
        except SQLAlchemyError as error:
            self._failed = True
            raise StoreFailed(_cause(error)) from error

    def _write(self, plan: Plan) -> None:
        put, dropped = rows_by_table(plan)
        holds = lease_rows(plan, self._kept)
        for entity_type, rows in put.items():
            self._run(statements.PUT[entity_type], rows)
        self._run(statements.RETIRE_LEASE_SLOTS, holds.retired)
        self._run(statements.HOLD_LEASE_SLOTS, holds.held)
        for entity_type, rows in dropped.items():
            self._run(statements.DROP[entity_type], rows)
        self._run(statements.APPEND_AUDIT, [to_row(row) for row in plan.audit])

    def _write_meta(self, scalars: Scalars, mark: ClockMark) -> None:
        row = {
            "mine": self.incarnation,
            "number": scalars.number,
            "audit_sequence": scalars.head.sequence,
            "audit_hash": scalars.head.hash,
            "broker_ms": mark.broker_ms,
            "boot_id": mark.boot_id,
            "boottime_ms": mark.boottime_ms,
            "wall_ms": mark.wall_ms,
        }
        if self._run(statements.SET_META, [row]) != 1:
            self._failed = True
            raise StoreFailed("a newer broker has opened the database")

    def _run(self, statement: statements.Prepared, rows: Sequence[Row]) -> int:
        return statement.run(self._connection, rows) if rows else 0

    def _adopt(self, plan: Plan, mark: ClockMark) -> None:
        for key, entity in plan.entities.items():
            if entity is None:
                self._kept.pop(key, None)
            else:
                self._kept[key] = entity
        self._scalars = plan.scalars
        self.mark = mark


def _read_entities(connection: sa.Connection) -> dict[Key, Entity]:
    kept: dict[Key, Entity] = {}
    for entity_type, table in ENTITY_TABLES.items():
        for row in connection.execute(sa.select(table).order_by(sa.text("rowid"))):
            entity = CODECS[entity_type].from_row(row._asdict())
            kept[entity_type, entity.id] = entity
    return kept


def _mark(row: Any) -> ClockMark | None:
    if row.boot_id is None:
        return None
    return ClockMark(row.broker_ms, row.boot_id, row.boottime_ms, row.wall_ms)


def _cause(error: SQLAlchemyError) -> str:
    """The driver's own words, without the statement and its values, which may hold what a user wrote."""
    return str(getattr(error, "orig", None) or type(error).__name__)
