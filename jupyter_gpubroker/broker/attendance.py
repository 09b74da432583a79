"""Who still waits: a request without a listener is no demand, and after a grace it leaves the line.

A listener is an open long poll on the request. A job's request needs none, its runner's life stands for it. After a restart
everybody has the same grace to come back. Which requests are meant follows from the state alone (`sync`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..core.events import Event, RequestAbandoned
from ..core.model import RequestId, RequestState, State


class Attendance:
    """Calls `abandoned` for a waiting request that nobody listened to for `grace_s`."""

    def __init__(self, abandoned: Callable[[Event], None], grace_s: float) -> None:
        self._abandoned = abandoned
        self._grace_s = grace_s
        self._listeners: Counter[RequestId] = Counter()
        self._timers: dict[RequestId, asyncio.TimerHandle] = {}
        self._waiting: set[RequestId] = set()

    def sync(self, state: State) -> None:
        """Count for exactly the requests of `state` that wait and belong to no job."""
        waiting = {
            request.id
            for request in state.requests.values()
            if request.state is RequestState.WAITING and request.job_id is None
        }
        for request_id in self._waiting - waiting:
            self._stop(request_id)
        new, self._waiting = waiting - self._waiting, waiting
        for request_id in new:
            self._count_down(request_id)

    @contextmanager
    def listening(self, request_id: RequestId) -> Iterator[None]:
        """Somebody waits for the answer for as long as this is entered."""
        self._listeners[request_id] += 1
        self._stop(request_id)
        try:
            yield
        finally:
            self._listeners[request_id] -= 1
            if self._listeners[request_id] == 0:
                del self._listeners[request_id]
                self._count_down(request_id)

    def close(self) -> None:
        for request_id in list(self._timers):
            self._stop(request_id)

    def _count_down(self, request_id: RequestId) -> None:
        if request_id in self._waiting and request_id not in self._listeners:
            self._timers[request_id] = asyncio.get_running_loop().call_later(
                self._grace_s, self._leave, request_id
            )

    def _leave(self, request_id: RequestId) -> None:
        del self._timers[request_id]
        self._abandoned(RequestAbandoned(request_id))

    def _stop(self, request_id: RequestId) -> None:
        timer = self._timers.pop(request_id, None)
        if timer is not None:
            timer.cancel()
