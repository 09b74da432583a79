"""The people at the notebooks: they ask for GPUs, use them in bursts, think, come back, and lose what they leave idle."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..core.events import (
    Event,
    LeaseAcknowledged,
    LeaseReleased,
    NoticeShown,
    OfferMade,
    OrderAnswered,
    ProcessOnSlot,
    ProcessOwner,
    RequestMade,
    SessionEnded,
    SessionOpened,
    SessionReported,
    SlotObservation,
    SlotsObserved,
    Ticked,
)
from ..core.idle import reclaimable_ms
from ..core.model import (
    Activity,
    GiveBackKind,
    Lease,
    LeaseId,
    LeaseState,
    Offer,
    Owner,
    Reason,
    RequestId,
    SessionId,
    SessionKind,
    SlotSpec,
)
from .meter import Meter
from .regimes import Regime
from .workload import Burst, Notebook
from .world import NODE, Model, World, session

_GONE = Reason.of("process_gone")


@dataclass(slots=True)
class _Guest:
    """The user of one notebook.

    asked_ms: since when a burst waits for its lease.
    taken_ms: when the lease was taken that this user has not got back yet.
    spells:   how often work began, which tells an idle time from the next.
    """

    notebook: Notebook
    bursts_done: int = 0
    requests: int = 0
    lease_id: LeaseId | None = None
    is_at_work: bool = False
    asked_ms: int | None = None
    taken_ms: int | None = None
    spells: int = 0

    @property
    def owner(self) -> Owner:
        return Owner(self.notebook.id)

    @property
    def session_id(self) -> SessionId:
        return SessionId(self.notebook.id)

    @property
    def burst(self) -> Burst:
        return self.notebook.bursts[self.bursts_done]


class Notebooks:
    """All of them, in one world."""

    def __init__(
        self,
        notebooks: Iterable[Notebook],
        world: World,
        meter: Meter,
        regime: Regime,
        model: Model,
    ) -> None:
        self._world = world
        self._meter = meter
        self._regime = regime
        self._model = model
        self._guests = {SessionId(one.id): _Guest(one) for one in notebooks}
        self._asking = 0
        self._is_looking = False
        for guest in self._guests.values():
            world.at(guest.notebook.start_ms, self._come, guest)

    def changed(self, lease: Lease) -> None:
        """What the holder does about a decision on the lease."""
        guest = self._guests[lease.session_id]
        if lease.state is LeaseState.GRANTED:
            self._world.then(LeaseAcknowledged(lease.owner, lease.id))
        elif lease.state is LeaseState.ACTIVE and guest.lease_id is None:
            self._receive(guest, lease)
        elif lease.state is LeaseState.ACTIVE and lease.notice is not None:
            if not lease.notice.shown:
                self._world.then(NoticeShown(lease.owner, lease.id, lease.notice.number))
        elif lease.state is LeaseState.DRAINING and guest.lease_id == lease.id:
            self._lose(guest, lease)

    def close(self) -> None:
        """The workload is over."""
        for guest in self._guests.values():
            if guest.asked_ms is not None:
                self._meter.still_waiting(guest.asked_ms)

    # --- bursts -----------------------------------------------------------------------------------------------------------

    def _come(self, guest: _Guest) -> None:
        self._world.do(
            SessionOpened(session(guest.session_id, guest.owner, SessionKind.KERNEL)),
            SessionReported(guest.owner, guest.session_id, Activity.IDLE, front_ends=1),
            OfferMade(guest.owner, guest.session_id, Offer((GiveBackKind.RESTARTED,))),
        )
        self._want(guest)

    def _want(self, guest: _Guest) -> None:
        """The next burst is to begin."""
        if guest.lease_id is not None:
            self._begin(guest)
            return
        guest.asked_ms = self._world.now
        guest.requests += 1
        self._asking += 1
        self._meter.waiting += 1
        if guest.taken_ms is not None:
            self._meter.came_back(guest.taken_ms, self._model.came_back_ms)
        # Nobody but the oracle knows how many GPUs the bursts to come will use.
        count = guest.burst.gpus if self._regime.is_oracle else guest.notebook.gpus
        request_id = RequestId(f"{guest.notebook.id}.{guest.requests}")
        self._world.do(RequestMade(guest.owner, request_id, guest.session_id, SlotSpec(count)))
        self._look_again()

    def _begin(self, guest: _Guest) -> None:
        guest.is_at_work = True
        guest.spells += 1
        self._meter.bursting += guest.burst.gpus
        self._world.at(self._world.now + guest.burst.duration_ms, self._end, guest)
        self._world.do(*self._evidence(guest))

    def _end(self, guest: _Guest) -> None:
        self._meter.bursting -= guest.burst.gpus
        guest.is_at_work = False
        guest.bursts_done += 1
        if guest.bursts_done == len(guest.notebook.bursts):
            self._world.do(SessionEnded(guest.session_id, _GONE))
            return
        self._world.at(self._world.now + guest.burst.think_ms, self._want, guest)
        self._world.do(*self._evidence(guest))
        self._watch(guest)

    def _evidence(self, guest: _Guest) -> tuple[Event, ...]:
        """What the broker sees of what the guest does now."""
        assert guest.lease_id is not None
        activity = Activity.RUNNING if guest.is_at_work else Activity.IDLE
        process = ProcessOnSlot(1, ProcessOwner.SESSION, guest.session_id)
        holds = self._world.state.leases[guest.lease_id].holds
        looks = tuple(
            SlotObservation(hold.slot_id, guest.is_at_work, None, None, (process,))
            for hold in holds
        )
        reported = SessionReported(guest.owner, guest.session_id, activity, front_ends=1)
        return reported, SlotsObserved(NODE, looks, frozenset())

    # --- having and losing ------------------------------------------------------------------------------------------------

    def _receive(self, guest: _Guest, lease: Lease) -> None:
        assert guest.asked_ms is not None
        guest.lease_id = lease.id
        self._asking -= 1
        self._meter.waiting -= 1
        self._meter.leased += len(lease.holds)
        self._meter.waited(
            guest.asked_ms, is_first=guest.requests == 1, is_return=guest.taken_ms is not None
        )
        guest.asked_ms = guest.taken_ms = None
        self._world.at(self._world.now, self._begin, guest)

    def _lose(self, guest: _Guest, lease: Lease) -> None:
        guest.lease_id = None
        self._meter.leased -= len(lease.holds)
        if lease.order is not None:
            self._taken(guest)
            answer = OrderAnswered(lease.owner, lease.id, lease.order.number, ok=True)
            self._world.then(answer)

    def _taken(self, guest: _Guest) -> None:
        if not self._regime.is_oracle:
            self._meter.taken()
            guest.taken_ms = self._world.now

    # --- idle times -------------------------------------------------------------------------------------------------------

    def _watch(self, guest: _Guest) -> None:
        """Come back to the lease when its idle time may be too long."""
        if self._regime.timer_ms is not None:
            at_ms = self._world.now + self._regime.timer_ms
            self._world.at(at_ms, self._time_out, guest, guest.spells)
        elif guest.lease_id is not None:
            from_ms = reclaimable_ms(self._world.state, self._world.state.leases[guest.lease_id])
            if from_ms is not None:
                self._world.at(from_ms, self._idle_out, guest, guest.spells)

    def _time_out(self, guest: _Guest, spell: int) -> None:
        """The timer beside the broker: the GPU is taken, and comes back when the user does."""
        if guest.spells == spell and guest.lease_id is not None:
            lease_id = guest.lease_id
            self._taken(guest)
            released = LeaseReleased(guest.owner, lease_id, GiveBackKind.RESTARTED, done=True)
            self._world.do(released)

    def _idle_out(self, guest: _Guest, spell: int) -> None:
        if guest.spells == spell and guest.lease_id is not None:
            self._world.do(Ticked())

    def _look_again(self) -> None:
        """As the broker does each second while somebody waits: a limit may have passed meanwhile."""
        if self._asking and not self._is_looking:
            self._is_looking = True
            self._world.at(self._world.now + self._model.look_ms, self._look)

    def _look(self) -> None:
        self._is_looking = False
        self._world.do(Ticked())
        self._look_again()
