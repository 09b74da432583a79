"""`gpubroker admin ...`: modes, GPUs, rules and leases. In user scope the user is the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import click

from .admin_simulation import simulation
from .admin_sources import sources
from .options import DURATION, connect, json_option, one_id
from .outcome import Command, Ended, Exit

if TYPE_CHECKING:
    from ..client import BrokerClient
    from ..wire.views import GpusView, ModesView

WHY = click.option(
    "--why", required=True, help="Who is concerned reads it, and the audit keeps it."
)


@click.group()
def admin() -> None:
    """Administer the broker. In user scope this is yours to do; on a machine, of the admins' group."""


admin.add_command(sources)
admin.add_command(simulation)


# --- modes -----------------------------------------------------------------------------------------------------------


@admin.command(cls=Command)
@click.argument(
    "mode", required=False, type=click.Choice(["observe", "advise", "enforce", "usual"])
)
@click.option("--gpu", metavar="ID", help="For this GPU alone.")
@click.option("--group", help="For the people of this group alone.")
@json_option
def mode(mode: str | None, gpu: str | None, group: str | None, as_json: bool) -> None:
    """Show or set how far the broker goes.

    observe: nothing is taken, announced or changed; what would have been is in `gpubroker usage`. advise: notices, nothing
    taken. enforce: the rules act. usual: what is named has no mode of its own any more.
    """
    from ..client import routes
    from ..wire.bodies import ModeBody
    from . import render

    with connect() as broker:
        if mode is None:
            view = broker.call(routes.MODE)
        else:
            gpu_id = None if gpu is None else _gpu_id(broker, gpu)
            body = ModeBody(None if mode == "usual" else mode, gpu_id, group)  # type: ignore[arg-type] # a Choice of these
            view = broker.call(routes.SET_MODE, None, body)
    if as_json:
        render.echo_json(view)
    else:
        _say_modes(view)


def _say_modes(view: ModesView) -> None:
    click.echo(f"mode {view.mode}: {view.sentence}")
    for what, mode in [*view.gpus.items(), *view.groups.items()]:
        click.echo(f"  {what}: {mode}")


# --- devices ---------------------------------------------------------------------------------------------------------


@admin.group()
def gpus() -> None:
    """Take GPUs out, put them back, vouch for slots that are held back."""


@gpus.command(cls=Command)
@click.argument("gpu", metavar="ID")
@WHY
@json_option
def disable(gpu: str, why: str, as_json: bool) -> None:
    """Lend nothing of the GPU any more; who is on it stays."""
    from ..client import routes
    from ..wire.bodies import GpuBody

    with connect() as broker:
        view = broker.call(routes.DISABLE_GPU, None, GpuBody(_gpu_id(broker, gpu), why))
    _show_gpus(view, as_json)


@gpus.command(cls=Command)
@click.argument("gpu", metavar="ID")
@json_option
def enable(gpu: str, as_json: bool) -> None:
    """Lend the GPU again, once it is seen clear."""
    from ..client import routes
    from ..wire.bodies import GpuBody

    with connect() as broker:
        view = broker.call(routes.ENABLE_GPU, None, GpuBody(_gpu_id(broker, gpu)))
    _show_gpus(view, as_json)


@gpus.command(cls=Command)
@click.argument("slot", metavar="ID")
@WHY
@json_option
def clear(slot: str, why: str, as_json: bool) -> None:
    """Vouch that nobody is on a slot that is held back, so that it is lent again."""
    from ..client import routes
    from ..wire.bodies import SlotBody

    with connect() as broker:
        slots = [one.id for gpu in broker.call(routes.GPUS).gpus for one in gpu.slots]
        view = broker.call(routes.CLEAR_SLOT, None, SlotBody(_one_of(slot, slots, "slot"), why))
    _show_gpus(view, as_json)


def _show_gpus(view: GpusView, as_json: bool) -> None:
    from . import render

    if as_json:
        render.echo_json(view)
    else:
        render.echo_gpus(view.gpus)


def _gpu_id(broker: BrokerClient, name: str) -> str:
    """By UUID, the beginning of one, or index."""
    from ..client import routes

    found = broker.call(routes.GPUS).gpus
    by_index = [gpu.uuid for gpu in found if str(gpu.index) == name]
    return by_index[0] if len(by_index) == 1 else _one_of(name, [gpu.uuid for gpu in found], "GPU")


