"""Speaks to the broker for all kernels of one Jupyter server.

One task says what is there and what it does (new sessions, then one report for all: at once on a change, every 10 s without);
another waits for what the broker wants done. Both start a broker when none answers, and go on after it was away: sessions it
does not know are put again. It outlives `stop_extension`, which comes before the server ends its kernels, until the last of
them has ended. Nothing here decides about leases, and nothing here can make a kernel or the server fail.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from ..client.errors import BrokerError
from ..client.http import Answer, AsyncBrokerClient, Query
from ..client.places import Places
from ..client.simulation import difference
from ..client.start import ensure_broker_async
from ..wire import routes
from ..wire.bodies import Report, ReportsBody
from ..wire.views import HealthView, SessionsView, SessionView
from .hosts import END_S, RESTART_S, UNAVAILABLE, Launched, hides_unheard, in_time
from .watcher import KernelWatch, Watches

REPORT_S = 10.0
COALESCE_S = 0.1
PAUSE_MIN_S = 0.1
PAUSE_MAX_S = 30.0

SessionsSeen = Callable[[SessionsView], None]
Connected = Callable[[], None]


@dataclass(slots=True)
class _Kernel:
    """A kernel process of this server. `is_known`: the broker has its session; `refused`: and never will."""

    launched: Launched
    watch: KernelWatch
    is_known: bool = False
    is_refused: bool = False


class ServerLink:
    """The `hosts.Host` of a Jupyter server. `start` needs a running event loop; everything runs on that one.

    `seen` is called with the sessions whenever they have changed, `connected` whenever a broker was found.
    """

    def __init__(
        self, places: Places, server_id: str, log: Any, seen: SessionsSeen, connected: Connected
    ) -> None:
        self.places = places
        self.server_id = server_id
        self.health: HealthView | None = None
        self.sessions = SessionsView(())
        self.watches = Watches(self.changed, log)
        self._log = log
        self._told_sessions = seen
        self._told_connected = connected
        self._kernels: dict[str, _Kernel] = {}
        self._client: AsyncBrokerClient | None = None
        self._is_connected = False
        self._trouble = ""
        self._connecting = asyncio.Lock()
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._is_stopping = False

    # --- for the extension -----------------------------------------------------------------------

    def start(self) -> None:
        """Begin to speak. Until then kernels start all the same and are told about later."""
        loops = (
            self._forever(self._report),
            self._forever(self._listen),
            self.watches.look_at_buffers(),
        )
        self._tasks = [asyncio.create_task(loop) for loop in loops]

    async def stop(self) -> None:
        """The server stops: end with the last kernel, or now when there is none."""
        self._is_stopping = True
        await self._close_when_done()

    @property
    def simulated(self) -> bool | None:
        return self.health.simulated if self.health else None

    @property
    def hides_devices(self) -> bool:
        """Unless the broker is known to only look on."""
        if self.health is None:
            return hides_unheard(self.places)
        return self.health.mode == "enforce"

    def launched_kernel(self, session_id: str) -> Launched | None:
        """The kernel of a session of this server that has not ended."""
        kernel = self._kernels.get(session_id)
        return kernel.launched if kernel else None

    def has_order(self, lease_id: str, number: int) -> bool:
        """Does the broker still want this done?"""
        return any(
            lease.id == lease_id and lease.order is not None and lease.order.number == number
            for session in self.sessions.sessions
            for lease in session.leases
        )

    def changed(self) -> None:
        """Something is to be reported."""
        self._wake.set()

    async def call(
        self, route: routes.Route[routes.View], thing_id: str, body: Any = None
    ) -> routes.View:
        """Call the broker; start one when none answers. Raises one of `hosts.UNAVAILABLE`."""
        client = await self._connect()
        try:
            return await client.call(route, thing_id, body)
        except UNAVAILABLE as error:
            self._is_connected = isinstance(error, BrokerError)
            raise

    async def answer(
        self,
        route: routes.Route[Any],
        thing_id: str | None = None,
        body: Any = None,
        query: Query | None = None,
        *,
        etag: str | None = None,
        wait_s: int = 0,
    ) -> Answer:
        """As `call`, but the answer as it came, to be passed on."""
        client = await self._connect()
        try:
            return await client.answer(route, thing_id, body, query, etag=etag, wait_s=wait_s)
        except UNAVAILABLE as error:
            self._is_connected = isinstance(error, BrokerError)
            raise

    # --- for the provisioner (`hosts.Host`) ------------------------------------------------------

    def launched(self, kernel: Launched) -> None:
        if kernel.body.predecessor is not None:
            self._kernels.pop(kernel.body.predecessor, None)
        kernel_id = str(kernel.body.kernel_id)
        watch = self.watches.attach(kernel_id, kernel.manager)
        self._kernels[kernel.session_id] = _Kernel(kernel, watch)
        self.changed()

    async def restarting(self, session_id: str) -> SessionView | None:
        call = self.call(routes.RESTART_SESSION, session_id)
        return await in_time(RESTART_S, call, self._log, "restart_not_announced")

    def seen(self, session_id: str) -> SessionView | None:
        sessions = self.sessions.sessions
        return next((session for session in sessions if session.id == session_id), None)

    async def ended(self, session_id: str) -> None:
        if self._forget(session_id):
            call = self.call(routes.END_SESSION, session_id)
            await in_time(END_S, call, self._log, "session_end_not_told")
        await self._close_when_done()

    def given_up(self, session_id: str) -> None:
        self._forget(session_id)

    # --- inside ----------------------------------------------------------------------------------

    def _forget(self, session_id: str) -> bool:
        kernel = self._kernels.pop(session_id, None)
        if kernel is not None:
            self.watches.forget(kernel.watch.kernel_id)
        return kernel is not None

    async def _close_when_done(self) -> None:
        if not self._is_stopping or self._kernels:
            return
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _forever(self, work: Callable[[AsyncBrokerClient], AsyncIterator[None]]) -> None:
        """Do `work`, which yields after each success, and begin again after each failure, later and later."""
        pause_s = PAUSE_MIN_S
        while True:
            try:
                client = await self._connect()
                async for _ in work(client):
                    pause_s = PAUSE_MIN_S
            except UNAVAILABLE as error:
                self._lost(error)
            except Exception:  # noqa: BLE001
                # A fault of ours in one round must not end the heartbeat of all kernels.
                self._log.exception("link_round_failed")
            await asyncio.sleep(random.uniform(pause_s / 2, pause_s))  # noqa: S311 - jitter, not a secret
            pause_s = min(2 * pause_s, PAUSE_MAX_S)

    async def _connect(self) -> AsyncBrokerClient:
        async with self._connecting:
            if self._client is not None and self._is_connected:
                return self._client
            url = await ensure_broker_async(self.places)
            if self._client is None or self._client.url != url:
                self._client = AsyncBrokerClient(url)
            self.health = await self._client.call(routes.HEALTH)
            self._is_connected, self._trouble = True, ""
            self._log.info("broker_connected url=%s pid=%s", url, self.health.pid)
            contradiction = difference(self.health, os.environ)
            if contradiction is not None:
                self._log.warning("%s", contradiction)
            self._told_connected()
            return self._client

    def _lost(self, error: Exception) -> None:
        """Say it once, however often it is tried again."""
        self._is_connected = isinstance(error, BrokerError)
        if str(error) != self._trouble:
            self._trouble = str(error)
            self._log.warning("broker_not_usable: %s", error)

    async def _report(self, client: AsyncBrokerClient) -> AsyncIterator[None]:
        """Tell the broker what is there: new sessions first, oldest first, then what all of them do."""
        while True:
            self._wake.clear()
            for kernel in tuple(self._kernels.values()):
                if not kernel.is_known and not kernel.is_refused:
                    await self._put(client, kernel)
            reports = tuple(
                Report(session_id, kernel.watch.activity, kernel.watch.front_ends)
                for session_id, kernel in self._kernels.items()
                if kernel.is_known
            )
            if reports:
                answer = await client.call(
                    routes.REPORT_SESSIONS, None, ReportsBody(self.server_id, reports)
                )
                for session_id in answer.unknown:
                    self._is_unknown(session_id)
            yield
            await self._nap()

    async def _nap(self) -> None:
        # Not `wait_for`: before Python 3.12 it may swallow a cancellation.
        due = asyncio.get_running_loop().call_later(REPORT_S, self._wake.set)
        try:
            await self._wake.wait()
        finally:
            due.cancel()
        # A run of cells changes state many times: say it once.
        await asyncio.sleep(COALESCE_S)

    async def _put(self, client: AsyncBrokerClient, kernel: _Kernel) -> None:
        launched = kernel.launched
        try:
            await client.call(routes.PUT_SESSION, launched.session_id, launched.body)
        except BrokerError as error:
            if error.status >= 500 or error.status == 429:
                raise
            kernel.is_refused = True
            self._log.warning("session_refused session=%s: %s", launched.session_id, error)
        else:
            kernel.is_known = True
            self._log.info(
                "session_opened session=%s kernel=%s", launched.session_id, launched.body.kernel_id
            )

    def _is_unknown(self, session_id: str) -> None:
        if session_id in self._kernels:
            self._kernels[session_id].is_known = False
            self.changed()

    async def _listen(self, client: AsyncBrokerClient) -> AsyncIterator[None]:
        """Hear what the broker wants done for the sessions of this server."""
        query = {"server_id": self.server_id}
        async for sessions in client.watch(routes.SESSIONS, query=query):
            self.sessions = sessions
            self._told_sessions(sessions)
            yield
