"""Says in words why things are as they are, in English and Spanish.

The core decides with codes and numbers; people read sentences. `sentence` renders any reason; the others say how a lease,
request or job stands now. No word of the state tables is ever shown raw.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum

from .catalogue import SENTENCES, WORDS
from .idle import limit_ms, policy_of
from .model import (
    Job,
    JobState,
    Lease,
    LeaseState,
    Millis,
    Reason,
    Request,
    RequestState,
    SessionState,
    SlotState,
    State,
    Value,
    Verdict,
)
from .place import LOST_CODES, describe, serves
from .queue import expected_ms, place_in_line
from .verdicts import Evidence, judge, to_values

Sentences = tuple[str, str]


class Language(IntEnum):
    """The position of a language's sentence in the catalogue."""

    ENGLISH = 0
    SPANISH = 1


_UNKNOWN_CODE = ("Reason: {code}.", "Motivo: {code}.")
_UNKNOWN_VALUE = ("unknown", "desconocido")


def sentence(reason: Reason) -> Sentences:
    """The reason in English and in Spanish."""
    return explain(reason, Language.ENGLISH), explain(reason, Language.SPANISH)


def explain(reason: Reason, language: Language) -> str:
    template = SENTENCES.get(reason.code)
    if template is None:  # said by another version, or by somebody's own code
        return _UNKNOWN_CODE[language].format(code=reason.code)
    words = {name: _words(name, value, language) for name, value in reason.values}
    text = template[language].format_map(_Words(words, language))
    return text[:1].upper() + text[1:]


def lease_sentence(state: State, lease: Lease, now: Millis) -> Sentences:
    """How the lease stands, and what it came to that for."""
    return _joined(lease_reasons(state, lease, now))


def evidence_reason(seen: Evidence) -> Reason:
    """What the verdict rests on: the rule that gives it, with all its numbers."""
    return Reason(f"rule_{judge(seen).rule}", tuple(sorted(to_values(seen).items())))


def request_sentence(state: State, request: Request, now: Millis) -> Sentences:
    return _joined(request_reasons(state, request, now))


def job_sentence(state: State, job: Job, now: Millis) -> Sentences:
    return _joined(job_reasons(state, job, now))


# --- leases ---------------------------------------------------------------------------------------------------------------


_SAY_HOW = frozenset({"lease_parked", "lease_over_by"})


def lease_reasons(state: State, lease: Lease, now: Millis) -> tuple[Reason, ...]:
    """How it stands now, then why, where that is not the same."""
    stands = _lease_reason(state, lease, now)
    if lease.notice is not None:
        return (stands,)
    if lease.cause is not None:
        is_said = lease.cause.code == "gave_back" and stands.code in _SAY_HOW
        return (stands,) if is_said else (stands, lease.cause)
    if lease.state is LeaseState.ACTIVE and (lease.keep_until_ms or 0) > now:
        return (stands, Reason.of("lease_kept", left_ms=(lease.keep_until_ms or now) - now))
    return (stands,)


def _lease_reason(state: State, lease: Lease, now: Millis) -> Reason:
    what = _what(state, lease)
    if lease.state is LeaseState.ACTIVE:
        return _active_reason(state, lease, now)
    if lease.state is LeaseState.GRANTED:
        if lease.order is not None:
            return Reason.of("lease_resuming", what=what)
        left_ms = max(0, (lease.deadline_ms or now) - now)
        return Reason.of("lease_granted", what=what, left_ms=left_ms)
    if lease.state is LeaseState.PARKED:
        return Reason.of("lease_parked", what=what)
    if lease.state is LeaseState.CLEARED:
        if lease.cause is not None and lease.cause.code == "gave_back":
            return Reason.of("lease_over_by", what=what, kind=lease.cause.get("kind"))
        return Reason.of("lease_over", what=what)
    if lease.order is not None:
        return Reason.of("lease_giving_back", what=what, kind=lease.order.kind.value)
    return Reason.of("lease_leaving", what=what)


