"""A broker's core under a state machine: each step checked, the past kept for a replay, the end looked at."""

from __future__ import annotations

from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant

from jupyter_gpubroker.core.check import transition_violations, violations
from jupyter_gpubroker.core.decide import advance, apply, effects_of, next_deadline, step
from jupyter_gpubroker.core.events import (
    Event,
    GpuSeen,
    GpusObserved,
    JobEnded,
    ProcessOnSlot,
    SessionEnded,
    SlotObservation,
    SlotSeen,
    SlotsObserved,
    Ticked,
)
from jupyter_gpubroker.core.explain import job_sentence, lease_sentence, request_sentence
from jupyter_gpubroker.core.model import (
    JobState,
    Lease,
    LeaseState,
    MiB,
    Millis,
    Reason,
    RequestState,
    Session,
    SessionKind,
    SessionState,
    Slot,
    SlotId,
    SlotState,
    State,
    Verdict,
)
from jupyter_gpubroker.core.queue import expected_ms, place_in_line
from jupyter_gpubroker.core.rules import DEFAULT_FAULTS
from jupyter_gpubroker.errors import Refused
from tests.support.core_world import FLOOR_MIB, NODE, inventory, slice_of, whole

GPUS = (whole(0), whole(1), whole(2, "NVIDIA A100", 81_920))
PROBATION_MS = max(rule.probation_ms for rule in DEFAULT_FAULTS)
SLICES = (slice_of(3, "a", "3g.40gb", 40_448), slice_of(3, "b", "1g.10gb", 9_856))


class CheckedBroker(RuleBasedStateMachine):
    """What every machine over the core's events shares; `tests/property` adds what may happen."""

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
        for slot in self.state.slots.values():
            was = before.slots.get(slot.id)
            if was is not None and slot.epoch > was.epoch:
                self.granted_only_what_was_clear(was, slot)
        for lease in self.state.leases.values():
            if lease.cause is not None and lease.cause.code == "taken":
                self.took_only_what_was_idle(before, lease)
        return bool(decision.reasons)

    def tick(self) -> None:
        self.do(Ticked())
        at_ms = next_deadline(self.state)
        assert at_ms is None or at_ms > self.now, "a deadline was not dealt with"

    def granted_only_what_was_clear(self, was: Slot, slot: Slot) -> None:
        assert slot.epoch == was.epoch + 1
        assert slot.lease_id is not None
        lease = self.state.leases[slot.lease_id]
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

    # --- devices ----------------------------------------------------------------------------------------------------

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
        leaving = frozenset(lease.id for lease in self.state.leases.values() if lease.is_leaving)
        return self.do(SlotsObserved(NODE, tuple(looks), leaving))

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
        for job in list(self.state.jobs.values()):
            if job.pid is not None:
                self.do(JobEnded(job.owner, job.id, job.attempt, None))
        self.on_slot.clear()
        self.report(GPUS + SLICES)
        well = tuple(GpuSeen(gpu_id, "none") for gpu_id in self.state.gpus)
        self.look()
        self.do(GpusObserved(NODE, well))
        for wait_ms in (60_000, PROBATION_MS, 60_000):
            self.now = Millis(self.now + wait_ms)
            self.tick()
            self.look()
        ids = {slot.id for slot in self.present}
        assert {s.state for s in self.state.slots.values() if s.id in ids} <= {SlotState.FREE}
        assert {lease.state for lease in self.state.leases.values()} <= {LeaseState.CLEARED}
        assert {job.state for job in self.state.jobs.values()} <= {JobState.ENDED}
        assert not [r for r in self.state.requests.values() if r.state is RequestState.WAITING]
        assert next_deadline(self.state) is None
        assert violations(self.state) == []
