"""Puts the parts together and runs them: store, loop, agent, liveness, attendance and the HTTP server.

`run` returns the process' exit status. The order matters: the loop works before the agent speaks, the socket listens only
when calls can be answered, and the store is closed last.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from tornado import web

from ..core.check import violations
from ..core.effects import AdmitHold, Effect, InspectSlots, StopProcess, TellOfUse
from ..core.events import Event, ModeSet, PolicyApplied
from ..core.model import SlotId, State, UnleasedUse
from ..store import Archive, Store, StoreFailed, StoreRefused
from .api import endpoints
from .api.base import Handler
from .api.call import Broker
from .attendance import Attendance
from .clock import Clock
from .housekeeping import Housekeeping
from .identity import owner_name
from .latest import Latest
from .liveness import Liveness
from .loop import BrokerTime, Loop
from .metering import Meter, keep_metering
from .options import Unfit
from .place import Place
from .policy_file import PolicyRefused, parse_policy
from .scope import Scope
from .server import Server, raise_open_files_max
from .settings import Settings
from .why import Refusals

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_STORE_FAILED = 4
HEADER_BYTES_MAX = 16 * 1024
# More than `base` allows, so that a body too large gets an answer in words.
WIRE_BYTES_MAX = 1024 * 1024
IDLE_CONNECTION_S = 300.0
BODY_S = 30.0
# Each step of the end, and all of it.
STEP_S = 2.0
END_S = 8.0

log = logging.getLogger(__name__)


class Agent(Protocol):
    """What the broker needs of the node's agent."""

    def start(self) -> None: ...

    async def close(self) -> None: ...

    async def inspect(self, slot_ids: Iterable[SlotId]) -> None: ...

    async def admit(self) -> None: ...

    async def stop(self, pid: int, start_ticks: int, *, force: bool) -> None: ...


MakeAgent = Callable[[Callable[[], State], Callable[[Event], None]], Agent]


