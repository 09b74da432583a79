"""What the kernel's main thread does, and whether GPU memory may be, or is, away from the device.

The link thread may take memory away only while no code of the user's runs: between cells, at a prompt, or at a debugger stop.
Both sides go through one lock, so either the code is seen running and the memory stays, or the code sees it gone and gets it
back before it goes on.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Callable, Iterator, Optional, Set


class MainThread:
    """`stopped` tells whether the debugger holds the process."""

    def __init__(self, stopped: Callable[[], bool] = lambda: False) -> None:
        self._stopped = stopped
        self._lock = threading.Lock()
        self._running: Set[int] = set()
        self._waits = 0
        self._prompt: Optional[str] = None
        self.away: Optional[str] = None  # the give-back kind by which memory left

    def begins(self) -> None:
        """A cell starts, on the main shell or a subshell."""
        with self._lock:
            self._running.add(threading.get_ident())

    def ends(self) -> None:
        with self._lock:
            self._running.discard(threading.get_ident())

    @contextlib.contextmanager
    def waiting(self, prompt: Optional[str] = None) -> Iterator[None]:
        """The running cell waits, at a `prompt` or for the broker, and touches no GPU meanwhile."""
        with self._lock:
            self._waits += 1
            before, self._prompt = self._prompt, prompt or self._prompt
        try:
            yield
        finally:
            with self._lock:
                self._waits -= 1
                self._prompt = before

    @property
    def rests_at(self) -> str:
        """Where its user has to act: a `cell`, a prompt (`debugger` or `input`), or a `breakpoint` of JupyterLab's debugger."""
        return "breakpoint" if self._stopped() else self._prompt or "cell"

    @property
    def in_cell(self) -> bool:
        return bool(self._running)

    @property
    def is_busy(self) -> bool:
        """Does code of the user's run at this moment?"""
        return len(self._running) > self._waits and not self._stopped()

    def take_away(self, kind: str) -> bool:
        """Mark GPU memory as away, unless code runs."""
        with self._lock:
            if self.is_busy:
                return False
            self.away = kind
            return True

    def left(self, kind: str) -> None:
        """Somebody else took memory away, whatever runs."""
        self.away = kind

    def brought_back(self) -> None:
        self.away = None


def debugger_stopped(kernel: Any) -> bool:
    """Does JupyterLab's debugger hold threads of this kernel? False where ipykernel does not tell."""
    return bool(getattr(getattr(kernel, "debugger", None), "stopped_threads", None))


def when_ready(shell: Any, act: Callable[[], None]) -> None:
    """Act once the kernel has set itself up and serves: another thread would only slow it down until then."""
    if getattr(shell, "kernel", None) is None:
        act()
        return
    from tornado.ioloop import IOLoop  # ipykernel runs on it

    IOLoop.current().add_callback(act)


def daemon(target: Callable[[], None], name: str) -> threading.Thread:
    """A thread of ours: it ends with the process and goes on while debugpy holds all others."""
    thread = threading.Thread(target=target, name=name, daemon=True)
    # Not declared by Thread: debugpy looks for them.
    vars(thread).update(pydev_do_not_trace=True, is_pydev_daemon_thread=True)
    thread.start()
    return thread
