"""The link tells the broker what is there, hears what it wants, and outlives both the broker and `stop_extension`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio
from jupyter_client.session import Session
from traitlets.config import Config

from jupyter_gpubroker.client.places import Places
from jupyter_gpubroker.server import link as link_module
from jupyter_gpubroker.server.activity import Message
from jupyter_gpubroker.server.hosts import Launched
from jupyter_gpubroker.server.link import ServerLink
from jupyter_gpubroker.wire.bodies import SessionBody
from jupyter_gpubroker.wire.views import SessionsView
from tests.conftest import Folders
from tests.unit.server.double import BrokerDouble, broker_double, session_view

pytestmark = pytest.mark.asyncio

LOG = logging.getLogger("link")


class Stream:
    """An iopub stream that never says anything."""

    def __init__(self) -> None:
        self.is_closed = False

    def on_recv(self, callback: Any) -> None:
        self.callback = callback

    def closed(self) -> bool:
        return self.is_closed

    def close(self) -> None:
        self.is_closed = True


class Manager:
    """What a watch needs of a KernelManager."""

    connection_file = "/run/kernel-1.json"

    def __init__(self) -> None:
        self.parent: Any = None
        self.session = Session(key=b"k", config=Config())
        self.streams: list[Stream] = []

    def connect_iopub(self) -> Stream:
        self.streams.append(Stream())
        return self.streams[-1]


def status(state: str, request: str) -> Message:
    header = {"msg_type": "execute_request", "msg_id": request}
    return Message("status", header, {"execution_state": state})


def launched(number: int, predecessor: str | None = None, kernel_id: str = "kernel") -> Launched:
    body = SessionBody(
        kind="kernel",
        name="notebook",
        pid=number,
        kernel_id=kernel_id,
        server_id="server",
        predecessor=predecessor,
    )
    return Launched(f"{number:032x}", body, Manager())


@asynccontextmanager
async def linked(
    double: BrokerDouble, seen: asyncio.Queue[SessionsView] | None = None
) -> AsyncIterator[ServerLink]:
    heard = asyncio.Queue[SessionsView]() if seen is None else seen
    link = ServerLink(Places.find(url=double.url), "server", LOG, heard.put_nowait, lambda: None)
    link.start()
    try:
        yield link
    finally:
        for session_id in list(link._kernels):
            link.given_up(session_id)
        await link.stop()


@pytest_asyncio.fixture
async def double(folders: Folders) -> AsyncIterator[BrokerDouble]:
    async with broker_double(folders.runtime) as made:
        yield made


async def test_a_started_kernel_is_told_to_the_broker_and_reported(double: BrokerDouble) -> None:
    async with linked(double) as link:
        kernel = launched(1)
        link.launched(kernel)
        await double.until(lambda: double.calls("POST /sessions:report"))
        [put] = double.calls("PUT /sessions/ID")
        assert put.thing_id == kernel.session_id
        assert (put.body["pid"], put.body["kernel_id"]) == (1, "kernel")
        report = double.calls("POST /sessions:report")[0].body
        assert report["server_id"] == "server"
        assert report["sessions"] == [
            {"session_id": kernel.session_id, "activity": "idle", "front_ends": 0}
        ]


async def test_a_change_is_reported_at_once_and_a_run_of_changes_once(
    double: BrokerDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_module, "REPORT_S", 3600.0)
    async with linked(double) as link:
        kernel = launched(1)
        link.launched(kernel)
        await double.until(lambda: double.calls("POST /sessions:report"))
        before = len(double.calls("POST /sessions:report"))
        watch = link.watches.get(str(kernel.body.kernel_id))
        assert watch is not None
        for number in range(50):
            for state in ("busy", "idle"):
                watch.heard(status(state, str(number)))
        watch.heard(status("busy", "last"))

        def running() -> bool:
            [report] = double.calls("POST /sessions:report")[-1].body["sessions"]
            return bool(report["activity"] == "running")

        await double.until(running)
        assert len(double.calls("POST /sessions:report")) <= before + 2


async def test_a_session_the_broker_has_forgotten_is_put_again(double: BrokerDouble) -> None:
    async with linked(double) as link:
        link.launched(launched(1))
        await double.until(lambda: double.calls("POST /sessions:report"))
        double.sessions.clear()
        link.changed()
        await double.until(lambda: len(double.calls("PUT /sessions/ID")) == 2)


async def test_a_session_the_broker_refuses_is_not_put_again(double: BrokerDouble) -> None:
    double.refuse["PUT /sessions/ID"] = 422
    async with linked(double) as link:
        link.launched(launched(1))
        await double.until(lambda: double.calls("PUT /sessions/ID"))
        double.refuse.clear()
        link.launched(launched(2, kernel_id="other"))
        await double.until(lambda: double.calls("POST /sessions:report"))
        assert [put.body["pid"] for put in double.calls("PUT /sessions/ID")] == [1, 2]


async def test_a_restarted_kernel_replaces_its_predecessor(double: BrokerDouble) -> None:
    async with linked(double) as link:
        first = launched(1)
        link.launched(first)
        await double.until(lambda: double.calls("POST /sessions:report"))
        assert await link.restarting(first.session_id) is not None
        second = launched(2, predecessor=first.session_id)
        link.launched(second)
        await double.until(lambda: len(double.calls("PUT /sessions/ID")) == 2)
        assert double.calls("PUT /sessions/ID")[1].body["predecessor"] == first.session_id
        assert link.launched_kernel(first.session_id) is None
        await double.until(
            lambda: (
                [
                    r["session_id"]
                    for r in double.calls("POST /sessions:report")[-1].body["sessions"]
                ]
                == [second.session_id]
            )
        )


@pytest.mark.parametrize("trouble", ["hang", "refuse", "gone"])
async def test_nothing_waits_long_for_a_broker_in_trouble(
    double: BrokerDouble, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    monkeypatch.setattr(link_module, "RESTART_S", 0.3)
    monkeypatch.setattr(link_module, "END_S", 0.3)
    async with linked(double) as link:
        kernel = launched(1)
        link.launched(kernel)
        await double.until(lambda: double.calls("POST /sessions:report"))
        calls = ("POST /sessions/ID:restart", "DELETE /sessions/ID")
        if trouble == "hang":
            double.hang.update(calls)
        elif trouble == "refuse":
            double.refuse.update(dict.fromkeys(calls, 409))
        else:
            await double.stop()
        try:
            assert await asyncio.wait_for(link.restarting(kernel.session_id), 2) is None
            await asyncio.wait_for(link.ended(kernel.session_id), 2)
        finally:
            if trouble == "gone":
                await double.start()


async def test_the_broker_may_go_and_come_back(double: BrokerDouble) -> None:
    async with linked(double) as link:
        link.launched(launched(1))
        await double.until(lambda: double.calls("POST /sessions:report"))
        await double.stop()
        link.changed()
        assert await link.restarting("0" * 32) is None
        double.told.clear()
        double.sessions.clear()
        await double.start()
        back = ("PUT /sessions/ID", "GET /sessions")
        await double.until(lambda: all(double.calls(call) for call in back))


async def test_what_the_broker_wants_is_heard_at_once(double: BrokerDouble) -> None:
    seen = asyncio.Queue[SessionsView]()
    async with linked(double, seen):
        assert (await asyncio.wait_for(seen.get(), 5)).sessions == ()
        session = session_view("1" * 32, "kernel")
        await double.change(session)
        assert (await asyncio.wait_for(seen.get(), 5)).sessions == (session,)


async def test_it_speaks_until_the_last_kernel_has_ended(double: BrokerDouble) -> None:
    link = ServerLink(Places.find(url=double.url), "server", LOG, lambda _: None, lambda: None)
    link.start()
    first, second = launched(1), launched(2, kernel_id="other")
    link.launched(first)
    link.launched(second)
    await double.until(lambda: len(double.calls("PUT /sessions/ID")) == 2)

    await link.stop()
    await link.ended(first.session_id)
    assert link._tasks, "one kernel still lives"
    await link.ended(second.session_id)

    assert [told.thing_id for told in double.calls("DELETE /sessions/ID")] == [
        first.session_id,
        second.session_id,
    ]
    assert not link._tasks
    for kernel in (first, second):
        assert all(stream.closed() for stream in kernel.manager.streams)


async def test_what_is_known_of_the_broker_decides_about_devices(double: BrokerDouble) -> None:
    double.simulated, double.mode = False, "observe"
    async with linked(double) as link:
        assert (link.simulated, link.hides_devices) == (None, True)
        await double.until(lambda: double.calls("GET /sessions"))
        assert (link.simulated, link.hides_devices) == (False, False)
