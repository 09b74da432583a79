"""One replay: people and jobs act a workload out, `core.step` decides, everything in simulated time.

What the edges do in the broker happens here at once: grants are applied, notices shown, orders carried out, slots seen
clear. So every wait measured is a wait for somebody else's GPU. The same workload, regime and model give the same figures.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..core.decide import advance, next_deadline
from ..core.decision import Decision, Put
from ..core.effects import InspectSlots
from ..core.events import (
    Event,
    InventoryReported,
    JobEnded,
    JobStarted,
    JobSubmitted,
    LeaseAcknowledged,
    LeaseReleased,
    NoticeShown,
    OfferMade,
    OrderAnswered,
    PolicyApplied,
    ProcessOnSlot,
    ProcessOwner,
    RequestMade,
    SessionEnded,
    SessionOpened,
    SessionReported,
    SlotObservation,
    SlotSeen,
    SlotsObserved,
    Ticked,
)
from ..core.idle import reclaimable_ms
from ..core.model import (
    Activity,
    GiveBackKind,
    Gpu,
    GpuId,
    Job,
    JobId,
    JobState,
    Lease,
    LeaseId,
    LeaseState,
    MiB,
    Millis,
    NodeId,
    Offer,
    Owner,
    Reason,
    RequestId,
    Session,
    SessionId,
    SessionKind,
    SlotId,
    SlotKind,
    SlotSpec,
    State,
)
from ..core.queue import expected_ms
from .meter import Figures, Meter
from .regimes import Regime
from .workload import DAY_MS, BatchJob, Notebook, Workload

_NODE = NodeId("pool")
_MEMORY_MIB = MiB(80_000)
_GONE = Reason.of("process_gone")
_TERMINATED = -15


@dataclass(frozen=True, slots=True)
class Model:
    """What is assumed of the world (docs/simulator.md says why).

    warm_up_ms:     the beginning that no figure counts, since the pool starts empty.
    checkpoint_ms:  a preempted job goes on from the last whole multiple of its run time.
    restart_ms:     and loses this besides.
    came_back_ms:   who asks again so soon after a reclaim had not gone: the reclaim was false.
    look_ms:        how often the broker looks again while somebody waits for whom nothing can be taken yet.
    estimate_every: of each so many jobs that must wait, one is told when its turn comes, and held to it.
    """

    warm_up_ms: int = DAY_MS
    checkpoint_ms: int = 30 * 60_000
    restart_ms: int = 60_000
    came_back_ms: int = 10 * 60_000
    look_ms: int = 60_000
    estimate_every: int = 25

    def fitting(self, workload: Workload) -> Model:
        """A workload of a few days has none to give away for warming up."""
        return self if workload.length_ms > 3 * self.warm_up_ms else replace(self, warm_up_ms=0)


@dataclass(slots=True)
class _Guest:
    """A notebook's user. `asked_ms` is set while a burst waits for its lease."""

    notebook: Notebook
    bursts_done: int = 0
    requests: int = 0
    lease_id: LeaseId | None = None
    is_bursting: bool = False
    asked_ms: int | None = None
    taken_ms: int | None = None
    idle_spell: int = 0


@dataclass(slots=True)
class _Work:
    """A batch job. `left_ms` is what it has still to do; `started_ms` is set while it runs."""

    job: BatchJob
    left_ms: int
    since_ms: int
    runs: int = 0
    started_ms: int | None = None
    expected_ms: int | None = None


