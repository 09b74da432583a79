"""What one Jupyter server keeps for its browsers: are they there, what they wait for, and what they are to ask anew."""

from __future__ import annotations

from typing import Any

from .attendance import Attendance
from .audience import Audience
from .batch import Batch
from .hints import Emit, Hints
from .link import ServerLink


class Desk:
    """`contents` is the server's contents manager; `emit` puts a hint on its event stream.

    `start` needs a running event loop.
    """

    def __init__(self, link: ServerLink, contents: Any, emit: Emit) -> None:
        self.link = link
        self.batch = Batch(link.places, contents)
        self.audience = Audience()
        self.attendance = Attendance(link, self.audience)
        self._hints = Hints(link, self.audience, emit)

    def start(self) -> None:
        self._hints.start()

    async def close(self) -> None:
        await self._hints.close()
        await self.attendance.close()
