"""Administration. In user scope the one who is served administers."""

from __future__ import annotations

from dataclasses import fields

from ...core.events import PolicyApplied
from ...core.model import Reason, State
from ...core.rules import Limits, Policy, Queue
from ...errors import Refused
from ...wire import routes
from ...wire.views import PoliciesView
from ..policy_file import PolicyRefused, parse_policy
from .call import Actions, Call, Reads


async def apply_policies(call: Call) -> PoliciesView:
    """Replace rows by those of a policy file, or with `dry_run=1` only say what would change."""
    assert isinstance(call.body, bytes)
    try:
        applied = parse_policy(call.body.decode(errors="replace"), call.state)
    except PolicyRefused as error:
        raise Refused(Reason.of("bad_policy", why=str(error))) from error
    changes = tuple(_changes(call.state, applied))
    is_dry_run = call.query.get("dry_run", "0") not in ("", "0", "false")
    if not is_dry_run:
        await call.send(applied)
    return PoliciesView(not is_dry_run, changes)


def _changes(state: State, applied: PolicyApplied) -> list[str]:
    """One line for each value that would be another: `policies.gentle.idle_ms: 1800000 -> 60000`."""
    rows: list[tuple[str, Policy | Queue | Limits, Policy | Queue | Limits | None]] = [
        *((f"policies.{row.name}", row, state.policies.get(row.name)) for row in applied.policies),
        *((f"queues.{row.name}", row, state.queues.get(row.name)) for row in applied.queues),
    ]
    if applied.limits is not None:
        rows.append(("limits", applied.limits, state.limits))
    return [
        f"{where}.{field.name}: {getattr(before, field.name, None)} -> {getattr(row, field.name)}"
        for where, row, before in rows
        for field in fields(row)
        if getattr(before, field.name, None) != getattr(row, field.name)
    ]


READS: Reads = {}
ACTIONS: Actions = {routes.APPLY_POLICIES: apply_policies}
