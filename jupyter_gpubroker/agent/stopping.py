"""Ends a process for the auditor: whom and when, the core has decided.

A pidfd is trusted only once the process behind it has the start ticks that were named, so a reused pid is never hit. The
broker has no rights beyond its user's: another user's process is refused by the kernel, and told of.
"""

from __future__ import annotations

import os
import signal
from enum import Enum

from ..processes import start_ticks


class Stopped(Enum):
    SIGNALLED = "signalled"
    GONE = "gone"
    NOT_PERMITTED = "not_permitted"
    OURS = "ours"


def stop(pid: int, ticks: int, *, force: bool) -> Stopped:
    """TERM, or KILL by force. Raises OSError when it cannot be known whose pid it is."""
    if pid <= 1 or pid in (os.getpid(), os.getppid()):
        return Stopped.OURS
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return Stopped.GONE
    try:
        if start_ticks(pid) != ticks:
            return Stopped.GONE
        signal.pidfd_send_signal(pidfd, signal.SIGKILL if force else signal.SIGTERM)
    except ProcessLookupError:
        return Stopped.GONE
    except PermissionError:
        return Stopped.NOT_PERMITTED
    finally:
        os.close(pidfd)
    return Stopped.SIGNALLED
