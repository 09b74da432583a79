"""Tells browsers that something they may show has changed, over the server's own event stream.

An event says only which resource to ask for anew; the browser then asks by REST, where its rights are checked. So twenty
open notebooks cost one event, a lost event costs nothing but time, and nobody reads of another's work in a shared server.
The broker is asked for changes only while there is an `Audience`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..wire import routes
from .audience import Audience
from .hosts import UNAVAILABLE
from .link import ServerLink
from .pauses import pauses

CHANGED_SCHEMA = Path(__file__).parent / "events" / "changed.yaml"
CHANGED_SCHEMA_ID = "https://jupyter-gpubroker.org/events/changed/v1"
WATCHED: Mapping[str, routes.Route[Any]] = {
    route.path.removeprefix("/"): route
    for route in (routes.SESSIONS, routes.QUEUE, routes.GPUS, routes.JOBS)
}
WAIT_S = 30
COALESCE_S = 0.1

Emit = Callable[[dict[str, Any]], None]


class Hints:
    """`start` needs a running event loop."""

    def __init__(self, link: ServerLink, audience: Audience, emit: Emit) -> None:
        self._link = link
        self._audience = audience
        self._emit = emit
        self._changed: set[str] = set()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self._watch(name)) for name in WATCHED]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _watch(self, name: str) -> None:
        """Tell each time the answer differs from the one before, and when the broker went away or came back."""
        etag: str | None = None
        waits = pauses()
        while True:
            await self._audience.arrival()
            try:
                answer = await self._link.answer(WATCHED[name], etag=etag, wait_s=WAIT_S)
            except UNAVAILABLE:
                if etag is not None:
                    etag = None
                    self._tell(name)
                await asyncio.sleep(next(waits))
                continue
            waits = pauses()
            if answer.body is not None and answer.etag != etag:
                etag = answer.etag
                self._tell(name)

    def _tell(self, name: str) -> None:
        if not self._changed:
            asyncio.get_running_loop().call_later(COALESCE_S, self._flush)
        self._changed.add(name)

    def _flush(self) -> None:
        changed, self._changed = self._changed, set()
        self._emit({"resources": sorted(changed)})
