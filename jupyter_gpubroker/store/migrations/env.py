"""What Alembic runs to migrate: uses the connection, and so the transaction, that `schema.migrate` hands over."""

from __future__ import annotations

from alembic import context

from jupyter_gpubroker.store.tables import metadata, schema_version

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=schema_version.name,
)
context.run_migrations()
