"""Who has how much of the GPUs at this moment, and what becomes of it.

Amounts are thousandths of a GPU; a slice counts by its share of its GPU's memory. What is used without a lease is had as well.
What the devices do not show is held, but neither productive nor idle. The edge adds the moments up (`broker/metering.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from . import modes
from .claim import ONLY_OBSERVED
from .model import (
    Lease,
    Millis,
    Mode,
    Owner,
    Request,
    SessionId,
    Slot,
    SlotSpec,
    State,
    UnleasedUse,
    Verdict,
)
from .place import serves
from .reclaim import ONLY_ADVISED
from .rules import Policy, Tier
from .table import groups, live

WHOLE = 1_000
PRODUCTIVE = frozenset({Verdict.ACTIVE, Verdict.SERVING})
IDLE = frozenset({Verdict.IDLE, Verdict.WAITING_USER, Verdict.NEVER_USED})
_SPARED = frozenset({ONLY_OBSERVED, ONLY_ADVISED})


@dataclass(slots=True)
class Share:
    """What one person has. Of `held`, `outside` is used without a lease. Of `idle`, somebody waits for `wanted`, and the rules
    would have freed `spared` by now where they are not enforced.
    """

    held: int = 0
    productive: int = 0
    idle: int = 0
    wanted: int = 0
    outside: int = 0
    spared: int = 0


@dataclass(frozen=True, slots=True)
class _Part:
    """A slot that somebody has; `is_busy` None where nobody can tell."""

    slot: Slot
    is_busy: bool | None
    is_outside: bool = False
    is_overdue: bool = False


def shares(state: State, now: Millis) -> Mapping[Owner, Share]:
    """By owner; who uses a slot without a lease and is nobody's session goes by `uid:...`."""
    found: dict[Owner, Share] = defaultdict(Share)
    specs = [demand.spec for demand in groups(Request, state.requests, "lines")]
    for lease in live(state.leases):
        for part in _leased(state, lease):
            _add(found[lease.owner], state, part, specs)
    for (_, owner), uses in _outside(state).items():
        _add(found[owner], state, _unleased(state, uses, now), specs)
    return found


def _add(share: Share, state: State, part: _Part, specs: Sequence[SlotSpec]) -> None:
    size = _size(state, part.slot)
    share.held += size
    share.outside += size * part.is_outside
    if part.is_busy:
        share.productive += size
    elif part.is_busy is False:
        is_wanted = any(serves(part.slot, spec) for spec in specs)
        share.idle += size
        share.wanted += size * is_wanted
        share.spared += size * (is_wanted and part.is_overdue)


def _leased(state: State, lease: Lease) -> Iterator[_Part]:
    is_busy = True if lease.verdict in PRODUCTIVE else False if lease.verdict in IDLE else None
    is_overdue = lease.cause is not None and lease.cause.code in _SPARED
    for hold in lease.holds:
        yield _Part(state.slots[hold.slot_id], is_busy, is_overdue=is_overdue)


def _unleased(state: State, uses: Sequence[UnleasedUse], now: Millis) -> _Part:
    """What one person's processes without a lease make of a slot, by the rules of notebooks."""
    slot = state.slots[uses[0].slot_id]
    seen = [use.computes for use in uses]
    is_busy = True if True in seen else None if None in seen else False
    policy = _usual_policy(state)
    quiet_ms = [now - use.quiet_since_ms for use in uses if use.quiet_since_ms is not None]
    is_overdue = (
        policy is not None
        and modes.of_slot(state, slot) is not Mode.ENFORCE
        and min(quiet_ms, default=0) >= policy.idle_ms + policy.notice_ms
    )
    return _Part(slot, is_busy, is_outside=True, is_overdue=is_overdue)


def _outside(state: State) -> Mapping[tuple[str, Owner], Sequence[UnleasedUse]]:
    found: dict[tuple[str, Owner], list[UnleasedUse]] = defaultdict(list)
    for node in state.telemetry.values():
        for use in node.uses:
            if use.slot_id in state.slots:
                found[use.slot_id, _owner(state, use)].append(use)
    return found


def _usual_policy(state: State) -> Policy | None:
    queues = (queue for queue in state.queues.values() if queue.tier is Tier.INTERACTIVE)
    names = (queue.policy for queue in queues if queue.policy is not None)
    return state.policies.get(next(names, ""))


def _size(state: State, slot: Slot) -> int:
    gpu = state.gpus.get(slot.gpu_id)
    if slot.profile is None or gpu is None or not gpu.memory_mib:
        return WHOLE
    return min(WHOLE, round(WHOLE * slot.memory_mib / gpu.memory_mib))


def _owner(state: State, use: UnleasedUse) -> Owner:
    session = None if use.holder_id is None else state.sessions.get(SessionId(use.holder_id))
    if session is not None:
        return session.owner
    return Owner("unknown" if use.uid is None else f"uid:{use.uid}")
