"""Two hours of simulated time with 64 kernels that do everything a notebook does, while others wait for every GPU.

For each it is known when it really stood idle for too long. No GPU may go before that, and each must be asked for within one
tick of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from jupyter_gpubroker.core.check import violations
from jupyter_gpubroker.core.decide import advance
from jupyter_gpubroker.core.decision import Decision, Put
from jupyter_gpubroker.core.events import (
    Event,
    HostUse,
    LeaseAcknowledged,
    NoticeShown,
    OfferMade,
    OrderAnswered,
    ProcessOnSlot,
    ProcessOwner,
    RequestMade,
    SessionOpened,
    SessionReported,
    SlotObservation,
    SlotsObserved,
)
from jupyter_gpubroker.core.model import (
    Activity,
    GiveBackKind,
    Lease,
    LeaseState,
    MiB,
    Millis,
    Offer,
    Owner,
    RequestId,
    Session,
    SessionId,
    SessionKind,
    SlotId,
    SlotSpec,
    State,
    Verdict,
)
from jupyter_gpubroker.core.rules import GENTLE
from tests.support.core_world import FLOOR_MIB, MINUTE, NODE, SECOND, inventory, whole

TICK_MS = 8 * SECOND
LENGTH_MS = 130 * MINUTE
COPIES = 4
IDLE, RUNNING, INPUT, DEBUGGER = (
    Activity.IDLE,
    Activity.RUNNING,
    Activity.INPUT,
    Activity.DEBUGGER,
)


@dataclass(frozen=True)
class Moment:
    """What can be seen of a holder at one moment. `is_there`: it has a context on its GPU."""

    activity: Activity
    busy: bool | None = False
    host_busy: bool | None = False
    is_there: bool = True
    more: dict[str, Any] = field(default_factory=dict)


REST = Moment(IDLE)
WORK = Moment(RUNNING, busy=True, host_busy=True)
SPIN = Moment(RUNNING, True, True, more={"utilisation_percent": 100, "power_above_idle_mw": 3_000})


def works_then(rest: Moment, until_ms: int = 10 * MINUTE) -> Callable[[int], Moment]:
    return lambda at: WORK if at < until_ms else rest


def bursts(
    every_ms: int, between: Moment, burst: Moment, length_ms: int = TICK_MS
) -> Callable[[int], Moment]:
    return lambda at: burst if at % every_ms < length_ms else between


SERVER = Moment(IDLE, more={"host": HostUse(2, listens=True)})
IDLE_MS = GENTLE.idle_ms
# What a holder does (ms since it got its GPU), and when it is to be asked for that: None never. Facts behind the
# rows: the cases of activity that people reported.
BEHAVIOURS: dict[str, tuple[Callable[[int], Moment], int | None]] = {
    "stands at a breakpoint": (works_then(Moment(DEBUGGER)), 10 * MINUTE + IDLE_MS),
    "waits in input()": (works_then(Moment(INPUT)), 10 * MINUTE + IDLE_MS),
    "holds a model while its user reads": (works_then(REST), 10 * MINUTE + IDLE_MS),
    "loads on the processor, then trains": (
        lambda at: WORK if at > 100 * MINUTE else Moment(RUNNING, host_busy=True), None,
    ),
    "compiles, with a burst now and then": (bursts(7 * MINUTE, Moment(RUNNING, host_busy=True), WORK), None),
    "polls in a loop that sleeps": (lambda _: Moment(RUNNING), GENTLE.host_busy_ms),
    "serves": (bursts(11 * MINUTE, SERVER, Moment(IDLE, busy=True)), None),
    "trains in a thread while the shell is idle": (lambda _: Moment(IDLE, busy=True), None),
    "waits for another rank at full load": (lambda _: SPIN, None),
    "has a GPU that somebody else uses": (
        lambda _: Moment(IDLE, more={"utilisation_percent": 90}), IDLE_MS,
    ),
    "runs a short cell every few minutes": (bursts(5 * MINUTE, REST, WORK), None),
    "comes back just before the limit": (bursts(IDLE_MS - TICK_MS, REST, WORK, 2 * TICK_MS), None),
    "has a GPU that tells nothing": (lambda _: Moment(IDLE, busy=None), None),
    "has never used it": (lambda _: Moment(IDLE, is_there=False), GENTLE.never_used_ms),
    "has a host that stirs now and then": (
        lambda at: Moment(IDLE, host_busy=at // TICK_MS % 8 == 0), IDLE_MS,
    ),
    "prepares data in the background": (lambda _: Moment(IDLE, host_busy=True), GENTLE.host_busy_ms + 10 * SECOND),
}  # fmt: skip


@dataclass
class Kernel:
    """One of the 64: when it got its GPU, and when it was first asked for it back."""

    behaviour: str
    slot_id: SlotId
    began_ms: int
    last: Activity | None = None
    noticed_ms: int | None = None
    verdict: Verdict | None = None

    def at(self, now: int) -> Moment:
        return BEHAVIOURS[self.behaviour][0](now - self.began_ms)


class Soak:
    def __init__(self) -> None:
        self.state = State()
        self.now = Millis(1_000_000)
        self.kernels: dict[str, Kernel] = {}
        self.slots = [whole(number) for number in range(len(BEHAVIOURS) * COPIES)]
        self.do(inventory(*self.slots))
        self.look()

    def do(self, event: Event) -> None:
        decision, self.state = advance(self.state, event, self.now)
        for lease_id in touched(decision):
            self.follow(self.state.leases[lease_id])

    def follow(self, lease: Lease) -> None:
        """What the holder's side does at once."""
        kernel = self.kernels.get(lease.session_id)
        if lease.state is LeaseState.GRANTED:
            self.do(LeaseAcknowledged(lease.owner, lease.id))
        elif lease.notice is not None and not lease.notice.shown:
            assert kernel is not None, "somebody who works without a pause was asked"
            kernel.noticed_ms = kernel.noticed_ms or self.now - kernel.began_ms
            kernel.verdict = lease.verdict
            self.do(NoticeShown(lease.owner, lease.id, lease.notice.number))
        elif lease.state is LeaseState.DRAINING and lease.order is not None:
            self.kernels.pop(lease.session_id)
            self.gone.append(kernel)
            self.do(OrderAnswered(lease.owner, lease.id, lease.order.number, ok=True))

    gone: list[Kernel | None] = []  # noqa: RUF012 - set in `run`

    def come(self, name: str, pid: int, *, offer: bool) -> None:
        session_id, owner = SessionId(name), Owner(name)
        kind = SessionKind.KERNEL
        self.do(SessionOpened(Session(session_id, owner, 1000, kind, name, pid, 1, "boot")))
        self.do(SessionReported(owner, session_id, IDLE, front_ends=1))
        if offer:
            self.do(OfferMade(owner, session_id, Offer((GiveBackKind.RESTARTED,))))
        self.do(RequestMade(owner, RequestId(f"{name}-lease"), session_id, SlotSpec()))

    def look(self) -> None:
        leaving = frozenset(one.id for one in self.state.leases.values() if one.is_leaving)
        self.do(SlotsObserved(NODE, tuple(map(self.see, self.slots)), leaving))

    def see(self, slot: Any) -> SlotObservation:
        lease_id = self.state.slots[slot.id].lease_id if slot.id in self.state.slots else None
        lease = None if lease_id is None else self.state.leases[lease_id]
        if lease is None or lease.is_leaving:
            return SlotObservation(slot.id, False, None, MiB(FLOOR_MIB), ())
        kernel = self.kernels.get(lease.session_id)
        moment = WORK if kernel is None else kernel.at(self.now)
        if not moment.is_there:
            return SlotObservation(slot.id, False, moment.host_busy, MiB(FLOOR_MIB), ())
        pid = self.state.sessions[lease.session_id].pid
        process = ProcessOnSlot(pid, ProcessOwner.SESSION, lease.session_id, 1000, MiB(400))
        return SlotObservation(
            slot.id, moment.busy, moment.host_busy, MiB(FLOOR_MIB + 400), (process,), **moment.more
        )

    def report(self) -> None:
        for name, kernel in [*self.kernels.items()]:
            activity = kernel.at(self.now).activity
            if activity is not kernel.last:
                kernel.last = activity
                self.do(SessionReported(Owner(name), SessionId(name), activity, front_ends=1))

    def run(self) -> list[Kernel]:
        self.gone = []
        for number, slot in enumerate(self.slots):
            name = f"k{number}"
            self.come(name, 100 + number, offer=True)
            behaviour = [*BEHAVIOURS][number % len(BEHAVIOURS)]
            self.kernels[name] = Kernel(behaviour, slot.id, self.now)
            if number % len(BEHAVIOURS) == len(BEHAVIOURS) - 1:  # each round comes a little later
                self.report()
                self.look()
                self.now = Millis(self.now + 2 * SECOND)
        everybody = [*self.kernels.values()]
        for number in range(len(self.slots)):
            self.come(f"r{number}", 1_000 + number, offer=False)
        end = self.now + LENGTH_MS
        while self.now < end:
            self.now = Millis(self.now + TICK_MS)
            self.report()
            self.look()
        return everybody


def touched(decision: Decision) -> list[Any]:
    changes = (change for change in decision.changes if isinstance(change, Put))
    return [*dict.fromkeys(change.id for change in changes if isinstance(change.entity, Lease))]


@pytest.fixture(scope="module")
def played() -> tuple[State, list[Kernel]]:
    soak = Soak()
    kernels = soak.run()
    return soak.state, kernels


@pytest.mark.parametrize("behaviour", BEHAVIOURS)
def test_who_works_is_never_asked_and_who_rests_is_within_a_tick_of_the_limit(
    played: tuple[State, list[Kernel]], behaviour: str
) -> None:
    expected_ms = BEHAVIOURS[behaviour][1]
    kernels = [kernel for kernel in played[1] if kernel.behaviour == behaviour]
    assert len(kernels) == COPIES
    for kernel in kernels:
        if expected_ms is None:
            assert kernel.noticed_ms is None, kernel.verdict
        else:
            assert kernel.noticed_ms is not None
            assert expected_ms <= kernel.noticed_ms <= expected_ms + TICK_MS


def test_at_the_end_everything_is_in_order(played: tuple[State, list[Kernel]]) -> None:
    assert violations(played[0]) == []
