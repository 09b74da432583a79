"""The client's manners when nobody, or nobody right, answers."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpubroker.client import (
    AsyncBrokerClient,
    BrokerClient,
    BrokerDown,
    BrokerError,
    routes,
)

OK = b'{"waiting": [], "free_slots": 1, "slots": 1}'


def response(status: str, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


@contextmanager
def server(folder: Path, answer: Callable[[int], bytes | None]) -> Iterator[str]:
    """Answers the n-th connection with `answer(n)` and closes it; None closes it without a word."""
    path = folder / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            number = 0
            while True:
                peer, _ = listener.accept()
                with peer:
                    if not peer.recv(65_536):
                        return
                    said = answer(number)
                    number += 1
                    if said is not None:
                        peer.sendall(said)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"unix://{path}"
        with socket.socket(socket.AF_UNIX) as last:
            last.connect(str(path))
        thread.join(10)


@contextmanager
def client_of(folder: Path, answer: Callable[[int], bytes | None]) -> Iterator[BrokerClient]:
    with server(folder, answer) as url, BrokerClient(url) as client:
        yield client


@pytest.fixture
def folder(folders: Any) -> Any:
    folders.runtime.chmod(0o700)
    return folders.runtime


@pytest.mark.parametrize("is_left", [False, True])
def test_nobody_there_is_said_at_once_and_leaves_nothing_open(folder: Path, is_left: bool) -> None:
    path = folder / "s"
    if is_left:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
    with (
        BrokerClient(f"unix://{path}") as client,
        pytest.raises(BrokerDown, match="No broker answers"),
    ):
        client.call(routes.QUEUE)
    gc.collect()  # a socket left open would be a warning, hence an error, here


def test_a_broker_that_has_just_ended_is_started_again_for_the_same_call(folder: Path) -> None:
    with ExitStack() as started:

        def revive() -> None:
            started.enter_context(server(folder, lambda _: response("200 OK", OK)))

        with BrokerClient(f"unix://{folder / 's'}", revive=revive) as client:
            assert client.call(routes.QUEUE).free_slots == 1


def test_one_that_cannot_be_started_again_is_given_up(folder: Path) -> None:
    tried: list[None] = []
    with (
        BrokerClient(f"unix://{folder / 's'}", revive=lambda: tried.append(None)) as client,
        pytest.raises(BrokerDown, match="No broker answers"),
    ):
        client.call(routes.QUEUE)
    assert len(tried) == 2


def test_a_connection_that_breaks_is_tried_again(folder: Path) -> None:
    with client_of(
        folder, lambda number: response("200 OK", OK) if number == 2 else None
    ) as client:
        assert client.call(routes.QUEUE).free_slots == 1


def test_one_that_always_breaks_is_given_up(folder: Path) -> None:
    heard: list[int] = []
    with (
        client_of(folder, heard.append) as client,
        pytest.raises(BrokerDown, match="No broker answers"),
    ):
        client.call(routes.QUEUE)
    assert heard == [0, 1, 2]


def test_one_that_does_not_answer_in_time_is_not_asked_again(folder: Path) -> None:
    heard: list[int] = []
    released = threading.Event()

    def silent(number: int) -> None:
        heard.append(number)
        released.wait(10)

    with server(folder, silent) as url:
        with BrokerClient(url, answer_s=0.1) as client, pytest.raises(BrokerDown, match="in time"):
            client.call(routes.QUEUE)
        released.set()
    assert heard == [0]


def test_redirects_are_not_followed(folder: Path) -> None:
    away = response("307 Temporary Redirect", b"", "Location: http://elsewhere/")
    with client_of(folder, lambda _: away) as client, pytest.raises(BrokerError) as refused:
        client.call(routes.QUEUE)
    assert (refused.value.status, refused.value.code) == (307, "not_a_broker")


def test_an_answer_that_makes_no_sense_is_no_answer(folder: Path) -> None:
    with (
        client_of(folder, lambda _: response("200 OK", b"{}")) as client,
        pytest.raises(BrokerDown, match="of one version"),
    ):
        client.call(routes.QUEUE)


def test_a_refusal_carries_the_brokers_words(folder: Path) -> None:
    problem = {
        "status": 409, "code": "x", "title": "t", "detail": "Because. Do this.", "detail_es": "Y",
        "values": {}, "added_later": 1,
    }  # fmt: skip
    said = response("409 Conflict", json.dumps(problem).encode())
    with (
        client_of(folder, lambda _: said) as client,
        pytest.raises(BrokerError, match=r"Because\. Do this\.") as refused,
    ):
        client.call(routes.QUEUE)
    assert (refused.value.status, refused.value.code) == (409, "x")


@pytest.mark.asyncio
async def test_who_asks_through_a_closed_client_is_told_that_no_broker_answers(
    folder: Path,
) -> None:
    with server(folder, lambda _: response("200 OK", OK)) as url:
        async with AsyncBrokerClient(url) as client:
            pass
        with pytest.raises(BrokerDown):
            await client.call(routes.QUEUE)


@pytest.mark.asyncio
async def test_a_watch_yields_changes_only(folder: Path) -> None:
    said = [
        response("200 OK", OK, 'ETag: "1"'),
        response("304 Not Modified", b"", 'ETag: "1"'),
        response("200 OK", OK.replace(b": 1,", b": 0,"), 'ETag: "2"'),
    ]
    with server(folder, lambda number: said[number]) as url:
        async with AsyncBrokerClient(url) as client:
            watch = client.watch(routes.QUEUE)
            seen = [(await asyncio.wait_for(anext(watch), 10)).free_slots for _ in range(2)]
            await watch.aclose()
    assert seen == [1, 0]
