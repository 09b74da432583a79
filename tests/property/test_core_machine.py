"""Everything that can happen, in any order: the rules that never break, replay, and nothing stuck at the end.

The steps know nothing of the core's rules; most of what they send is legal, some is late, doubled or nonsense.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from jupyter_gpubroker.core.check import transition_violations, violations
from jupyter_gpubroker.core.decide import advance, apply, effects_of, next_deadline, step
from jupyter_gpubroker.core.effects import AdmitHold
from jupyter_gpubroker.core.events import (
    Event,
    JobCancelled,
    JobEnded,
    JobStarted,
    JobSubmitted,
    LeaseAcknowledged,
    LeaseKept,
    LeaseReleased,
    NodeUnobserved,
    NoticeShown,
    OfferMade,
    OrderAnswered,
    PolicyApplied,
    ProcessOnSlot,
    ProcessOwner,
    RequestAbandoned,
    RequestCancelled,
    RequestMade,
    SessionEnded,
    SessionOpened,
    SessionReported,
    SessionRestarting,
    SlotObservation,
    SlotSeen,
    SlotsObserved,
    Ticked,
    UnparkRequested,
)
from jupyter_gpubroker.core.explain import job_sentence, lease_sentence, request_sentence
from jupyter_gpubroker.core.model import (
    Activity,
    GiveBackKind,
    JobId,
    JobState,
    Lease,
    LeaseId,
    LeaseState,
    MiB,
    Millis,
    Offer,
    Owner,
    Reason,
    RequestId,
    RequestState,
    Session,
    SessionId,
    SessionKind,
    SessionState,
    SlotId,
    SlotSpec,
    SlotState,
    State,
    Verdict,
)
from jupyter_gpubroker.core.queue import expected_ms, place_in_line
from jupyter_gpubroker.errors import Refused
from tests.support.core_world import FLOOR_MIB, GONE, NODE, inventory, slice_of, whole

OWNERS = (Owner("ada"), Owner("bob"))
GPUS = (whole(0), whole(1), whole(2, "NVIDIA A100", 81_920))
SLICES = (slice_of(3, "a", "3g.40gb", 40_448), slice_of(3, "b", "1g.10gb", 9_856))
SPECS = (
    SlotSpec(), SlotSpec(2), SlotSpec(model="h200"), SlotSpec(profile="3g.40gb"), SlotSpec(3),
    SlotSpec(memory_mib_min=MiB(9_000)), SlotSpec(memory_mib_min=MiB(50_000)), SlotSpec(2, profile="1g.10gb"),
)  # fmt: skip
WHY = Reason.of("process_gone")

picks = st.integers(0, 1_000_000)
times = st.one_of(
    st.integers(0, 2_000),
    st.integers(0, 40_000),
    st.integers(0, 40 * 60_000),
    st.just(8 * 3_600_000),
)
kinds = st.sampled_from([kind for kind in GiveBackKind if kind is not GiveBackKind.KEPT])


class Broker(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now = Millis(1_000)
        self.state = State()
        self.past: list[tuple[Millis, Event, str]] = []
        self.names = 0
        self.on_slot: dict[SlotId, tuple[ProcessOnSlot, ...] | None] = {}
        self.present: tuple[SlotSeen, ...] = ()

    # --- how a step is taken ------------------------------------------------------------------------------------------

    def do(self, event: Event) -> bool:
        before = self.state
        try:
            decision, after = advance(before, event, self.now)
        except Refused as refused:
            assert self.state is before
            self.past.append((self.now, event, refused.reason.code))
            return False
        self.past.append((self.now, event, repr(decision)))
        self.state = apply(before, decision.changes)
        assert self.state == after
        assert transition_violations(before, self.state) == []
        assert len(decision.reasons) == sum(
            change.entity_type.TABLE is not None for change in decision.changes
        )
        for effect in decision.effects:
            if isinstance(effect, AdmitHold):
                self.granted_only_what_was_clear(before, effect)
        for lease in self.state.leases.values():
            if lease.cause is not None and lease.cause.code == "taken":
                self.took_only_what_was_idle(before, lease)
        return bool(decision.reasons)

    def granted_only_what_was_clear(self, before: State, effect: AdmitHold) -> None:
        slot = before.slots[effect.slot_id]
        assert effect.epoch == slot.epoch + 1
        lease = self.state.leases[effect.lease_id]
        assert self.state.sessions[lease.session_id].state is SessionState.LIVE
        seen_ms = self.state.telemetry[NODE].clear_ms[slot.id]
        assert self.now - seen_ms <= self.state.limits.fresh_ms

    def took_only_what_was_idle(self, before: State, lease: Lease) -> None:
        was = before.leases[lease.id]
        if was.state is LeaseState.ACTIVE and lease.state is LeaseState.DRAINING:
            assert lease.order is not None
            assert lease.job_id is None
            assert was.notice is not None
            assert was.notice.shown or was.notice.doubled
            assert was.notice.due_ms <= self.now
            assert was.verdict not in (Verdict.ACTIVE, Verdict.UNKNOWN)
            assert self.now - self.state.telemetry[NODE].observed_ms <= self.state.limits.fresh_ms

    def name(self) -> str:
        self.names += 1
        return f"{self.names:032x}"

    def a_session(self, pick: int, kind: SessionKind | None = None) -> Session | None:
        found = [s for s in self.state.sessions.values() if kind is None or s.kind is kind]
        return found[pick % len(found)] if found else None

    def a_lease(self, pick: int, *states: LeaseState) -> Lease | None:
        found = [one for one in self.state.leases.values() if not states or one.state in states]
        return found[pick % len(found)] if found else None

    # --- devices ------------------------------------------------------------------------------------------------------

    @initialize()
    def begin(self) -> None:
        self.report(GPUS + SLICES)
        self.look()

    def report(self, slots: tuple[SlotSeen, ...], sick: tuple[str, ...] = ()) -> None:
        self.present = slots
        self.do(inventory(*slots, sick=sick))

    def look(self, only: set[SlotId] | None = None, busy: bool | None = False) -> bool:
        looks = []
        for seen in self.present:
            processes = self.on_slot.get(seen.id, ())
            used = FLOOR_MIB + sum(p.memory_mib or 0 for p in processes or ())
            memory = None if processes is None else MiB(used)
            if only is None or seen.id in only:
                is_busy = busy if processes else False
                looks.append(SlotObservation(seen.id, is_busy, None, memory, processes))
        return self.do(SlotsObserved(NODE, tuple(looks)))

    @rule(busy=st.sampled_from([True, False, False, None]))
    def agent_looks(self, busy: bool | None) -> None:
        self.look(busy=busy)
        assert not self.look(busy=busy), "a steady sample changed something"

    @rule(pick=picks)
    def agent_inspects_one(self, pick: int) -> None:
        if self.present:
            self.look({self.present[pick % len(self.present)].id})

    @rule(pick=picks, memory=st.sampled_from([1, 400, 900, 30_000]))
    def holder_uses_its_slots(self, pick: int, memory: int) -> None:
        lease = self.a_lease(pick, LeaseState.ACTIVE, LeaseState.DRAINING, LeaseState.GRANTED)
        if lease is not None:
            owner = ProcessOwner.SESSION if lease.job_id is None else ProcessOwner.JOB
            process = ProcessOnSlot(7, owner, lease.job_id or lease.session_id, 1000, MiB(memory))
            self.on_slot.update({hold.slot_id: (process,) for hold in lease.holds})

    @rule(
        pick=picks,
        who=st.sampled_from(["nobody", "nobody", "nobody", "foreign", "unmapped", "unknown"]),
    )
    def slot_shows(self, pick: int, who: str) -> None:
        slot_id = (GPUS + SLICES)[pick % 5].id
        shown: dict[str, tuple[ProcessOnSlot, ...] | None] = {
            "nobody": (), "unknown": None,
            "foreign": (ProcessOnSlot(9, ProcessOwner.FOREIGN, None, 0, MiB(500)),),
            "unmapped": (ProcessOnSlot(9, ProcessOwner.UNMAPPED, None, None, MiB(500)),),
        }  # fmt: skip
        self.on_slot[slot_id] = shown[who]

    @rule()
    def everybody_leaves(self) -> None:
        self.on_slot.clear()

    @rule(
        pick=picks,
        what=st.sampled_from(["lost", "sick", "partitioned", "unseen", "back", "back", "back"]),
    )
    def devices_change(self, pick: int, what: str) -> None:
        slots = GPUS + SLICES
        one = slots[pick % len(slots)]
        if what == "lost":
            self.report(tuple(slot for slot in slots if slot.gpu_id != one.gpu_id))
        elif what == "sick":
            self.report(slots, sick=(one.gpu_id,))
        elif what == "partitioned":
            self.report((*GPUS[:2], slice_of(2, "c", "3g.40gb", 40_448), *SLICES))
        elif what == "unseen":
            self.do(NodeUnobserved(NODE, Reason.of("probe_unavailable", problem="hanging")))
        else:
            self.report(slots)
            self.look()

    # --- time and rules -----------------------------------------------------------------------------------------------

    @rule(ms=times)
    def time_passes(self, ms: int) -> None:
        self.now = Millis(self.now + ms)
        self.tick()

    @rule(ms=st.integers(0, 30 * 60_000))
    def time_passes_with_looks(self, ms: int) -> None:
        for _ in range(4):
            self.now = Millis(self.now + ms // 4)
            self.tick()
            for _ in range(2):  # so that no gap is seen
                self.now = Millis(self.now + 1)
                self.look()

    @rule()
    def time_passes_to_the_next_deadline(self) -> None:
        at_ms = next_deadline(self.state)
        if at_ms is not None:
            self.now = Millis(max(self.now, at_ms))
            self.tick()

    def tick(self) -> None:
        self.do(Ticked())
        at_ms = next_deadline(self.state)
        assert at_ms is None or at_ms > self.now, "a deadline was not dealt with"

    @rule(factor=st.sampled_from([1, 2, 10]), keep=st.sampled_from([60_000, 7 * 24 * 3_600_000]))
    def policy_is_changed(self, factor: int, keep: int) -> None:
        gentle = State().policies["gentle"]
        policy = replace(
            gentle, idle_ms=gentle.idle_ms // factor, never_used_ms=gentle.never_used_ms // factor
        )
        limits = replace(State().limits, keep_history_ms=keep)
        self.do(PolicyApplied((policy,), (), limits))

    # --- sessions -----------------------------------------------------------------------------------------------------

    @rule(
        owner=st.sampled_from(OWNERS),
        kind=st.sampled_from([*SessionKind, SessionKind.KERNEL]),
        headless=st.booleans(),
    )
    def session_opens(self, owner: Owner, kind: SessionKind, headless: bool) -> None:
        self.open(owner, kind, None, headless=headless)

    def open(
        self,
        owner: Owner,
        kind: SessionKind,
        predecessor: SessionId | None,
        *,
        headless: bool = False,
    ) -> None:
        session_id = SessionId(self.name())
        session = Session(
            session_id, owner, 1000, kind, "n", self.names + 10, 1, "boot", headless=headless
        )
        self.do(SessionOpened(session, predecessor))
        self.do(SessionOpened(session, predecessor))

    @rule(pick=picks, activity=st.sampled_from(Activity), front_ends=st.integers(0, 2))
    def session_reports(self, pick: int, activity: Activity, front_ends: int) -> None:
        if session := self.a_session(pick):
            self.do(SessionReported(session.owner, session.id, activity, front_ends))

    @rule(
        pick=picks,
        offered=st.sets(kinds),
        by_server=st.booleans(),
        refused=st.sets(kinds, max_size=1),
    )
    def offer_is_made(
        self, pick: int, offered: set[GiveBackKind], by_server: bool, refused: set[GiveBackKind]
    ) -> None:
        if session := self.a_session(pick):
            refusals = tuple((kind, Reason.of("cell_running")) for kind in sorted(refused))
            offer = Offer(tuple(sorted(offered - refused)), refusals)
            self.do(OfferMade(session.owner, session.id, offer, by_server))

    @rule(pick=picks)
    def session_restarts(self, pick: int) -> None:
        if session := self.a_session(pick):
            self.do(SessionRestarting(session.owner, session.id))

    @rule(pick=picks)
    def successor_comes(self, pick: int) -> None:
        if session := self.a_session(pick):
            self.open(session.owner, session.kind, session.id)

    @rule(pick=picks, why=st.sampled_from([GONE, Reason.of("shut_down")]))
    def session_ends(self, pick: int, why: Reason) -> None:
        if session := self.a_session(pick):
            self.do(SessionEnded(session.id, why))

    # --- requests and leases ------------------------------------------------------------------------------------------

    @rule(
        pick=picks, spec=st.sampled_from(SPECS), wait=st.sampled_from([None, None, 0, 60_000]),
        queue=st.sampled_from(["interactive", "interactive", "batch", "nowhere"]),
        duration=st.sampled_from([None, None, 600_000]),
    )  # fmt: skip
    def request_is_made(
        self, pick: int, spec: SlotSpec, wait: int | None, queue: str, duration: int | None
    ) -> None:
        if session := self.a_session(pick):
            event = RequestMade(
                session.owner, RequestId(self.name()), session.id, spec, queue, wait, duration
            )
            if self.do(event):
                assert not self.do(event), "the same request again changed something"

    @rule(pick=picks, abandoned=st.booleans())
    def request_ends(self, pick: int, abandoned: bool) -> None:
        requests = list(self.state.requests.values())
        if requests:
            request = requests[pick % len(requests)]
            event = (
                RequestAbandoned(request.id)
                if abandoned
                else RequestCancelled(request.owner, request.id, WHY)
            )
            self.do(event)
            assert not self.do(event)

    @rule()
    def all_grants_are_applied(self) -> None:
        for lease in list(self.state.leases.values()):
            if lease.state is LeaseState.GRANTED and lease.order is None and lease.job_id is None:
                self.do(LeaseAcknowledged(lease.owner, lease.id))
        for job in list(self.state.jobs.values()):
            if job.state is JobState.STARTING:
                self.do(JobStarted(job.owner, job.id, 50, 1))

    @rule(
        owner=st.sampled_from(OWNERS),
        spec=st.sampled_from(SPECS),
        offered=st.sets(kinds),
        works=st.booleans(),
    )
    def kernel_gets_to_work(
        self, owner: Owner, spec: SlotSpec, offered: set[GiveBackKind], works: bool
    ) -> None:
        self.look()
        self.open(owner, SessionKind.KERNEL, None)
        session_id = SessionId(f"{self.names:032x}")
        self.do(SessionReported(owner, session_id, Activity.IDLE, 1))
        self.do(OfferMade(owner, session_id, Offer(tuple(sorted(offered)))))
        request_id = RequestId(self.name())
        if self.do(RequestMade(owner, request_id, session_id, spec)):
            lease = self.state.leases.get(LeaseId(request_id))
            if lease is not None:
                self.do(LeaseAcknowledged(owner, lease.id))
                process = ProcessOnSlot(7, ProcessOwner.SESSION, session_id, 1000, MiB(400))
                for hold in lease.holds if works else ():
                    self.on_slot[hold.slot_id] = (process,)
        self.look()

    @rule(pick=picks)
    def lease_is_acknowledged(self, pick: int) -> None:
        if lease := self.a_lease(pick):
            self.do(LeaseAcknowledged(lease.owner, lease.id))

    @rule(pick=picks, keep_ms=st.sampled_from([None, 60_000]))
    def lease_is_kept(self, pick: int, keep_ms: int | None) -> None:
        if lease := self.a_lease(pick, LeaseState.ACTIVE):
            self.do(LeaseKept(lease.owner, lease.id, keep_ms))

    @rule(
        pick=picks,
        kind=st.one_of(st.none(), kinds),
        done=st.booleans(),
        residue=st.sampled_from([0, 300]),
    )
    def lease_is_released(
        self, pick: int, kind: GiveBackKind | None, done: bool, residue: int
    ) -> None:
        if lease := self.a_lease(pick):
            event = LeaseReleased(lease.owner, lease.id, kind, done, MiB(residue))
            self.do(event)
            self.do(event)

    @rule(pick=picks, wait=st.sampled_from([None, 0, 60_000]))
    def unpark_is_asked(self, pick: int, wait: int | None) -> None:
        if lease := self.a_lease(pick, LeaseState.PARKED) or self.a_lease(pick):
            self.do(UnparkRequested(lease.owner, lease.id, RequestId(self.name()), wait))

    @rule()
    def all_parked_want_back(self) -> None:
        for lease in list(self.state.leases.values()):
            if lease.state is LeaseState.PARKED:
                self.do(UnparkRequested(lease.owner, lease.id, RequestId(self.name())))
        self.look()

    @rule(pick=picks)
    def notices_are_shown(self, pick: int) -> None:
        for lease in list(self.state.leases.values()):
            if lease.notice is not None:
                self.do(NoticeShown(lease.owner, lease.id, lease.notice.number - pick % 2))

    @rule(
        pick=picks,
        ok=st.booleans(),
        residue=st.sampled_from([0, 300, 5_000]),
        off=st.sampled_from([0, 0, 0, 1, -1]),
    )
    def order_is_answered(self, pick: int, ok: bool, residue: int, off: int) -> None:
        ordered = [lease for lease in self.state.leases.values() if lease.order is not None]
        if ordered:
            lease = ordered[pick % len(ordered)]
            assert lease.order is not None
            event = OrderAnswered(lease.owner, lease.id, lease.order.number + off, ok, MiB(residue))
            self.do(event)
            self.do(event)

    @precondition(lambda self: any(one.order for one in self.state.leases.values()))
    @rule(parks=st.booleans())
    def orders_are_carried_out(self, parks: bool) -> None:
        for lease in list(self.state.leases.values()):
            if lease.order is not None:
                for hold in lease.holds:
                    process = ProcessOnSlot(
                        7, ProcessOwner.SESSION, lease.session_id, 1000, MiB(300)
                    )
                    self.on_slot[hold.slot_id] = (process,) if parks else ()
                self.do(OrderAnswered(lease.owner, lease.id, lease.order.number, True, MiB(300)))
        self.look()

    # --- jobs ---------------------------------------------------------------------------------------------------------

    @rule(
        pick=picks, spec=st.sampled_from(SPECS), limit=st.sampled_from([None, 60_000]),
        queue=st.sampled_from(["batch", "scavenger"]),
    )  # fmt: skip
    def job_is_submitted(self, pick: int, spec: SlotSpec, limit: int | None, queue: str) -> None:
        if session := self.a_session(pick, SessionKind.RUNNER) or self.a_session(pick):
            event = JobSubmitted(
                session.owner, JobId(self.name()), session.id, "j", spec, queue, limit
            )
            if self.do(event):
                assert not self.do(event)

    @rule(
        owner=st.sampled_from(OWNERS),
        spec=st.sampled_from(SPECS[:3]),
        limit=st.sampled_from([None, 60_000]),
    )
    def runner_comes_with_a_job(self, owner: Owner, spec: SlotSpec, limit: int | None) -> None:
        self.open(owner, SessionKind.RUNNER, None)
        runner_id = SessionId(f"{self.names:032x}")
        self.do(JobSubmitted(owner, JobId(self.name()), runner_id, "j", spec, "batch", limit))
        self.look()

    @rule(
        pick=picks,
        what=st.sampled_from(["start", "start", "start", "end", "fail", "lose", "cancel"]),
    )
    def job_goes_on(self, pick: int, what: str) -> None:
        jobs = [job for job in self.state.jobs.values() if job.state is not JobState.ENDED]
        if jobs:
            job = jobs[pick % len(jobs)]
            ends = {"end": 0, "fail": 1, "lose": None}
            if what == "start":
                self.do(JobStarted(job.owner, job.id, 50, 1))
            elif what == "cancel":
                self.do(JobCancelled(job.owner, job.id))
            else:
                self.do(JobEnded(job.owner, job.id, ends[what]))

    # --- what must hold -----------------------------------------------------------------------------------------------

    @invariant()
    def nothing_is_wrong(self) -> None:
        assert violations(self.state) == []

    @invariant()
    def everything_can_be_told(self) -> None:
        for lease in self.state.leases.values():
            assert all(lease_sentence(self.state, lease, self.now))
        for request in self.state.requests.values():
            assert all(request_sentence(self.state, request, self.now))
            place, waiting = place_in_line(self.state, request)
            is_waiting = request.state is RequestState.WAITING
            assert (place is not None) is is_waiting
            assert place is None or 1 <= place <= waiting
            expected = expected_ms(self.state, request, self.now)
            assert expected is None or (is_waiting and expected >= 0)
        for job in self.state.jobs.values():
            assert all(job_sentence(self.state, job, self.now))
        assert len(effects_of(self.state)) <= 1 + len(self.state.slots)

    def teardown(self) -> None:
        self.the_past_can_be_replayed()
        self.nothing_is_stuck()

    def the_past_can_be_replayed(self) -> None:
        state = State()
        for now, event, outcome in self.past:
            try:
                decision = step(state, event, now)
                state = apply(state, decision.changes)
                told = repr(decision)
            except Refused as refused:
                told = refused.reason.code
            assert told == outcome
        assert state == self.state

    def nothing_is_stuck(self) -> None:
        """When everybody is gone and the devices are there and empty, all is over and every slot is free."""
        for session_id in list(self.state.sessions):
            self.do(SessionEnded(session_id, Reason.of("shut_down")))
        self.on_slot.clear()
        self.report(GPUS + SLICES)
        for _ in range(2):
            self.now = Millis(self.now + 60_000)
            self.tick()
            self.look()
        ids = {slot.id for slot in self.present}
        assert {s.state for s in self.state.slots.values() if s.id in ids} <= {SlotState.FREE}
        assert {lease.state for lease in self.state.leases.values()} <= {LeaseState.CLEARED}
        assert {job.state for job in self.state.jobs.values()} <= {JobState.ENDED}
        assert not [r for r in self.state.requests.values() if r.state is RequestState.WAITING]
        assert next_deadline(self.state) is None
        assert violations(self.state) == []


Broker.TestCase.settings = settings(max_examples=60, stateful_step_count=60)
TestBroker = Broker.TestCase
