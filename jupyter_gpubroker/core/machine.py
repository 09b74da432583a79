"""The state tables: every arc that exists, as data. An arc that is not here is a bug and raises.

Two rules: all changes of a `state` field go through `move`, and this file does not know what else an arc entails (that is
`decide`). Causes are in the past tense, as events are. `OWNER` names who must act in each non-terminal state and
`DEADLINE` which limit ends it; "waits for ever" is no state. The diagrams in `docs/architecture.md` are drawn from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from ..errors import InvalidTransition
from .model import JobState, LeaseState, RequestState, SessionState, SlotState

S = TypeVar("S", SlotState, SessionState, RequestState, LeaseState, JobState)
Table = Mapping[tuple[S, str], S]

SLOT: Table[SlotState] = {
    (SlotState.FREE, "granted"): SlotState.LEASED,
    (SlotState.FREE, "foreign_use_seen"): SlotState.QUARANTINED,
    (SlotState.FREE, "device_lost"): SlotState.QUARANTINED,
    (SlotState.FREE, "disabled"): SlotState.QUARANTINED,
    (SlotState.FREE, "fault_seen"): SlotState.QUARANTINED,
    (SlotState.LEASED, "given_back"): SlotState.DRAINING,
    (SlotState.LEASED, "device_lost"): SlotState.QUARANTINED,
    (SlotState.LEASED, "fault_seen"): SlotState.QUARANTINED,
    (SlotState.DRAINING, "give_back_failed"): SlotState.LEASED,
    (SlotState.DRAINING, "seen_clear"): SlotState.FREE,
    (SlotState.DRAINING, "clear_overdue"): SlotState.QUARANTINED,
    (SlotState.DRAINING, "device_lost"): SlotState.QUARANTINED,
    (SlotState.DRAINING, "fault_seen"): SlotState.QUARANTINED,
    (SlotState.QUARANTINED, "seen_clear"): SlotState.FREE,
    (SlotState.QUARANTINED, "device_back"): SlotState.LEASED,
}

SESSION: Table[SessionState] = {
    (SessionState.LIVE, "restart_announced"): SessionState.RESTARTING,
    (SessionState.LIVE, "ended"): SessionState.ENDED,
    (SessionState.RESTARTING, "succeeded"): SessionState.ENDED,
    (SessionState.RESTARTING, "not_restarted"): SessionState.LIVE,
    (SessionState.RESTARTING, "gap_overdue"): SessionState.ENDED,
    (SessionState.RESTARTING, "ended"): SessionState.ENDED,
}

REQUEST: Table[RequestState] = {
    (RequestState.WAITING, "granted"): RequestState.GRANTED,
    (RequestState.WAITING, "cancelled"): RequestState.CANCELLED,
    (RequestState.WAITING, "abandoned"): RequestState.CANCELLED,
    (RequestState.WAITING, "holder_gone"): RequestState.CANCELLED,
    (RequestState.WAITING, "wait_over"): RequestState.EXPIRED,
    (RequestState.WAITING, "unsatisfiable"): RequestState.REFUSED,
}

LEASE: Table[LeaseState] = {
    (LeaseState.GRANTED, "acknowledged"): LeaseState.ACTIVE,
    (LeaseState.GRANTED, "not_acknowledged"): LeaseState.DRAINING,
    (LeaseState.GRANTED, "given_back"): LeaseState.DRAINING,
    (LeaseState.ACTIVE, "given_back"): LeaseState.DRAINING,
    (LeaseState.DRAINING, "give_back_failed"): LeaseState.ACTIVE,
    (LeaseState.DRAINING, "seen_clear"): LeaseState.CLEARED,
    (LeaseState.DRAINING, "seen_quiet"): LeaseState.PARKED,
    (LeaseState.DRAINING, "clear_overdue"): LeaseState.QUARANTINED,
    (LeaseState.PARKED, "granted"): LeaseState.GRANTED,
    (LeaseState.PARKED, "given_back"): LeaseState.CLEARED,
    (LeaseState.QUARANTINED, "seen_clear"): LeaseState.CLEARED,
}

JOB: Table[JobState] = {
    (JobState.QUEUED, "granted"): JobState.STARTING,
    (JobState.QUEUED, "ended"): JobState.ENDED,
    (JobState.STARTING, "started"): JobState.RUNNING,
    (JobState.STARTING, "requeued"): JobState.QUEUED,
    (JobState.STARTING, "stop_asked"): JobState.STOPPING,
    (JobState.STARTING, "ended"): JobState.ENDED,
    (JobState.RUNNING, "stop_asked"): JobState.STOPPING,
    (JobState.RUNNING, "ended"): JobState.ENDED,
    (JobState.STOPPING, "requeued"): JobState.QUEUED,
    (JobState.STOPPING, "ended"): JobState.ENDED,
}

OWNER: Mapping[str, str] = {
    "slot leased": "the lease",
    "slot draining": "the agent",
    "slot quarantined": "the agent, then the admin",
    "session live": "its process",
    "session restarting": "its Jupyter server",
    "request waiting": "its client",
    "lease granted": "the holder's process",
    "lease active": "the holder",
    "lease draining": "who carries out the order, then the agent",
    "lease parked": "the holder",
    "lease quarantined": "the agent, then the admin",
    "job queued": "the broker",
    "job starting": "the runner",
    "job running": "the runner",
    "job stopping": "the runner",
}

DEADLINE: Mapping[str, str] = {
    "slot leased": "the lease's",
    "slot draining": "limits.clear_grace_ms after the holder is gone",
    "slot quarantined": "seen clear, or an admin's word; alarmed meanwhile",
    "session live": "the end of its process (pidfd)",
    "session restarting": "limits.restart_gap_ms after it was announced, then after the process ended",
    "request waiting": "its expires_ms, the end of its holder or the absence of its client",
    "lease granted": "limits.ack_ms",
    "lease active": "ends_ms, or the end of its holder",
    "lease draining": "the order's due_ms, then limits.clear_grace_ms",
    "lease parked": "the end of its holder",
    "lease quarantined": "seen clear, or an admin's word; alarmed meanwhile",
    "job queued": "its request's",
    "job starting": "limits.ack_ms",
    "job running": "time_limit_ms, or the end of its runner",
    "job stopping": "kill_ms",
}


def move(table: Table[S], state: S, cause: str) -> S:
    """The state that follows `state` by `cause`. Raises InvalidTransition where the table has no such arc."""
    try:
        return table[state, cause]
    except KeyError:
        raise InvalidTransition(f"no arc from {state.value} by {cause}") from None
