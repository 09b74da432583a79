"""`gpubroker admin sources ...`: exporters that tell what a device does where its driver does not."""

from __future__ import annotations

import click

from .options import json_option
from .outcome import Command, Ended, Exit


@click.group()
def sources() -> None:
    """Further sources of what devices do, such as a DCGM exporter for the MIG slices of an A100.

    They are kept in the state folder of the user that runs this, which is to be the one whose broker reads them.
    """


@sources.command(cls=Command)
@click.argument("kind", type=click.Choice(["prometheus"]))
@click.argument("url")
@json_option
def add(kind: str, url: str, as_json: bool) -> None:
    """Read a DCGM exporter's metrics at URL, such as http://localhost:9400/metrics, from now on."""
    from ..client import Places
    from ..devices.exporter import FetchFailed, fetch, fields_of
    from ..devices.sources import Source, SourceRefused, add_source, check_url
    from . import render

    places = Places.find()
    try:
        check_url(url)
        activity, misleading = fields_of(fetch(url))
        if not activity:
            raise Ended(Exit.REFUSED, "no_activity_fields", _why_useless(url, misleading))
        places.prepare()
        add_source(places.sources, Source("prometheus", url))
    except SourceRefused as error:
        raise Ended(Exit.USAGE, "bad_source", str(error)) from error
    except FetchFailed as error:
        detail = f"{url} could not be read: {error}. Start the exporter, or correct the address; nothing was added."
        raise Ended(Exit.FAILED, "source_unreachable", detail) from error
    if as_json:
        render.echo_json({"kind": kind, "url": url, "activity_samples": activity})
    else:
        click.echo(
            f"{url} tells the activity of GPUs and slices ({activity} samples); it is read within a minute."
        )


@sources.command(name="list", cls=Command)
@json_option
def list_(as_json: bool) -> None:
    """Show the sources."""
    from ..client import Places
    from ..devices.sources import SourceRefused, read_sources
    from . import render

    try:
        found = read_sources(Places.find().sources)
    except SourceRefused as error:
        raise Ended(Exit.FAILED, "bad_sources", str(error)) from error
    if as_json:
        render.echo_json({"sources": found})
    elif found:
        render.echo_table(("KIND", "URL"), [(source.kind, source.url) for source in found])
    else:
        click.echo("There are none: the driver alone tells what devices do.")


@sources.command(cls=Command)
@click.argument("url")
@json_option
def remove(url: str, as_json: bool) -> None:
    """Read URL no more."""
    from ..client import Places
    from ..devices.sources import SourceRefused, remove_source
    from . import render

    try:
        was_there = remove_source(Places.find().sources, url)
    except SourceRefused as error:
        raise Ended(Exit.FAILED, "bad_sources", str(error)) from error
    if not was_there:
        raise Ended(Exit.REFUSED, "unknown_source", f"There is no source '{url[:80]}'.")
    if as_json:
        render.echo_json({"removed": url})
    else:
        click.echo(f"{url} is read no more.")


def _why_useless(url: str, misleading: int) -> str:
    """An exporter's default list of metrics has none of the fields that mean something on MIG."""
    from ..devices.exporter import ACTIVITY, MISLEADING

    alone = f"only {MISLEADING}, which is 0 on every MIG slice, and " if misleading else ""
    return (
        f"{url} tells {alone}none of {', '.join(ACTIVITY)}. Add these to the exporter's list of metrics "
        "(its option -f); they need the profiling module of DCGM."
    )
