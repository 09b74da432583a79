"""This process as the broker knows it, and the newest view of it.

A session belongs to one process. The provisioner's mark (GPUBROKER_SESSION) is inherited by everything the kernel starts, so
the kernel that loads the extension adds its pid to it: any other process that finds both is a child and stays passive.
"""

from __future__ import annotations

import os
import threading
import time
from typing import Callable, Mapping, MutableMapping, Optional, Sequence

from .broker import Broker, View
from .errors import Refused, Unavailable
from .sentences import say

HOLDER = "GPUBROKER_HOLDER"
LIVE = ("active", "granted", "parked", "draining")  # a process cares most for the first


class Session:
    """`view` is the newest SessionView, None before the broker first answered; `problem` why it does not answer now."""

    def __init__(self, session_id: str, broker: Broker, name: str) -> None:
        self.id = session_id
        self.broker = broker
        self.name = name
        self.pid = os.getpid()
        self.view: Optional[View] = None
        self.problem: Optional[str] = None
        self._changed = threading.Condition()

    @property
    def is_own(self) -> bool:
        """False in forked children."""
        return os.getpid() == self.pid

    @property
    def lease(self) -> Optional[View]:
        """The lease of this process. One that drains is passed over where there is a newer one."""
        leases = (
            [lease for lease in self.view["leases"] if lease["state"] in LIVE] if self.view else []
        )
        return min(leases, key=lambda lease: LIVE.index(lease["state"]), default=None)

    @property
    def warnings(self) -> Sequence[View]:
        """What this process' own do that they may not, as the broker last saw it."""
        return self.view.get("warnings", ()) if self.view else ()

    def saw(self, view: View) -> None:
        with self._changed:
            self.view, self.problem = view, None
            self._changed.notify_all()

    def refresh(self) -> View:
        """Ask now: what the listening thread saw last may be older than what this process just did."""
        try:
            view = self.broker.session(self.id).view
        except Refused as error:
            if error.status != 404:
                raise
            raise Unavailable(say("not_registered")) from None
        assert view is not None
        self.saw(view)
        return view

    def failed(self, sentence: str) -> None:
        """The broker cannot be asked at the moment; what was seen stays the newest."""
        with self._changed:
            self.problem = sentence
            self._changed.notify_all()

    def wake(self) -> None:
        """Let those who wait look again."""
        with self._changed:
            self._changed.notify_all()

    def wait_until(self, holds: Callable[[], bool], timeout_s: float) -> bool:
        """Whether `holds` came true in time. Short naps, so that an interrupt gets through."""
        due = time.monotonic() + timeout_s
        with self._changed:
            while not holds():
                left_s = due - time.monotonic()
                if left_s <= 0:
                    return False
                self._changed.wait(min(left_s, 0.25))
        return True

    def register(self) -> None:
        """Put the session again: the broker has forgotten it and nobody else told it."""
        self.broker.put_session(self.id, {"kind": "kernel", "name": self.name, "pid": self.pid})


def of_environment(environ: MutableMapping[str, str]) -> Session:
    """The session of this process, claimed for it. Raises Unavailable with the reason where there is none."""
    why_not = why_not_lent(environ)
    if why_not is not None:
        raise Unavailable(say(why_not))
    session_id, url = environ["GPUBROKER_SESSION"], environ["GPUBROKER_URL"]
    session = Session(session_id, Broker(url), environ.get("JPY_SESSION_NAME") or "kernel")
    environ[HOLDER] = f"{session_id}:{session.pid}"
    return session


def why_not_lent(environ: Mapping[str, str]) -> Optional[str]:
    """The code of why this is no process that GPUs are lent to, or None."""
    session_id = environ.get("GPUBROKER_SESSION", "")
    holder_session, _, holder_pid = environ.get(HOLDER, "").partition(":")
    if environ.get("GPUBROKER", "").lower() == "off":
        return "switched_off"
    if environ.get("GPUBROKER_INHERITED") or environ.get("GPUBROKER_JOB"):
        return "inherited"
    if not session_id or not environ.get("GPUBROKER_URL"):
        return "not_managed"
    if not environ["GPUBROKER_URL"].startswith("unix:///"):
        return "bad_url"
    if holder_session == session_id and holder_pid != str(os.getpid()):
        return "child_process"
    return None
