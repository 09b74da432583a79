"""Further sources of what devices do, beside the driver: a file in the state folder.

Written by `gpubroker admin sources`, read by the probe at each inventory, so a change needs no restart.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import msgspec

SOURCES_MAX = 8
URL_LENGTH_MAX = 500
_FILE_MAX_BYTES = 64 * 1024


class SourceRefused(ValueError):
    """The source cannot be one; the message says why and what to do."""


class Source(msgspec.Struct, frozen=True):
    """`prometheus`: an endpoint of a DCGM exporter, in Prometheus' text format."""

    kind: Literal["prometheus"]
    url: str


class _File(msgspec.Struct, frozen=True):
    sources: tuple[Source, ...] = ()


def read_sources(path: Path) -> tuple[Source, ...]:
    """Raises `SourceRefused` for a file that is none of ours; a missing one names no sources."""
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(_FILE_MAX_BYTES), type=_File).sources
    except FileNotFoundError:
        return ()
    except (OSError, msgspec.DecodeError) as error:
        raise SourceRefused(
            f"{path} cannot be read: {error}. Remove it, then add the sources anew."
        ) from error


def add_source(path: Path, source: Source) -> None:
    """Twice the same is once."""
    check_url(source.url)
    others = tuple(known for known in read_sources(path) if known.url != source.url)
    if len(others) >= SOURCES_MAX:
        raise SourceRefused(f"There are {SOURCES_MAX} sources already. Remove one first.")
    _write(path, (*others, source))


def remove_source(path: Path, url: str) -> bool:
    """Whether there was one."""
    known = read_sources(path)
    left = tuple(source for source in known if source.url != url)
    if left != known:
        _write(path, left)
    return left != known


def check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        is_fit = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_fit = False
    else:
        # A password would stand in a file, in argv and in messages.
        is_fit = is_fit and "@" not in parts.netloc
    if not is_fit or len(url) > URL_LENGTH_MAX or not url.isprintable():
        raise SourceRefused(
            f"'{url[:80]}' is no address of an exporter. Write it as http://HOST:PORT/metrics, without a password."
        )


def _write(path: Path, sources: tuple[Source, ...]) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_bytes(msgspec.json.encode(_File(sources)))
    temporary.replace(path)
