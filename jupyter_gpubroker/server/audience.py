"""Is anybody looking? A page that shows the panel or a chip asks at least every minute; without one nothing is watched.

What was asked for from a browser is demand only as long as one is there (`attendance`), and changes are told only then
(`hints`). A page that was closed, or slept with its laptop, is missed after `ABSENT_S`.
"""

from __future__ import annotations

import asyncio
import time

# Browsers let a hidden page's timers run once a minute; one round may be lost.
ABSENT_S = 150.0


class Audience:
    """All browser pages of one Jupyter server taken together."""

    def __init__(self, absent_s: float = ABSENT_S) -> None:
        self._absent_s = absent_s
        self._until_s = 0.0
        self._came = asyncio.Event()

    def looked(self) -> None:
        """A page has just asked for something."""
        self._until_s = time.monotonic() + self._absent_s
        self._came.set()

    @property
    def is_there(self) -> bool:
        return time.monotonic() < self._until_s

    async def arrival(self) -> None:
        """Returns at once while somebody is there, else when somebody comes."""
        while not self.is_there:
            self._came.clear()
            await self._came.wait()
