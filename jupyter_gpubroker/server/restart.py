"""The server's side of `restarted`: the kernel saves what can be saved, then it is restarted without its GPU.

Ordered only where the owner consented: the kernel offers it then. The kernel saves by itself when it sees the order, whatever
its main thread does, and leaves a manifest that names the order; without that manifest nothing is restarted here. The broker is
told before the restart, so that no order stands which the new kernel would save its empty namespace for, over what was saved.
The slot is handed on only once it is seen clear, whatever was told.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from ..wire.bodies import AnswerBody, ReasonBody
from ..wire.views import LeaseView, OrderView
from .hosts import Launched
from .orders import is_taken

KIND: Final = "restarted"
MANIFEST = "manifest.json"
LOOK_S = 0.1

IsOpen = Callable[[str, int], bool]
Restarted = Callable[[Launched, LeaseView], None]
Tell = Callable[[str, AnswerBody], Awaitable[LeaseView]]


class Restarts:
    """`folder` holds one folder per kernel, named for its connection file, which every restart keeps.

    `is_open(lease, number)` tells whether an order still stands; `tell(lease, answer)` answers it; `restarted` hears of each
    restart, for the front ends.
    """

    def __init__(self, folder: Path, is_open: IsOpen, tell: Tell, restarted: Restarted) -> None:
        self._folder = folder
        self._is_open = is_open
        self._tell = tell
        self._restarted = restarted

    async def carry_out(self, kernel: Launched, lease: LeaseView, order: OrderView) -> AnswerBody:
        """Restart the kernel once it has saved. Raises one of `hosts.UNAVAILABLE` with nothing done."""
        if not await self._is_saved(kernel, lease.id, order):
            return AnswerBody(order.number, ok=False, reason=ReasonBody("save_not_seen"))
        answer = AnswerBody(order.number, ok=True)
        if not is_taken(order, await self._tell(lease.id, answer)):
            # It came too late, and nothing is lost yet.
            reason = ReasonBody("order_overdue", {"kind": KIND})
            return AnswerBody(order.number, ok=False, reason=reason)
        await kernel.manager.parent.restart_kernel(kernel.body.kernel_id)
        self._restarted(kernel, lease)
        return answer

    async def _is_saved(self, kernel: Launched, lease_id: str, order: OrderView) -> bool:
        manifest = self._folder / Path(kernel.manager.connection_file).stem / MANIFEST
        due_s = time.monotonic() + order.due_in_ms / 1000
        while self._is_open(lease_id, order.number) and time.monotonic() < due_s:
            if cause_of(manifest) == f"{lease_id}:{order.number}":
                return True
            await asyncio.sleep(LOOK_S)
        return False


def cause_of(manifest: Path) -> str | None:
    """The order that a kernel saved for; None while it has not."""
    try:
        found = json.loads(manifest.read_bytes())
    except (OSError, ValueError):
        return None
    return found.get("cause") if isinstance(found, dict) else None
