"""What a lease's holder is doing, since when, and from when on the lease may be taken back.

Evidence is what the device showed in the last window and what the kernel's main thread does. Unknown is never idle, a missing
number is never 0, and clocks count time that was watched, not samples (`facts` behind the table: docs/architecture.md).
Whether somebody wants the slot, and how it could come free, is decided elsewhere (`reclaim`, `giveback`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from .clear import has_context
from .draft import Draft
from .events import SlotObservation
from .model import (
    Activity,
    Lease,
    LeaseState,
    Millis,
    Reason,
    Session,
    SessionKind,
    SessionState,
    State,
    Verdict,
)
from .rules import Policy
from .table import found

QUIET: Mapping[Activity, Verdict] = MappingProxyType(
    {
        Activity.UNKNOWN: Verdict.UNKNOWN,
        Activity.IDLE: Verdict.IDLE,
        Activity.RUNNING: Verdict.HOST_BUSY,
        Activity.INPUT: Verdict.WAITING_USER,
        Activity.DEBUGGER: Verdict.WAITING_USER,
    }
)
# One clock runs through both: only work or an execution begins a new spell.
_SPELL = frozenset({Verdict.IDLE, Verdict.WAITING_USER})
_PROMPTS = frozenset({Activity.INPUT, Activity.DEBUGGER})


def verdict_of(is_busy: bool | None, activity: Activity, *, context_seen: bool) -> Verdict:
    """`is_busy`: the holder used the device in the window; None is unknown."""
    if is_busy is None:
        return Verdict.UNKNOWN
    if is_busy:
        return Verdict.ACTIVE
    verdict = QUIET[activity]
    return Verdict.NEVER_USED if verdict is Verdict.IDLE and not context_seen else verdict


def policy_of(state: State, lease: Lease) -> Policy | None:
    """The rules for taking the lease back; None where idleness is never a reason (jobs, commands, headless runs)."""
    session = state.sessions.get(lease.session_id)
    if lease.job_id is not None or session is None or not _is_interactive(session):
        return None
    queue = state.queues.get(lease.queue)
    return None if queue is None or queue.policy is None else state.policies.get(queue.policy)


def limit_ms(policy: Policy, verdict: Verdict) -> int | None:
    """How long this verdict must last before the lease may be taken; None where it never may."""
    return {
        Verdict.IDLE: policy.idle_ms,
        Verdict.WAITING_USER: policy.idle_ms,
        Verdict.NEVER_USED: policy.never_used_ms,
        Verdict.HOST_BUSY: policy.host_busy_ms,
    }.get(verdict)


def reclaimable_ms(state: State, lease: Lease) -> Millis | None:
    """From when on the lease may be taken if somebody wants its slots and nothing happens; None: not as things are."""
    policy = policy_of(state, lease)
    if policy is None or lease.state is not LeaseState.ACTIVE or lease.order is not None:
        return None
    if state.sessions[lease.session_id].state is not SessionState.LIVE:
        return None
    limit = limit_ms(policy, lease.verdict)
    if limit is None:
        return None
    return Millis(max(lease.verdict_since_ms + limit, lease.keep_until_ms or 0))


def is_fresh(state: State, lease: Lease, now: Millis) -> bool:
    """Whether all devices of the lease were seen lately."""
    for hold in lease.holds:
        telemetry = state.telemetry.get(state.slots[hold.slot_id].node_id)
        if telemetry is None or telemetry.problem is not None:
            return False
        if now - telemetry.observed_ms > state.limits.fresh_ms:
            return False
    return True


def observed(
    draft: Draft, lease: Lease, looks: Sequence[SlotObservation], unwatched_ms: int | None
) -> None:
    """New samples of all slots of an active lease.

    unwatched_ms: time before these samples in which nothing was seen, 0 in the normal course; None if that is unknown.
    """
    slots = draft.state.slots
    if not lease.context_seen and any(
        has_context(draft.state, slots[look.slot_id], lease, look) for look in looks
    ):
        lease = replace(lease, context_seen=True)
    if unwatched_ms is None:
        lease = replace(lease, verdict=Verdict.UNKNOWN)
    elif unwatched_ms:
        paused = Millis(min(lease.verdict_since_ms + unwatched_ms, draft.now))
        lease = replace(lease, verdict_since_ms=paused)
    _judge(draft, lease, _is_busy(looks))


def activity_changed(draft: Draft, session: Session, before: Activity) -> None:
    """The main thread does something else than `before`; the device is taken to be as it was last seen."""
    began_new_spell = not {before, session.activity} <= _PROMPTS
    for lease in found(Lease, draft.state.leases, "by_session", session.id):
        if lease.state is not LeaseState.ACTIVE:
            continue
        is_new = began_new_spell and lease.verdict is not Verdict.ACTIVE
        since_ms = draft.now if is_new else lease.verdict_since_ms
        _judge(draft, replace(lease, verdict_since_ms=since_ms), _was_busy(lease.verdict))


def unobserved(draft: Draft, lease: Lease) -> None:
    """The lease's devices cannot be seen: nothing is known."""
    _judge(draft, lease, None)


def restarted(lease: Lease, now: Millis) -> Lease:
    """The lease with everything forgotten that was known of the holder's doings."""
    return replace(
        lease, context_seen=False, verdict=Verdict.UNKNOWN, verdict_since_ms=now, keeps_used=0
    )


def _judge(draft: Draft, lease: Lease, is_busy: bool | None) -> None:
    session = draft.state.sessions[lease.session_id]
    # Jobs and commands have no watcher; for them the device alone says what is shown.
    activity = session.activity if _has_watcher(session, lease) else Activity.IDLE
    verdict = verdict_of(is_busy, activity, context_seen=lease.context_seen)
    if verdict is not lease.verdict:
        is_same_spell = {verdict, lease.verdict} <= _SPELL
        since_ms = lease.verdict_since_ms if is_same_spell else draft.now
        lease = replace(lease, verdict=verdict, verdict_since_ms=since_ms)
        if verdict is Verdict.ACTIVE:  # back at work: what was held against it is forgotten
            lease = replace(lease, keeps_used=0, keep_until_ms=None, cause=None)
    draft.put(lease, Reason.of("verdict", verdict=verdict.value))


def _is_busy(looks: Sequence[SlotObservation]) -> bool | None:
    """Any use is use. Nobody's process on the slot is no use, even where the device has no counter (MIG)."""
    uses = [False if look.busy is None and look.processes == () else look.busy for look in looks]
    if True in uses:
        return True
    return None if None in uses else False


def _was_busy(verdict: Verdict) -> bool | None:
    if verdict is Verdict.UNKNOWN:
        return None
    return verdict is Verdict.ACTIVE


def _is_interactive(session: Session) -> bool:
    return session.kind is SessionKind.KERNEL and not session.headless


def _has_watcher(session: Session, lease: Lease) -> bool:
    return session.kind is SessionKind.KERNEL and lease.job_id is None