def _active_reason(state: State, lease: Lease, now: Millis) -> Reason:
    what, verdict = _what(state, lease), lease.verdict.value
    for_ms = max(0, now - lease.verdict_since_ms)
    if lease.notice is not None:
        due_ms = max(0, lease.notice.due_ms - now)
        if lease.notice.reason.code == "revoked":
            return Reason.of("lease_revoked", due_ms=due_ms, why=lease.notice.reason.get("why"))
        if lease.notice.reason.code == "time_over":
            return Reason.of("lease_ending", due_ms=due_ms)
        return Reason.of("lease_noticed", due_ms=due_ms, verdict=verdict, for_ms=for_ms)
    if lease.verdict is Verdict.UNKNOWN:
        return Reason.of("lease_unseen", what=what)
    if lease.verdict is Verdict.ACTIVE:
        return Reason.of("lease_active", what=what)
    policy = policy_of(state, lease)
    limit = None if policy is None else limit_ms(policy, lease.verdict)
    if limit is None:
        return Reason.of("lease_watched", what=what, verdict=verdict)
    return Reason.of("lease_quiet", what=what, verdict=verdict, for_ms=for_ms, limit_ms=limit)


def _what(state: State, lease: Lease) -> str:
    """The devices, in a few words."""
    slots = [state.slots[slot_id] for slot_id in lease.home if slot_id in state.slots]
    return describe(slots)


# --- requests -------------------------------------------------------------------------------------------------------------


def request_reasons(state: State, request: Request, now: Millis) -> tuple[Reason, ...]:
    """Why it waits, then why somebody keeps what it waits for; of others' processes that is nobody's business."""
    reason = request_reason(state, request, now)
    if reason.code != "waiting_held":
        return (reason,)
    causes = [
        lease.cause
        for lease in _kept(state, request)
        if lease.cause is not None and lease.owner == request.owner
    ]
    return (reason, *causes[:1])


def request_reason(state: State, request: Request, now: Millis) -> Reason:
    """Why it waits, or what became of it."""
    if request.state is RequestState.WAITING:
        return _waiting_reason(state, request, now)
    if request.reason is not None:
        return request.reason
    return Reason.of("granted", waited_ms=(request.ended_ms or now) - request.since_ms)


def _waiting_reason(state: State, request: Request, now: Millis) -> Reason:
    problems = (telemetry.problem for telemetry in state.telemetry.values())
    problem = next((problem for problem in problems if problem is not None), None)
    if problem is not None:
        return problem
    if not state.slots:
        return Reason.of("devices_unknown")
    if state.sessions[request.session_id].state is SessionState.RESTARTING:
        return Reason.of("waiting_restart")
    place, waiting = place_in_line(state, request)
    expected = expected_ms(state, request, now)
    if place == 1 and expected is not None and expected < 1_000:
        return Reason.of("waiting_next")
    if expected is not None:
        return Reason.of("waiting_expected", place=place, waiting=waiting, expected_ms=expected)
    serving = [slot for slot in state.slots.values() if serves(slot, request.spec)]
    if all(slot.state is SlotState.QUARANTINED for slot in serving):
        return Reason.of("waiting_unusable", place=place, waiting=waiting)
    if _kept(state, request):
        return Reason.of("waiting_held", place=place, waiting=waiting)
    return Reason.of("waiting", place=place, waiting=waiting)


_NOT_KEPT = LOST_CODES | {"only_advised", "only_observed"}


def _kept(state: State, request: Request) -> list[Lease]:
    """Leases that stay where they are since giving back what the request waits for did not work."""
    holders = {slot.lease_id for slot in state.slots.values() if serves(slot, request.spec)}
    leases = [state.leases[lease_id] for lease_id in sorted(filter(None, holders))]
    return [
        lease
        for lease in leases
        if lease.state is LeaseState.ACTIVE
        and lease.cause is not None
        and lease.cause.code not in _NOT_KEPT
    ]


