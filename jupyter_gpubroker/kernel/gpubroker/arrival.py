"""Brings a GPU back that was parked or suspended, before code of the user's goes on.

Called before a cell runs, when a prompt was answered, and when the debugger is told to continue. The main thread waits in the
same line as everybody, seeing its place; the link thread moves the memory. Code never goes on over memory that is away, unless
its lease is gone and nothing can bring it back.
"""

from __future__ import annotations

import threading
import time
from typing import Callable, List, Optional

from .board import Board
from .broker import View
from .errors import GPUBrokerError, Interrupted, Refused, Unavailable
from .link import Link
from .main_thread import MainThread, daemon
from .sentences import of_view, say
from .session import Session
from .waiting import Wait

SETTLE_S = 120.0
RETURN_S = 300.0
STEP_S = 1.0
NAP_S = 0.25

Listener = Callable[[Optional[str]], None]  # hears a sentence when it failed


class Arrival:
    """`bring_back` blocks; `begin` does the same in a thread of its own."""

    def __init__(self, session: Session, main: MainThread, link: Link) -> None:
        self._session = session
        self._main = main
        self._link = link
        self._lock = threading.Lock()
        self._listening = threading.Lock()
        self._listeners: List[Listener] = []
        self._damage: Optional[str] = None

    @property
    def is_needed(self) -> bool:
        return self._main.away is not None and self._session.is_own

    def damaged(self, sentence: str) -> None:
        """What came back is not what left: the code that waits for it is told before it goes on."""
        self._damage = sentence

    def bring_back(self) -> None:
        """Return with the memory on the device. Raises Interrupted, Refused or Unavailable while it is still away."""
        if not self.is_needed:
            return
        with self._main.waiting():
            try:
                # Naps, so that an interrupt gets through.
                while not self._lock.acquire(timeout=NAP_S):
                    pass
            except KeyboardInterrupt:
                raise Interrupted(say("still_away")) from None
            try:
                self._settled_and_returned()
            except KeyboardInterrupt:
                raise Interrupted(say("still_away")) from None
            finally:
                self._lock.release()

    def begin(self, ended: Listener) -> None:
        """Bring it back beside the main thread, once for all who ask meanwhile; `ended(None)` when it is there."""
        with self._listening:
            self._listeners.append(ended)
            if len(self._listeners) == 1:
                daemon(self._beside, "gpubroker-arrival")

    def _beside(self) -> None:
        why_not = None
        try:
            self.bring_back()
        except GPUBrokerError as error:
            why_not = str(error)
        with self._listening:
            listeners, self._listeners = self._listeners, []
        for listener in listeners:
            listener(why_not)

    def _settled_and_returned(self) -> None:
        self._settle()
        lease = self._session.lease
        if self._main.away is None:
            return
        if lease is None:
            # The broker knows no such lease any more: waiting would be for ever.
            self._main.brought_back()
            raise Refused(say("parked_lease_gone"), "lease_gone")
        broker, lease_id = self._session.broker, lease["id"]
        place = self._main.rests_at
        hint = say("return_in_cell" if place == "cell" else "return_at_" + place)

        def put(request_id: str) -> View:
            return broker.unpark(lease_id, request_id)

        Wait(broker, put, say("goal_return"), hint=hint).here()
        due = time.monotonic() + RETURN_S
        while not self._session.wait_until(lambda: self._main.away is None, STEP_S):
            lease = broker.lease(lease_id)
            if lease["state"] not in ("granted", "active"):
                raise Refused(of_view(lease), "not_back")
            if time.monotonic() > due:
                raise Unavailable(say("still_returning"))

        damage, self._damage = self._damage, None
        if damage is not None:
            raise Refused(damage, "contents_changed")

    def _settle(self) -> None:
        """An order that is being carried out comes to its end first, and a broker that is away comes back."""
        board = Board()
        due = time.monotonic() + SETTLE_S
        while not self._session.wait_until(self._is_settled, STEP_S):
            self._link.nudge()
            board.show(self._session.problem or say("still_leaving"))
            if time.monotonic() > due:
                raise Unavailable(self._session.problem or say("still_leaving"))

    def _is_settled(self) -> bool:
        if self._main.away is None:
            return True
        lease = self._session.lease
        return self._session.problem is None and (lease is None or lease["state"] == "parked")
