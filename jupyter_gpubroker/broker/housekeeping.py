"""Is this broker still of use? It ends when nobody needs it and when nobody can find it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain

from ..core.model import State
from ..core.table import live
from .place import Place

LOOK_S_MAX = 2.0

log = logging.getLogger(__name__)


class Presence:
    """Whether anybody calls: an open call (a long poll too) or one not long ago."""

    def __init__(self) -> None:
        self._open = 0
        self._waiting = 0
        self._last_s = time.monotonic()

    def began(self) -> None:
        self._open += 1

    def ended(self) -> None:
        self._open -= 1
        self._last_s = time.monotonic()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Meanwhile somebody waits for news of what the broker keeps."""
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    @property
    def is_waited_for(self) -> bool:
        return self._waiting > 0

    @property
    def absent_s(self) -> float:
        return 0.0 if self._open else time.monotonic() - self._last_s


class Housekeeping:
    """`run` returns when the process should end."""

    def __init__(self, state: Callable[[], State], place: Place, idle_exit_s: float) -> None:
        self.presence = Presence()
        self._state = state
        self._place = place
        self._idle_exit_s = idle_exit_s

    async def run(self) -> None:
        last_use_s = time.monotonic()
        while True:
            await asyncio.sleep(min(LOOK_S_MAX, self._idle_exit_s / 4))
            if not self._place.is_ours:
                log.warning("broker_stopping why=place_taken")
                return
            if is_in_use(self._state()):
                last_use_s = time.monotonic()
            unused_s = min(time.monotonic() - last_use_s, self.presence.absent_s)
            if unused_s >= self._idle_exit_s:
                log.info("broker_stopping why=unused")
                return


def is_in_use(state: State) -> bool:
    """Does anybody hold or want anything?"""
    return any(True for _ in chain(live(state.leases), live(state.requests), live(state.jobs)))
