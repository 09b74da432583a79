"""The audit, line by line, as far as it is and as it grows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from ..client import routes
from .render import shortened

if TYPE_CHECKING:
    from ..client import BrokerClient
    from ..wire.views import AuditEntry

LOOK_S = 1.0


def entries(
    broker: BrokerClient, query: Mapping[str, str], *, follow: bool, as_json: bool
) -> Iterator[str]:
    """One line for each change; with `follow` for ever."""
    asked = dict(query)
    while True:
        found = broker.call(routes.AUDIT, query=asked)
        for entry in found.entries:
            yield msgspec.json.encode(entry).decode() if as_json else _line(entry)
        if not follow:
            return
        if asked.get("after") == str(found.looked_to):
            time.sleep(LOOK_S)
        asked["after"] = str(found.looked_to)


def _line(entry: AuditEntry) -> str:
    became = f"{entry.before or '-'} > {entry.after or '-'}"
    return f"{entry.at}  {entry.table} {shortened(entry.id, 12)}  {became}  {entry.reason.sentence}"
