"""The runner's line to its broker, which may be restarted, killed or gone for a while: jobs go on meanwhile.

Whatever must reach the broker is repeated until it is answered. When nobody answers, a new broker of the user's own is
started; it knows the jobs from its database and takes the runner for the one it was, by its process.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections.abc import AsyncIterator
from typing import TypeVar

import msgspec

from ..client import (
    AsyncBrokerClient,
    BrokerDown,
    PlaceRefused,
    Places,
    ensure_broker_async,
    routes,
)
from ..wire.bodies import SessionBody
from ..wire.routes import Route
from ..wire.views import JobView

PAUSE_S = (0.2, 1.0)

View = TypeVar("View", bound=msgspec.Struct)
log = logging.getLogger(__name__)


class Link:
    """Calls that survive the broker. `session_id` is the runner's for as long as its process lives."""

    def __init__(self, broker: AsyncBrokerClient, places: Places, session_id: str) -> None:
        self.session_id = session_id
        self._broker = broker
        self._places = places

    @property
    def url(self) -> str:
        """The broker's."""
        return self._places.url

    async def register(self) -> None:
        """Make the runner known; the same again changes nothing."""
        body = SessionBody(kind="runner", name="batch jobs", pid=os.getpid())
        await self._broker.call(routes.PUT_SESSION, self.session_id, body)

    async def end(self) -> None:
        """Say that the runner ends on purpose."""
        await self._broker.call(routes.END_SESSION, self.session_id)

    async def jobs(self) -> tuple[JobView, ...]:
        """The runner's jobs now. Raises BrokerDown."""
        view = await self._broker.call(routes.JOBS, query={"session_id": self.session_id})
        return view.jobs

    async def watch_jobs(self) -> AsyncIterator[tuple[JobView, ...]]:
        """The runner's jobs, now and after each change, through all restarts of the broker."""
        while True:
            try:
                async for view in self._broker.watch(
                    routes.JOBS, query={"session_id": self.session_id}
                ):
                    yield view.jobs
            except BrokerDown as error:
                log.warning("broker_down detail=%s", error)
            await self._reconnect()

    async def tell(self, route: Route[View], thing_id: str, body: msgspec.Struct) -> View:
        """Call until the broker answers. Raises BrokerError when it says no."""
        while True:
            try:
                return await self._broker.call(route, thing_id, body)
            except BrokerDown:
                await self._reconnect()

    async def _reconnect(self) -> None:
        while True:
            try:
                await ensure_broker_async(self._places)
                await self.register()
            except (BrokerDown, PlaceRefused) as error:
                log.warning("broker_still_down detail=%s", error)
                await asyncio.sleep(random.uniform(*PAUSE_S))  # noqa: S311 - jitter, not a secret
            else:
                return
