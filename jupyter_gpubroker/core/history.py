"""Forgets what has long been over, so that the state stays bounded; the audit log in the store remembers.

State grows only when somebody comes or asks, so that is when it is swept.
"""

from __future__ import annotations

from .draft import Draft
from .model import GpuId, Millis, Reason, RequestState, State
from .place import is_lost
from .table import is_over, live

SWEEP_EVERY = 64  # requests

_FORGOTTEN = Reason.of("forgotten")


def is_due(before: State, after: State) -> bool:
    """Whether somebody came, or enough was asked for since the last time."""
    is_new = len(after.sessions) > len(before.sessions)
    return is_new or before.number // SWEEP_EVERY < after.number // SWEEP_EVERY


def sweep(draft: Draft) -> None:
    before_ms = Millis(draft.now - draft.state.limits.keep_history_ms)
    _forget_work(draft, before_ms)
    _forget_sessions(draft, before_ms)
    _forget_devices(draft, before_ms)


def _forget_work(draft: Draft, before_ms: Millis) -> None:
    """Leases, then the requests they came from, then the jobs that made those: nothing points at what is forgotten."""
    for lease in [*draft.state.leases.values()]:
        if is_over(lease) and lease.since_ms <= before_ms:
            draft.drop(lease, _FORGOTTEN)
    for request in [*draft.state.requests.values()]:
        is_old = is_over(request) and (request.ended_ms or 0) <= before_ms
        is_held = request.state is RequestState.GRANTED and request.lease_id in draft.state.leases
        if is_old and not is_held:
            draft.drop(request, _FORGOTTEN)
    asking = {request.job_id for request in draft.state.requests.values()}
    for job in [*draft.state.jobs.values()]:
        if is_over(job) and job.since_ms <= before_ms and job.id not in asking:
            draft.drop(job, _FORGOTTEN)


def _forget_sessions(draft: Draft, before_ms: Millis) -> None:
    used = {lease.session_id for lease in live(draft.state.leases)}
    used |= {job.session_id for job in live(draft.state.jobs)}
    for session in [*draft.state.sessions.values()]:
        if is_over(session) and session.since_ms <= before_ms and session.id not in used:
            draft.drop(session, _FORGOTTEN)


def _forget_devices(draft: Draft, before_ms: Millis) -> None:
    homes = {slot_id for lease in live(draft.state.leases) for slot_id in lease.home}
    for slot in [*draft.state.slots.values()]:
        is_gone = is_lost(slot) and slot.lease_id is None and slot.since_ms <= before_ms
        if is_gone and slot.id not in homes:
            draft.drop(slot, _FORGOTTEN)
    in_use: set[GpuId] = {slot.gpu_id for slot in draft.state.slots.values()}
    for gpu in [*draft.state.gpus.values()]:
        if gpu.state == "lost" and gpu.id not in in_use:
            draft.drop(gpu, _FORGOTTEN)
