"""The thread that listens to the broker for this process, from the kernel's start to its end.

It long-polls the session, keeps its newest view and calls a listener, which acts on it. It goes on through debugger stops,
broker restarts and failures of the listener; a forked child has none. Nothing here decides anything.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from typing import Any, Callable, Optional

from .errors import Refused, Unavailable
from .main_thread import daemon
from .sentences import say
from .session import Session

WAIT_S = 30
PAUSE_S = (0.1, 5.0)
FORGOTTEN_S = 30.0  # the Jupyter server, which reports every 10 s, puts forgotten sessions first

_log = logging.getLogger("gpubroker")


class Link:
    """`listener` is called in the thread after each look, whether or not things changed; it says when to look again."""

    def __init__(self, session: Session, listener: Callable[[], int]) -> None:
        self._session = session
        self._listener = listener
        self._etag: Optional[str] = None
        self._wait_s = 0
        self._unknown_since: Optional[float] = None
        self._is_stopping = False
        self._nudged = threading.Event()
        self._thread: Any = None

    def start(self) -> None:
        self._thread = daemon(self._run, "gpubroker")

    def stop(self) -> None:
        """The thread ends after the look it is at; nobody waits for it."""
        self._is_stopping = True
        self._nudged.set()

    def nudge(self) -> None:
        """Somebody waits: look now instead of after the pause."""
        self._nudged.set()

    @property
    def is_alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def _run(self) -> None:
        pause_s = PAUSE_S[0]
        while not self._is_stopping:
            try:
                self._look()
                pause_s = PAUSE_S[0]
                continue
            except (Unavailable, Refused) as error:
                self._session.failed(str(error))
            except Exception:  # noqa: BLE001 - a fault of ours must not leave the kernel deaf
                _log.exception("gpubroker_link_failed")
            # Whatever was missed is asked for from the start.
            self._etag, self._wait_s = None, 0
            self._nudged.wait(random.uniform(pause_s / 2, pause_s))  # noqa: S311 - jitter
            self._nudged.clear()
            pause_s = min(2 * pause_s, PAUSE_S[1])

    def _look(self) -> None:
        session = self._session
        try:
            seen = session.broker.session(session.id, self._etag, self._wait_s)
        except Refused as error:
            if error.status != 404:
                raise
            self._unknown()
            raise Unavailable(say("not_registered")) from None
        self._unknown_since = None
        if seen.view is not None:
            session.saw(seen.view)
        self._wait_s = self._listener()
        # Only now: a view that could not be acted on is looked at again.
        self._etag = seen.etag

    def _unknown(self) -> None:
        """Nobody has put the session yet, or a broker lost it."""
        now = time.monotonic()
        if self._unknown_since is None:
            self._unknown_since = now
        elif now - self._unknown_since > FORGOTTEN_S:
            self._unknown_since = None
            self._session.register()