class Service:
    """One broker from start to end. `run` once."""

    def __init__(
        self,
        *,
        database: Path,
        policy_file: str,
        place: Place,
        make_agent: MakeAgent,
        idle_exit_s: float,
        attend_grace_s: float,
        scope: Scope,
        simulates: str,
        ready: Callable[[], None],
    ) -> None:
        self._place = place
        self._ready = ready
        try:
            self._store = Store.open(database)
        except StoreRefused as error:
            raise Unfit(str(error)) from error
        broker_time = BrokerTime(Clock(self._store.mark))
        state = self._store.load_state()
        wrong = violations(state)
        if wrong:
            log.critical("state_contradicts database=%s why=%s", database, wrong[0])
            state = replace(state, contradiction=wrong[0])
        self._loop = Loop(state, self._store, broker_time, self._run_effects)
        self._first_events: list[Event] = []
        if self._store.mark is None:  # a new database
            self._first_events.append(ModeSet(owner_name(os.getuid()), scope.first_mode))
        policy = _read_policy(policy_file, self._loop.state)
        if policy is not None:
            self._first_events.append(policy)
        if wrong:
            self._first_events.clear()
        self._latest = Latest()
        self._agent = make_agent(lambda: self._loop.state, self._emit)
        self._liveness = Liveness(self._loop.send)
        self._attendance = Attendance(self._loop.send, attend_grace_s)
        self._housekeeping = Housekeeping(lambda: self._loop.state, place, idle_exit_s)
        self._used = Meter()
        self._errands: set[asyncio.Task[None]] = set()
        settings = Settings(
            scope.served, scope.name, secrets.token_hex(8), time.monotonic(), simulates
        )
        self._told_to_stop = asyncio.Event()
        self._broker = Broker(
            self._loop,
            self._latest,
            self._attendance,
            self._housekeeping.presence,
            settings,
            Refusals(),
            self._told_to_stop.set,
            Archive(database),
        )

    async def run(self) -> int:
        """Serve until not needed; the process' exit status."""
        raise_open_files_max()
        log.info(
            "broker_started pid=%d incarnation=%s", os.getpid(), self._broker.settings.incarnation
        )
        working = asyncio.create_task(self._loop.run())
        self._loop.subscribe(self._liveness.sync)
        self._loop.subscribe(self._attendance.sync)
        for event in self._first_events:
            await self._loop.submit(event, "start")
        self._agent.start()
        metering = asyncio.create_task(self._meter())
        server = self._listen()
        self._ready()
        stopping = asyncio.create_task(self._until_stopped())
        try:
            await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        finally:
            server.stop()
            stopping.cancel()
            metering.cancel()
        return await self._end(working, server)

    async def _meter(self) -> None:
        loop = self._loop
        await keep_metering(self._used, lambda: loop.state, loop.time.now, loop.keep_usage)

    async def _until_stopped(self) -> None:
        """Return when told to, by TERM or INT too, or when housekeeping says that this broker is of no use any more."""
        told = self._told_to_stop
        running = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            running.add_signal_handler(number, told.set)
        ended = [asyncio.create_task(wait) for wait in (told.wait(), self._housekeeping.run())]
        await asyncio.wait(ended, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.cancel()
        if told.is_set():
            log.info("broker_stopping why=told")

    def _listen(self) -> Server:
        application = web.Application(
            [(r".*", Handler, {"broker": self._broker, "endpoints": endpoints()})],
            log_function=_no_access_log,
        )
        server = Server(
            application,
            max_header_size=HEADER_BYTES_MAX,
            max_body_size=WIRE_BYTES_MAX,
            max_buffer_size=WIRE_BYTES_MAX + HEADER_BYTES_MAX,
            idle_connection_timeout=IDLE_CONNECTION_S,
            body_timeout=BODY_S,
        )
        server.add_socket(self._place.listen())
        return server

    async def _end(self, working: asyncio.Task[None], server: Server) -> int:
        """Nothing that hangs keeps the locks: what is not closed in time is left, and the process ends regardless."""
        failure = working.exception() if working.done() else None
        status = _status(failure)
        _end_at_the_latest(END_S, status)
        working.cancel()
        await asyncio.wait((working,), timeout=STEP_S)
        self._liveness.close()
        self._attendance.close()
        for errand in self._errands:
            errand.cancel()
        await _in_time("agent", self._agent.close())
        await _in_time("connections", server.close_all_connections())
        if failure is None:
            await self._loop.keep_usage(self._used.take())
            await self._loop.close()
            self._store.close()
        self._place.give_up()
        if failure is None:
            log.info("broker_ended")
        else:
            log.critical("broker_failed error=%s", failure, exc_info=failure)
        return status

    # --- what the parts tell each other --------------------------------------------------------------------------------

    def _emit(self, event: Event) -> None:
        """The agent saw something."""
        self._latest.note(event)
        self._loop.send(event, "agent")

    def _run_effects(self, effects: Sequence[Effect]) -> None:
        """What a grant opens the agent finds in the state."""
        slot_ids: set[SlotId] = set()
        is_granted = False
        for effect in effects:
            if isinstance(effect, InspectSlots):
                slot_ids.update(effect.slot_ids)
            elif isinstance(effect, AdmitHold):
                is_granted = True
            elif isinstance(effect, TellOfUse):
                _log_use(effect.use)
            elif isinstance(effect, StopProcess):
                stop = self._agent.stop(effect.pid, effect.start_ticks, force=effect.force)
                self._in_background(stop)
        if is_granted:
            self._in_background(self._agent.admit())
        if slot_ids:
            self._in_background(self._agent.inspect(slot_ids))

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)


def _log_use(use: UnleasedUse) -> None:
    log.warning(
        "unleased_use slot=%s kind=%s pid=%d uid=%s holder=%s",
        use.slot_id,
        use.kind,
        use.pid,
        use.uid,
        use.holder_id,
    )


def _status(failure: BaseException | None) -> int:
    if failure is None:
        return EXIT_DONE
    return EXIT_STORE_FAILED if isinstance(failure, StoreFailed) else EXIT_FAILED


async def _in_time(what: str, closing: Coroutine[Any, Any, None]) -> None:
    """Let it close, for so long; one that swallows its cancellation is not waited for."""
    task = asyncio.create_task(closing)
    _, late = await asyncio.wait((task,), timeout=STEP_S)
    if late:
        task.cancel()
        log.warning("not_closed_in_time what=%s", what)
    elif (error := task.exception()) is not None:
        log.error("not_closed what=%s", what, exc_info=error)


def _end_at_the_latest(after_s: float, status: int) -> None:
    """Whatever may hang by then, a thread that cannot be joined included. The store is as safe as at any crash."""
    timer = threading.Timer(after_s, os._exit, (status,))
    timer.daemon = True
    timer.start()


def _no_access_log(handler: web.RequestHandler) -> None:
    """Long polls would fill the log; what changes is in the audit."""


def _read_policy(path: str, state: State) -> PolicyApplied | None:
    if not path:
        return None
    try:
        return parse_policy(Path(path).read_text(encoding="utf-8"), state)
    except (OSError, UnicodeDecodeError) as error:
        raise Unfit(f"The policy file {path} cannot be read: {error}.") from error
    except PolicyRefused as error:
        raise Unfit(f"{path}: {error}") from error
