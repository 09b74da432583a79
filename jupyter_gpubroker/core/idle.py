"""What a lease's holder is doing, since when, and from when on the lease may be taken back.

`watch` remembers what the looks showed, `verdicts` decides from it; here both are applied to leases, and a verdict is joined
with the policy. Unknown is never idle, a missing number is never 0, and clocks count time that was watched, not samples
(the rules: docs/architecture.md). Whether somebody wants the slot, and how it could come free, is decided
elsewhere (`reclaim`, `giveback`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .clear import has_context
from .draft import Draft
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
    Watch,
)
from .rules import Policy
from .table import found
from .verdicts import HOST_ALONE, Evidence, judge
from .watch import Glance, after, begun, blinded, evidence, executed

_SEEN = Reason.of("observed")


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
        Verdict.SERVING: policy.serving_ms,
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
    grace_over_ms = lease.since_ms + policy.grace_ms
    return Millis(max(lease.verdict_since_ms + limit, lease.keep_until_ms or 0, grace_over_ms))


def is_fresh(state: State, lease: Lease, now: Millis) -> bool:
    """Whether all devices of the lease were seen lately, and the last look told what its holder does."""
    watch = state.watches.get(lease.id)
    if watch is None or now - watch.seen_ms > state.limits.fresh_ms:
        return False
    if watch.blind_since_ms is None:
        return True
    seen = evidence_now(state, lease, now)
    return seen is not None and judge(seen).rule == HOST_ALONE


def evidence_now(state: State, lease: Lease, now: Millis) -> Evidence | None:
    """What is known of the holder at present; None before anything was seen."""
    watch = state.watches.get(lease.id)
    if watch is None:
        return None
    session = state.sessions[lease.session_id]
    # Jobs and commands have no watcher; for them the device and the host alone say what is shown.
    activity = session.activity if _has_watcher(session, lease) else Activity.IDLE
    return evidence(watch, lease, activity, state.limits, policy_of(state, lease), now)


def noted(state: State, lease: Lease, now: Millis) -> Lease:
    """The lease with what is known now as its evidence, where that speaks for its verdict: a step is taken on it."""
    seen = evidence_now(state, lease, now)
    if seen is None or judge(seen).verdict is not lease.verdict:
        return lease
    return replace(lease, evidence=seen)


# --- what is seen ---------------------------------------------------------------------------------------------------------


def observed(draft: Draft, lease: Lease, glances: Sequence[Glance]) -> None:
    """New samples of all slots of an active lease."""
    is_new = not lease.context_seen and any(
        has_context(draft.state, glance.slot, lease, glance.seen) for glance in glances
    )
    if is_new:
        lease = replace(lease, context_seen=True)
    before = draft.state.watches.get(lease.id)
    if before is None:
        lease = _unjudged(lease, draft.now)
    watch = after(before or begun(lease.id, draft.now), glances, draft.now, draft.state.limits)
    draft.put(watch, _SEEN)
    if before is None or is_new or not _is_settled(lease, before, watch):
        _judge(draft, lease)


def activity_changed(draft: Draft, session: Session, before: Activity) -> None:
    """The main thread does something else than `before`; the device is taken to be as it was last seen."""
    for lease in found(Lease, draft.state.leases, "by_session", session.id):
        watch = draft.state.watches.get(lease.id)
        if watch is not None:
            draft.put(executed(watch, before, session.activity, draft.now), _SEEN)
            _judge(draft, lease)


def unobserved(draft: Draft, lease: Lease) -> None:
    """The lease's devices cannot be seen: nothing is known of who is there since the last look."""
    lease = _unjudged(lease, draft.now)
    watch = draft.state.watches.get(lease.id)
    if watch is None:
        draft.put(lease, Reason.of("verdict", verdict=lease.verdict.value, rule=None))
    else:
        blind = replace(blinded(watch, watch.seen_ms), host_quiet_since_ms=None)
        draft.put(blind, _SEEN)
        _judge(draft, lease)


def begin(draft: Draft, lease: Lease) -> Lease:
    """The lease with everything forgotten that was known of its holder's doings: another process, or a new start."""
    forget(draft, lease)
    unjudged = _unjudged(lease, draft.now)
    return replace(
        unjudged,
        context_seen=False,
        verdict_since_ms=draft.now,
        evidence=None,
        keeps_used=0,
    )


def forget(draft: Draft, lease: Lease) -> None:
    """Stop watching its holder."""
    watch = draft.state.watches.get(lease.id)
    if watch is not None:
        draft.drop(watch, _SEEN)


def _judge(draft: Draft, lease: Lease) -> None:
    before = draft.state.leases[lease.id].verdict
    seen = evidence_now(draft.state, lease, draft.now)
    assert seen is not None
    ruling = judge(seen)
    since_ms = Millis(draft.now - ruling.for_ms)
    if since_ms != lease.verdict_since_ms:
        lease = replace(lease, verdict_since_ms=since_ms)
    if ruling.verdict is not before:
        lease = replace(lease, verdict=ruling.verdict, evidence=seen)
        if ruling.verdict is Verdict.ACTIVE:  # back at work: what was held against it is forgotten
            lease = replace(lease, keeps_used=0, keep_until_ms=None, cause=None)
    elif lease.verdict is not before:
        lease = replace(lease, verdict=before)
    verdict = ruling.verdict.value
    draft.put(lease, Reason.of("verdict", verdict=verdict, rule=ruling.rule))


def _is_settled(lease: Lease, before: Watch, watch: Watch) -> bool:
    """Whether nothing that the last look changed, nor time alone, can give another verdict. Most looks end here."""
    is_at_work = watch.quiet_since_ms is None
    return (
        is_at_work is (lease.verdict is Verdict.ACTIVE)
        and watch.blind_since_ms is before.blind_since_ms is None
        and watch.spinning_since_ms is before.spinning_since_ms is None
        and watch.quiet_since_ms == before.quiet_since_ms
        and watch.spell_since_ms == before.spell_since_ms
        and watch.host_works is before.host_works
        and watch.listens is before.listens
        and watch.bursts == before.bursts
    )


def _unjudged(lease: Lease, now: Millis) -> Lease:
    """The lease as if its holder had never been seen."""
    if lease.verdict is Verdict.UNKNOWN:
        return lease if lease.evidence is None else replace(lease, evidence=None)
    return replace(lease, verdict=Verdict.UNKNOWN, verdict_since_ms=now, evidence=None)


def _is_interactive(session: Session) -> bool:
    return session.kind is SessionKind.KERNEL and not session.headless


def _has_watcher(session: Session, lease: Lease) -> bool:
    return session.kind is SessionKind.KERNEL and lease.job_id is None
