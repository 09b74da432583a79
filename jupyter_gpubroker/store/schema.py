"""Brings a database to the schema of this version: made at once when new, migrated when older, refused when newer.

Alembic is imported only for a migration: it takes as long to import as the rest of the broker's start.
"""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa

from .errors import StoreRefused
from .tables import SCHEMA, metadata, schema_version

MIGRATIONS = Path(__file__).with_name("migrations")


def prepare(connection: sa.Connection, schema: str = SCHEMA, migrations: Path = MIGRATIONS) -> None:
    """Make or migrate the tables, within the caller's transaction. Raises StoreRefused where that cannot be."""
    found = _version(connection)
    if found is None:
        _make(connection, schema)
    elif found > schema:
        raise StoreRefused(
            f"The database has schema {found}, this broker knows {schema}: a newer version of jupyter_gpubroker wrote it. "
            "Install that version again, or move the database away to begin with an empty one."
        )
    elif found < schema:
        migrate(connection, migrations)


def _version(connection: sa.Connection) -> str | None:
    """The schema's version, None for an empty database. Versions are numbers of four digits, so they sort as text."""
    tables = sa.inspect(connection).get_table_names()
    if not tables:
        return None
    if schema_version.name not in tables:
        raise StoreRefused(
            "The database was not made by jupyter_gpubroker. Move it away to begin with an empty one."
        )
    return str(connection.execute(sa.select(schema_version.c.version_num)).scalar_one())


def _make(connection: sa.Connection, schema: str) -> None:
    """All tables at once; a test proves that the migrations make the same."""
    metadata.create_all(connection, checkfirst=False)
    connection.execute(schema_version.insert().values(version_num=schema))


def migrate(connection: sa.Connection, migrations: Path = MIGRATIONS) -> None:
    """Run every migration that this database has not seen."""
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(migrations).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