def _one_of(name: str, ids: list[str], what: str) -> str:
    matches = [one for one in ids if one.lower().startswith(name.lower())]
    if len(matches) == 1:
        return matches[0]
    code, many = (
        ("ambiguous_id", "There is more than one") if matches else ("unknown_id", "There is no")
    )
    raise Ended(Exit.REFUSED, code, f"{many} {what} '{name[:40]}'. `gpubroker gpus` lists them.")


# --- rules -----------------------------------------------------------------------------------------------------------


@admin.group()
def policies() -> None:
    """Policies, queues and limits."""


@policies.command(cls=Command)
@click.argument("file", type=click.File("rb"))
@click.option(
    "--dry-run", is_flag=True, help="Only say what would change, and what would follow now."
)
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
    for follow in view.follows:
        click.echo(f"  {follow.times} x {follow.reason.sentence}")
    if not view.changes:
        click.echo("Nothing changes.")
    elif dry_run:
        click.echo("Nothing was changed: this was a dry run.")


@policies.command(cls=Command)
@json_option
def show(as_json: bool) -> None:
    """Show the policies in words, and the queues that go by them."""
    from ..client import routes
    from . import render

    with connect() as broker:
        view = broker.call(routes.POLICIES)
    if as_json:
        render.echo_json(view)
    else:
        render.echo_rules(view)


# --- leases ----------------------------------------------------------------------------------------------------------


@admin.group()
def leases() -> None:
    """Everybody's leases."""


@leases.command("list", cls=Command)
@json_option
def list_leases(as_json: bool) -> None:
    """Show who holds what."""
    from ..client import routes
    from . import render

    with connect() as broker:
        view = broker.call(routes.ALL_LEASES)
    if as_json:
        render.echo_json(view)
        return
    rows = [
        (
            held.lease.id[: render.SHORT_ID],
            held.owner,
            render.shortened(held.name),
            ", ".join(held.lease.slots),
            held.lease.sentence,
        )
        for held in view.leases
    ]
    render.echo_table(("LEASE", "WHO", "HOLDER", "SLOTS", "STATE"), rows)


@leases.command(cls=Command)
@click.argument("lease", metavar="ID")
@WHY
@click.option(
    "--notice", "notice_ms", type=DURATION, default="5m", show_default=True, help="How long before."
)
@json_option
def revoke(lease: str, why: str, notice_ms: int, as_json: bool) -> None:
    """Have a lease given back, after a notice; in the mildest way that works, and never by destroying work."""
    from ..client import routes
    from ..wire.bodies import RevokeBody
    from . import render

    with connect() as broker:
        ids = [held.lease.id for held in broker.call(routes.ALL_LEASES).leases]
        lease_id = one_id(lease, ids, "lease")
        view = broker.call(routes.REVOKE, lease_id, RevokeBody(why, notice_ms))
    if as_json:
        render.echo_json(view)
    else:
        click.echo(f"{view.owner}: {view.lease.sentence}")


# --- audit -----------------------------------------------------------------------------------------------------------


@admin.command(cls=Command)
@click.option("--follow", "-f", is_flag=True, help="Go on as things happen.")
@click.option(
    "--limit", type=click.IntRange(1, 1_000), default=50, show_default=True, help="How many."
)
@click.option("--id", "thing_id", help="Of this lease, request, session, job, GPU or slot.")
@click.option("--table", help="Of things of this kind, such as leases.")
@click.option("--event", help="That this event led to, such as LeaseRevoked.")
@click.option("--code", help="For this reason, such as revoked.")
@json_option
def audit(follow: bool, limit: int, as_json: bool, **filters: str | None) -> None:
    """Show what happened, newest last; with --json one object per line."""
    from .admin_audit import entries

    wanted = {"of": filters.pop("thing_id"), **filters}
    query = {name: value for name, value in wanted.items() if value is not None}
    with connect() as broker:
        for line in entries(broker, {**query, "limit": str(limit)}, follow=follow, as_json=as_json):
            click.echo(line)
