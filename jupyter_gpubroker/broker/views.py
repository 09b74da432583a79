"""Makes what the API shows: the state at one moment, for one owner, in words.

Each thing has a view and a key. The key is equal as long as nothing worth telling has changed; clocks and live numbers are
in the view but not in the key, else every long poll would end at once. Others' things appear without ids and names.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import fields
from datetime import datetime, timedelta, timezone

from .. import __version__
from ..core import audit, explain, giveback, idle, modes, queue
from ..core.model import (
    Gpu,
    Job,
    JobState,
    Lease,
    LeaseState,
    Millis,
    Mode,
    Notice,
    Reason,
    Request,
    RequestState,
    Session,
    Slot,
    SlotId,
    SlotSpec,
    SlotState,
    State,
)
from ..core.place import is_forgotten
from ..core.rules import Policy, Queue
from ..core.table import found, is_over, live
from ..core.verdicts import Evidence
from ..wire import views as wire
from .identity import Caller
from .latest import Latest
from .settings import Settings


def reason_view(reason: Reason) -> wire.ReasonView:
    sentence, sentence_es = explain.sentence(reason)
    return wire.ReasonView(reason.code, dict(reason.values), sentence, sentence_es)


def _maybe(reason: Reason | None) -> wire.ReasonView | None:
    return None if reason is None else reason_view(reason)


class Views:
    """Made for one call; `now` is broker time."""

    def __init__(self, state: State, latest: Latest, now: Millis, caller: Caller) -> None:
        self._state = state
        self._latest = latest
        self._now = now
        self._owner = caller.owner
        self._groups = caller.groups

    # --- the broker ----------------------------------------------------------------------------------------------------

    def health(self, settings: Settings) -> wire.HealthView:
        problem = self._node_problem()
        mode = modes.of_groups(self._state, self._groups).value
        said = reason_view(Reason.of(f"mode_{mode}"))
        return wire.HealthView(
            status="ok" if problem is None else "degraded",
            version=__version__,
            api=1,
            scope=settings.scope,
            mode=mode,
            incarnation=settings.incarnation,
            pid=os.getpid(),
            ready=self._latest.has_looked,
            simulated=settings.simulates != "",
            uptime_ms=round((time.monotonic() - settings.started_s) * 1000),
            problem=problem,
            isolation=self._isolation(),
            simulates=settings.simulates,
            mode_sentence=said.sentence,
            mode_sentence_es=said.sentence_es,
        )

    def _isolation(self) -> str:
        if self._latest.is_fenced:
            return "fenced"
        return "none" if self._state.modes.mode is Mode.OBSERVE else "advisory"

    # --- sessions ------------------------------------------------------------------------------------------------------

    def session(self, session: Session) -> wire.SessionView:
        interactive = self._state.queues.get("interactive")
        last_lease = self._last_lease(session)
        return wire.SessionView(
            id=session.id,
            kind=session.kind.value,
            name=session.name,
            kernel_id=session.kernel_id,
            server_id=session.server_id,
            state=session.state.value,
            activity=session.activity.value,
            mode=modes.of_groups(self._state, session.groups).value,
            policy=None if interactive is None else interactive.policy,
            leases=tuple(map(self.lease, self._leases_of(session))),
            requests=tuple(map(self.request, self._requests_of(session))),
            last_lease=None if last_lease is None else self.lease(last_lease),
            warnings=tuple(map(reason_view, audit.warnings(self._state, session))),
        )

    def session_key(self, session: Session) -> object:
        last_lease = self._last_lease(session)
        return (
            session,
            None if last_lease is None else self.lease_key(last_lease),
            list(map(self.lease_key, self._leases_of(session))),
            list(map(self.request_key, self._requests_of(session))),
            self._state.modes,
            audit.warnings(self._state, session),
        )

    def _leases_of(self, session: Session) -> list[Lease]:
        return [lease for lease in live(self._state.leases) if lease.session_id == session.id]

    def _last_lease(self, session: Session) -> Lease | None:
        """What the session, or the process before it, held last; None as long as it holds something."""
        leases = self._state.leases
        own = [*found(Lease, leases, "by_session", session.id)]
        if any(not is_over(lease) for lease in own):
            return None
        if session.predecessor is not None:
            own += found(Lease, leases, "by_session", session.predecessor)
        return max(own, key=lambda lease: (lease.granted_ms, lease.since_ms), default=None)

    def _requests_of(self, session: Session) -> list[Request]:
        return [each for each in live(self._state.requests) if each.session_id == session.id]

    # --- requests ------------------------------------------------------------------------------------------------------

    def request(self, request: Request) -> wire.RequestView:
        lease = None
        if request.state is RequestState.GRANTED and request.lease_id is not None:
            lease = self._state.leases.get(request.lease_id)
        place, waiting = queue.place_in_line(self._state, request)
        en, es = explain.request_sentence(self._state, request, self._now)
        return wire.RequestView(
            id=request.id,
            state=request.state.value,
            session_id=request.session_id,
            job_id=request.job_id,
            queue=request.queue,
            place=place,
            waiting=waiting,
            waited_ms=(request.ended_ms or self._now) - request.since_ms,
            expected_in_ms=self._expected_in_ms(request),
            lease=None if lease is None else self.lease(lease),
            reason=reason_view(explain.request_reason(self._state, request, self._now)),
            sentence=en,
            sentence_es=es,
        )

    def request_key(self, request: Request) -> object:
        lease = None if request.lease_id is None else self._state.leases.get(request.lease_id)
        return (
            request,
            queue.place_in_line(self._state, request),
            # Why it waits, but not how long it will: an expectation moves with the clock.
            explain.request_reason(self._state, request, self._now).code,
            None if lease is None else self.lease_key(lease),
        )

    # --- leases --------------------------------------------------------------------------------------------------------

    def lease(self, lease: Lease) -> wire.LeaseView:
        state = self._state
        slots = [state.slots[slot_id] for slot_id in _slot_ids(lease) if slot_id in state.slots]
        policy = idle.policy_of(state, lease)
        kinds = giveback.kinds_now(state, lease, self._now)
        en, es = explain.lease_sentence(state, lease, self._now)
        is_cleared = lease.state is LeaseState.CLEARED
        return wire.LeaseView(
            id=lease.id,
            state=lease.state.value,
            session_id=lease.session_id,
            job_id=lease.job_id,
            queue=lease.queue,
            slots=tuple(slot.id for slot in slots),
            epochs=tuple(hold.epoch for hold in lease.holds),
            models=tuple(slot.model for slot in slots),
            profiles=tuple(slot.profile for slot in slots),
            memory_mib=sum(slot.memory_mib for slot in slots),
            simulated=any(slot.simulated for slot in slots),
            visible_devices=",".join(hold.slot_id for hold in lease.holds),
            home=lease.home,
            verdict=lease.verdict.value,
            verdict_for_ms=self._now - lease.verdict_since_ms,
            held_for_ms=(lease.since_ms if is_cleared else self._now) - lease.granted_ms,
            ends_in_ms=self._left(lease.ends_ms),
            kept_for_ms=self._left(lease.keep_until_ms),
            keeps_left=None if policy is None else max(0, policy.keeps_max - lease.keeps_used),
            context_seen=lease.context_seen,
            memory_used_mib=self._over_slots(lease, "memory_used_mib", sum),
            utilisation_percent=self._over_slots(lease, "utilisation_percent", max),
            give_back=(kinds[0].value if kinds else "kept"),
            give_backs=tuple(kind.value for kind in kinds),
            refusals={
                kind.value: reason_view(reason)
                for kind, reason in giveback.refusals(state, lease, self._now)
            },
            gave_back=None if lease.gave_back is None else lease.gave_back.value,
            notice=self._notice(lease.notice),
            order=self._order(lease),
            reason=_maybe(lease.cause),
            sentence=en,
            sentence_es=es,
            ended_ago_ms=self._now - lease.since_ms if is_cleared else None,
        )

    def lease_key(self, lease: Lease) -> object:
        session = self._state.sessions.get(lease.session_id)
        offers = None if session is None else (session.kernel_offer, session.server_offer)
        return lease, offers

    def evidence(self, lease: Lease) -> Evidence | None:
        """What its verdict would rest on at this moment; None where its holder is not watched."""
        return idle.evidence_now(self._state, lease, self._now)

    def _notice(self, notice: Notice | None) -> wire.NoticeView | None:
        if notice is None:
            return None
        due_in_ms = max(0, notice.due_ms - self._now)
        return wire.NoticeView(notice.number, due_in_ms, reason_view(notice.reason), notice.shown)

    def _order(self, lease: Lease) -> wire.OrderView | None:
        order = lease.order
        if order is None:
            return None
        due_in_ms = max(0, order.due_ms - self._now)
        return wire.OrderView(order.number, order.kind.value, order.resume, due_in_ms)

    # --- devices and the line ------------------------------------------------------------------------------------------

    def gpus(self) -> wire.GpusView:
        shown = {slot.gpu_id for slot in self._slots()}
        gpus = sorted(
            (gpu for gpu in self._state.gpus.values() if gpu.id in shown or not gpu.simulated),
            key=lambda gpu: (gpu.node_id, gpu.index),
        )
        return wire.GpusView(tuple(map(self._gpu, gpus)), self._node_problem())

    def gpus_key(self) -> object:
        slots = self._state.slots.values()
        return list(self._state.gpus.values()), list(slots), self._node_problem()

    def _gpu(self, gpu: Gpu) -> wire.GpuView:
        slots = sorted(
            (slot for slot in self._slots() if slot.gpu_id == gpu.id),
            key=lambda slot: (slot.index, slot.id),
        )
        return wire.GpuView(
            uuid=gpu.id,
            index=gpu.index,
            node=gpu.node_id,
            model=gpu.model,
            memory_mib=gpu.memory_mib,
            mig_enabled=gpu.mig_enabled,
            simulated=gpu.simulated,
            state=gpu.state,
            slots=tuple(map(self._slot, slots)),
        )

    def _slots(self) -> list[Slot]:
        return [slot for slot in self._state.slots.values() if not is_forgotten(slot)]

    def _slot(self, slot: Slot) -> wire.SlotView:
        seen = self._latest.of(slot.node_id, slot.id)
        lease = None if slot.lease_id is None else self._state.leases.get(slot.lease_id)
        is_own = lease is not None and lease.owner == self._owner
        return wire.SlotView(
            id=slot.id,
            kind=slot.kind.value,
            profile=slot.profile,
            memory_mib=slot.memory_mib,
            state=slot.state.value,
            epoch=slot.epoch,
            taken=slot.lease_id is not None,
            lease_id=slot.lease_id if is_own else None,
            memory_used_mib=None if seen is None else seen.memory_used_mib,
            utilisation_percent=None if seen is None else seen.utilisation_percent,
            reason=_maybe(slot.reason),
        )

    def _node_problem(self) -> wire.ReasonView | None:
        if self._state.contradiction is not None:
            return reason_view(Reason.of("state_contradicts", why=self._state.contradiction))
        problems = (telemetry.problem for telemetry in self._state.telemetry.values())
        return _maybe(next((problem for problem in problems if problem is not None), None))

    def queue(self) -> wire.QueueView:
        line = queue.line(self._state)
        slots = self._slots()
        return wire.QueueView(
            waiting=tuple(self._entry(place, request) for place, request in enumerate(line, 1)),
            free_slots=sum(slot.state is SlotState.FREE for slot in slots),
            slots=len(slots),
        )

    def queue_key(self) -> object:
        slots = [(slot.id, slot.state) for slot in self._state.slots.values()]
        return queue.line(self._state), slots

    def _entry(self, place: int, request: Request) -> wire.QueueEntry:
        is_mine = request.owner == self._owner
        job = None if request.job_id is None else self._state.jobs.get(request.job_id)
        session = self._state.sessions.get(request.session_id)
        name = job.name if job is not None else session.name if session is not None else None
        return wire.QueueEntry(
            place=place,
            queue=request.queue,
            tier=self._state.queues[request.queue].tier.value,
            mine=is_mine,
            id=request.id if is_mine else None,
            name=name if is_mine else None,
            count=request.spec.count,
            what=_what(request.spec),
            waited_ms=self._now - request.since_ms,
            expected_in_ms=self._expected_in_ms(request),
            reason=reason_view(explain.request_reason(self._state, request, self._now))
            if is_mine
            else None,
        )

    # --- jobs ----------------------------------------------------------------------------------------------------------

    def job(self, job: Job) -> wire.JobView:
        state = self._state
        request = None if job.request_id is None else state.requests.get(job.request_id)
        waits = request is not None and request.state is RequestState.WAITING
        place = queue.place_in_line(state, request)[0] if request is not None and waits else None
        lease = self._job_lease(job)
        en, es = explain.job_sentence(state, job, self._now)
        return wire.JobView(
            id=job.id,
            number=job.number,
            name=job.name,
            session_id=job.session_id,
            queue=job.queue,
            state=job.state.value,
            attempt=job.attempt,
            submitted_at=self._wall(job.submitted_ms),
            waited_ms=(job.started_ms or job.ended_ms or self._now) - job.submitted_ms,
            ran_for_ms=None
            if job.started_ms is None
            else (job.ended_ms or self._now) - job.started_ms,
            pid=job.pid,
            exit_status=job.exit_status,
            outcome=None if job.outcome is None else job.outcome.value,
            kill_in_ms=self._left(job.kill_ms) if job.state is JobState.STOPPING else None,
            place=place,
            expected_in_ms=self._expected_in_ms(request) if request is not None and waits else None,
            lease=None if lease is None else self.lease(lease),
            reason=self._job_reason(job, request),
            sentence=en,
            sentence_es=es,
        )

    def job_key(self, job: Job) -> object:
        request = None if job.request_id is None else self._state.requests.get(job.request_id)
        lease = self._job_lease(job)
        return (
            job,
            None if request is None else self.request_key(request),
            None if lease is None else self.lease_key(lease),
        )

    def _job_reason(self, job: Job, request: Request | None) -> wire.ReasonView | None:
        """Why it is so; of one that waits, why it waits."""
        if request is not None and request.state is RequestState.WAITING:
            return reason_view(explain.request_reason(self._state, request, self._now))
        return _maybe(job.cause or (request.reason if request is not None else None))

    def _job_lease(self, job: Job) -> Lease | None:
        request = None if job.request_id is None else self._state.requests.get(job.request_id)
        if request is None or request.lease_id is None:
            return None
        return self._state.leases.get(request.lease_id)

    # --- rules ---------------------------------------------------------------------------------------------------------

    def rules(self) -> wire.RulesView:
        policies = sorted(self._state.policies.values(), key=lambda policy: policy.name)
        queues = sorted(self._state.queues.values(), key=lambda queue: queue.name)
        return wire.RulesView(tuple(map(_policy, policies)), tuple(map(_queue_rule, queues)))

    # --- small things --------------------------------------------------------------------------------------------------

    def _left(self, until_ms: Millis | None) -> int | None:
        return None if until_ms is None else max(0, until_ms - self._now)

    def _expected_in_ms(self, request: Request) -> int | None:
        return queue.expected_ms(self._state, request, self._now)

    def _over_slots(
        self, lease: Lease, field: str, combine: Callable[[list[int]], int]
    ) -> int | None:
        """One number for all slots held; None where any is unknown."""
        seen = [
            self._latest.of(self._state.slots[hold.slot_id].node_id, hold.slot_id)
            for hold in lease.holds
        ]
        numbers = [None if look is None else getattr(look, field) for look in seen]
        known = [number for number in numbers if number is not None]
        return combine(known) if known and len(known) == len(numbers) else None

    def wall_now(self) -> str:
        return self._wall(self._now)

    def _wall(self, at_ms: Millis) -> str:
        """When it was by the wall's clock, as people read it."""
        moment = datetime.now(timezone.utc) - timedelta(milliseconds=self._now - at_ms)
        return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def _slot_ids(lease: Lease) -> tuple[SlotId, ...]:
    """Where it is, or where it was and returns to."""
    return tuple(hold.slot_id for hold in lease.holds) or lease.home


