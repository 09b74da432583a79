"""Waits in line: polls the request, shows place and expected time, and leaves the line at once when interrupted.

Blocking in steps of a second for magics, in ticks of half a second for `await`: a kernel that awaits one long call is deaf to
interrupts. A broker that restarts meanwhile is waited for; a request that it lost is put again under the same id.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Callable, Optional

from .board import Board
from .broker import Broker, View, new_id
from .errors import GPUBrokerError, Interrupted, Plain, Refused, Unavailable
from .quantities import duration_text
from .sentences import of_view, say

STEP_S = 1
POLL_S = 20
TICK_S = 0.5
PAUSE_S = 0.3
ORDINARY = ("waiting", "waiting_expected")  # reasons to wait that the place in line tells


class Cancelled(Plain, asyncio.CancelledError):
    """The task that waited was cancelled: by its user, or by other code."""


class Wait:
    """`put(id)` makes the request and answers its view; `goal` says in the sentences what is waited for.

    `give_up(lease)` is called when the request was granted at the very moment its user left; `hint` says what else can be done.
    """

    def __init__(
        self,
        broker: Broker,
        put: Callable[[str], View],
        goal: str,
        give_up: Callable[[View], None] = lambda _: None,
        hint: str = "",
    ) -> None:
        self._broker = broker
        self._put = put
        self._goal = goal
        self._give_up = give_up
        self._hint = hint or say("wait_interrupt")
        self._id = new_id()
        self._etag: Optional[str] = None
        self._view: Optional[View] = None
        self._is_lost = False
        self._started = time.monotonic()
        self._board = Board()
        self._has_waited = False

    def here(self) -> View:
        """Block until the request is over; its last view. Raises Refused, Unavailable, or Interrupted after leaving."""
        try:
            view = self._begin()
            while view["state"] == "waiting":
                self._show(view)
                view = self._step(STEP_S, time.sleep)
        except KeyboardInterrupt:
            self.leave()
            raise Interrupted(say("left_line")) from None
        return self._ended(view)

    async def asynchronously(self) -> View:
        """The same while the event loop runs on. Cancelling it leaves the line."""
        loop = asyncio.get_running_loop()
        try:
            view = self._begin()
            while view["state"] == "waiting":
                self._show(view)
                step = loop.run_in_executor(None, self._step, POLL_S, time.sleep)
                while not step.done():
                    await asyncio.wait([step], timeout=TICK_S)
                    self._show(view)
                view = step.result()
        except (KeyboardInterrupt, asyncio.CancelledError):
            self.leave()
            raise Cancelled(say("left_line")) from None
        return self._ended(view)

    def leave(self) -> None:
        """Out of the line."""
        with contextlib.suppress(GPUBrokerError, KeyboardInterrupt):
            view = self._broker.cancel(self._id)
            if view.get("state") == "granted" and view.get("lease"):
                self._give_up(view["lease"])
        self._show_over()

    def _begin(self) -> View:
        self._view = self._put(self._id)
        return self._view

    def _step(self, wait_s: int, pause: Callable[[float], None]) -> View:
        """The newest view after at most `wait_s`."""
        assert self._view is not None
        try:
            if self._is_lost:
                self._view, self._etag = self._put(self._id), None
            else:
                watched = self._broker.request(self._id, self._etag, wait_s)
                self._etag = watched.etag
                self._view = watched.view or self._view
            self._is_lost = False
        except Refused as error:
            if error.status != 404 or self._is_lost:
                raise
            self._is_lost = True
        except Unavailable as error:
            self._board.show(say("wait_broker_away", sentence=str(error)))
            pause(PAUSE_S)
        return self._view

    def _show(self, view: View) -> None:
        self._has_waited = True
        place, expected_ms = view["place"], view["expected_in_ms"]
        why = view["reason"]
        if why and why["code"] not in ORDINARY:
            # There is more to it than the others in line; the broker says what, and what to do.
            self._board.show(f"{of_view(view)} {self._hint}")
            return
        substance = say("wait_place", goal=self._goal, place=place or "?", waiting=view["waiting"])
        expected = (
            say("wait_expected", left=duration_text(expected_ms))
            if expected_ms is not None
            else say("wait_unknown")
        )
        waited = say("wait_waited", time=duration_text(self._waited_s() * 1000))
        text = f"{substance} {expected} {waited} {self._hint}"
        self._board.show(text, substance)

    def _ended(self, view: View) -> View:
        self._show_over()
        if view["state"] == "granted":
            return view
        why = view["reason"] or {"code": view["state"], "values": {}}
        raise Refused(of_view(view), why["code"], why["values"])

    def _show_over(self) -> None:
        """How it ended is said by who waited."""
        if self._has_waited:
            waited = duration_text(self._waited_s() * 1000)
            self._board.show(say("wait_over", goal=self._goal, time=waited))

    def _waited_s(self) -> int:
        return int(time.monotonic() - self._started)
