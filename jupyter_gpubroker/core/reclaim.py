"""Takes slots back from idle holders, on demand: what follows from `claim` for their leases, and when a notice is due.

Only a request that stands in line now, and that these very slots would serve, is a reason; what comes free anyway is counted
first, and no more is taken than needed. Claims are worked out anew at each step, so a notice whose reason is gone is withdrawn.
A lease taken "for" a time (`ends_ms`) ends by the same way without demand.
"""

from __future__ import annotations

from dataclasses import replace

from . import giveback, jobs, modes
from .claim import ONLY_OBSERVED, claims, is_takeable
from .draft import Draft
from .idle import is_fresh, noted, policy_of
from .model import Lease, Millis, Mode, Notice, Reason, RequestId, State
from .table import found

ONLY_ADVISED = "only_advised"
_WITHDRAWN_BY_MODE = Reason.of("notice_withdrawn", why=ONLY_OBSERVED)


def make_way(draft: Draft) -> None:
    """Give notice where it is needed now, withdraw it where it is not; stop the jobs that must make way."""
    wanted = claims(draft.state, draft.now)
    for lease_id, request_id in wanted.idle.items():
        lease = draft.state.leases[lease_id]
        if modes.of_lease(draft.state, lease) is Mode.OBSERVE:
            _note(draft, lease)
        elif lease.notice is None:
            _give_notice(draft, lease, request_id)
        elif request_id != lease.notice.request_id and not _is_for_end(lease):
            notice = replace(lease.notice, request_id=request_id)
            draft.put(replace(lease, notice=notice), Reason.of("notice_reassigned"))
    for lease in found(Lease, draft.state.leases, "noticed"):
        if is_revoked(lease):
            continue
        if modes.of_lease(draft.state, lease) is Mode.OBSERVE:
            draft.put(replace(lease, notice=None), _WITHDRAWN_BY_MODE)
        elif lease.notice is not None and lease.id not in wanted.idle and not _is_for_end(lease):
            _withdraw(draft, lease)
    for lease_id, request_id in wanted.jobs.items():
        jobs.preempt(draft, draft.state.leases[lease_id], draft.state.requests[request_id])


def due(draft: Draft, lease: Lease) -> None:
    """The countdown of the lease's notice is over."""
    notice = lease.notice
    assert notice is not None
    is_for_end = _is_for_end(lease)
    if is_revoked(lease):
        _take(draft, lease, notice.reason)
    elif not is_for_end and not is_fresh(draft.state, lease, draft.now):
        draft.put(replace(lease, notice=None), Reason.of("samples_stale"))
    elif modes.of_lease(draft.state, lease) is not Mode.ENFORCE:
        giveback.stay(draft, lease, Reason.of(ONLY_ADVISED))
    elif not (is_for_end or notice.shown or notice.doubled):
        longer = Millis(2 * notice.due_ms - notice.issued_ms)
        doubled = replace(notice, due_ms=longer, doubled=True)
        draft.put(replace(lease, notice=doubled), Reason.of("notice_not_seen"))
    else:
        _take(draft, lease, Reason.of("time_was_over") if is_for_end else _taken(draft, lease))


def announce_end(draft: Draft, lease: Lease) -> None:
    """The time that the lease was asked for is nearly over."""
    assert lease.ends_ms is not None
    due_ms = Millis(max(lease.ends_ms, draft.now))
    reason = Reason.of("time_over", in_ms=due_ms - draft.now)
    _put_notice(draft, lease, RequestId(lease.id), due_ms, reason)


def announce_revocation(draft: Draft, lease: Lease, notice_ms: int, reason: Reason) -> None:
    """An admin wants it back; no answer of its holder changes that. Said again, it is not put off."""
    due_ms = Millis(draft.now + notice_ms)
    if lease.notice is None or not is_revoked(lease) or due_ms < lease.notice.due_ms:
        _put_notice(draft, lease, RequestId(lease.id), due_ms, reason)


def is_revoked(lease: Lease) -> bool:
    return lease.notice is not None and lease.notice.reason.code == "revoked"


def end_notice_ms(state: State, lease: Lease) -> Millis | None:
    """When the end of a lease with a time is to be announced."""
    if lease.ends_ms is None or lease.notice is not None:
        return None
    if modes.of_lease(state, lease) is Mode.OBSERVE:
        return None
    policy = policy_of(state, lease)
    return Millis(lease.ends_ms - (0 if policy is None else policy.notice_ms))


# --- notices --------------------------------------------------------------------------------------------------------------


def _give_notice(draft: Draft, lease: Lease, request_id: RequestId) -> None:
    policy = policy_of(draft.state, lease)
    assert policy is not None
    reason = Reason.of(
        "idle_and_wanted",
        verdict=lease.verdict.value,
        idle_ms=draft.now - lease.verdict_since_ms,
        notice_ms=policy.notice_ms,
    )
    _put_notice(draft, lease, request_id, Millis(draft.now + policy.notice_ms), reason)


def _note(draft: Draft, lease: Lease) -> None:
    """What the rules would have done by now, for the report."""
    idle_ms = draft.now - lease.verdict_since_ms
    reason = Reason.of(ONLY_OBSERVED, verdict=lease.verdict.value, idle_ms=idle_ms)
    draft.put(replace(lease, cause=reason), reason)


def _put_notice(
    draft: Draft, lease: Lease, request_id: RequestId, due_ms: Millis, reason: Reason
) -> None:
    number = lease.notices + 1
    notice = Notice(number, request_id, draft.now, due_ms, reason)
    lease = noted(draft.state, lease, draft.now)
    draft.put(replace(lease, notice=notice, notices=number, cause=None), reason)


def _withdraw(draft: Draft, lease: Lease) -> None:
    is_idle = is_takeable(draft.state, lease, draft.now)
    why = "no_longer_wanted" if is_idle else "no_longer_idle"
    draft.put(replace(lease, notice=None), Reason.of("notice_withdrawn", why=why))


def _take(draft: Draft, lease: Lease, reason: Reason) -> None:
    kinds = giveback.kinds_now(draft.state, lease, draft.now)
    if kinds:
        giveback.order(draft, noted(draft.state, lease, draft.now), kinds[0], reason)
    else:
        giveback.stay(draft, lease, Reason.of("holder_cannot_give_back"))


def _taken(draft: Draft, lease: Lease) -> Reason:
    idle_ms = draft.now - lease.verdict_since_ms
    return Reason.of("taken", verdict=lease.verdict.value, idle_ms=idle_ms)


def _is_for_end(lease: Lease) -> bool:
    return lease.notice is not None and lease.notice.request_id == RequestId(lease.id)
