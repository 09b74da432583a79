"""Forgets what has long been over, so that the state stays bounded; the audit log in the store remembers.

State grows only when somebody comes or asks, so that is when it is swept.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import takewhile
from typing import TypeVar

from .draft import Draft
from .model import Job, Lease, Millis, Reason, Request, RequestState, Session, Slot, State
from .place import is_lost
from .table import found, groups, live

SWEEP_EVERY = 64  # requests

K = TypeVar("K", bound=str)
E = TypeVar("E", Lease, Request, Job, Session)

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
    for lease in _old(Lease, draft.state.leases, before_ms):
        draft.drop(lease, _FORGOTTEN)
    for request in _old(Request, draft.state.requests, before_ms):
        if request.state is not RequestState.GRANTED or request.lease_id not in draft.state.leases:
            draft.drop(request, _FORGOTTEN)
    jobs = _old(Job, draft.state.jobs, before_ms)
    asking = {request.job_id for request in draft.state.requests.values()} if jobs else set()
    for job in jobs:
        if job.id not in asking:
            draft.drop(job, _FORGOTTEN)


def _forget_sessions(draft: Draft, before_ms: Millis) -> None:
    sessions = _old(Session, draft.state.sessions, before_ms)
    if not sessions:
        return
    used = {lease.session_id for lease in live(draft.state.leases)}
    used |= {job.session_id for job in live(draft.state.jobs)}
    for session in sessions:
        if session.id not in used:
            draft.drop(session, _FORGOTTEN)


def _forget_devices(draft: Draft, before_ms: Millis) -> None:
    quarantined = found(Slot, draft.state.slots, "quarantined")
    gone = [
        slot
        for slot in quarantined
        if is_lost(slot) and slot.lease_id is None and slot.since_ms <= before_ms
    ]
    homes = {slot_id for lease in live(draft.state.leases) for slot_id in lease.home if gone}
    for slot in gone:
        if slot.id not in homes:
            draft.drop(slot, _FORGOTTEN)
    lost = [gpu for gpu in draft.state.gpus.values() if gpu.state == "lost"]
    in_use = {slot.gpu_id for slot in draft.state.slots.values() if lost}
    for gpu in lost:
        if gpu.id not in in_use:
            draft.drop(gpu, _FORGOTTEN)


def _old(entity_type: type[E], entities: Mapping[K, E], before_ms: Millis) -> list[E]:
    """Those that have been over since then or longer."""
    ended = groups(entity_type, entities, "over").get(True, ())
    return [entities[key] for _, key in takewhile(lambda one: one[0] <= before_ms, ended)]
