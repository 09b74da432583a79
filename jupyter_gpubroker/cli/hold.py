"""Commands on a lease one holds: keep it for a while, give it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .options import DURATION, connect, json_option, one_id
from .outcome import Command, Ended, Exit

if TYPE_CHECKING:
    from ..client import BrokerClient


@click.command(cls=Command)
@click.argument("lease_id", metavar="[LEASE]", required=False)
@click.option(
    "--for", "keep_ms", type=DURATION, help="How long, such as 30m (default: as the policy says)."
)
@json_option
def keep(lease_id: str | None, keep_ms: int | None, as_json: bool) -> None:
    """Keep an idle lease for a while although somebody waits. Without LEASE: the only one you have."""
    from ..client import routes
    from ..wire.bodies import KeepBody
    from . import render

    with connect() as broker:
        lease = broker.call(routes.KEEP, _lease_id(broker, lease_id), KeepBody(keep_ms))
    if as_json:
        render.echo_json(lease)
    else:
        click.echo(lease.sentence)


@click.command(cls=Command)
@click.argument("lease_id", metavar="[LEASE]", required=False)
@json_option
def release(lease_id: str | None, as_json: bool) -> None:
    """Give a lease back, in the mildest way its holder allows. Without LEASE: the only one you have."""
    from ..client import routes
    from ..wire.bodies import ReleaseBody
    from . import render

    with connect() as broker:
        lease = broker.call(routes.RELEASE, _lease_id(broker, lease_id), ReleaseBody())
    if as_json:
        render.echo_json(lease)
    else:
        click.echo(lease.sentence)


def _lease_id(broker: BrokerClient, prefix: str | None) -> str:
    from ..client import routes

    leases = [lease.id for lease in broker.call(routes.LEASES).leases]
    if prefix is not None:
        return one_id(prefix, leases, "lease")
    if len(leases) == 1:
        return leases[0]
    if not leases:
        raise Ended(Exit.REFUSED, "no_lease", "You hold no lease.")
    listed = ", ".join(lease[:8] for lease in leases)
    raise Ended(
        Exit.REFUSED, "which_lease", f"You hold several leases: {listed}. Name one of them."
    )
