"""Holds the places in line of what was asked for from a browser.

A request is demand only while somebody waits for it. A page cannot be trusted to: it is reloaded, sleeps, or is one of many
that share few connections. So the Jupyter server waits in its stead, for as long as there is an `Audience`; when the last
page has gone the request leaves the line, and takes a GPU from nobody.
"""

from __future__ import annotations

import asyncio

import msgspec

from ..client.errors import BrokerError
from ..wire import routes
from ..wire.views import RequestView
from .audience import Audience
from .hosts import UNAVAILABLE
from .link import ServerLink
from .pauses import pauses

WAIT_S = 15


class Attendance:
    """Bounded by the requests the broker lets one owner have."""

    def __init__(self, link: ServerLink, audience: Audience) -> None:
        self._link = link
        self._audience = audience
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def attend(self, request_id: str) -> None:
        """Wait for this request from now on."""
        if request_id not in self._tasks:
            task = asyncio.create_task(self._wait(request_id))
            self._tasks[request_id] = task
            task.add_done_callback(lambda _: self._tasks.pop(request_id, None))

    async def nobody_waits(self) -> None:
        """Returns when all that was attended to is over."""
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    async def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await self.nobody_waits()

    async def _wait(self, request_id: str) -> None:
        etag: str | None = None
        waits = pauses()
        while self._audience.is_there:
            try:
                answer = await self._link.answer(
                    routes.REQUEST, request_id, etag=etag, wait_s=WAIT_S
                )
            except UNAVAILABLE as error:
                if isinstance(error, BrokerError) and error.status < 500:
                    return
                await asyncio.sleep(next(waits))
                continue
            waits = pauses()
            if answer.body is not None:
                etag = answer.etag
                if msgspec.json.decode(answer.body, type=RequestView).state != "waiting":
                    return
