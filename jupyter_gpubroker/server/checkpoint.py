"""The server's side of `checkpointed`: the driver suspends the GPU state of a kernel, and brings it back.

Only a process of the kernel's uid may do it, so neither the broker nor the agent can. The driver is called in a child
(`jupyter_gpubroker.devices.checkpoint`), which checks every condition before it touches anything; what it refuses is offered as
refused, with the reason.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from ..client.places import Places, simulated_beside
from ..wire.bodies import AnswerBody, OfferBody, ReasonBody
from ..wire.views import LeaseView, OrderView
from .child import Child, ChildFailed
from .hosts import Launched

KIND: Final = "checkpointed"
LOOK_S = 5.0
# The driver waits this long for work under way; a kernel that computes is not idle anyway.
LOCK_MS_MAX = 10_000
VERIFIED = "checkpoint-verified.json"


class Checkpoints:
    """For all kernels of this server. The first lease asked about tells which driver to use."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._child: Child | None = None
        self._memory_mib: dict[str, int] = {}

    async def offer(self, kernel: Launched, lease: LeaseView) -> OfferBody:
        """Would suspending the kernel work now?"""
        reason = await self._refusal(kernel.body.pid, lease)
        if reason is None:
            return OfferBody(kinds=(KIND,), by_server=True)
        return OfferBody(refusals={KIND: reason}, by_server=True)

    async def carry_out(self, kernel: Launched, lease: LeaseView, order: OrderView) -> AnswerBody:
        """Suspend the kernel's GPU state, or bring it back."""
        pid = kernel.body.pid
        if len(lease.slots) != 1 and not lease.home:
            return AnswerBody(order.number, ok=False, reason=_several(lease))
        slot = (lease.slots or lease.home)[0]
        deadline_s = order.due_in_ms / 1000
        try:
            if order.resume:
                memory_mib = self._memory_mib.get(lease.id, lease.memory_mib)
                outcome = await self._call(
                    lease, "resume", pid, slot, memory_mib, deadline_s=deadline_s
                )
            else:
                lock_ms = min(LOCK_MS_MAX, order.due_in_ms)
                outcome = await self._call(
                    lease, "suspend", pid, slot, lock_ms, [], deadline_s=deadline_s
                )
                self._memory_mib[lease.id] = int(outcome["memory_mib"])
        except ChildFailed as error:
            return AnswerBody(order.number, ok=False, reason=_failed(error))
        refusals = outcome["refusals"]
        reason = _reason(refusals[0]) if refusals else None
        return AnswerBody(order.number, ok=bool(outcome["ok"]), reason=reason)

    async def close(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            await child.close()

    async def _refusal(self, pid: int, lease: LeaseView) -> ReasonBody | None:
        if len(lease.slots) != 1:
            return _several(lease)
        try:
            refusals = await self._call(lease, "can", pid, lease.slots[0], [], deadline_s=LOOK_S)
        except ChildFailed as error:
            return _failed(error)
        return _reason(refusals[0]) if refusals else None

    async def _call(self, lease: LeaseView, method: str, *params: Any, deadline_s: float) -> Any:
        if self._child is None:
            module = (sys.executable, "-m", "jupyter_gpubroker.devices.checkpoint")
            self._child = Child((*module, *self._driver(lease)))
        return await self._child.call(method, *params, deadline_s=deadline_s)

    def _driver(self, lease: LeaseView) -> tuple[str, str]:
        if lease.simulated:
            return "--simulated", str(simulated_beside(self._places.url))
        return "--verified", str(self._places.state / VERIFIED)


def _several(lease: LeaseView) -> ReasonBody:
    return ReasonBody("several_gpus", {"gpus": len(lease.slots)})


def _reason(refusal: dict[str, Any]) -> ReasonBody:
    return ReasonBody(refusal["code"], refusal["values"])


def _failed(error: ChildFailed) -> ReasonBody:
    return ReasonBody("checkpoint_helper_failed", {"error": str(error)[:200]})
