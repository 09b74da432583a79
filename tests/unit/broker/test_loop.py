"""The single writer: nothing is seen before it is durable, refusals change nothing, a failed commit is the end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from jupyter_gpubroker.broker.clock import Clock
from jupyter_gpubroker.broker.loop import BrokerTime, Loop
from jupyter_gpubroker.core.decide import step
from jupyter_gpubroker.core.effects import Effect, InspectSlots
from jupyter_gpubroker.core.events import (
    InventoryReported,
    PolicyApplied,
    RequestMade,
    SessionEnded,
    SessionOpened,
    SlotObservation,
    SlotSeen,
    SlotsObserved,
    Ticked,
)
from jupyter_gpubroker.core.model import (
    Gpu,
    GpuId,
    MiB,
    NodeId,
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
from jupyter_gpubroker.core.rules import Limits
from jupyter_gpubroker.errors import InvalidTransition, NotFound, TooMany
from jupyter_gpubroker.store.errors import StoreFailed
from jupyter_gpubroker.store.records import AuditRow, ClockMark, Committed, UsageRow

pytestmark = pytest.mark.asyncio

NODE = NodeId("n")
SLOT = SlotId("GPU-1")
OWNER = Owner("ada")
INVENTORY = InventoryReported(
    NODE,
    (Gpu(GpuId("GPU-1"), NODE, 0, "0", "H200", MiB(100_000)),),
    (SlotSeen(SLOT, GpuId("GPU-1"), SlotKind.GPU, "H200", MiB(100_000)),),
)
CLEAR = SlotsObserved(NODE, (SlotObservation(SLOT, False, None, MiB(0), ()),), frozenset())


def opened(name: str) -> SessionOpened:
    session = Session(SessionId(name), OWNER, 1, SessionKind.KERNEL, name, 1, 1, "boot")
    return SessionOpened(session)


def asked(name: str) -> RequestMade:
    return RequestMade(OWNER, RequestId(f"r{name}"), SessionId(name), SlotSpec())


def no_effects(_: Sequence[Effect]) -> None:
    """Nobody to run them."""


class Notebook:
    """A store that remembers its commits; `gate` holds them up, `failure` is raised by the next one."""

    def __init__(self) -> None:
        self.commits: list[Sequence[Committed]] = []
        self.marks: list[ClockMark] = []
        self.threads: set[str] = set()
        self.gate = threading.Event()
        self.gate.set()
        self.failure: Exception | None = None

    def commit(self, batch: Sequence[Committed], mark: ClockMark) -> None:
        self.threads.add(threading.current_thread().name)
        assert self.gate.wait(10)
        if self.failure is not None:
            raise self.failure
        self.commits.append(batch)
        self.marks.append(mark)

    def keep_time(self, mark: ClockMark) -> None:
        self.marks.append(mark)

    def add_usage(self, rows: Sequence[UsageRow]) -> None:
        """Nobody looks at it here."""

    def history(self, _entity_id: str) -> list[AuditRow]:
        return []


class Sources:
    """Clocks that a test moves."""

    def __init__(self) -> None:
        self.awake_ms = 1_000
        self.slept_ms = 0

    def boot_id(self) -> str:
        return "boot"

    def boottime_ns(self) -> int:
        return (self.awake_ms + self.slept_ms) * 1_000_000

    def monotonic_ns(self) -> int:
        return self.awake_ms * 1_000_000

    def wall_ms(self) -> int:
        return 0


@asynccontextmanager
async def running(
    store: Notebook, effects: list[Effect] | None = None, state: State | None = None
) -> AsyncIterator[Loop]:
    sink = [] if effects is None else effects
    loop = Loop(state or State(), store, BrokerTime(Clock(None)), sink.extend)
    task = asyncio.create_task(loop.run())
    yield loop
    task.cancel()
    await asyncio.wait((task,))
    await loop.close()


async def test_callers_are_answered_once_it_is_durable_and_not_before() -> None:
    store = Notebook()
    async with running(store) as loop:
        store.gate.clear()
        answer = asyncio.create_task(loop.submit(opened("s")))
        done, _ = await asyncio.wait((answer,), timeout=0.1)
        assert not done
        assert loop.state.sessions == {}
        store.gate.set()
        state = await answer
        assert SessionId("s") in state.sessions
        assert loop.state is state
        assert store.threads == {"store_0"}


async def test_what_comes_during_a_commit_shares_the_next_one() -> None:
    store = Notebook()
    async with running(store) as loop:
        store.gate.clear()
        first = asyncio.create_task(loop.submit(opened("s0")))
        await asyncio.sleep(0.05)
        others = [asyncio.create_task(loop.submit(opened(f"s{n}"))) for n in range(1, 9)]
        await asyncio.sleep(0)
        store.gate.set()
        await asyncio.gather(first, *others)
        assert [len(batch) for batch in store.commits] == [1, 8]


async def test_a_refused_event_changes_nothing_and_does_not_disturb_its_batch() -> None:
    store = Notebook()
    async with running(store) as loop:
        results = await asyncio.gather(
            loop.submit(asked("nobody")), loop.submit(opened("s")), return_exceptions=True
        )
        assert isinstance(results[0], NotFound)
        assert isinstance(results[1], State)
        assert loop.state.requests == {}
        assert len(store.commits) == 1


async def test_samples_that_show_nothing_new_are_not_written() -> None:
    store = Notebook()
    async with running(store) as loop:
        await loop.submit(INVENTORY)
        await loop.submit(CLEAR)
        written = len(store.commits)
        seen_ms = loop.state.telemetry[NODE].observed_ms
        await asyncio.sleep(0.005)
        await loop.submit(CLEAR)
        assert len(store.commits) == written
        assert loop.state.telemetry[NODE].observed_ms > seen_ms


async def test_effects_run_after_the_commit_and_again_after_a_start() -> None:
    store, effects = Notebook(), list[Effect]()
    async with running(store, effects) as loop:
        await loop.submit(INVENTORY)
        await loop.submit(CLEAR)
        await loop.submit(opened("s"))
        store.gate.clear()
        answer = asyncio.create_task(loop.submit(asked("s")))
        await asyncio.sleep(0.05)
        assert effects == []
        store.gate.set()
        state = await answer
        assert state.requests[RequestId("rs")].state is RequestState.GRANTED
        told = [effect for effect in effects if not isinstance(effect, InspectSlots)]
        assert len(told) == 1
    again: list[Effect] = []
    async with running(Notebook(), again, state) as loop:
        await loop.submit(opened("t"))
        assert again == told


async def test_a_failed_commit_ends_the_loop_and_answers_nobody() -> None:
    store = Notebook()
    store.failure = StoreFailed("disk full")
    loop = Loop(State(), store, BrokerTime(Clock(None)), no_effects)
    task = asyncio.create_task(loop.run())
    answer = asyncio.create_task(loop.submit(opened("s")))
    with pytest.raises(StoreFailed):
        await asyncio.wait_for(task, 5)
    assert loop.state.sessions == {}
    assert not answer.done()
    answer.cancel()
    await asyncio.wait((answer,))
    await loop.close()


async def test_a_bug_in_a_step_costs_its_event_alone(monkeypatch, caplog) -> None:
    from jupyter_gpubroker.broker import loop as loop_module

    def broken(state, event, now):
        if isinstance(event, PolicyApplied):
            raise InvalidTransition("a bug")
        return step(state, event, now)

    monkeypatch.setattr(loop_module, "step", broken)
    async with running(Notebook()) as loop:
        results = await asyncio.gather(
            loop.submit(PolicyApplied()), loop.submit(opened("s")), return_exceptions=True
        )
        assert isinstance(results[0], InvalidTransition)
        assert isinstance(results[1], State)
    assert "step_failed event=PolicyApplied" in caplog.text


async def test_a_deadline_passes_though_nothing_happens() -> None:
    state = State(limits=Limits(ack_ms=50))
    async with running(Notebook(), state=state) as loop:
        await loop.submit(INVENTORY)
        await loop.submit(CLEAR)
        await loop.submit(opened("s"))
        await loop.submit(asked("s"))
        assert [lease.state.value for lease in loop.state.leases.values()] == ["granted"]
        await asyncio.wait_for(asyncio.shield(loop.next_change()), 5)
        assert [lease.state.value for lease in loop.state.leases.values()] == ["draining"]


async def test_too_much_at_once_is_refused_not_queued(monkeypatch, caplog) -> None:
    from jupyter_gpubroker.broker import loop as loop_module

    monkeypatch.setattr(loop_module, "QUEUE_MAX", 1)
    loop = Loop(State(), Notebook(), BrokerTime(Clock(None)), no_effects)
    loop.send(opened("s"))
    with pytest.raises(TooMany):
        await loop.submit(opened("t"))
    loop.send(CLEAR)
    assert "event_dropped event=SlotsObserved" in caplog.text
    await loop.close()


async def test_the_end_of_a_process_is_never_dropped(monkeypatch) -> None:
    from jupyter_gpubroker.broker import loop as loop_module

    monkeypatch.setattr(loop_module, "QUEUE_MAX", 1)
    async with running(Notebook()) as loop:
        await loop.submit(opened("s"))
        loop.send(Ticked())
        loop.send(SessionEnded(SessionId("s"), Reason.of("process_gone")))
        await asyncio.wait((loop.next_change(),), timeout=5)
        assert loop.state.sessions[SessionId("s")].state is SessionState.ENDED


async def test_time_does_not_pass_while_the_machine_or_the_broker_sleeps() -> None:
    sources = Sources()
    first = BrokerTime(Clock(None, sources))
    sources.awake_ms += 500
    assert first.now() == 500
    sources.slept_ms += 3_600_000
    assert first.now() == 500
    sources.awake_ms += 500
    mark = first.mark()
    assert mark.broker_ms == 1_000
    sources.awake_ms += 7_000
    second = BrokerTime(Clock(mark, sources))
    assert second.now() == 1_000
    sources.awake_ms += 10
    assert second.now() == 1_010


async def test_a_clean_end_keeps_the_time() -> None:
    store = Notebook()
    async with running(store):
        pass
    assert len(store.marks) == 1
