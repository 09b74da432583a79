"""Keeps this process in step with its lease: devices shown and hidden, orders carried out, notices put before the user.

`look` is the link thread's reaction to each view of the session. `apply` and `hand_back` are also called by the main thread,
when a cell asks or releases; a lock makes each of them happen once. A view may be older than what the main thread just did:
a lease that was handed back here is never shown again, and one that a view lacks is asked for before it is believed gone.
"""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, Optional, Tuple

from .broker import View
from .environment import VisibleDevices
from .errors import Refused, reason
from .give_back import OWN_KINDS, GiveBack
from .main_thread import MainThread
from .notices import Notices
from .offer import Offers
from .saving import Saver
from .session import LIVE, Session

WAIT_S = 30
NOTICE_WAIT_S = 5  # while a countdown is on the screen
RELEASED = "released"  # the reason of a lease that its own user gives back
RETURNED = ("granted", "active")

Key = Tuple[str, int]


class Holder:
    """`lost` is called when a lease ended that nobody here handed back."""

    def __init__(
        self,
        session: Session,
        main: MainThread,
        devices: VisibleDevices,
        offers: Offers,
        give_back: GiveBack,
        notices: Notices,
        saver: Saver,
        lost: Callable[[], None],
    ) -> None:
        self._session = session
        self._main = main
        self._devices = devices
        self._offers = offers
        self._give_back = give_back
        self._notices = notices
        self._saver = saver
        self._lost = lost
        self._lock = threading.Lock()
        self._offering = threading.Lock()
        self._applied: Optional[str] = None
        self._handed_back = ""
        self._saved: Optional[Key] = None
        self._answered: Optional[Tuple[Key, Optional[Dict[str, Any]]]] = None
        self._offered: Optional[Dict[str, Any]] = None

    def restarts(self) -> bool:
        """Has this process saved, and is to be restarted to give its GPU back? Its Jupyter server sees the same file."""
        manifest = self._saver.manifest() if self._saved is not None else None
        return manifest is not None and manifest["cause"] == _cause(self._saved)

    # --- both threads ------------------------------------------------------------------------------

    def started_with(self, lease_id: str, visible_devices: str) -> None:
        """The process was started with a lease: its environment shows the devices already."""
        self._applied = lease_id
        self._devices.show(visible_devices)

    def apply(self, lease: View) -> None:
        """Show the devices of a lease that is here, and tell the broker. Raises Refused or Unavailable."""
        with self._lock:
            if lease["id"] == self._handed_back:
                return
            if self._applied != lease["id"]:
                self._devices.show(lease["visible_devices"])
                self._applied = lease["id"]
        if lease["state"] == "granted":
            self._session.broker.acknowledge(lease["id"])

    def hand_back(self, lease: View) -> None:
        """Give back by `empty`: hide the devices first, then tell. Whoever calls this has seen that no context lives."""
        with self._lock:
            self._handed_back, self._applied = lease["id"], None
            self._devices.hide()
        try:
            self._session.broker.release(lease["id"], "empty", done=True)
        except BaseException:
            with self._lock:
                self._handed_back, self._applied = "", lease["id"]
                self._devices.show(lease["visible_devices"])
            raise

    # --- the link thread ---------------------------------------------------------------------------

    def look(self) -> int:
        """Act on the newest view; the seconds until the next look at the latest."""
        lease = self._session.lease
        self._notices.warn(self._session.warnings)
        if lease is None or lease["id"] != self._applied:
            self._forget_ended()
        if lease is None:
            self._notices.look(None)
            return WAIT_S
        order = lease["order"]
        if order is None and lease["state"] in ("granted", "active"):
            self.apply(lease)
            self._saved = None
        self._follow(lease)
        self._notices.look(lease)
        self.offer(lease)
        if order is not None:
            self._obey(lease)
        return NOTICE_WAIT_S if lease["notice"] is not None else WAIT_S

    def _forget_ended(self) -> None:
        """The lease that is applied here is not in the view: ended, or too new for it."""
        lease_id = self._applied
        if lease_id is None:
            return
        try:
            if self._session.broker.lease(lease_id)["state"] in LIVE:
                return
        except Refused as error:
            if error.status != 404:
                raise
        with self._lock:
            if self._applied != lease_id:
                return
            self._applied = None
            self._devices.hide()
        self._main.brought_back()
        self._lost()

    def _follow(self, lease: View) -> None:
        """What others do with this process: suspended by its Jupyter server, and back."""
        order, state = lease["order"], lease["state"]
        kind = order["kind"] if order else lease["gave_back"]
        leaves = state == "parked" or (state == "draining" and order)
        if kind == "checkpointed" and leaves and self._main.away is None:
            self._main.left("checkpointed")
            self._gave_back(lease, "checkpointed")
        elif self._main.away == "checkpointed" and state == "active" and order is None:
            self._main.brought_back()
            self._notices.returned()
            self._session.wake()

    def _obey(self, lease: View) -> None:
        order = lease["order"]
        key = (lease["id"], order["number"])
        if order["kind"] == "restarted" and not order["resume"] and self._saved != key:
            self._saved = key
            self._save(lease)
        if order["kind"] not in OWN_KINDS:
            return
        if self._answered is None or self._answered[0] != key:
            self._answered = (key, self._give_back.carry_out(lease))
        answer = self._answered[1]
        if answer is None:
            return
        after = self._session.broker.answer(lease["id"], answer)
        if answer["ok"] and not _is_taken(order, after):
            # The order had run out: the broker has gone on without this answer, and hears no more of it.
            self._answered = (key, None)
            self._give_back.undo(lease)
        elif answer["ok"] and order["resume"]:
            self._notices.returned()
        elif answer["ok"]:
            self._gave_back(lease, order["kind"])
        self._session.wake()

    def _gave_back(self, lease: View, kind: str) -> None:
        if kind == "empty":
            with self._lock:
                self._handed_back, self._applied = lease["id"], None
        if not lease["reason"] or lease["reason"]["code"] != RELEASED:
            self._notices.gone(kind)

    def _save(self, lease: View) -> None:
        """The Jupyter server restarts the kernel once it sees that this order's cause is saved; a failure ends the order."""
        number = lease["order"]["number"]
        why = self._offers.hindrance("restarted")
        try:
            if why is None:
                self._saver.save(_cause((lease["id"], number)))
        except Exception as error:  # noqa: BLE001 - whatever it is, the kernel must not be restarted
            why = reason("save_failed", error=f"{type(error).__name__}: {error}"[:200])
        if why is not None:
            answer = {"number": number, "ok": False, "reason": why}
            self._session.broker.answer(lease["id"], answer)

    def offer(self, lease: View) -> None:
        """Tell what would work now, if that is news."""
        with self._offering:
            body = self._offers.body(lease["simulated"])
            if body != self._offered:
                self._session.broker.offer(self._session.id, body)
                self._offered = body


def _cause(order: Optional[Key]) -> str:
    """What a manifest says of the order that its variables were saved for."""
    return ":".join(map(str, order or ()))


def _is_taken(order: View, after: View) -> bool:
    """Whether the lease that answered a success shows that this very order is done. What another order is about is not."""
    if order["resume"]:
        return after["state"] in RETURNED
    return after["order"] is None and after["gave_back"] == order["kind"]
