"""The single writer: events in, decisions committed, callers answered, effects run.

A batch of events is stepped on the state in memory; what it changes is committed as one transaction in a thread of its own,
and only then is the new state seen, the callers answered and the effects run. Refused events change nothing. A failed
commit ends the loop (StoreFailed): what is durable is unknown, and a new process will read it. Time that the machine or
the broker sleeps does not pass here, so no deadline is lost to it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from ..core.decide import effects_of, next_deadline, step
from ..core.decision import Decision, apply
from ..core.effects import Effect
from ..core.events import Event, SessionReported, SlotsObserved, Ticked
from ..core.model import Millis, Reason, State
from ..errors import Refused, TooMany
from ..store.records import AuditRow, ClockMark, Committed, UsageRow
from .clock import Clock

BATCH_MAX = 256
QUEUE_MAX = 10_000
TICK_S_MIN = 0.02
TICK_S_MAX = 3_600.0
_TOLD_AGAIN = (SessionReported, SlotsObserved, Ticked)

log = logging.getLogger(__name__)

Result = TypeVar("Result")


class Keeper(Protocol):
    """What the loop needs of the store."""

    def commit(self, batch: Sequence[Committed], mark: ClockMark) -> None: ...

    def keep_time(self, mark: ClockMark) -> None: ...

    def history(self, entity_id: str) -> list[AuditRow]: ...

    def add_usage(self, rows: Sequence[UsageRow]) -> None: ...


class BrokerTime:
    """The clock without the time that passed while the machine slept or no broker ran."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._slept_ms = clock.down_ms

    def now(self) -> Millis:
        reading = self._clock.read()
        self._slept_ms += reading.suspended_ms
        return Millis(reading.now - self._slept_ms)

    def mark(self) -> ClockMark:
        return replace(self._clock.mark(), broker_ms=self.now())


@dataclass(slots=True)
class _Sent:
    """`answered` is None where nobody waits for the outcome."""

    event: Event
    cause_id: str
    answered: asyncio.Future[State] | None


class Loop:
    """`state` is always what is committed. Make it, `send` and `submit` from the event loop, and await `run`."""

    def __init__(
        self,
        state: State,
        store: Keeper,
        time: BrokerTime,
        run_effects: Callable[[Sequence[Effect]], None],
    ) -> None:
        self.state = state
        self.time = time
        self._store = store
        self._run_effects = run_effects
        self._sent: asyncio.Queue[_Sent] = asyncio.Queue()
        self._next_change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._subscribers: list[Callable[[State], None]] = []
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._timer: asyncio.TimerHandle | None = None

    def subscribe(self, subscriber: Callable[[State], None]) -> None:
        """Call it with the state now and after each batch that changed it."""
        self._subscribers.append(subscriber)
        subscriber(self.state)

    def send(self, event: Event, cause_id: str = "") -> None:
        """Something happened that nobody waits to hear about. Lost under load is only what is told again by itself."""
        if self._is_overloaded and isinstance(event, _TOLD_AGAIN):
            log.error("event_dropped event=%s", type(event).__name__)
        else:
            self._sent.put_nowait(_Sent(event, cause_id, None))

    @property
    def _is_overloaded(self) -> bool:
        return self._sent.qsize() >= QUEUE_MAX

    async def submit(self, event: Event, cause_id: str = "") -> State:
        """The state after the event is committed. Raises Refused when it cannot be, and TooMany when overloaded."""
        if self._is_overloaded:
            raise TooMany(Reason.of("broker_overloaded"))
        answered: asyncio.Future[State] = asyncio.get_running_loop().create_future()
        self._sent.put_nowait(_Sent(event, cause_id, answered))
        return await answered

    def next_change(self) -> asyncio.Future[None]:
        """Done when the state changes next; shared by all who wait, so never cancel it."""
        return self._next_change

    async def run(self) -> None:
        """Work for ever. Raises StoreFailed."""
        self._run_effects(effects_of(self.state))
        self._set_timer()
        while True:
            batch = [await self._sent.get()]
            while len(batch) < BATCH_MAX and not self._sent.empty():
                batch.append(self._sent.get_nowait())
            await self._work_off(batch)
            self._set_timer()

    async def close(self) -> None:
        """Keep the time of a clean end, so that it goes on from here."""
        if self._timer is not None:
            self._timer.cancel()
        await self._in_writer(self._store.keep_time, self.time.mark())
        self._writer.shutdown()

    async def history(self, entity_id: str) -> list[AuditRow]:
        """What happened to one entity, oldest first."""
        return await self._in_writer(self._store.history, entity_id)

    async def keep_usage(self, rows: Sequence[UsageRow]) -> None:
        if rows:
            await self._in_writer(self._store.add_usage, rows)

    async def _work_off(self, batch: Sequence[_Sent]) -> None:
        now = self.time.now()
        state = self.state
        decided: list[Committed] = []
        outcomes: list[tuple[_Sent, Exception | None]] = []
        for sent in batch:
            decision, problem = _decide(state, sent, now)
            outcomes.append((sent, problem))
            if decision.changes:
                state = apply(state, decision.changes)
            if decision.changes or decision.effects:
                decided.append(Committed(type(sent.event).__name__, sent.cause_id, now, decision))
        if any(_is_kept(committed.decision) for committed in decided):
            await self._in_writer(self._store.commit, decided, self.time.mark())
        self._publish(state)
        for sent, problem in outcomes:
            _tell(sent, problem, state)
        self._run_effects(
            [effect for committed in decided for effect in committed.decision.effects]
        )

    async def _in_writer(self, call: Callable[..., Result], *arguments: object) -> Result:
        """Everything that touches the store runs in the one thread that may."""
        return await asyncio.get_running_loop().run_in_executor(self._writer, call, *arguments)

    def _publish(self, state: State) -> None:
        if state is self.state:
            return
        self.state = state
        for subscriber in self._subscribers:
            subscriber(state)
        self._next_change.set_result(None)
        self._next_change = asyncio.get_running_loop().create_future()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline = next_deadline(self.state)
        if deadline is not None:
            delay_s = (deadline - self.time.now()) / 1000
            self._timer = asyncio.get_running_loop().call_later(
                min(max(delay_s, TICK_S_MIN), TICK_S_MAX), self.send, Ticked()
            )


_NOTHING = Decision()


def _decide(state: State, sent: _Sent, now: Millis) -> tuple[Decision, Exception | None]:
    try:
        return step(state, sent.event, now), None
    except Refused as refused:
        return _NOTHING, refused
    except Exception as error:  # a bug in the core costs this event, not the broker
        log.exception("step_failed event=%s", type(sent.event).__name__)
        return _NOTHING, error


def _is_kept(decision: Decision) -> bool:
    """Does any change belong in the store? Telemetry does not."""
    return any(change.entity_type.TABLE is not None for change in decision.changes)


def _tell(sent: _Sent, problem: Exception | None, state: State) -> None:
    # The caller may have gone meanwhile; the event counts all the same.
    if sent.answered is None or sent.answered.done():
        if isinstance(problem, Refused):
            log.info(
                "event_refused event=%s code=%s", type(sent.event).__name__, problem.reason.code
            )
        return
    if problem is None:
        sent.answered.set_result(state)
    else:
        sent.answered.set_exception(problem)
