"""Why something is as it is: its sentence, the numbers behind it, and what happened to it, from the audit log.

Whatever had an id is answered for: also what is over, and what was refused before it came to be (`Refusals`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from ..core import explain, idle
from ..core.model import (
    Job,
    JobId,
    Lease,
    LeaseId,
    Owner,
    Reason,
    Request,
    RequestId,
    State,
    Value,
)
from ..core.verdicts import Evidence, judge, to_values
from ..store.records import AuditRow
from ..wire import views as wire
from .views import Views, reason_view

REFUSALS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Refusal:
    """A request or job that was refused when it was asked for, `at` by the wall's clock."""

    owner: Owner
    id: str
    reason: Reason
    at: str


class Refusals:
    """The newest refusals; older ones are forgotten, and all of them when the broker ends."""

    def __init__(self) -> None:
        self._by_id: OrderedDict[str, Refusal] = OrderedDict()

    def note(self, refusal: Refusal) -> None:
        self._by_id[refusal.id] = refusal
        self._by_id.move_to_end(refusal.id)
        while len(self._by_id) > REFUSALS_MAX:
            self._by_id.popitem(last=False)

    def __iter__(self) -> Iterator[Refusal]:
        return iter(self._by_id.values())


Thing = Job | Lease | Request | Refusal


def things(state: State, refusals: Refusals, owner: Owner, prefix: str) -> dict[str, Thing]:
    """What `owner` has or had whose id begins so. A lease stands for the request it came from, a job for both."""
    found: dict[str, Thing] = {}
    for table in (refusals, *(t.values() for t in (state.requests, state.leases, state.jobs))):
        found |= {
            thing.id: thing
            for thing in table
            if thing.owner == owner and thing.id.startswith(prefix)
        }
    return found


def thing_of(
    state: State, refusals: Refusals, owner: Owner, kind: type[Thing], thing_id: str
) -> Thing | None:
    """The job, lease or request of that id, or that one was refused."""
    table: dict[type[Thing], Thing | None] = {
        Job: state.jobs.get(JobId(thing_id)),
        Lease: state.leases.get(LeaseId(thing_id)),
        Request: state.requests.get(RequestId(thing_id)),
    }
    found = table[kind] or next((each for each in refusals if each.id == thing_id), None)
    return found if found is not None and found.owner == owner else None


def why(views: Views, state: State, thing: Thing, rows: Sequence[AuditRow]) -> wire.WhyView:
    story = tuple(map(_step, rows))
    if isinstance(thing, Refusal):
        reason = reason_view(thing.reason)
        step = wire.Step(thing.at, "Refused", reason)
        return wire.WhyView(thing.id, reason.sentence, reason.sentence_es, {}, (*story, step))
    numbers: wire.Values
    kept = now = None
    view: wire.JobView | wire.LeaseView | wire.RequestView
    if isinstance(thing, Job):
        view = views.job(thing)
        numbers = {
            "attempt": view.attempt,
            "place": view.place,
            "waited_ms": view.waited_ms,
            "ran_for_ms": view.ran_for_ms,
            "exit_status": view.exit_status,
        }
    elif isinstance(thing, Lease):
        view = views.lease(thing)
        kept, now = _ruling(thing.evidence), _ruling(views.evidence(thing))
        policy = idle.policy_of(state, thing)
        numbers = {"held_for_ms": view.held_for_ms}
        if view.ended_ago_ms is not None:
            return wire.WhyView(view.id, view.sentence, view.sentence_es, numbers, story)
        numbers |= {
            "verdict": view.verdict,
            "verdict_for_ms": view.verdict_for_ms,
            "limit_ms": None if policy is None else idle.limit_ms(policy, thing.verdict),
            "kept_for_ms": view.kept_for_ms,
            "keeps_left": view.keeps_left,
            "give_back": view.give_back,
        }
    else:
        view = views.request(thing)
        numbers = {
            "place": view.place,
            "waiting": view.waiting,
            "waited_ms": view.waited_ms,
            "expected_in_ms": view.expected_in_ms,
        }
    return wire.WhyView(view.id, view.sentence, view.sentence_es, numbers, story, kept, now)


def _ruling(seen: Evidence | None) -> wire.RulingView | None:
    if seen is None:
        return None
    ruling = judge(seen)
    en, es = explain.sentence(explain.evidence_reason(seen))
    verdict, evidence = ruling.verdict.value, to_values(seen)
    return wire.RulingView(verdict, ruling.rule, ruling.for_ms, evidence, en, es)


def _step(row: AuditRow) -> wire.Step:
    return wire.Step(row.wall_time, row.event, reason_of_row(row))


def reason_of_row(row: AuditRow) -> wire.ReasonView:
    """What a row of the audit gives as the reason, in words."""
    values = msgspec.json.decode(row.reason_values, type=dict[str, Value])
    return reason_view(Reason(row.reason_code, tuple(values.items())))
