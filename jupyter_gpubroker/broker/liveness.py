"""Sees processes end: one pidfd for each process that holds something, watched by the event loop.

The set to watch follows from the state alone (`sync`), so a restarted broker adopts what lives and ends what is gone. A
pidfd is trusted only once the process behind it has the start ticks on record, so a reused pid is never mistaken. A job's
runner knows its exit status and is given time to tell; only what it leaves unsaid is reported here. Nobody is taken for gone
because we could not look: that is tried again.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..core.events import Event, JobEnded, SessionEnded
from ..core.model import JobState, Reason, SessionState, State
from ..processes import boot_id, start_ticks

RUNNER_TELLS_S = 5.0
RETRY_S = 1.0
_JOB_HAS_PROCESS = frozenset({JobState.RUNNING, JobState.STOPPING})

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Watched:
    """A process and what its end means. `grace_s` passes between the end and the event."""

    pid: int
    start_ticks: int
    boot_id: str
    event: SessionEnded | JobEnded
    grace_s: float = 0.0


class Liveness:
    """Calls `ended` once for each watched process that is gone, from the event loop."""

    def __init__(self, ended: Callable[[Event], None]) -> None:
        self._ended = ended
        self._watched: dict[str, Watched] = {}
        self._pidfds: dict[str, int] = {}

    def sync(self, state: State) -> None:
        """Watch exactly what `state` needs watched."""
        wanted = dict(_to_watch(state))
        for key, watched in list(self._watched.items()):
            if wanted.get(key) != watched:
                self._forget(key)
        for key, watched in wanted.items():
            if key not in self._watched:
                self._watched[key] = watched
                self._watch(key, watched)

    def close(self) -> None:
        for key in list(self._watched):
            self._forget(key)

    def _watch(self, key: str, watched: Watched) -> None:
        if self._watched.get(key) is not watched:
            return
        try:
            pidfd = _open(watched)
        except OSError as error:
            log.warning("process_unknown pid=%d error=%s", watched.pid, error)
            asyncio.get_running_loop().call_later(RETRY_S, self._watch, key, watched)
            return
        if pidfd is None:
            self._gone(key, watched)
            return
        self._pidfds[key] = pidfd
        asyncio.get_running_loop().add_reader(pidfd, self._gone, key, watched)

    def _gone(self, key: str, watched: Watched) -> None:
        self._close_pidfd(key)
        asyncio.get_running_loop().call_later(watched.grace_s, self._report, key, watched)

    def _report(self, key: str, watched: Watched) -> None:
        # Meanwhile its runner may have told, or somebody may have ended it on purpose.
        if self._watched.get(key) is watched:
            self._ended(watched.event)

    def _forget(self, key: str) -> None:
        self._close_pidfd(key)
        del self._watched[key]

    def _close_pidfd(self, key: str) -> None:
        pidfd = self._pidfds.pop(key, None)
        if pidfd is not None:
            asyncio.get_running_loop().remove_reader(pidfd)
            os.close(pidfd)


def _open(watched: Watched) -> int | None:
    """A pidfd of the process, None if it is gone. Raises OSError when that cannot be known."""
    if watched.boot_id != boot_id():
        return None
    try:
        pidfd = os.pidfd_open(watched.pid)
    except ProcessLookupError:
        return None
    is_it = False
    try:
        is_it = start_ticks(watched.pid) == watched.start_ticks
    finally:
        if not is_it:
            os.close(pidfd)
    return pidfd if is_it else None


def _to_watch(state: State) -> Iterator[tuple[str, Watched]]:
    gone = Reason.of("process_gone")
    for session in state.sessions.values():
        if session.state is not SessionState.ENDED and not session.is_gone:
            event = SessionEnded(session.id, gone)
            yield session.id, Watched(session.pid, session.start_ticks, session.boot_id, event)
    for job in state.jobs.values():
        if job.state in _JOB_HAS_PROCESS and job.pid is not None and job.start_ticks is not None:
            runner = state.sessions.get(job.session_id)
            boot = runner.boot_id if runner is not None else boot_id()
            ended = JobEnded(job.owner, job.id, job.attempt, None)
            yield f"job {job.id}", Watched(job.pid, job.start_ticks, boot, ended, RUNNER_TELLS_S)
