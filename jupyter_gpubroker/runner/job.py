"""One attempt of one batch job: read its spec, start it, tell the broker, wait for its end, tell the broker.

It decides nothing: the broker says when to start and when to stop, by which moment at the latest. A start that the broker
does not take note of (it took the slots back meanwhile) is undone.
"""

from __future__ import annotations

import asyncio
import logging
import os

from ..client import BrokerError, routes
from ..wire.bodies import JobEndedBody, JobStartedBody
from ..wire.views import JobView, LeaseView
from .child import COMMAND_NOT_FOUND, CannotStart, Child
from .environment import lent_environment
from .link import Link
from .spool import SpecLost, Spool

UNWANTED_GRACE_S = 5.0

log = logging.getLogger(__name__)


class Attempt:
    """A job from its grant to its end. `stop` may come at any time, also before the process is there."""

    def __init__(self, link: Link, spool: Spool, job: JobView, lease: LeaseView) -> None:
        self.job_id = job.id
        self.number = job.attempt
        self._link = link
        self._spool = spool
        self._lease = lease
        self._child: Child | None = None
        self._stop_at_s: float | None = None
        self._is_reported = True

    def stop(self, grace_s: float) -> None:
        """TERM now, KILL after the grace."""
        self._stop_at_s = asyncio.get_running_loop().time() + grace_s
        if self._child is not None:
            self._child.stop(grace_s)

    def supersede(self) -> None:
        """The broker gave the slots to a later attempt: end this one at once, and report nothing of it."""
        self._is_reported = False
        self.stop(0)

    async def run(self) -> None:
        """The whole attempt."""
        stdout, stderr = await asyncio.to_thread(self._spool.open_outputs, self.job_id)
        try:
            exit_status = await self._run_child(stdout, stderr)
        except (SpecLost, CannotStart) as error:
            os.write(stderr, f"{error}\n".encode())
            exit_status = error.exit_status if isinstance(error, CannotStart) else COMMAND_NOT_FOUND
            log.info("job_not_started job=%s exit_status=%d", self.job_id, exit_status)
        finally:
            os.close(stdout)
            os.close(stderr)
        if self._is_reported:
            await self._report_end(exit_status)

    async def _run_child(self, stdout: int, stderr: int) -> int:
        spec = await asyncio.to_thread(self._spool.read, self.job_id)
        # Output is read while the job runs, so Python shall not hold it back unless the submitter says so.
        base = {"PYTHONUNBUFFERED": "1", **spec.environment}
        environment = lent_environment(
            base, self._link.url, self._lease, "GPUBROKER_JOB", self.job_id
        )
        self._child = await Child.start(spec, environment, stdout, stderr)
        log.info("job_started job=%s attempt=%d pid=%d", self.job_id, self.number, self._child.pid)
        if self._stop_at_s is not None:
            self._child.stop(max(0.0, self._stop_at_s - asyncio.get_running_loop().time()))
        report = asyncio.create_task(self._report_start(self._child))
        try:
            return await self._child.ended()
        finally:
            await report

    async def _report_start(self, child: Child) -> None:
        try:
            body = JobStartedBody(self.number, child.pid)
            await self._link.tell(routes.JOB_STARTED, self.job_id, body)
        except BrokerError as error:
            log.warning("job_start_refused job=%s code=%s", self.job_id, error.code)
            child.stop(UNWANTED_GRACE_S)

    async def _report_end(self, exit_status: int) -> None:
        log.info(
            "job_ended job=%s attempt=%d exit_status=%d", self.job_id, self.number, exit_status
        )
        try:
            body = JobEndedBody(self.number, exit_status)
            job = await self._link.tell(routes.JOB_ENDED, self.job_id, body)
        except BrokerError as error:
            log.warning("job_end_refused job=%s code=%s", self.job_id, error.code)
            return
        if job.state == "ended":
            await asyncio.to_thread(self._spool.forget, self.job_id)
