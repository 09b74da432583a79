"""Keeps in mind what was seen of a holder, look by look, and states it as evidence (`verdicts` decides from that).

What a look tells of a lease is put together from its slots (`sight`) and folded into the lease's `Watch` (`after`). Windows are
time, not samples: a look speaks only for the time it covers, and a look that tells nothing stops the clocks until the next
that does. A number of a whole GPU says nothing of a slice of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .events import SlotObservation
from .model import Activity, Lease, LeaseId, Millis, Slot, SlotKind, Watch
from .rules import Limits, Policy
from .verdicts import PROMPTS, Evidence

# A look that covers less of the time since the look before is no evidence of rest, only of work.
COVERAGE_PERCENT_MIN = 50
# Work on the host leaks so much slower than it fills, so work for more than a seventh of the time adds up.
LEAK = 6
SPIN_UTILISATION_PERCENT_MIN = 90
SPIN_SM_PERCENT_MAX = 10
SPIN_DRAM_PERCENT_MAX = 1
SPIN_POWER_MW_MAX = 30_000
OF_WHOLE_GPU = "device"
NOBODY = "nobody"


@dataclass(frozen=True, slots=True)
class Glance:
    """One slot at one look, and whether nobody was on it (None: it could not be told)."""

    slot: Slot
    seen: SlotObservation
    is_clear: bool | None


@dataclass(frozen=True, slots=True)
class Sight:
    """What one look tells of a holder. `spins` is only told of a device in use."""

    is_busy: bool | None
    host_busy: bool | None = None
    listens: bool | None = None
    spins: bool = False
    source: str | None = None


def sight(glances: Sequence[Glance], gap_ms: int) -> Sight:
    """All slots of a lease at one look, the look before having been `gap_ms` ago. Any use is use."""
    uses = [_use(glance, gap_ms) for glance in glances]
    seen = [glance.seen for glance in glances]
    busy = [one for one, use in zip(seen, uses, strict=True) if use]
    is_busy = True if busy else None if None in uses else False
    is_unlisted = is_busy is False and all(glance.seen.busy is None for glance in glances)
    return Sight(
        is_busy,
        _any(one.host_busy for one in seen),
        _any((None if one.host is None else one.host.listens) for one in seen),
        bool(busy) and all(_spins(one) for one in busy),
        NOBODY if is_unlisted else (busy or seen)[0].source,
    )


def begun(lease_id: LeaseId, now: Millis) -> Watch:
    """Nothing is known of what was before."""
    return Watch(lease_id, seen_ms=now, spell_since_ms=now, quiet_since_ms=now)


def paused(watch: Watch, ms: int, now: Millis) -> Watch:
    """Nobody looked for so long: no clock ran meanwhile."""

    def later(at_ms: Millis | None) -> Millis | None:
        return None if at_ms is None else Millis(min(at_ms + ms, now))

    return replace(
        watch,
        spell_since_ms=Millis(min(watch.spell_since_ms + ms, now)),
        quiet_since_ms=later(watch.quiet_since_ms),
        spinning_since_ms=later(watch.spinning_since_ms),
        host_quiet_since_ms=later(watch.host_quiet_since_ms),
    )


def after(watch: Watch, glances: Sequence[Glance], now: Millis, limits: Limits) -> Watch:
    """The watch after one more look at all slots of its lease."""
    gap_ms = now - watch.seen_ms
    if gap_ms > limits.fresh_ms:
        watch = watch if watch.blind_since_ms is not None else paused(watch, gap_ms, now)
        gap_ms = 0
    seen = sight(glances, gap_ms)
    watch = _host_seen(replace(watch, seen_ms=now), seen.host_busy, now, gap_ms, limits)
    if seen.is_busy is None:
        return blinded(watch, now)
    watch = _sighted(watch, now, limits)
    return _used(watch, seen, now, limits) if seen.is_busy else _quiet(watch, seen, now)


def blinded(watch: Watch, since_ms: Millis) -> Watch:
    """Nothing is known of the device."""
    return watch if watch.blind_since_ms is not None else replace(watch, blind_since_ms=since_ms)


def executed(watch: Watch, before: Activity, activity: Activity, now: Millis) -> Watch:
    """The main thread does something else: a new spell begins, unless it only went from one prompt to another."""
    if {before, activity} <= PROMPTS:
        return watch
    return replace(watch, spell_since_ms=now, bursts=0, host_ms=0, host_works=False)


def evidence(
    watch: Watch,
    lease: Lease,
    activity: Activity,
    limits: Limits,
    policy: Policy | None,
    now: Millis,
) -> Evidence:
    """The watch in numbers, with the limits that apply to the lease."""
    is_blind = watch.blind_since_ms is not None
    is_busy = None if is_blind else watch.quiet_since_ms is None
    # Where a policy takes sooner than that, what has settled does so sooner too.
    settle_ms = limits.settle_ms if policy is None else min(limits.settle_ms, policy.idle_ms // 2)
    return Evidence(
        at_ms=now,
        was=lease.verdict,
        was_for_ms=max(0, now - lease.verdict_since_ms),
        is_busy=is_busy,
        activity=activity,
        context_seen=lease.context_seen,
        settle_ms=settle_ms,
        patience_ms=limits.patience_ms,
        suspect_ms=limits.suspect_ms,
        source=None if is_blind else watch.source,
        quiet_ms=_since(watch.quiet_since_ms, now) or 0,
        blind_ms=_since(watch.blind_since_ms, now) or 0,
        spinning_ms=_since(watch.spinning_since_ms, now) or 0,
        bursts=watch.bursts,
        listens=watch.listens,
        spell_ms=now - watch.spell_since_ms,
        host_works=watch.host_works,
        host_quiet_ms=_since(watch.host_quiet_since_ms, now),
        host_decides=policy is not None and policy.host_decides,
    )


# --- one slot -------------------------------------------------------------------------------------------------------------


def _use(glance: Glance, gap_ms: int) -> bool | None:
    """Whether the holder used the slot. Nobody on it is no use, even where it has no counter."""
    seen = glance.seen
    is_foreign_number = glance.slot.kind is SlotKind.MIG and seen.source == OF_WHOLE_GPU
    if seen.busy is None or is_foreign_number:
        is_nobody = seen.processes == () and glance.is_clear
        return False if is_nobody else None
    if not seen.busy and not _is_covered(seen, gap_ms):
        return None
    return seen.busy


def _is_covered(seen: SlotObservation, gap_ms: int) -> bool:
    return seen.window_ms is None or 100 * seen.window_ms >= COVERAGE_PERCENT_MIN * gap_ms


def _spins(seen: SlotObservation) -> bool:
    """Busy by the clock, idle by what it draws and moves. One of the finer numbers must be known, and none may object."""
    if (seen.utilisation_percent or 0) < SPIN_UTILISATION_PERCENT_MIN:
        return False
    finer = (
        (seen.sm_percent, SPIN_SM_PERCENT_MAX),
        (seen.dram_percent, SPIN_DRAM_PERCENT_MAX),
        (seen.power_above_idle_mw, SPIN_POWER_MW_MAX),
    )
    known = [(number, most) for number, most in finer if number is not None]
    return bool(known) and all(number <= most for number, most in known)


def _any(values: Any) -> bool | None:
    values = list(values)
    return True if True in values else None if None in values else False


# --- folding --------------------------------------------------------------------------------------------------------------


def _sighted(watch: Watch, now: Millis, limits: Limits) -> Watch:
    """Something is known again. After a short while the device's clocks go on, after a long one they begin anew."""
    if watch.blind_since_ms is None:
        return watch
    blind_ms = now - watch.blind_since_ms
    is_long = blind_ms >= limits.patience_ms

    def resumed(at_ms: Millis | None) -> Millis | None:
        return None if at_ms is None else now if is_long else Millis(min(at_ms + blind_ms, now))

    return replace(
        watch,
        blind_since_ms=None,
        quiet_since_ms=resumed(watch.quiet_since_ms),
        spinning_since_ms=resumed(watch.spinning_since_ms),
    )


