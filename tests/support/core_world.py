"""A small world around the core for tests: devices, processes and people, all as plain events."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

from jupyter_gpubroker.core.check import transition_violations, violations
from jupyter_gpubroker.core.decide import Decision, apply, next_deadline, step
from jupyter_gpubroker.core.effects import Effect
from jupyter_gpubroker.core.events import (
    Event,
    InventoryReported,
    JobCancelled,
    JobEnded,
    JobStarted,
    JobSubmitted,
    LeaseAcknowledged,
    LeaseKept,
    LeaseReleased,
    NoticeShown,
    OfferMade,
    OrderAnswered,
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
from jupyter_gpubroker.core.model import (
    Activity,
    GiveBackKind,
    Gpu,
    GpuId,
    Job,
    JobId,
    Lease,
    LeaseId,
    MiB,
    Millis,
    NodeId,
    Offer,
    Owner,
    Reason,
    Request,
    RequestId,
    Session,
    SessionId,
    SessionKind,
    Slot,
    SlotId,
    SlotKind,
    SlotSpec,
    State,
)

NODE = NodeId("node")
SECOND = 1_000
STEP_MS = 9 * SECOND
MINUTE = 60 * SECOND
GONE = Reason.of("process_gone")
CONTEXT_MIB = 400
FLOOR_MIB = 5


def whole(number: int, model: str = "NVIDIA H200", memory_mib: int = 143_771) -> SlotSeen:
    gpu_id = GpuId(f"GPU-{number}")
    return SlotSeen(SlotId(gpu_id), gpu_id, SlotKind.GPU, model, MiB(memory_mib), None, number)


def slice_of(number: int, name: str, profile: str, memory_mib: int) -> SlotSeen:
    slot_id = SlotId(f"MIG-{number}-{name}")
    return SlotSeen(
        slot_id,
        GpuId(f"GPU-{number}"),
        SlotKind.MIG,
        "NVIDIA A100",
        MiB(memory_mib),
        profile,
        number,
    )


def inventory(*slots: SlotSeen, sick: Collection[str] = ()) -> InventoryReported:
    """What the agent reports; the GPUs in `sick` are lost from the bus."""
    gpus = {
        slot.gpu_id: Gpu(
            slot.gpu_id,
            NODE,
            slot.index,
            f"0000:{slot.index:02}",
            slot.model,
            MiB(143_771),
            mig_enabled=slot.kind is SlotKind.MIG,
            state="lost" if slot.gpu_id in sick else "ok",
        )
        for slot in slots
    }
    return InventoryReported(NODE, tuple(gpus.values()), slots)


@dataclass
class OnSlot:
    """What the device and the host would show of one slot. `more` are further fields of the observation."""

    processes: tuple[ProcessOnSlot, ...] | None = ()
    memory_mib: int | None = FLOOR_MIB
    busy: bool | None = False
    host_busy: bool | None = None
    more: dict[str, Any] = field(default_factory=dict)


@dataclass
class World:
    """A state, a clock, and what the devices show. Every step is checked against the invariants."""

    now: Millis = Millis(1_000_000)
    state: State = field(default_factory=State)
    shown: dict[str, OnSlot] = field(default_factory=dict)
    effects: list[Effect] = field(default_factory=list)
    history: list[tuple[Millis, Event]] = field(default_factory=list)

    def do(self, event: Event) -> Decision:
        before = self.state
        decision = step(before, event, self.now)
        self.history.append((self.now, event))
        self.state = apply(before, decision.changes)
        assert violations(self.state) == []
        assert transition_violations(before, self.state) == []
        self.effects += decision.effects
        return decision

    def wait(self, ms: int, step_ms: int = STEP_MS) -> None:
        """Let time pass with a look every few seconds, well within `fresh_ms`."""
        until = Millis(self.now + ms)
        while self.now < until:
            self.now = Millis(min(self.now + step_ms, until))
            at_ms = next_deadline(self.state)
            if at_ms is not None and at_ms <= self.now:
                self.do(Ticked())
            self.look()

    # --- devices ----------------------------------------------------------------------------------------------------------

    def devices(self, *slots: SlotSeen) -> World:
        self.do(inventory(*slots))
        for slot in slots:
            self.shown.setdefault(slot.id, OnSlot())
        if self.shown:
            self.look()
        return self

    def look(self, *slot_ids: str) -> Decision:
        looks = tuple(
            SlotObservation(
                SlotId(slot_id), shown.busy, shown.host_busy,
                None if shown.memory_mib is None else MiB(shown.memory_mib), shown.processes,
                **shown.more,
            )
            for slot_id, shown in self.shown.items()
            if not slot_ids or slot_id in slot_ids
        )  # fmt: skip
        leaving = frozenset(lease.id for lease in self.state.leases.values() if lease.is_leaving)
        return self.do(SlotsObserved(NODE, looks, leaving))

    def uses(
        self,
        holder_id: str,
        slot_id: str,
        *,
        busy: bool | None = True,
        memory_mib: int = CONTEXT_MIB,
        pid: int | None = None,
        host_busy: bool | None = None,
        **more: Any,
    ) -> None:
        """`pid` None: the holder's own process, else one of its tree. `more` are further fields of the observation."""
        is_job = holder_id in self.state.jobs
        owner = ProcessOwner.JOB if is_job else ProcessOwner.SESSION
        own = 100 if is_job else self.state.sessions[SessionId(holder_id)].pid
        process = ProcessOnSlot(pid or own, owner, holder_id, 1000, MiB(memory_mib))
        self.shown[slot_id] = OnSlot((process,), FLOOR_MIB + memory_mib, busy, host_busy, more)

    def empties(self, slot_id: str) -> None:
        self.shown[slot_id] = OnSlot()

    # --- people -----------------------------------------------------------------------------------------------------------

    def session(
        self, session_id: str, owner: str = "ada", kind: SessionKind = SessionKind.KERNEL,
        predecessor: str | None = None, **fields: Any,
    ) -> SessionId:  # fmt: skip
        fields = {"name": session_id, "pid": len(self.state.sessions) + 10, **fields}
        session = Session(
            SessionId(session_id), Owner(owner), 1000, kind, start_ticks=1, boot_id="boot", **fields
        )
        self.do(SessionOpened(session, None if predecessor is None else SessionId(predecessor)))
        return session.id

    def restarts(self, session_id: str) -> None:
        owner = self.state.sessions[SessionId(session_id)].owner
        self.do(SessionRestarting(owner, SessionId(session_id)))

    def ends(self, session_id: str, reason: Reason = GONE) -> None:
        self.do(SessionEnded(SessionId(session_id), reason))

    def asks(
        self,
        session_id: str,
        name: str | None = None,
        spec: SlotSpec | None = None,
        owner: str | None = None,
        **fields: Any,
    ) -> LeaseId:
        who = Owner(owner or self.state.sessions[SessionId(session_id)].owner)
        request_id = RequestId(name or f"{session_id}-lease")
        self.do(RequestMade(who, request_id, SessionId(session_id), spec or SlotSpec(), **fields))
        return LeaseId(request_id)

    def holds(
        self, name: str, owner: str = "ada", spec: SlotSpec | None = None, **fields: Any
    ) -> LeaseId:
        """A kernel that got a lease and applied it; it offers `empty` and stands idle, with a front end open."""
        self.session(name, owner)
        self.says(name, Activity.IDLE)
        self.offers(name, GiveBackKind.EMPTY)
        lease_id = self.asks(name, spec=spec, **fields)
        self.applies(lease_id)
        self.look()
        return lease_id

    def cancels(self, request_id: str) -> None:
        request = self.request(request_id)
        self.do(RequestCancelled(request.owner, request.id, Reason.of("cancelled_by_client")))

    def abandons(self, request_id: str) -> None:
        self.do(RequestAbandoned(RequestId(request_id)))

    def applies(self, lease_id: str) -> None:
        self.do(LeaseAcknowledged(self.lease(lease_id).owner, LeaseId(lease_id)))

    def says(self, session_id: str, activity: Activity, front_ends: int = 1) -> None:
        owner = self.state.sessions[SessionId(session_id)].owner
        self.do(SessionReported(owner, SessionId(session_id), activity, front_ends))

    def offers(
        self, session_id: str, *kinds: GiveBackKind, by_server: bool = False,
        refusals: tuple[tuple[GiveBackKind, Reason], ...] = (),
    ) -> None:  # fmt: skip
        owner = self.state.sessions[SessionId(session_id)].owner
        self.do(OfferMade(owner, SessionId(session_id), Offer(kinds, refusals), by_server))

    def sees_notice(self, lease_id: str) -> None:
        lease = self.lease(lease_id)
        assert lease.notice is not None
        self.do(NoticeShown(lease.owner, lease.id, lease.notice.number))

    def keeps(self, lease_id: str, keep_ms: int | None = None) -> None:
        self.do(LeaseKept(self.lease(lease_id).owner, LeaseId(lease_id), keep_ms))

    def releases(self, lease_id: str, kind: GiveBackKind | None = None, **fields: Any) -> None:
        self.do(LeaseReleased(self.lease(lease_id).owner, LeaseId(lease_id), kind, **fields))

    def answers(
        self, lease_id: str, ok: bool = True, residue_mib: int = 0, reason: Reason | None = None
    ) -> None:
        lease = self.lease(lease_id)
        assert lease.order is not None
        self.do(
            OrderAnswered(lease.owner, lease.id, lease.order.number, ok, MiB(residue_mib), reason)
        )

    def unparks(self, lease_id: str, name: str = "unpark", wait_ms: int | None = None) -> RequestId:
        self.do(
            UnparkRequested(self.lease(lease_id).owner, LeaseId(lease_id), RequestId(name), wait_ms)
        )
        return RequestId(name)

    def runner(self, owner: str = "ada", name: str | None = None) -> SessionId:
        return self.session(name or f"{owner}-runner", owner, SessionKind.RUNNER)

    def submits(
        self,
        runner_id: str,
        name: str,
        spec: SlotSpec | None = None,
        owner: str | None = None,
        **fields: Any,
    ) -> JobId:
        who = Owner(owner or self.state.sessions[SessionId(runner_id)].owner)
        event = JobSubmitted(
            who, JobId(name), SessionId(runner_id), name, spec or SlotSpec(), **fields
        )
        self.do(event)
        return JobId(name)

    def cancels_job(self, job_id: str) -> None:
        self.do(JobCancelled(self.job(job_id).owner, JobId(job_id)))

    def job_starts(self, job_id: str, pid: int = 500, attempt: int | None = None) -> None:
        job = self.job(job_id)
        self.do(JobStarted(job.owner, job.id, attempt or job.attempt, pid, 1))

    def job_ends(self, job_id: str, exit_status: int | None = 0) -> None:
        job = self.job(job_id)
        self.do(JobEnded(job.owner, job.id, job.attempt, exit_status))

    # --- what there is ----------------------------------------------------------------------------------------------------

    def lease(self, lease_id: str) -> Lease:
        return self.state.leases[LeaseId(lease_id)]

    def request(self, request_id: str) -> Request:
        return self.state.requests[RequestId(request_id)]

    def slot(self, slot_id: str) -> Slot:
        return self.state.slots[SlotId(slot_id)]

    def job(self, job_id: str) -> Job:
        return self.state.jobs[JobId(job_id)]

    def limits(self, **values: Any) -> World:
        self.state = replace(self.state, limits=replace(self.state.limits, **values))
        return self

    def forget_telemetry(self) -> None:
        """As after a restart of the broker."""
        self.state = replace(self.state, telemetry={}, watches={})

    def passes(self, ms: int) -> None:
        """Let time pass at once, with nobody looking."""
        self.now = Millis(self.now + ms)
        self.do(Ticked())
