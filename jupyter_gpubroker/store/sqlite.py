"""The database file: where it may lie, who may open it, and how its connection behaves.

Every transaction is BEGIN IMMEDIATE (a deferred one that reads and then writes fails at once when another process wrote in
between) and durable when its commit returns (WAL with synchronous=FULL).
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from ..filesystem import network_file_system
from .errors import StoreRefused

BUSY_TIMEOUT_S = 5.0  # only another program that reads or backs up the file can make us wait


class DatabaseFile:
    """A database on a local disk, made 0600 if new and locked for this process until `close`.

    Raises StoreRefused where it lies on a network file system, cannot be made, or another broker has it open.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        _refuse_network(path)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.fdopen(_open_private(path.with_name(path.name + ".lock")), "rb")
            os.close(_open_private(path))
        except OSError as error:
            raise StoreRefused(
                f"The database {path} cannot be opened: {error.strerror}. "
                "Make its folder writable, or set XDG_STATE_HOME to one that is."
            ) from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise StoreRefused(
                f"Another broker has the database {path} open. Stop that one first, "
                "or give this one its own XDG_STATE_HOME."
            ) from None

    def engine(self) -> sa.Engine:
        """One connection, handed from thread to thread; who uses it takes care that only one does at a time."""
        engine = sa.create_engine(
            sa.URL.create("sqlite", database=str(self.path)),
            poolclass=sa.StaticPool,
            connect_args={"timeout": BUSY_TIMEOUT_S, "check_same_thread": False},
        )
        sa.event.listen(engine, "connect", _configure)
        sa.event.listen(engine, "begin", _begin_immediate)
        return engine

    def close(self) -> None:
        self._lock.close()


def _refuse_network(path: Path) -> None:
    network = network_file_system(path)
    if network is not None:
        raise StoreRefused(
            f"The database {path} would lie on a network file system ({network}), where its locks are not reliable. "
            "Set XDG_STATE_HOME to a folder on a local disk of this machine, for example under /var/tmp."
        )


def _open_private(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    os.fchmod(descriptor, 0o600)
    return descriptor


def _configure(connection: sqlite3.Connection, _record: Any) -> None:
    connection.isolation_level = (
        None  # sqlite3 shall not begin transactions itself; `_begin_immediate` does
    )
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_immediate(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
