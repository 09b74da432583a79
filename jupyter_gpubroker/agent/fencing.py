"""Keeps the device fence as the leases want it, and knows whether it stands: what is told of a node's isolation rests on it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from ..devices.reader import Inventory
from .device_fence import DeviceFence
from .device_nodes import device_nodes
from .holdings import Holdings
from .offload import Hanging, Offload

DEADLINE_S = 2.0

_log = logging.getLogger(__name__)


class Fencing:
    """`stands`: at the last try every holder could open what is lent to it and nothing else."""

    def __init__(self, fence: DeviceFence) -> None:
        self.stands = False
        self._fence = fence
        self._offload = Offload()
        self._turn = asyncio.Lock()
        self._problem = ""

    async def know(self, inventory: Inventory) -> None:
        """The devices are these from now on."""

        def find() -> None:
            self._fence.nodes = device_nodes(inventory)

        await self._try(find)

    async def keep(self, holdings: Holdings) -> None:
        """Fence who is not fenced yet, and open and close what changed."""
        if self._fence.nodes:
            await self._try(lambda: self._fence.sync(holdings))

    async def _try(self, work: Callable[[], None]) -> None:
        problem = ""
        async with self._turn:
            try:
                await self._offload.call(work, deadline_s=DEADLINE_S)
            except (Hanging, OSError, ValueError) as error:
                problem = f"{type(error).__name__}: {error}"
        self.stands = bool(self._fence.nodes) and not problem
        if problem and problem != self._problem:
            _log.error("fence_fails error=%s", problem)
        self._problem = problem
