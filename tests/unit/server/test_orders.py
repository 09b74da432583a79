"""Orders are carried out once and answered until heard; offers follow changes; kernels restart only when saved."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from jupyter_gpubroker.client.errors import BrokerDown
from jupyter_gpubroker.client.places import Places
from jupyter_gpubroker.server.hosts import Launched
from jupyter_gpubroker.server.link import ServerLink
from jupyter_gpubroker.server.orders import Offers, Orders
from jupyter_gpubroker.server.restart import Restarts
from jupyter_gpubroker.wire.bodies import AnswerBody, OfferBody
from jupyter_gpubroker.wire.views import LeaseView, NoticeView, OrderView, ReasonView, SessionsView
from tests.conftest import Folders
from tests.unit.server.double import BrokerDouble, broker_double, lease_view, order, session_view
from tests.unit.server.test_link import launched, linked

pytestmark = pytest.mark.asyncio

LOG = logging.getLogger("orders")
LEASE = "e" * 32
KERNEL = launched(1)


@pytest_asyncio.fixture
async def double(folders: Folders) -> AsyncIterator[BrokerDouble]:
    async with broker_double(folders.runtime) as made:
        yield made


@pytest_asyncio.fixture
async def link(double: BrokerDouble) -> AsyncIterator[ServerLink]:
    async with linked(double) as made:
        made.launched(KERNEL)
        await double.until(lambda: double.calls("POST /sessions:report"))
        yield made


def sessions(*leases: LeaseView, activity: str = "idle") -> SessionsView:
    return SessionsView((session_view(KERNEL.session_id, "kernel", *leases, activity=activity),))


class Executor:
    """Counts; answers when let."""

    def __init__(self) -> None:
        self.calls: list[tuple[Launched, int]] = []
        self.let = asyncio.Event()

    async def __call__(self, kernel: Launched, _: LeaseView, order: OrderView) -> AnswerBody:
        self.calls.append((kernel, order.number))
        await self.let.wait()
        return AnswerBody(order.number, ok=True)


async def test_an_order_is_carried_out_once_and_answered(
    double: BrokerDouble, link: ServerLink
) -> None:
    executor = Executor()
    orders = Orders(link, {"checkpointed": executor}, {}, LOG)
    ordered = sessions(lease_view(LEASE, order=order(3, "checkpointed")))
    orders.seen(ordered)
    orders.seen(ordered)
    executor.let.set()
    await double.until(lambda: double.calls("POST /leases/ID:answer"))
    assert executor.calls == [(KERNEL, 3)]
    [answer] = double.calls("POST /leases/ID:answer")
    assert answer.thing_id == LEASE
    assert (answer.body["number"], answer.body["ok"]) == (3, True)


async def test_an_answer_in_vain_is_given_again_without_acting_again(
    double: BrokerDouble, link: ServerLink
) -> None:
    executor = Executor()
    executor.let.set()
    orders = Orders(link, {"checkpointed": executor}, {}, LOG)
    ordered = sessions(lease_view(LEASE, order=order(1, "checkpointed")))
    double.refuse["POST /leases/ID:answer"] = 503
    orders.seen(ordered)
    await double.until(lambda: double.calls("POST /leases/ID:answer"))
    double.refuse.clear()
    orders.seen(ordered)
    await double.until(lambda: len(double.calls("POST /leases/ID:answer")) == 2)
    assert len(executor.calls) == 1


async def test_the_next_order_of_the_same_lease_is_a_new_one(
    double: BrokerDouble, link: ServerLink
) -> None:
    executor = Executor()
    executor.let.set()
    orders = Orders(link, {"checkpointed": executor}, {}, LOG)
    orders.seen(sessions(lease_view(LEASE, order=order(1, "checkpointed"))))
    await double.until(lambda: len(double.calls("POST /leases/ID:answer")) == 1)
    orders.seen(sessions(lease_view(LEASE, order=order(2, "checkpointed", resume=True))))
    await double.until(lambda: len(double.calls("POST /leases/ID:answer")) == 2)
    assert [number for _, number in executor.calls] == [1, 2]


@pytest.mark.parametrize("is_late", [True, False])
async def test_what_the_broker_no_longer_waited_for_is_undone(
    double: BrokerDouble, link: ServerLink, is_late: bool
) -> None:
    executor, undone = Executor(), asyncio.Event()
    executor.let.set()

    async def undo(*_: object) -> None:
        undone.set()

    double.answered = lease_view(LEASE, gave_back=None if is_late else "checkpointed")
    orders = Orders(link, {"checkpointed": executor}, {"checkpointed": undo}, LOG)
    orders.seen(sessions(lease_view(LEASE, order=order(1, "checkpointed"))))
    await double.until(lambda: double.calls("POST /leases/ID:answer"))
    await asyncio.gather(*orders._tasks._running)
    assert undone.is_set() is is_late


async def test_the_kernels_own_orders_are_left_to_it(link: ServerLink) -> None:
    executor = Executor()
    orders = Orders(link, {"checkpointed": executor}, {}, LOG)
    orders.seen(sessions(lease_view(LEASE, order=order(1, "empty"))))
    orders.seen(sessions(lease_view(LEASE, order=order(1, "parked"))))
    await asyncio.sleep(0)
    assert executor.calls == []


class Offerer:
    def __init__(self) -> None:
        self.looks = 0
        self.offer = OfferBody(kinds=("checkpointed",), by_server=True)

    async def __call__(self, _: Launched, __: LeaseView) -> OfferBody:
        self.looks += 1
        return self.offer


async def test_an_offer_is_told_once_while_nothing_changes(
    double: BrokerDouble, link: ServerLink
) -> None:
    offerer = Offerer()
    offers = Offers(link, offerer, LOG)
    for _ in range(3):
        offers.seen(sessions(lease_view(LEASE)))
    await double.until(lambda: double.calls("POST /sessions/ID:offer"))
    assert offerer.looks == 1
    [told] = double.calls("POST /sessions/ID:offer")
    assert told.thing_id == KERNEL.session_id
    assert told.body == {"kinds": ["checkpointed"], "refusals": {}, "by_server": True}


async def test_a_notice_or_a_new_activity_is_worth_another_look(
    double: BrokerDouble, link: ServerLink
) -> None:
    offerer = Offerer()
    offers = Offers(link, offerer, LOG)
    offers.seen(sessions(lease_view(LEASE)))
    await double.until(lambda: double.calls("POST /sessions/ID:offer"))
    offerer.offer = OfferBody(by_server=True)
    notice = NoticeView(1, 1000, ReasonView("idle", {}, "", ""), shown=False)
    offers.seen(sessions(lease_view(LEASE, notice=notice)))
    await double.until(lambda: len(double.calls("POST /sessions/ID:offer")) == 2)
    offers.seen(sessions(lease_view(LEASE, notice=notice), activity="debugger"))
    await offers.close()
    assert offerer.looks == 2, "the third look was ended before it began"


@pytest.mark.parametrize(
    "view",
    [
        sessions(),
        sessions(lease_view(LEASE, state="granted")),
        sessions(lease_view(LEASE), activity="running"),
    ],
)
async def test_nobody_looks_without_a_lease_in_use_or_during_a_cell(
    link: ServerLink, view: SessionsView
) -> None:
    offerer = Offerer()
    offers = Offers(link, offerer, LOG)
    offers.seen(view)
    await asyncio.sleep(0)
    assert offerer.looks == 0


class KernelsManager:
    """Restarts kernels, and stands for the broker that is told: `done` is what happened, in order."""

    def __init__(self) -> None:
        self.done: list[str | AnswerBody] = []
        self.is_broker_down = False
        self.has_given_up = False

    async def restart_kernel(self, kernel_id: str) -> None:
        self.done.append(kernel_id)

    def restarted(self, kernel: Launched, _: LeaseView) -> None:
        self.done.append(f"front ends of {kernel.body.kernel_id}")

    async def tell(self, lease_id: str, answer: AnswerBody) -> LeaseView:
        assert lease_id == LEASE
        if self.is_broker_down:
            raise BrokerDown("gone")
        self.done.append(answer)
        return lease_view(LEASE, gave_back=None if self.has_given_up else "restarted")


def restartable() -> tuple[Launched, KernelsManager]:
    kernels = KernelsManager()
    kernel = launched(7)
    kernel.manager.parent = kernels
    return kernel, kernels


def save(folder: Path, cause: Any) -> None:
    path = folder / "kernel-1" / "manifest.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(cause))


async def test_a_kernel_is_restarted_once_it_has_saved_for_this_very_order(tmp_path: Path) -> None:
    kernel, kernels = restartable()
    save(tmp_path, {"cause": f"{LEASE}:1"})
    restarts = Restarts(tmp_path, lambda _lease, _number: True, kernels.tell, kernels.restarted)
    work = asyncio.create_task(restarts.carry_out(kernel, lease_view(LEASE), order(2, "restarted")))
    done, _ = await asyncio.wait({work}, timeout=0.3)
    assert not done, "what was saved before was for another order"
    assert kernels.done == []
    save(tmp_path, {"cause": f"{LEASE}:2"})
    assert await work == AnswerBody(2, ok=True)
    assert kernels.done == [AnswerBody(2, ok=True), "kernel", "front ends of kernel"], "told first"


async def test_a_kernel_is_not_restarted_when_the_broker_cannot_be_told(tmp_path: Path) -> None:
    kernel, kernels = restartable()
    kernels.is_broker_down = True
    save(tmp_path, {"cause": f"{LEASE}:1"})
    restarts = Restarts(tmp_path, lambda _lease, _number: True, kernels.tell, kernels.restarted)
    with pytest.raises(BrokerDown):
        await restarts.carry_out(kernel, lease_view(LEASE), order(1, "restarted"))
    assert kernels.done == []


async def test_a_kernel_is_not_restarted_for_an_order_that_had_run_out(tmp_path: Path) -> None:
    kernel, kernels = restartable()
    kernels.has_given_up = True
    save(tmp_path, {"cause": f"{LEASE}:1"})
    restarts = Restarts(tmp_path, lambda _lease, _number: True, kernels.tell, kernels.restarted)
    answer = await restarts.carry_out(kernel, lease_view(LEASE), order(1, "restarted"))
    assert not answer.ok
    assert "kernel" not in kernels.done


@pytest.mark.parametrize("found", [None, {"cause": "other:1"}, {}, [], "text"])
async def test_a_kernel_that_has_not_saved_is_never_restarted(tmp_path: Path, found: Any) -> None:
    kernel, kernels = restartable()
    if found is not None:
        save(tmp_path, found)
    looks = iter([True, True, False])
    restarts = Restarts(
        tmp_path, lambda _lease, _number: next(looks), kernels.tell, kernels.restarted
    )
    answer = await restarts.carry_out(kernel, lease_view(LEASE), order(1, "restarted"))
    assert not answer.ok
    assert answer.reason is not None
    assert answer.reason.code == "save_not_seen"
    assert kernels.done == []


async def test_a_link_knows_which_orders_stand(folders: Folders) -> None:
    link = ServerLink(Places.find(), "server", LOG, lambda _: None, lambda: None)
    link.sessions = sessions(lease_view(LEASE, order=order(2, "restarted")))
    assert link.has_order(LEASE, 2)
    assert not link.has_order(LEASE, 1)
    assert not link.has_order("f" * 32, 2)
