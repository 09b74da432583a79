"""Random but plausible events: two GPUs, people who come, ask, work, give back and vanish, and an agent that looks.

`Town.next_event` draws the next event from what the state allows, so that most events change something; some are refused, as
in life. Same seed and same state, same events.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TypeVar

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
    OfferMade,
    OrderAnswered,
    ProcessOnSlot,
    ProcessOwner,
    RequestCancelled,
    RequestMade,
    SessionEnded,
    SessionOpened,
    SessionReported,
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
    JobId,
    LeaseId,
    LeaseState,
    MiB,
    NodeId,
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
    SlotKind,
    SlotSpec,
    State,
)

NODE = NodeId("here")
GPUS = (GpuId("GPU-1"), GpuId("GPU-2"))
OWNERS = (Owner("ada"), Owner("grace"))
SESSIONS_MAX = 6
GONE = Reason.of("process_gone")
T = TypeVar("T")


def inventory() -> InventoryReported:
    gpus = tuple(
        Gpu(gpu, NODE, n, f"0000:{n:02}", "H200", MiB(143_771)) for n, gpu in enumerate(GPUS)
    )
    slots = tuple(
        SlotSeen(SlotId(gpu.id), gpu.id, SlotKind.GPU, gpu.model, gpu.memory_mib, index=gpu.index)
        for gpu in gpus
    )
    return InventoryReported(NODE, gpus, slots)


class Town:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311

    def next_event(self, state: State) -> Event:
        if not state.slots:
            return inventory()
        if self._random.random() < 0.3:
            return self._look(state)
        return self._random.choice(_HAPPENINGS)(self, state) or Ticked()

    # --- each happening, None where the state has nobody for it -------------------------------------------------------

    def _look(self, state: State) -> Event:
        """Holders use what they hold, more or less; nobody else is there."""
        return SlotsObserved(
            NODE,
            tuple(self._seen(state, slot_id) for slot_id in sorted(state.slots)),
            frozenset(lease.id for lease in state.leases.values() if lease.is_leaving),
        )

    def _seen(self, state: State, slot_id: SlotId) -> SlotObservation:
        lease_id = state.slots[slot_id].lease_id
        lease = None if lease_id is None else state.leases[lease_id]
        uses = (
            lease is not None and lease.state is LeaseState.ACTIVE and self._random.random() < 0.5
        )
        if lease is None or not uses:
            return SlotObservation(slot_id, False, False, MiB(5), ())
        owned_by = ProcessOwner.SESSION if lease.job_id is None else ProcessOwner.JOB
        process = ProcessOnSlot(7, owned_by, lease.job_id or lease.session_id, 1000, MiB(400))
        return SlotObservation(slot_id, self._random.random() < 0.5, False, MiB(405), (process,))

    def _come(self, state: State) -> Event | None:
        if len(self._live(state)) >= SESSIONS_MAX:
            return None
        owner = self._random.choice(OWNERS)
        kind = self._random.choice((SessionKind.KERNEL, SessionKind.KERNEL, SessionKind.RUNNER))
        pid = self._random.randrange(2, 4_000_000)
        return SessionOpened(
            Session(SessionId(self._id()), owner, 1000, kind, "a.ipynb", pid, 1, "boot")
        )

    def _report(self, state: State) -> Event | None:
        session = self._one(self._live(state))
        if session is None:
            return None
        activity = self._random.choice(list(Activity))
        return SessionReported(session.owner, session.id, activity, self._random.randrange(2))

    def _offer(self, state: State) -> Event | None:
        session = self._one(self._live(state))
        if session is None:
            return None
        kinds = tuple(kind for kind in GiveBackKind if self._random.random() < 0.5)
        offer = Offer(tuple(kind for kind in kinds if kind is not GiveBackKind.KEPT))
        return OfferMade(session.owner, session.id, offer, self._random.random() < 0.5)

    def _leave(self, state: State) -> Event | None:
        session = self._one(self._live(state))
        return None if session is None else SessionEnded(session.id, GONE)

    def _ask(self, state: State) -> Event | None:
        session = self._one(self._live(state))
        if session is None:
            return None
        spec = SlotSpec(count=self._random.choice((1, 1, 2)))
        request_id = RequestId(self._id())
        wait_ms = self._random.choice((None, 0, 60_000))
        return RequestMade(session.owner, request_id, session.id, spec, wait_ms=wait_ms)

    def _cancel(self, state: State) -> Event | None:
        waiting = [r for r in state.requests.values() if r.state is RequestState.WAITING]
        request = self._one(waiting)
        return (
            None
            if request is None
            else RequestCancelled(request.owner, request.id, Reason.of("cancelled"))
        )

    def _acknowledge(self, state: State) -> Event | None:
        lease = self._one([x for x in state.leases.values() if x.state is LeaseState.GRANTED])
        return None if lease is None else LeaseAcknowledged(lease.owner, lease.id)

    def _keep(self, state: State) -> Event | None:
        lease = self._one([x for x in state.leases.values() if x.notice is not None])
        return None if lease is None else LeaseKept(lease.owner, lease.id)

    def _release(self, state: State) -> Event | None:
        lease = self._one([x for x in state.leases.values() if x.state is LeaseState.ACTIVE])
        kind = self._random.choice((None, GiveBackKind.EMPTY, GiveBackKind.PARKED))
        return None if lease is None else LeaseReleased(lease.owner, lease.id, kind)

    def _answer(self, state: State) -> Event | None:
        lease = self._one([x for x in state.leases.values() if x.order is not None])
        if lease is None or lease.order is None:
            return None
        ok = self._random.random() < 0.7
        reason = None if ok else Reason.of("callback_failed")
        return OrderAnswered(lease.owner, lease.id, lease.order.number, ok, reason=reason)

    def _unpark(self, state: State) -> Event | None:
        lease = self._one([x for x in state.leases.values() if x.state is LeaseState.PARKED])
        return (
            None
            if lease is None
            else UnparkRequested(lease.owner, LeaseId(lease.id), RequestId(self._id()))
        )

    def _submit(self, state: State) -> Event | None:
        runner = self._one([x for x in self._live(state) if x.kind is SessionKind.RUNNER])
        return (
            None
            if runner is None
            else JobSubmitted(runner.owner, JobId(self._id()), runner.id, "train", SlotSpec())
        )

    def _job(self, state: State) -> Event | None:
        job = self._one([x for x in state.jobs.values() if x.state.value != "ended"])
        if job is None:
            return None
        return self._random.choice(
            (
                JobStarted(job.owner, job.id, job.attempt, 99, 1),
                JobEnded(job.owner, job.id, job.attempt, 0),
                JobCancelled(job.owner, job.id),
            )
        )

    # --- drawing ------------------------------------------------------------------------------------------------------

    def _id(self) -> str:
        return f"{self._random.getrandbits(128):032x}"

    def _one(self, some: list[T]) -> T | None:
        return self._random.choice(some) if some else None

    @staticmethod
    def _live(state: State) -> list[Session]:
        return [s for s in state.sessions.values() if s.state is SessionState.LIVE]


_HAPPENINGS: tuple[Callable[[Town, State], Event | None], ...] = (
    Town._come, Town._report, Town._offer, Town._leave, Town._ask, Town._ask, Town._cancel, Town._acknowledge,
    Town._acknowledge, Town._keep, Town._release, Town._answer, Town._unpark, Town._submit, Town._job,
)  # fmt: skip