class Replay:
    """Made for one run of one workload under one regime."""

    def __init__(
        self, workload: Workload, gpus: int, regime: Regime, rules: PolicyApplied, model: Model
    ) -> None:
        self._workload = workload
        self._regime = regime
        self._model = model.fitting(workload)
        if regime.is_oracle:
            self._model = replace(self._model, checkpoint_ms=1, restart_ms=0)
        self._meter = Meter(gpus, self._model.warm_up_ms, workload.length_ms)
        self._guests = {SessionId(one.id): _Guest(one) for one in workload.notebooks}
        self._works = {JobId(job.id): _Work(job, job.duration_ms, 0) for job in workload.jobs}
        self._now = Millis(0)
        self._state = State()
        self._coming: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = 0
        self._happening: deque[Event] = deque()
        self._deadline: Millis | None = None
        self._is_looking = False
        self._must_wait = 0
        self._open_shop(gpus, rules)

    def run(self) -> Figures:
        for notebook in self._workload.notebooks:
            self._at(notebook.start_ms, self._comes, SessionId(notebook.id))
        for job in self._workload.jobs:
            self._at(job.submit_ms, self._submit, JobId(job.id))
        while self._coming and self._coming[0][0] < self._workload.length_ms:
            at_ms, _, act = heapq.heappop(self._coming)
            self._pass_to(at_ms)
            act()
        self._pass_to(self._workload.length_ms)
        self._close_books()
        return self._meter.figures()

    # --- the machinery ----------------------------------------------------------------------------------------------------

    def _at(self, at_ms: int, act: Callable[..., None], *arguments: object) -> None:
        self._numbers += 1
        heapq.heappush(self._coming, (at_ms, self._numbers, lambda: act(*arguments)))

    def _pass_to(self, at_ms: int) -> None:
        self._meter.passes(at_ms)
        self._now = Millis(at_ms)

    def _do(self, *events: Event) -> None:
        """Let the events happen, and all that follows from them at this moment."""
        self._happening.extend(events)
        while self._happening:
            event = self._happening.popleft()
            decision, self._state = advance(self._state, event, self._now)
            self._react(decision)
        self._set_alarm()

    def _set_alarm(self) -> None:
        deadline = next_deadline(self._state)
        if deadline is not None and (self._deadline is None or deadline < self._deadline):
            self._deadline = Millis(max(deadline, self._now))
            self._at(self._deadline, self._ring)

    def _ring(self) -> None:
        self._deadline = None
        self._do(Ticked())

    def _react(self, decision: Decision) -> None:
        """What the edges would do after this decision, as events of the same moment."""
        for key in {
            (change.entity_type, change.id): None
            for change in decision.changes
            if isinstance(change, Put)
        }:
            entity_type, entity_id = key
            if entity_type is Lease and entity_id in self._state.leases:
                self._lease_changed(self._state.leases[LeaseId(entity_id)])
            elif entity_type is Job and entity_id in self._state.jobs:
                self._job_changed(self._state.jobs[JobId(entity_id)])
        for effect in decision.effects:
            if isinstance(effect, InspectSlots):
                self._happening.append(_seen(self._state, effect.slot_ids))

    def _open_shop(self, gpus: int, rules: PolicyApplied) -> None:
        """The pool, the rules of this regime, and one runner for each group of jobs."""
        slots = tuple(
            SlotSeen(
                SlotId(f"gpu{n:05}"), GpuId(f"gpu{n:05}"), SlotKind.GPU, "GPU", _MEMORY_MIB, None, n
            )
            for n in range(gpus)
        )
        devices = tuple(
            Gpu(
                slot.gpu_id, _NODE, slot.index, slot.id, slot.model, slot.memory_mib, simulated=True
            )
            for slot in slots
        )
        self._do(rules, _rules(self._state, rules, self._regime, self._workload))
        self._do(InventoryReported(_NODE, devices, slots))
        self._do(_seen(self._state, [slot.id for slot in slots]))
        for group in sorted({job.group for job in self._workload.jobs}):
            self._do(
                SessionOpened(_session(SessionId(f"runner:{group}"), group, SessionKind.RUNNER))
            )

    # --- notebooks --------------------------------------------------------------------------------------------------------

    def _comes(self, session_id: SessionId) -> None:
        session = _session(session_id, session_id, SessionKind.KERNEL)
        offer = Offer((GiveBackKind.RESTARTED,))
        self._do(
            SessionOpened(session),
            SessionReported(session.owner, session_id, Activity.IDLE, front_ends=1),
            OfferMade(session.owner, session_id, offer),
        )
        self._wants(session_id)

    def _wants(self, session_id: SessionId) -> None:
        """The next burst of a session is to begin."""
        guest = self._guests[session_id]
        if guest.lease_id is not None:
            self._begin(guest, session_id)
            return
        guest.asked_ms = self._now
        guest.requests += 1
        self._meter.waiting += 1
        if guest.taken_ms is not None:
            self._meter.came_back(guest.taken_ms, self._model.came_back_ms)
        request_id = RequestId(f"{session_id}.{guest.requests}")
        owner = Owner(session_id)
        self._do(
            RequestMade(owner, request_id, session_id, SlotSpec(self._lease_size(guest)), "interactive")
        )
        self._look_again()

    def _lease_size(self, guest: _Guest) -> int:
        """Nobody but the oracle knows how many GPUs the bursts to come will use."""
        burst = guest.notebook.bursts[guest.bursts_done]
        return burst.gpus if self._regime.is_oracle else guest.notebook.gpus

    def _begin(self, guest: _Guest, session_id: SessionId) -> None:
        burst = guest.notebook.bursts[guest.bursts_done]
        guest.is_bursting = True
        guest.idle_spell += 1
        self._meter.bursting += burst.gpus
        self._at(self._now + burst.duration_ms, self._ends, session_id)
        self._do(*self._activity(guest, session_id))

    def _ends(self, session_id: SessionId) -> None:
        guest = self._guests[session_id]
        self._meter.bursting -= guest.notebook.bursts[guest.bursts_done].gpus
        guest.is_bursting = False
        guest.bursts_done += 1
        if guest.bursts_done == len(guest.notebook.bursts):
            self._do(SessionEnded(session_id, _GONE))
            return
        think_ms = guest.notebook.bursts[guest.bursts_done].think_ms
        self._at(self._now + think_ms, self._wants, session_id)
        self._do(*self._activity(guest, session_id))
        self._watch(guest, session_id)

    def _watch(self, guest: _Guest, session_id: SessionId) -> None:
        """Come back to the lease when the idle time of this spell may be over."""
        if self._regime.timer_ms is not None:
            self._at(
                self._now + self._regime.timer_ms, self._time_out, session_id, guest.idle_spell
            )
        elif guest.lease_id is not None:
            at_ms = reclaimable_ms(self._state, self._state.leases[guest.lease_id])
            if at_ms is not None:
                self._at(at_ms, self._idle_out, session_id, guest.idle_spell)

    def _time_out(self, session_id: SessionId, idle_spell: int) -> None:
        """The timer beside the broker: the GPU is taken, and back when the user is."""
        guest = self._guests[session_id]
        if guest.idle_spell == idle_spell and guest.lease_id is not None:
            lease_id = guest.lease_id
            self._taken(guest)
            self._do(LeaseReleased(Owner(session_id), lease_id, GiveBackKind.RESTARTED, done=True))

    def _idle_out(self, session_id: SessionId, idle_spell: int) -> None:
        guest = self._guests[session_id]
        if guest.idle_spell == idle_spell and guest.lease_id is not None:
            self._do(Ticked())

    def _taken(self, guest: _Guest) -> None:
        if not self._regime.is_oracle:
            self._meter.taken()
            guest.taken_ms = self._now

    def _activity(self, guest: _Guest, session_id: SessionId) -> tuple[Event, ...]:
        """The evidence for what the session does now."""
        assert guest.lease_id is not None
        activity = Activity.RUNNING if guest.is_bursting else Activity.IDLE
        process = ProcessOnSlot(1, ProcessOwner.SESSION, session_id)
        holds = self._state.leases[guest.lease_id].holds
        looks = tuple(
            SlotObservation(hold.slot_id, guest.is_bursting, None, None, (process,))
            for hold in holds
        )
        reported = SessionReported(Owner(session_id), session_id, activity, front_ends=1)
        return reported, SlotsObserved(_NODE, looks, frozenset())

    def _lease_changed(self, lease: Lease) -> None:
        if lease.job_id is not None:
            return
        guest = self._guests[lease.session_id]
        if lease.state is LeaseState.GRANTED:
            self._happening.append(LeaseAcknowledged(lease.owner, lease.id))
        elif lease.state is LeaseState.ACTIVE and guest.lease_id is None:
            self._granted(guest, lease)
        elif lease.state is LeaseState.ACTIVE and lease.notice is not None:
            if not lease.notice.shown:
                shown = NoticeShown(lease.owner, lease.id, lease.notice.number)
                self._happening.append(shown)
        elif lease.state is LeaseState.DRAINING and guest.lease_id == lease.id:
            guest.lease_id = None
            self._meter.leased -= len(lease.holds)
            if lease.order is not None:
                self._taken(guest)
                answer = OrderAnswered(lease.owner, lease.id, lease.order.number, ok=True)
                self._happening.append(answer)

    def _granted(self, guest: _Guest, lease: Lease) -> None:
        assert guest.asked_ms is not None
        guest.lease_id = lease.id
        self._meter.leased += len(lease.holds)
        self._meter.waiting -= 1
        self._meter.waited(
            guest.asked_ms, is_first=guest.requests == 1, is_return=guest.taken_ms is not None
        )
        guest.asked_ms = guest.taken_ms = None
        self._at(self._now, self._begin, guest, lease.session_id)

    def _look_again(self) -> None:
        """As the broker does each second while somebody waits: limits may have passed meanwhile."""
        waits = any(guest.asked_ms is not None for guest in self._guests.values())
        if waits and not self._is_looking:
            self._is_looking = True
            self._at(self._now + self._model.look_ms, self._look)

    def _look(self) -> None:
        self._is_looking = False
        self._do(Ticked())
        self._look_again()

    # --- batch jobs -------------------------------------------------------------------------------------------------------

    def _submit(self, job_id: JobId) -> None:
        work = self._works[job_id]
        work.since_ms = self._now
        self._meter.job_asked()
        self._meter.waiting += 1
        job = work.job
        self._do(
            JobSubmitted(
                Owner(job.group), job_id, SessionId(f"runner:{job.group}"), job.id,
                SlotSpec(job.gpus), "batch", checkpoint_ms=self._model.checkpoint_ms,
            )
        )  # fmt: skip
        if work.started_ms is None:
            self._must_wait += 1
            if self._must_wait % self._model.estimate_every == 0:
                self._note_estimate(job_id, work)

    def _note_estimate(self, job_id: JobId, work: _Work) -> None:
        request_id = self._state.jobs[job_id].request_id
        assert request_id is not None
        wait_ms = expected_ms(self._state, self._state.requests[request_id], self._now)
        work.expected_ms = None if wait_ms is None else self._now + wait_ms

    def _job_changed(self, job: Job) -> None:
        work = self._works[job.id]
        if job.state is JobState.STARTING:
            self._happening.append(JobStarted(job.owner, job.id, job.attempt, 1, 1))
        elif job.state is JobState.RUNNING and work.started_ms is None:
            self._start(work, job.id)
        elif job.state is JobState.STOPPING and work.started_ms is not None:
            self._preempt(work)
            self._happening.append(JobEnded(job.owner, job.id, job.attempt, _TERMINATED))

    def _start(self, work: _Work, job_id: JobId) -> None:
        self._meter.waiting -= 1
        self._meter.batch += work.job.gpus
        self._meter.job_waited(work.since_ms, work.job.group, work.job.gpus)
        if work.expected_ms is not None:
            self._meter.estimated(abs(self._now - work.expected_ms))
            work.expected_ms = None
        work.started_ms = self._now
        overhead_ms = self._model.restart_ms if work.runs else 0
        work.runs += 1
        self._at(self._now + overhead_ms + work.left_ms, self._finish, job_id, work.runs)

    def _finish(self, job_id: JobId, run: int) -> None:
        work = self._works[job_id]
        if work.runs != run or work.started_ms is None:
            return  # preempted meanwhile
        self._stop(work)
        work.left_ms = 0
        self._meter.job_done(work.job.submit_ms)
        attempt = self._state.jobs[job_id].attempt
        self._do(JobEnded(Owner(work.job.group), job_id, attempt, 0))

    def _preempt(self, work: _Work) -> None:
        ran_ms = self._stop(work)
        overhead_ms = self._model.restart_ms if work.runs > 1 else 0
        useful_ms = max(0, ran_ms - overhead_ms)
        saved_ms = useful_ms - useful_ms % self._model.checkpoint_ms
        work.left_ms -= saved_ms
        work.since_ms = self._now
        self._meter.lost((ran_ms - saved_ms) * work.job.gpus)
        self._meter.waiting += 1

    def _stop(self, work: _Work) -> int:
        """The job is off its GPUs; says how long it ran."""
        assert work.started_ms is not None
        ran_ms = self._now - work.started_ms
        work.started_ms = None
        self._meter.batch -= work.job.gpus
        self._meter.ran(work.job.group, ran_ms * work.job.gpus)
        return ran_ms

    def _close_books(self) -> None:
        for guest in self._guests.values():
            if guest.asked_ms is not None:
                self._meter.still_waiting(guest.asked_ms)
        for work in self._works.values():
            if work.started_ms is None and work.left_ms and work.job.submit_ms < self._now:
                self._meter.still_waiting(work.since_ms)