def _used(watch: Watch, seen: Sight, now: Millis, limits: Limits) -> Watch:
    paused_ms = _since(watch.quiet_since_ms, now)
    is_burst = paused_ms is not None and paused_ms >= limits.settle_ms
    spinning_since_ms = watch.spinning_since_ms or now
    return _change(
        watch,
        quiet_since_ms=None,
        spinning_since_ms=spinning_since_ms if seen.spins else None,
        bursts=watch.bursts + is_burst,
        listens=watch.listens if seen.listens is None else seen.listens,
        source=seen.source,
    )


def _quiet(watch: Watch, seen: Sight, now: Millis) -> Watch:
    return _change(
        watch,
        quiet_since_ms=now if watch.quiet_since_ms is None else watch.quiet_since_ms,
        spinning_since_ms=None,
        listens=watch.listens if seen.listens is None else seen.listens,
        source=seen.source,
    )


def _host_seen(
    watch: Watch, is_busy: bool | None, now: Millis, gap_ms: int, limits: Limits
) -> Watch:
    if is_busy is None:
        blind_ms = min(watch.host_blind_ms + gap_ms, limits.patience_ms)
        watch = _change(watch, host_blind_ms=blind_ms, host_quiet_since_ms=None)
        # What cannot be seen to rest does not work for ever.
        return _leaked(watch, now, gap_ms) if blind_ms >= limits.patience_ms else watch
    full_ms = 2 * limits.host_ms
    if is_busy:
        host_ms = min(watch.host_ms + gap_ms, full_ms)
        works = watch.host_works or host_ms >= limits.host_ms
        return _change(watch, host_ms=host_ms, host_works=works, host_quiet_since_ms=None)
    quiet_since_ms = now if watch.host_quiet_since_ms is None else watch.host_quiet_since_ms
    watch = _change(watch, host_blind_ms=0, host_quiet_since_ms=quiet_since_ms)
    return _leaked(watch, quiet_since_ms, gap_ms)


def _leaked(watch: Watch, rest_since_ms: Millis, gap_ms: int) -> Watch:
    host_ms = max(0, watch.host_ms - gap_ms // LEAK)
    watch = _change(watch, host_ms=host_ms)
    if watch.host_works and not host_ms:  # it had counted as work: its rest begins where it ended
        spell_since_ms = Millis(max(watch.spell_since_ms, rest_since_ms))
        return replace(watch, host_works=False, spell_since_ms=spell_since_ms)
    return watch


def _change(watch: Watch, **fields: Any) -> Watch:
    """The same object where nothing changes, as at most looks: a copy costs more than all the rest."""
    for name, value in fields.items():
        if getattr(watch, name) != value:
            return replace(watch, **fields)
    return watch


def _since(at_ms: Millis | None, now: Millis) -> int | None:
    return None if at_ms is None else max(0, now - at_ms)
