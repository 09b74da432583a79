"""The audit log: one row per change, each sealed with the hash of the row before it.

Folding the rows' `changed` over each other gives the tables back; flipping a byte anywhere, or dropping a row, breaks the
chain. Rows hold no secrets: what an entity holds is all that they can hold.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from operator import attrgetter

from ..core.model import Millis
from .codec import Row, encode_json
from .records import AuditRow

_NAMES = tuple(field.name for field in fields(AuditRow))
_values = attrgetter(*_NAMES)


@dataclass(frozen=True, slots=True)
class Head:
    """The newest row's sequence number and hash; those of an empty log are zero."""

    sequence: int = 0
    hash: str = "0" * 64


def seal(
    head: Head,
    *,
    broker_ms: Millis,
    wall_time: str,
    event: str,
    cause_id: str,
    entity_table: str,
    entity_id: str,
    before: str | None,
    after: str | None,
    reason_code: str,
    reason_values: str,
    changed: str | None,
) -> AuditRow:
    """The row that follows `head`."""
    content = (
        head.sequence + 1,
        broker_ms,
        wall_time,
        event,
        cause_id,
        entity_table,
        entity_id,
        before,
        after,
        reason_code,
        reason_values,
        changed,
    )
    return AuditRow(*content, hash=_hash(head.hash, content))


def to_row(row: AuditRow) -> Row:
    return dict(zip(_NAMES, _values(row), strict=True))


def first_broken(rows: Iterable[AuditRow], newest: Head) -> int | None:
    """The sequence number at which the chain from the first row to `newest` breaks, None where it is whole."""
    head = Head()
    for row in rows:
        *content, sealed = _values(row)
        if row.sequence != head.sequence + 1 or sealed != _hash(head.hash, tuple(content)):
            return head.sequence + 1
        head = Head(row.sequence, row.hash)
    return None if head == newest else head.sequence + 1


def rfc3339(wall_ms: int) -> str:
    """Unix milliseconds as people read them, in UTC."""
    moment = datetime.fromtimestamp(wall_ms / 1000, tz=timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _hash(previous: str, content: tuple[object, ...]) -> str:
    return hashlib.sha256(previous.encode() + encode_json(content)).hexdigest()