# --- jobs -----------------------------------------------------------------------------------------------------------------


_SAID_BY_OUTCOME = frozenset({"job_ended", "job_cancelled", "cancelled_by_client"})
_SAYS_IT_ALL = frozenset({"job_time_limit"})


def job_reasons(state: State, job: Job, now: Millis) -> tuple[Reason, ...]:
    if job.state is JobState.QUEUED:
        assert job.request_id is not None
        return (request_reason(state, state.requests[job.request_id], now),)
    stands = _job_reason(state, job, now)
    if job.cause is not None and job.state is JobState.ENDED and job.cause.code in _SAYS_IT_ALL:
        return (job.cause,)
    if job.cause is None or (job.state is JobState.ENDED and job.cause.code in _SAID_BY_OUTCOME):
        return (stands,)
    return (stands, job.cause)


def _job_reason(state: State, job: Job, now: Millis) -> Reason:
    if job.state is JobState.STARTING:
        lease = state.leases[job.request_id]  # type: ignore[index]
        return Reason.of("job_starting", what=_what(state, lease))
    if job.state is JobState.STOPPING:
        return Reason.of("job_stopping", kill_ms=max(0, (job.kill_ms or now) - now))
    if job.state is JobState.ENDED:
        outcome = None if job.outcome is None else job.outcome.value
        if job.exit_status is None:
            return Reason.of("job_over", outcome=outcome)
        if job.exit_status < 0:
            return Reason.of("job_killed", outcome=outcome, signal=-job.exit_status)
        return Reason.of("job_ended", outcome=outcome, exit_status=job.exit_status)
    for_ms = now - (job.started_ms or now)
    if job.time_limit_ms is None:
        return Reason.of("job_running", for_ms=for_ms)
    return Reason.of("job_running_limited", for_ms=for_ms, limit_ms=job.time_limit_ms)


# --- words ----------------------------------------------------------------------------------------------------------------


class _Words(dict[str, str]):
    """Values by name; one that a sentence wants and nobody gave is said to be unknown."""

    __slots__ = ("_language",)

    def __init__(self, words: Mapping[str, str], language: Language) -> None:
        super().__init__(words)
        self._language = language

    def __missing__(self, name: str) -> str:
        return _UNKNOWN_VALUE[self._language]


def _joined(reasons: Iterable[Reason]) -> Sentences:
    pairs = [sentence(reason) for reason in reasons]
    return " ".join(english for english, _ in pairs), " ".join(spanish for _, spanish in pairs)


def _words(name: str, value: Value, language: Language) -> str:
    if value is None:
        return _UNKNOWN_VALUE[language]
    if isinstance(value, int) and not isinstance(value, bool):
        if name.endswith("_ms"):
            return duration(value)
        if name.endswith("_mib"):
            return memory(value)
    pair = WORDS[name].get(str(value)) if name in WORDS else None
    return str(value) if pair is None else pair[language]


def duration(ms: int) -> str:
    """Two units at most, to the nearest, as people say it: `2 h 5 min`, `3 min`, `12 s`, `0.4 s`."""
    if ms < 1_000:
        return f"{round(ms / 1_000, 1):g} s"
    step_s = 3_600 if ms >= 86_400_000 else 60 if ms >= 3_600_000 else 1
    seconds = (ms + 500 * step_s) // (1_000 * step_s) * step_s
    parts: list[tuple[int, str]] = []
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
        count, seconds = divmod(seconds, size)
        if count or parts:
            parts.append((count, unit))
    return " ".join(f"{count} {unit}" for count, unit in parts[:2] if count)


def memory(mib: int) -> str:
    """`512 MiB`, `1.5 GiB`, `140 GiB`."""
    if mib < 1_024:
        return f"{mib} MiB"
    gib = mib / 1_024
    return f"{round(gib)} GiB" if gib >= 10 else f"{round(gib, 1):g} GiB"
