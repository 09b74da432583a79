"""Carries out what the broker orders the Jupyter server to do for its kernels: `checkpointed` and `restarted`.

Each order is carried out once, however often it is seen; its answer is repeated while the broker still shows the order, so a
broker that restarts in between loses nothing. What the broker no longer waited for when it was answered is undone. Also tells
the broker, when things change, whether suspending would work.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from typing import Any

from ..wire import routes
from ..wire.bodies import AnswerBody, OfferBody
from ..wire.views import LeaseView, OrderView, SessionsView, SessionView
from .hosts import UNAVAILABLE, Launched
from .link import ServerLink

Executor = Callable[[Launched, LeaseView, OrderView], Awaitable[AnswerBody]]
# With the lease as the order came for it, and as the broker answered.
Undoer = Callable[[Launched, LeaseView, OrderView, LeaseView], Awaitable[None]]
Offerer = Callable[[Launched, LeaseView], Awaitable[OfferBody]]
OrderKey = tuple[str, int]


class Tasks:
    """Background tasks that are held while they run, and ended together."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self._running: set[asyncio.Task[object]] = set()

    def start(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._done)

    async def cancel(self) -> None:
        running = tuple(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _done(self, task: asyncio.Task[object]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.error("server_task_failed", exc_info=error)


class Orders:
    """`executors` by give-back kind; what has none here is the kernel's own to carry out. `undoers` where it can be undone."""

    def __init__(
        self,
        link: ServerLink,
        executors: Mapping[str, Executor],
        undoers: Mapping[str, Undoer],
        log: Any,
    ) -> None:
        self._link = link
        self._executors = executors
        self._undoers = undoers
        self._log = log
        self._tasks = Tasks(log)
        self._answers: dict[OrderKey, AnswerBody | None] = {}

    def seen(self, sessions: SessionsView) -> None:
        """Begin what is new, answer again what was answered in vain, forget what is over."""
        open_orders = {
            (lease.id, order.number): (session, lease, order)
            for session, lease, order in _orders(sessions)
            if order.kind in self._executors
        }
        self._answers = {
            key: a for key, a in self._answers.items() if key in open_orders or a is None
        }
        for key, (session, lease, order) in open_orders.items():
            kernel = self._link.launched_kernel(session.id)
            if key not in self._answers and kernel is not None:
                self._answers[key] = None
                self._tasks.start(self._carry_out(key, kernel, lease, order))
            elif (answer := self._answers.get(key)) is not None:
                self._tasks.start(self._answer(key[0], answer))

    async def close(self) -> None:
        await self._tasks.cancel()

    async def _carry_out(
        self, key: OrderKey, kernel: Launched, lease: LeaseView, order: OrderView
    ) -> None:
        self._log.info("order_taken lease=%s kind=%s resume=%s", lease.id, order.kind, order.resume)
        try:
            answer = await self._executors[order.kind](kernel, lease, order)
        except UNAVAILABLE as error:
            # Nothing was done: the order is taken again when it is seen again.
            self._answers.pop(key, None)
            self._log.warning("order_put_off lease=%s kind=%s: %s", lease.id, order.kind, error)
            return
        except BaseException:
            self._answers.pop(key, None)
            raise
        self._answers[key] = answer
        code = answer.reason.code if answer.reason else None
        self._log.info(
            "order_answered lease=%s kind=%s ok=%s reason=%s", lease.id, order.kind, answer.ok, code
        )
        after = await self._answer(lease.id, answer)
        undo = self._undoers.get(order.kind)
        if undo is not None and answer.ok and after is not None and not is_taken(order, after):
            self._log.warning("order_undone lease=%s kind=%s", lease.id, order.kind)
            await undo(kernel, lease, order, after)

    async def _answer(self, lease_id: str, answer: AnswerBody) -> LeaseView | None:
        """The lease as the broker has it then."""
        try:
            return await self._link.call(routes.ANSWER, lease_id, answer)
        except UNAVAILABLE as error:
            self._log.warning("answer_not_told lease=%s: %s", lease_id, error)
            return None


def is_taken(order: OrderView, after: LeaseView) -> bool:
    """Whether the lease that answered a success shows that this very order is done, and not that it had run out."""
    if order.resume:
        return after.state in ("granted", "active")
    return after.order is None and after.gave_back == order.kind


class Offers:
    """Asks `offerer` about each leased kernel when something about it has changed, and tells the broker what is new."""

    def __init__(self, link: ServerLink, offerer: Offerer, log: Any) -> None:
        self._link = link
        self._offerer = offerer
        self._log = log
        self._tasks = Tasks(log)
        self._looked_at: dict[str, tuple[Any, ...]] = {}
        self._told: dict[str, OfferBody] = {}

    def seen(self, sessions: SessionsView) -> None:
        ids = {session.id for session in sessions.sessions}
        for past in self._looked_at.keys() - ids:
            del self._looked_at[past]
            self._told.pop(past, None)
        for session in sessions.sessions:
            kernel = self._link.launched_kernel(session.id)
            lease = next((lease for lease in session.leases if lease.state == "active"), None)
            # Between two cells is early enough, and a look at a real device is not free.
            if kernel is None or lease is None or session.activity == "running":
                continue
            facts = _facts(session, lease)
            if self._looked_at.get(session.id) != facts:
                self._looked_at[session.id] = facts
                self._tasks.start(self._look(kernel, lease))

    async def close(self) -> None:
        await self._tasks.cancel()

    async def _look(self, kernel: Launched, lease: LeaseView) -> None:
        session_id = kernel.session_id
        offer = await self._offerer(kernel, lease)
        if offer == self._told.get(session_id):
            return
        try:
            await self._link.call(routes.OFFER, session_id, offer)
        except UNAVAILABLE as error:
            self._log.warning("offer_not_told session=%s: %s", session_id, error)
            self._looked_at.pop(session_id, None)
        else:
            self._told[session_id] = offer


def _orders(sessions: SessionsView) -> Iterator[tuple[SessionView, LeaseView, OrderView]]:
    for session in sessions.sessions:
        for lease in session.leases:
            if lease.order is not None:
                yield session, lease, lease.order


def _facts(session: SessionView, lease: LeaseView) -> tuple[Any, ...]:
    """What makes a new look worth while."""
    notice = lease.notice.number if lease.notice else None
    return lease.id, lease.slots, lease.context_seen, session.activity, notice
