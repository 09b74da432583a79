"""`gpubroker admin ...`: the rules as data. In user scope the user is the admin."""

from __future__ import annotations

from typing import BinaryIO

import click

from .admin_simulation import simulation
from .admin_sources import sources
from .options import connect, json_option
from .outcome import Command


@click.group()
def admin() -> None:
    """Administer the broker. In user scope this is yours to do."""


admin.add_command(sources)
admin.add_command(simulation)


@admin.group()
def policies() -> None:
    """Policies, queues and limits."""


@policies.command(cls=Command)
@click.argument("file", type=click.File("rb"))
@click.option("--dry-run", is_flag=True, help="Only say what would change.")
@json_option
def apply(file: BinaryIO, dry_run: bool, as_json: bool) -> None:
    """Set policies, queues and limits as the TOML FILE says (- reads standard input); what it does not name stays."""
    from ..client import routes
    from . import render

    with connect() as broker:
        query = {"dry_run": "1"} if dry_run else None
        view = broker.call(routes.APPLY_POLICIES, body=file.read(), query=query)
    if as_json:
        render.echo_json(view)
        return
    for change in view.changes:
        click.echo(change)
    if not view.changes:
        click.echo("Nothing changes.")
    elif dry_run:
        click.echo("Nothing was changed: this was a dry run.")
