"""The runner's loop: follow one's jobs at the broker, start those that were granted, stop those that must, end when idle."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Iterable
from pathlib import Path

from ..client import BrokerDown, BrokerError
from ..wire.views import JobView
from .job import Attempt
from .link import Link
from .spool import Spool
from .start import RunnerLock, nobody_submits

LINGER_S = 60.0
FAREWELL_GRACE_S = 30.0

log = logging.getLogger(__name__)


class Runner:
    """Runs a user's batch jobs until there were none for `linger_s`, or a signal asks it to end."""

    def __init__(
        self,
        link: Link,
        spool: Spool,
        runtime_folder: Path,
        lock: RunnerLock,
        linger_s: float = LINGER_S,
    ) -> None:
        self._link = link
        self._spool = spool
        self._runtime_folder = runtime_folder
        self._lock = lock
        self._linger_s = linger_s
        self._attempts: dict[str, tuple[Attempt, asyncio.Task[None]]] = {}
        self._has_open_jobs = False
        self._needed = asyncio.Event()
        self._unneeded = asyncio.Event()
        self._unneeded.set()

    async def run(self) -> None:
        """Serve until unneeded or told to end; jobs that still run are then stopped, with time to save their work."""
        terminated = asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, terminated.set)
        await asyncio.to_thread(self._spool.sweep)
        ends = [
            asyncio.create_task(self._follow()),
            asyncio.create_task(self._leave_when_unneeded()),
            asyncio.create_task(terminated.wait()),
        ]
        done, pending = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)
        if ends[1] not in done:
            await self._stop_everything()
        for task in done:
            task.result()

    async def _follow(self) -> None:
        async for jobs in self._link.watch_jobs():
            for job in jobs:
                self._react(job)
            self._has_open_jobs = _any_open(jobs)
            self._note_need()

    def _react(self, job: JobView) -> None:
        known = self._attempts.get(job.id)
        if job.state == "starting" and job.lease is not None:
            if known is None or known[0].number < job.attempt:
                attempt = Attempt(self._link, self._spool, job, job.lease)
                self._attempts[job.id] = (attempt, asyncio.create_task(self._run(attempt, known)))
        elif job.state == "stopping" and known is not None:
            known[0].stop((job.kill_in_ms or 0) / 1000)
        elif job.state == "ended" and known is None:
            self._spool.forget(job.id)

    async def _run(
        self, attempt: Attempt, earlier: tuple[Attempt, asyncio.Task[None]] | None
    ) -> None:
        try:
            if earlier is not None:
                earlier[0].supersede()
                await asyncio.wait([earlier[1]])
            await attempt.run()
        except Exception:
            log.exception("job_failed_here job=%s", attempt.job_id)
        finally:
            if self._attempts[attempt.job_id][0] is attempt:
                del self._attempts[attempt.job_id]
            self._note_need()

    def _note_need(self) -> None:
        is_needed = bool(self._has_open_jobs or self._attempts)
        (self._needed.set if is_needed else self._needed.clear)()
        (self._unneeded.clear if is_needed else self._unneeded.set)()

    async def _leave_when_unneeded(self) -> None:
        while True:
            await self._unneeded.wait()
            # Not `wait_for`: before Python 3.12 it may swallow a cancellation.
            needed = asyncio.create_task(self._needed.wait())
            try:
                await asyncio.wait((needed,), timeout=self._linger_s)
                if not needed.done() and await self._leave():
                    return
            finally:
                needed.cancel()

    async def _leave(self) -> bool:
        """End the session unless somebody is about to submit or just did."""
        with nobody_submits(self._runtime_folder) as is_alone:
            if not is_alone or await self._may_have_jobs():
                return False
            await self._say_farewell()
            self._lock.release()
        log.info("runner_ended reason=no_jobs")
        return True

    async def _may_have_jobs(self) -> bool:
        """Ask once more; while nobody answers, there may be some."""
        try:
            return _any_open(await self._link.jobs())
        except BrokerDown:
            return True

    async def _stop_everything(self) -> None:
        for attempt, _ in self._attempts.values():
            attempt.stop(FAREWELL_GRACE_S)
        if self._attempts:
            await asyncio.wait(
                [task for _, task in self._attempts.values()], timeout=FAREWELL_GRACE_S + 10
            )
        await self._say_farewell()
        log.info("runner_ended reason=signal")

    async def _say_farewell(self) -> None:
        try:
            await self._link.end()
        except (BrokerDown, BrokerError) as error:
            log.warning("farewell_failed detail=%s", error)


def _any_open(jobs: Iterable[JobView]) -> bool:
    return any(job.state != "ended" for job in jobs)
