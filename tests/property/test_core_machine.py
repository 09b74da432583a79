"""Everything that can happen, in any order: the rules that never break, replay, and nothing stuck at the end.

The steps know nothing of the core's rules; most of what they send is legal, some is late, doubled or nonsense.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from jupyter_gpubroker.core.decide import next_deadline
from jupyter_gpubroker.core.events import (
    GpuFault,
    GpuSeen,
    GpusObserved,
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
    UnparkRequested,
)
from jupyter_gpubroker.core.model import (
    Activity,
    GiveBackKind,
    JobId,
    JobState,
    LeaseId,
    LeaseState,
    MiB,
    Millis,
    Offer,
    Owner,
    Reason,
    RequestId,
    Session,
    SessionId,
    SessionKind,
    SlotSpec,
    State,
)
from tests.support.core_admins import AdministeredBroker
from tests.support.core_machine import GPUS, SLICES
from tests.support.core_world import GONE, NODE, slice_of

OWNERS = (Owner("ada"), Owner("bob"))
SPECS = (
    SlotSpec(), SlotSpec(2), SlotSpec(model="h200"), SlotSpec(profile="3g.40gb"), SlotSpec(3),
    SlotSpec(memory_mib_min=MiB(9_000)), SlotSpec(memory_mib_min=MiB(50_000)), SlotSpec(2, profile="1g.10gb"),
)  # fmt: skip
WHY = Reason.of("process_gone")

picks = st.integers(0, 1_000_000)
times = st.one_of(
    st.integers(0, 2_000),
    st.integers(0, 20_000),
    st.integers(0, 40_000),
    st.sampled_from([40 * 60_000, 8 * 3_600_000]),
)
kinds = st.sampled_from([kind for kind in GiveBackKind if kind is not GiveBackKind.KEPT])


class Broker(AdministeredBroker):
    # --- devices ----------------------------------------------------------------------------------------------------

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
            pid = self.state.sessions[lease.session_id].pid
            process = ProcessOnSlot(pid, owner, lease.job_id or lease.session_id, 1000, MiB(memory))
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

    @rule(
        pick=picks, what=st.sampled_from(["xid", "ecc"]), code=st.sampled_from([13, 48, 79, 999]),
        action=st.sampled_from([None, None, "none", "gpu_reset"]),
    )  # fmt: skip
    def gpu_complains(self, pick: int, what: str, code: int, action: str | None) -> None:
        gpu_id = (GPUS + SLICES)[pick % 5].gpu_id
        self.do(GpusObserved(NODE, (GpuSeen(gpu_id, action, (GpuFault(what, code),)),)))

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
                self.do(JobStarted(job.owner, job.id, job.attempt, 50, 1))

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
                pid = self.state.sessions[session_id].pid
                process = ProcessOnSlot(pid, ProcessOwner.SESSION, session_id, 1000, MiB(400))
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
                    pid = self.state.sessions[lease.session_id].pid
                    process = ProcessOnSlot(
                        pid, ProcessOwner.SESSION, lease.session_id, 1000, MiB(300)
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
        preemptible=st.booleans(),
        checkpoint_ms=st.sampled_from([None, 20_000]),
    )
    def runner_comes_with_a_job(
        self,
        owner: Owner,
        spec: SlotSpec,
        limit: int | None,
        preemptible: bool,
        checkpoint_ms: int | None,
    ) -> None:
        self.open(owner, SessionKind.RUNNER, None)
        runner_id, job_id = SessionId(f"{self.names:032x}"), JobId(self.name())
        how = (limit, preemptible, checkpoint_ms)
        self.do(JobSubmitted(owner, job_id, runner_id, "j", spec, "batch", *how))
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
                self.do(JobStarted(job.owner, job.id, job.attempt, 50, 1))
            elif what == "cancel":
                self.do(JobCancelled(job.owner, job.id))
            else:
                self.do(JobEnded(job.owner, job.id, job.attempt, ends[what]))


Broker.TestCase.settings = settings(stateful_step_count=60)
TestBroker = Broker.TestCase
