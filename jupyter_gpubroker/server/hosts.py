"""Who speaks to the broker for the kernels of this process.

Below a Jupyter server that is its `link`, registered here by the extension. Anywhere else (nbconvert, papermill, a console)
there is no server and no front end: `Standalone` tells the broker what must be told and nothing more. Kernels never wait for
the broker at their first start; the calls that a restart or shutdown waits for have short deadlines and never raise.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar
from weakref import WeakKeyDictionary

from ..client.errors import BrokerDown, BrokerError, PlaceRefused
from ..client.places import Places, simulated_beside
from ..patience import within
from ..wire import routes
from ..wire.bodies import SessionBody
from ..wire.views import SessionView

RESTART_S = 2.0
END_S = 1.0
UNAVAILABLE = (BrokerDown, BrokerError, PlaceRefused)

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Launched:
    """A kernel process that has just started. `manager` is its KernelManager."""

    session_id: str
    body: SessionBody
    manager: Any


class Host(Protocol):
    """What a provisioner needs. `simulated` and `hides_devices` are the broker's, as far as they are known yet."""

    @property
    def places(self) -> Places: ...

    @property
    def server_id(self) -> str | None: ...

    @property
    def simulated(self) -> bool | None: ...

    @property
    def hides_devices(self) -> bool: ...

    def launched(self, kernel: Launched) -> None:
        """The process runs: make it known, in the background."""

    async def restarting(self, session_id: str) -> SessionView | None:
        """Announce that the process will be replaced; its session as the broker has it, None when nobody answers."""

    def seen(self, session_id: str) -> SessionView | None:
        """The session as last seen, without asking."""

    async def ended(self, session_id: str) -> None:
        """The process was shut down on purpose."""

    def given_up(self, session_id: str) -> None:
        """The process died once too often and will not be started again."""


_hosts: WeakKeyDictionary[Any, Host] = WeakKeyDictionary()


def register(kernels: Any, host: Host) -> None:
    """Make `host` speak for all kernels of the multi kernel manager `kernels`."""
    _hosts[kernels] = host


def host_of(kernel_manager: Any, log: Any) -> Host:
    """The host of the kernels' manager above `kernel_manager`, else one that stands alone."""
    above = getattr(kernel_manager, "parent", None)
    if above is not None and above in _hosts:
        return _hosts[above]
    return Standalone(log)


def hides_unheard(places: Places) -> bool:
    """Are devices hidden from kernels before the broker was heard of? That of a whole machine begins by looking on."""
    return places.may_start or places.configured_url is not None


async def in_time(
    deadline_s: float, call: Coroutine[Any, Any, Found], log: Any, what: str
) -> Found | None:
    """The result of a call to the broker, None when it failed or took too long: nobody may hang on it."""
    try:
        return await within(deadline_s, call)
    except (asyncio.TimeoutError, *UNAVAILABLE) as error:
        log.warning("%s: %s", what, str(error) or "the broker did not answer in time")
        return None


class Standalone:
    """For processes with kernels but no Jupyter server. Its sessions are headless."""

    server_id: str | None = None
    simulated: bool | None = None

    def __init__(self, log: Any | None = None) -> None:
        self.places = Places.find()
        self.hides_devices = hides_unheard(self.places)
        self._log = log or logging.getLogger(__name__)
        self._opened: set[str] = set()

    def launched(self, kernel: Launched) -> None:
        # A thread, not a task: outside a server the event loop may stand still between two calls.
        threading.Thread(
            target=self._open, args=(kernel,), name="gpubroker-session", daemon=True
        ).start()

    async def restarting(self, session_id: str) -> SessionView | None:
        if session_id not in self._opened:
            return None
        call = asyncio.to_thread(self._call, routes.RESTART_SESSION, session_id)
        return await in_time(RESTART_S, call, self._log, "restart_not_announced")

    def seen(self, session_id: str) -> SessionView | None:  # noqa: ARG002
        return None

    async def ended(self, session_id: str) -> None:
        if session_id in self._opened:
            self._opened.discard(session_id)
            call = asyncio.to_thread(self._call, routes.END_SESSION, session_id)
            await in_time(END_S, call, self._log, "session_end_not_told")

    def given_up(self, session_id: str) -> None:
        """Nothing to forget here; the broker sees the process end by itself."""

    def _open(self, kernel: Launched) -> None:
        from ..client.start import ensure_broker

        try:
            ensure_broker(self.places)
            self._call(routes.PUT_SESSION, kernel.session_id, kernel.body)
            self._opened.add(kernel.session_id)
        except UNAVAILABLE as error:
            self._log.warning("session_not_opened: %s", error)

    def _call(
        self, route: routes.Route[routes.View], session_id: str, body: SessionBody | None = None
    ) -> routes.View:
        from ..client.http import BrokerClient

        with BrokerClient(self.places.url, answer_s=RESTART_S) as client:
            return client.call(route, session_id, body)


def simulated_state(host: Host, environ: Any) -> Path | None:
    """Where simulated GPUs keep their state, None where GPUs are real or the kernel finds it beside the socket."""
    asked_for = bool(environ.get("GPUBROKER_SIMULATE"))
    simulated = host.simulated if host.simulated is not None else asked_for
    return simulated_beside(host.places.url) if simulated else None
