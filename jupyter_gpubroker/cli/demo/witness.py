"""Looks at what happens from outside the notebook: the broker's API, the devices themselves, and /proc."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from ...client import AsyncBrokerClient, routes
from ...client.places import simulated_beside
from ...devices.choice import choose
from ...devices.probe_client import ProbeClient, probe_argv
from ...wire.routes import Route
from ...wire.views import JobView, LeaseView, SessionView

View = TypeVar("View", bound=msgspec.Struct)


class Witness:
    """Every question has its answer by events; nothing is believed of what the notebook prints."""

    def __init__(self, broker: AsyncBrokerClient, environment: Mapping[str, str]) -> None:
        folder = simulated_beside(broker.url)
        self._broker = broker
        self._probing = asyncio.Lock()
        self._probe = ProbeClient(probe_argv(choose(environment["GPUBROKER_SIMULATE"], folder)))

    async def session_of(self, kernel_id: str) -> SessionView:
        """The session of a kernel, once its server has told the broker of it."""
        async for view in self._broker.watch(routes.SESSIONS):
            for session in view.sessions:
                if session.kernel_id == kernel_id:
                    return session
        raise AssertionError("a watch has no end")

    async def session(self, session_id: str, is_so: Callable[[SessionView], bool]) -> SessionView:
        """The session, as soon as something is so of it."""
        return await self._until(routes.SESSION, session_id, is_so)

    async def lease(self, lease_id: str, is_so: Callable[[LeaseView], bool]) -> LeaseView:
        """The lease, as soon as something is so of it."""
        return await self._until(routes.LEASE, lease_id, is_so)

    async def job(self, job_id: str, is_so: Callable[[JobView], bool]) -> JobView:
        """The job, as soon as something is so of it."""
        return await self._until(routes.JOB, job_id, is_so)

    async def cancel(self, job_id: str) -> None:
        """Take a job out of the line."""
        await self._broker.call(routes.CANCEL_JOB, job_id)

    async def memory_mib(self, slot: str, pid: int) -> int | None:
        """The device memory of a process as the device tells; None if it has no context there."""
        async with self._probing:
            await self._probe.inventory()
            (reading,) = await self._probe.observe([slot])
        return next(
            (found.memory_mib for found in reading.processes or () if found.pid == pid), None
        )

    async def close(self) -> None:
        """End the probe."""
        await self._probe.close()

    async def _until(
        self, route: Route[View], thing_id: str, is_so: Callable[[View], bool]
    ) -> View:
        async for view in self._broker.watch(route, thing_id):
            if is_so(view):
                return view
        raise AssertionError("a watch has no end")


def environment_of(pid: int) -> dict[str, str]:
    """The environment a process was started with."""
    pairs = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return dict(pair.decode(errors="replace").split("=", 1) for pair in pairs if b"=" in pair)