def _policy(policy: Policy) -> wire.PolicyView:
    numbers = {
        field.name: getattr(policy, field.name) for field in fields(policy) if field.name != "name"
    }
    rules = Reason.of(
        "policy_rules",
        idle_ms=policy.idle_ms,
        unused_ms=policy.never_used_ms,
        elsewhere_ms=policy.host_busy_ms,
        notice_ms=policy.notice_ms,
        keep_ms=policy.keep_ms,
        keeps_max=policy.keeps_max,
    )
    sentence, sentence_es = explain.sentence(rules)
    return wire.PolicyView(policy.name, **numbers, sentence=sentence, sentence_es=sentence_es)


def _queue_rule(queue: Queue) -> wire.QueueRuleView:
    return wire.QueueRuleView(queue.name, queue.tier.value, queue.policy, queue.preemptible)


def _what(spec: SlotSpec) -> str:
    """What is asked for, as short as it can be said: `2 x GPU`, `1g.18gb`, `>= 20 GiB`."""
    kind = spec.profile or "GPU"
    if spec.memory_mib_min is not None:
        kind = f">= {round(spec.memory_mib_min / 1024, 1):g} GiB"
    words = kind if spec.model is None else f"{kind} {spec.model}"
    return words if spec.count == 1 else f"{spec.count} x {words}"
