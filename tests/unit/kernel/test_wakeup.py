"""A request that arrives while a reply is sent is read, though the send took its wake-up (ipykernel#1554)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import zmq
from tornado.ioloop import IOLoop
from zmq.eventloop.zmqstream import ZMQStream

from gpubroker import wakeup


@pytest.fixture
def sockets() -> Iterator[tuple[Any, Any]]:
    """The kernel's end, which talks to many, and a page's."""
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        port = router.bind_to_random_port("tcp://127.0.0.1")
        with context.socket(zmq.DEALER) as dealer:
            dealer.linger = router.linger = 0
            dealer.connect(f"tcp://127.0.0.1:{port}")
            yield router, dealer


def kernel_of(router: Any, stream: Any) -> Any:
    manager = SimpleNamespace(_shell_socket=router)
    return SimpleNamespace(
        shell_stream=stream, shell_channel_thread=SimpleNamespace(manager=manager)
    )


@pytest.mark.asyncio
async def test_a_request_that_comes_while_a_reply_is_sent_is_read(sockets: tuple[Any, Any]) -> None:
    router, dealer = sockets
    stream = ZMQStream(router, IOLoop.current())
    requests: asyncio.Queue[list[bytes]] = asyncio.Queue()
    stream.on_recv(requests.put_nowait)
    kernel = kernel_of(router, stream)
    wakeup.install(kernel)
    dealer.send(b"first")
    identity, _ = await asyncio.wait_for(requests.get(), 30)
    for number in range(20):
        request = b"request %d" % number
        dealer.send(request)
        router.poll()  # it is there, and the loop, which is in this function, has not looked
        kernel.shell_channel_thread.manager._shell_socket.send_multipart([identity, b"reply"])
        assert await asyncio.wait_for(requests.get(), 30) == [identity, request]
    stream.close()


def test_other_builds_of_ipykernel_are_left_alone() -> None:
    for kernel in (None, SimpleNamespace(), SimpleNamespace(shell_channel_thread=None)):
        wakeup.install(kernel)


def test_it_is_installed_once() -> None:
    kernel = kernel_of(object(), object())
    wakeup.install(kernel)
    once = kernel.shell_channel_thread.manager._shell_socket
    wakeup.install(kernel)
    assert kernel.shell_channel_thread.manager._shell_socket is once
