"""GPU time by person, and whom the rules took, or would have taken, a GPU from."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable

from ...core.model import LeaseId, Reason
from ...store import AuditRow, StoreRefused
from ...store.audit import rfc3339
from ...store.records import UsageRow
from ...wire import routes
from ...wire.views import UsageView, UseView
from ..metering import HOUR_S
from ..views import reason_view
from .admin import Unreadable
from .call import Actions, Call, Reads
from .values import whole_number

HOURS = 7 * 24
_TAKEN = "taken"


async def get_usage(call: Call) -> UsageView:
    end_hour = int(time.time() // HOUR_S) + 1  # since 1970, before which nobody used anything
    hours = min(max(1, whole_number(call.query, "hours", HOURS)), end_hour)
    since_hour = end_hour - hours
    since = rfc3339(since_hour * HOUR_S * 1000)
    archive = call.broker.archive
    try:
        rows = await asyncio.to_thread(archive.usage, since_hour)
        takings = await asyncio.to_thread(archive.takings, since)
    except StoreRefused as error:
        raise Unreadable(Reason.of("archive_unreadable", why=str(error))) from error
    people = _people(call, rows, takings)
    if not call.caller.is_admin:
        people = [one for one in people if one.owner == call.caller.owner]
    said = reason_view(_summary(people))
    return UsageView(hours, since, tuple(people), said.sentence, said.sentence_es)


def _people(call: Call, rows: Iterable[UsageRow], takings: Iterable[AuditRow]) -> list[UseView]:
    """By owner; a lease counts once as taken and once as spared, however often that happened."""
    counted = {(row.entity_id, row.reason_code == _TAKEN) for row in takings}
    counts: Counter[tuple[str, bool]] = Counter()
    for lease_id, was_taken in counted:
        lease = call.state.leases.get(LeaseId(lease_id))
        if lease is not None:  # else it is forgotten, as all is after a while
            counts[lease.owner, was_taken] += 1
    by_owner = {row.owner: row for row in rows}
    owners = {*by_owner, *(owner for owner, _ in counts)}
    return [
        _use(by_owner.get(owner, UsageRow(0, owner)), counts[owner, True], counts[owner, False])
        for owner in sorted(owners)
    ]


def _use(row: UsageRow, taken: int, spared: int) -> UseView:
    amounts = {f"{name}_ms": getattr(row, name) // 1_000 for name in UsageRow.AMOUNTS}
    return UseView(row.owner, **amounts, taken=taken, spared=spared)


def _summary(people: list[UseView]) -> Reason:
    return Reason.of(
        "usage_summary",
        held_ms=sum(one.held_ms for one in people),
        productive_ms=sum(one.productive_ms for one in people),
        idle_ms=sum(one.idle_ms for one in people),
        wanted_ms=sum(one.wanted_ms for one in people),
        taken=sum(one.taken for one in people),
        spared_ms=sum(one.spared_ms for one in people),
        interrupted=sum(one.spared > 0 or one.spared_ms > 0 for one in people),
    )


READS: Reads = {}
ACTIONS: Actions = {routes.USAGE: get_usage}
