"""A database is made at once, migrated when older, refused when newer; and both ways end in the same tables."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa  # noqa: TID251
from alembic.autogenerate import produce_migrations, render_python_code  # noqa: TID251
from alembic.migration import MigrationContext  # noqa: TID251
from alembic.script import ScriptDirectory  # noqa: TID251

from jupyter_gpubroker.store import Store, StoreRefused
from jupyter_gpubroker.store.schema import MIGRATIONS, migrate, prepare
from jupyter_gpubroker.store.sqlite import DatabaseFile
from jupyter_gpubroker.store.tables import SCHEMA, metadata, schema_version
from tests.unit.store.entities import a_slot
from tests.unit.store.stories import MARK, put

NEXT = "9999"
NEXT_MIGRATION = f'''
import sqlalchemy as sa
from alembic import op

revision, down_revision = "{NEXT}", "{SCHEMA}"


def upgrade():
    op.add_column("slots", sa.Column("colour", sa.Text, server_default="blue"))
'''


@pytest.fixture
def next_migrations(tmp_path: Path) -> Path:
    """The migrations of a later version of the package."""
    folder = tmp_path / "migrations"
    shutil.copytree(MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "versions" / "9999_colour.py").write_text(NEXT_MIGRATION)
    return folder


@pytest.fixture
def engine(tmp_path: Path):
    file = DatabaseFile(tmp_path / "other.db")
    engine = file.engine()
    yield engine
    engine.dispose()
    file.close()


def tables_of(connection: sa.Connection) -> set[tuple[str, str]]:
    """Names and definitions, without the spaces and quotes in which two ways of writing them differ."""
    query = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"
    return {
        (name, "".join(sql.replace('"', "").split()))
        for name, sql in connection.exec_driver_sql(query)
    }


def database_of_schema(version: str, path: Path) -> None:
    store = Store.open(path)
    store.commit([put(a_slot())], MARK)
    store.close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE schema_version SET version_num = ?", (version,))
    connection.close()


def test_the_migrations_make_the_tables_of_the_code(engine):
    """When this fails, the message is the body of the missing migration."""
    with engine.begin() as connection:
        migrate(connection)
        context = MigrationContext.configure(
            connection, opts={"version_table": schema_version.name, "compare_type": True}
        )
        operations = produce_migrations(context, metadata).upgrade_ops
        assert operations is not None
        missing = render_python_code(operations)
        assert missing.split("###")[2].split() == ["pass", "#"], missing


def test_made_at_once_or_by_migrations_the_definitions_are_the_same_to_the_letter(engine):
    memory = sa.create_engine("sqlite://")
    with engine.begin() as connection, memory.begin() as other:
        migrate(connection)
        prepare(other)
        assert tables_of(connection) == tables_of(other)
    memory.dispose()


def test_the_newest_migration_is_the_schema_of_the_code():
    scripts = ScriptDirectory(str(MIGRATIONS))
    assert scripts.get_heads() == [SCHEMA]
    assert all(len(s.revision) == 4 and s.revision.isdigit() for s in scripts.walk_revisions())


def test_an_older_database_is_migrated_and_keeps_what_it_holds(tmp_path, next_migrations):
    path = tmp_path / "broker.db"
    database_of_schema(SCHEMA, path)
    file = DatabaseFile(path)
    engine = file.engine()
    with engine.begin() as connection:
        prepare(connection, NEXT, next_migrations)
        query = "SELECT id, colour, version_num FROM slots, schema_version"
        assert tuple(connection.exec_driver_sql(query).one()) == ("GPU-1", "blue", NEXT)
    engine.dispose()
    file.close()


def test_a_migration_that_fails_leaves_the_database_as_it_was(tmp_path, next_migrations):
    path = tmp_path / "broker.db"
    database_of_schema(SCHEMA, path)
    broken = NEXT_MIGRATION + '    op.execute("SELECT nonsense FROM nowhere")\n'  # noqa: S608
    (next_migrations / "versions" / "9999_colour.py").write_text(broken)
    file = DatabaseFile(path)
    engine = file.engine()
    with pytest.raises(sa.exc.OperationalError, match="nowhere"), engine.begin() as connection:
        prepare(connection, NEXT, next_migrations)
    engine.dispose()
    file.close()
    store = Store.open(path)
    assert store.load_state().slots == {"GPU-1": a_slot()}
    store.close()


def test_a_newer_database_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "broker.db"
    database_of_schema(NEXT, path)
    with pytest.raises(StoreRefused, match=f"schema {NEXT}, this broker knows {SCHEMA}.*Install"):
        Store.open(path)
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT incarnation FROM meta").fetchall() == [(1,)]
    connection.close()


def test_a_database_of_another_program_is_refused(tmp_path):
    path = tmp_path / "broker.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.close()
    with pytest.raises(StoreRefused, match="not made by jupyter_gpubroker"):
        Store.open(path)


def test_neither_a_new_nor_a_known_database_needs_alembic(tmp_path):
    code = (
        "import sys; from pathlib import Path; from jupyter_gpubroker.store import Store\n"
        "for _ in range(2): Store.open(Path(sys.argv[1])).close()\n"
        "print('alembic' in sys.modules)"
    )
    path = str(tmp_path / "broker.db")
    run = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "False"
