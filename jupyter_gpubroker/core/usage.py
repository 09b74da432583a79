"""Who has how much of the GPUs at this moment, and what becomes of it.

Amounts are thousandths of a GPU; a slice counts by its share of its GPU's memory. What the devices do not show is held, but
neither productive nor idle. The edge adds the moments up (`broker/metering.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from .model import Lease, Owner, Request, Slot, State, UnleasedUse, Verdict
from .place import serves
from .table import groups, live

WHOLE = 1_000
PRODUCTIVE = frozenset({Verdict.ACTIVE, Verdict.SERVING})
IDLE = frozenset({Verdict.IDLE, Verdict.WAITING_USER, Verdict.NEVER_USED})


@dataclass(slots=True)
class Share:
    """What one person has. `wanted` is the part of `idle` that somebody waits for; `outside` is used without a lease."""

    held: int = 0
    productive: int = 0
    idle: int = 0
    wanted: int = 0
    outside: int = 0


def shares(state: State) -> Mapping[Owner, Share]:
    """By owner; who uses a slot without a lease and is nobody's session goes by `uid:...`."""
    found: dict[Owner, Share] = defaultdict(Share)
    specs = [demand.spec for demand in groups(Request, state.requests, "lines")]
    for lease in live(state.leases):
        for hold in lease.holds:
            slot = state.slots[hold.slot_id]
            is_wanted = any(serves(slot, spec) for spec in specs)
            _add(found[lease.owner], _size(state, slot), lease, is_wanted=is_wanted)
    outside = {
        (use.slot_id, _owner(state, use))
        for node in state.telemetry.values()
        for use in node.uses
        if use.slot_id in state.slots
    }
    for slot_id, owner in outside:
        found[owner].outside += _size(state, state.slots[slot_id])
    return found


def _add(share: Share, size: int, lease: Lease, *, is_wanted: bool) -> None:
    share.held += size
    if lease.verdict in PRODUCTIVE:
        share.productive += size
    elif lease.verdict in IDLE:
        share.idle += size
        share.wanted += size * is_wanted


def _size(state: State, slot: Slot) -> int:
    gpu = state.gpus.get(slot.gpu_id)
    if slot.profile is None or gpu is None or not gpu.memory_mib:
        return WHOLE
    return min(WHOLE, round(WHOLE * slot.memory_mib / gpu.memory_mib))


def _owner(state: State, use: UnleasedUse) -> Owner:
    session = next((one for one in state.sessions.values() if one.id == use.holder_id), None)
    if session is not None:
        return session.owner
    return Owner("unknown" if use.uid is None else f"uid:{use.uid}")
