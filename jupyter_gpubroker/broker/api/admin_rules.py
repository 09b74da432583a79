"""The rules as data: policies, queues and limits are replaced by those of a file, or it is said what would follow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from enum import Enum

from ...core.decide import Decision, step
from ...core.events import PolicyApplied
from ...core.model import Reason, State
from ...core.rules import FaultRule, Limits, Policy, Queue
from ...errors import Refused
from ...quantities import say_duration
from ...wire import routes
from ...wire.views import FollowView, PoliciesView
from ..policy_file import PolicyRefused, parse_policy
from ..views import reason_view
from .call import Actions, Call, Reads

_ROWS = frozenset({Policy.TABLE, Queue.TABLE, FaultRule.TABLE, Limits.TABLE})
Row = Policy | Queue | FaultRule | Limits


async def apply_policies(call: Call) -> PoliciesView:
    """Replace rows by those of a policy file, or with `dry_run=1` only say what would change."""
    assert isinstance(call.body, bytes)
    try:
        applied = parse_policy(call.body.decode(errors="replace"), call.state)
    except PolicyRefused as error:
        raise Refused(Reason.of("bad_policy", why=str(error))) from error
    applied = replace(applied, by=call.caller.owner)
    changes = tuple(_changes(call.state, applied))
    follows = tuple(_follows(step(call.state, applied, call.broker.loop.time.now())))
    is_dry_run = call.query.get("dry_run", "0") not in ("", "0", "false")
    if not is_dry_run:
        await call.send(applied)
    return PoliciesView(not is_dry_run, changes, follows)


def _changes(state: State, applied: PolicyApplied) -> list[str]:
    """One line for each value that would be another: `policies.gentle.idle: 30 min -> 1 min`."""
    rows: list[tuple[str, Row, Row | None]] = [
        *((f"policies.{row.name}", row, state.policies.get(row.name)) for row in applied.policies),
        *((f"queues.{row.name}", row, state.queues.get(row.name)) for row in applied.queues),
        *((f"faults.{row.id}", row, state.faults.get(row.id)) for row in applied.faults),
    ]
    if applied.limits is not None:
        rows.append(("limits", applied.limits, state.limits))
    return [
        f"{where}.{field.name.removesuffix('_ms')}: {_shown(before, field.name)} -> {_shown(row, field.name)}"
        for where, row, before in rows
        for field in fields(row)
        if getattr(before, field.name, None) != getattr(row, field.name)
    ]


def _shown(row: object, name: str) -> str:
    """A value as people write it in a policy file."""
    value = getattr(row, name, None)
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, bool):
        return str(value).lower()
    if name.endswith("_ms") and isinstance(value, int):
        return say_duration(value)
    return "none" if value is None else str(value)


def _follows(decision: Decision) -> Iterator[FollowView]:
    """What else than rows would change, as things are now: the first reason of each kind."""
    seen: dict[str, list[Reason]] = {}
    for table, _, reason in decision.reasons:
        if table not in _ROWS:
            seen.setdefault(reason.code, []).append(reason)
    for reasons in seen.values():
        yield FollowView(len(reasons), reason_view(reasons[0]))


READS: Reads = {}
ACTIONS: Actions = {routes.APPLY_POLICIES: apply_policies}