def _rules(state: State, rules: PolicyApplied, regime: Regime, workload: Workload) -> PolicyApplied:
    """The given rows with what makes the regime, and with what the replay's own perfection needs.

    Nothing it sees grows old, nothing that is over is remembered, and a group may have its whole list of jobs in line.
    """
    queues = {queue.name: queue for queue in (*state.queues.values(), *rules.queues)}
    interactive = replace(
        queues["interactive"], policy=None if regime.policy is None else regime.policy.name
    )
    batch = queues["batch"]
    if batch.name not in {queue.name for queue in rules.queues}:
        batch = replace(batch, preemptible=True)
    limits = replace(
        rules.limits or state.limits,
        fresh_ms=2 * workload.length_ms,
        keep_history_ms=0,
        waiting_max_per_owner=len(workload.jobs) + 1,
    )
    return PolicyApplied(queues=(interactive, batch), limits=limits)


def _session(session_id: SessionId, owner: str, kind: SessionKind) -> Session:
    return Session(session_id, Owner(owner), 0, kind, session_id, 1, 1, "simulated")


def _seen(state: State, slot_ids: Sequence[SlotId]) -> SlotsObserved:
    """The slots are empty."""
    looks = (SlotObservation(slot_id, False, False, MiB(0), ()) for slot_id in slot_ids)
    holders = {state.slots[slot_id].lease_id for slot_id in slot_ids}
    leaving = frozenset(lease_id for lease_id in holders if lease_id is not None)
    return SlotsObserved(_NODE, tuple(looks), leaving)
