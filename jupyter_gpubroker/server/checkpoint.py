"""The server's side of `checkpointed`: the driver suspends the GPU state of a kernel, and brings it back.

Only a process of the kernel's uid may do it, so neither the broker nor the agent can. The driver is called in a child
(`jupyter_gpubroker.devices.checkpoint`), which checks every condition before it touches anything; what it refuses is offered as
refused, with the reason.

A child that is killed or hangs half-way leaves the process locked or suspended, and nobody else would bring it back. So an
order that was not carried out is answered only once the process runs again, or is gone: until then a new child is told to
`resume` it, which is right in every state.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, repeat
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
RESUME_S = SUSPEND_S = 60.0
ANSWER_S = 1.0  # of an order's time, for the answer
PAUSES_S = (
    0.2,
    1.0,
    5.0,
    30.0,
)  # between tries to bring a process back; the last for all further ones
# Nothing remains to be undone. `failed` is the driver's word for a process that it lost.
AT_REST = ("running", "failed", "gone")


class Checkpoints:
    """For all kernels of this server. The first lease asked about tells which driver to use."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._child: Child | None = None
        self._memory_mib: dict[str, int] = {}
        self._busy: set[int] = set()

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
        if pid in self._busy:
            return AnswerBody(
                order.number,
                ok=False,
                reason=_failed("an order that ran out is still being undone"),
            )
        act = self._resume if order.resume else self._suspend
        self._busy.add(pid)
        try:
            return await act(pid, slot, lease, order)
        finally:
            self._busy.discard(pid)

    async def undo(
        self, kernel: Launched, lease: LeaseView, order: OrderView, after: LeaseView
    ) -> None:
        """The broker had given the order up when its success was told: back to how it was before."""
        pid = kernel.body.pid
        slot = (lease.slots or lease.home)[0]
        self._busy.add(pid)
        try:
            if not order.resume:
                await self._bring_back(pid, slot, lease, "unknown", AT_REST)
            elif after.state == "parked":
                # The slot may be lent to somebody else by now.
                with suppress(ChildFailed):
                    await self._call(lease, "suspend", pid, slot, LOCK_MS_MAX, deadline_s=SUSPEND_S)
        finally:
            self._busy.discard(pid)

    async def _suspend(self, pid: int, slot: str, lease: LeaseView, order: OrderView) -> AnswerBody:
        # Until the driver has said how much it is.
        self._memory_mib[lease.id] = lease.memory_used_mib or lease.memory_mib
        lock_ms = min(LOCK_MS_MAX, order.due_in_ms)
        deadline_s = order.due_in_ms / 1000
        # A success that the broker no longer waits for would leave the process suspended.
        in_time_until_s = time.monotonic() + deadline_s - min(ANSWER_S, deadline_s / 2)
        try:
            outcome = await self._call(lease, "suspend", pid, slot, lock_ms, deadline_s=deadline_s)
        except ChildFailed as error:
            state, reason = "unknown", _failed(error)
        else:
            state = outcome["state"]
            if outcome["ok"]:
                self._memory_mib[lease.id] = int(outcome["memory_mib"])
                if time.monotonic() <= in_time_until_s:
                    return AnswerBody(order.number, ok=True)
            reason = _late() if outcome["ok"] else _reason(outcome["refusals"][0])
        await self._bring_back(pid, slot, lease, state, AT_REST)
        return AnswerBody(order.number, ok=False, reason=reason)

    async def _resume(self, pid: int, slot: str, lease: LeaseView, order: OrderView) -> AnswerBody:
        """A process that is still suspended is as it was before the order: that may be answered too."""
        try:
            outcome = await self._call_resume(pid, slot, lease, order.due_in_ms / 1000)
        except ChildFailed as error:
            state, reason = "unknown", _failed(error)
        else:
            if outcome["ok"]:
                return AnswerBody(order.number, ok=True)
            state, reason = outcome["state"], _reason(outcome["refusals"][0])
        state = await self._bring_back(pid, slot, lease, state, (*AT_REST, "checkpointed"))
        if state == "running":
            return AnswerBody(order.number, ok=True)
        return AnswerBody(order.number, ok=False, reason=reason)

    async def _bring_back(
        self, pid: int, slot: str, lease: LeaseView, state: str, at_rest: tuple[str, ...]
    ) -> str:
        """The state in which the process came to rest."""
        pauses_s = _pauses_s()
        while state not in at_rest:
            with suppress(ChildFailed):
                state = (await self._call_resume(pid, slot, lease, RESUME_S))["state"]
            if state not in at_rest:
                await asyncio.sleep(next(pauses_s))
        return state

    async def _call_resume(self, pid: int, slot: str, lease: LeaseView, deadline_s: float) -> Any:
        memory_mib = self._memory_mib.get(lease.id, lease.memory_mib)
        return await self._call(lease, "resume", pid, slot, memory_mib, deadline_s=deadline_s)

    async def close(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            await child.close()

    async def _refusal(self, pid: int, lease: LeaseView) -> ReasonBody | None:
        if len(lease.slots) != 1:
            return _several(lease)
        try:
            refusals = await self._call(lease, "can", pid, lease.slots[0], deadline_s=LOOK_S)
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


def _late() -> ReasonBody:
    return ReasonBody("order_overdue", {"kind": KIND})


def _several(lease: LeaseView) -> ReasonBody:
    return ReasonBody("several_gpus", {"gpus": len(lease.slots)})


def _reason(refusal: dict[str, Any]) -> ReasonBody:
    return ReasonBody(refusal["code"], refusal["values"])


def _pauses_s() -> Iterator[float]:
    return chain(PAUSES_S, repeat(PAUSES_S[-1]))


def _failed(error: ChildFailed | str) -> ReasonBody:
    return ReasonBody("checkpoint_helper_failed", {"error": str(error)[:200]})
