"""Simulated time around the core: what comes is kept in order, and what a decision asks of the edges is done at once.

Slots that the core wants looked at are seen empty in the same moment, grants are applied and orders carried out by whoever acts
here. So every wait that is measured is a wait for somebody else's GPU.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from ..core.decide import advance, next_deadline
from ..core.decision import Decision, Put
from ..core.effects import InspectSlots
from ..core.events import (
    Event,
    InventoryReported,
    PolicyApplied,
    SessionOpened,
    SlotObservation,
    SlotSeen,
    SlotsObserved,
    Ticked,
)
from ..core.model import (
    Gpu,
    GpuId,
    Job,
    JobId,
    Lease,
    LeaseId,
    MiB,
    Millis,
    NodeId,
    Owner,
    Session,
    SessionId,
    SessionKind,
    SlotId,
    SlotKind,
    State,
)
from ..core.table import found
from .regimes import Regime
from .workload import DAY_MS, Workload

NODE = NodeId("pool")
_MEMORY_MIB = MiB(80_000)


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

    def fitting(self, workload: Workload, regime: Regime) -> Model:
        """A workload of a few days has none to give away for warming up; an oracle's preemption costs nothing."""
        fits = self if workload.length_ms > 3 * self.warm_up_ms else replace(self, warm_up_ms=0)
        return replace(fits, checkpoint_ms=1, restart_ms=0) if regime.is_oracle else fits


class World:
    """The state, the moment, and what comes. `changed` is told of every lease and job that a decision has changed."""

    def __init__(
        self, passes: Callable[[int], None], changed: Callable[[Lease | Job], None]
    ) -> None:
        self.state = State()
        self.now = Millis(0)
        self._passes = passes
        self._changed = changed
        self._coming: list[tuple[int, int, Callable[[], None]]] = []
        self._numbers = 0
        self._happening: deque[Event] = deque()
        self._alarm_ms: Millis | None = None

    def at(self, at_ms: int, act: Callable[..., None], *arguments: object) -> None:
        """Have something done at a moment; in one moment in the order in which it was asked for."""
        self._numbers += 1
        heapq.heappush(self._coming, (at_ms, self._numbers, lambda: act(*arguments)))

    def run(self, until_ms: int) -> None:
        while self._coming and self._coming[0][0] < until_ms:
            at_ms, _, act = heapq.heappop(self._coming)
            self._pass_to(at_ms)
            act()
        self._pass_to(until_ms)

    def do(self, *events: Event) -> None:
        """Let the events happen, and all that follows from them in this moment."""
        self._happening.extend(events)
        while self._happening:
            event = self._happening.popleft()
            decision, self.state = advance(self.state, event, self.now)
            self._follow(decision)
        self._set_alarm()

    def then(self, event: Event) -> None:
        """What somebody does about a change, in the same moment."""
        self._happening.append(event)

    def _pass_to(self, at_ms: int) -> None:
        self._passes(at_ms)
        self.now = Millis(at_ms)

    def _follow(self, decision: Decision) -> None:
        changed = {
            (change.entity_type, change.id): None
            for change in decision.changes
            if isinstance(change, Put)
        }
        for entity_type, entity_id in changed:
            if entity_type is Lease and entity_id in self.state.leases:
                self._changed(self.state.leases[LeaseId(entity_id)])
            elif entity_type is Job and entity_id in self.state.jobs:
                self._changed(self.state.jobs[JobId(entity_id)])
        for effect in decision.effects:
            if isinstance(effect, InspectSlots):
                self.then(seen_empty(self.state, effect.slot_ids))

    def _set_alarm(self) -> None:
        """Time alone may be the next event."""
        deadline = next_deadline(self.state)
        if deadline is not None and (self._alarm_ms is None or deadline < self._alarm_ms):
            self._alarm_ms = Millis(max(deadline, self.now))
            self.at(self._alarm_ms, self._ring)

    def _ring(self) -> None:
        self._alarm_ms = None
        self.do(Ticked())


def open_pool(
    world: World, workload: Workload, gpus: int, regime: Regime, rules: PolicyApplied
) -> None:
    """The rules, the devices, seen empty, and a runner for each group of jobs."""
    world.do(rules)
    world.do(_rules(world.state, rules, regime, workload))
    slots = tuple(_slot(number) for number in range(gpus))
    devices = tuple(_gpu(slot) for slot in slots)
    world.do(InventoryReported(NODE, devices, slots))
    world.do(seen_empty(world.state, [slot.id for slot in slots]))
    for group in sorted({job.group for job in workload.jobs}):
        world.do(SessionOpened(session(runner_of(group), group, SessionKind.RUNNER)))


def runner_of(group: str) -> SessionId:
    return SessionId(f"runner:{group}")


def session(session_id: SessionId, owner: str, kind: SessionKind) -> Session:
    return Session(session_id, Owner(owner), 0, kind, session_id, 1, 1, "simulated")


def seen_empty(state: State, slot_ids: Iterable[SlotId]) -> SlotsObserved:
    looks = tuple(SlotObservation(one, False, False, MiB(0), ()) for one in slot_ids)
    leaving = frozenset(lease.id for lease in found(Lease, state.leases, "leaving"))
    return SlotsObserved(NODE, looks, leaving)


def _rules(state: State, rules: PolicyApplied, regime: Regime, workload: Workload) -> PolicyApplied:
    """What makes the regime, and what the replay's own perfection needs.

    Nothing it sees grows old, rest is seen at once, nothing that is over is remembered, and a group may have its whole list
    of jobs in line. Batch
    jobs are preemptible unless the site's own rules have a row for their queue.
    """
    policy = None if regime.policy is None else regime.policy.name
    interactive = replace(state.queues["interactive"], policy=policy)
    is_given = any(queue.name == "batch" for queue in rules.queues)
    batch = state.queues["batch"] if is_given else replace(state.queues["batch"], preemptible=True)
    limits = replace(
        state.limits,
        fresh_ms=2 * workload.length_ms,
        settle_ms=0,
        keep_history_ms=0,
        waiting_max_per_owner=len(workload.jobs) + 1,
    )
    return PolicyApplied(queues=(interactive, batch), limits=limits)


def _slot(number: int) -> SlotSeen:
    name = f"gpu{number:05}"
    return SlotSeen(SlotId(name), GpuId(name), SlotKind.GPU, "GPU", _MEMORY_MIB, None, number)


def _gpu(slot: SlotSeen) -> Gpu:
    return Gpu(slot.gpu_id, NODE, slot.index, slot.id, slot.model, slot.memory_mib, simulated=True)
