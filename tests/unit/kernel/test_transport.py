"""The exchange with whoever listens at the broker's socket."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from gpubroker.broker import Broker
from gpubroker.errors import Refused, Unavailable
from gpubroker.transport import Transport
from tests.conftest import Folders
from tests.unit.kernel.double import SESSION, DoubleBroker, problem


@contextmanager
def answering(path: Path, answer: bytes, *, closes: bool = True) -> Iterator[list[bytes]]:
    """Somebody at the socket who sends `answer` to whatever it hears, and what it heard."""
    heard: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        done = threading.Event()

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, suppress(ConnectionError):  # it may go away at any moment
                heard.append(connection.recv(65_536))
                connection.sendall(answer)
                if not closes:
                    done.wait(10)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield heard
        finally:
            done.set()
            with socket.socket(socket.AF_UNIX) as waker:
                if thread.is_alive():
                    waker.connect(str(path))
                    waker.sendall(b"x")
            thread.join()


@pytest.fixture
def path(folders: Folders) -> Path:
    return folders.runtime / "b.sock"


def test_an_answer_is_read_whole(path: Path) -> None:
    body = b'{"a": "' + b"x" * 200_000 + b'"}'
    head = b'HTTP/1.1 200 OK\r\nETag: "7"\r\nContent-Length: %d\r\n\r\n' % len(body)
    with answering(path, head + body) as heard:
        answer = Transport(str(path)).exchange("PUT", "/v1/x", {"b": 1}, {"Prefer": "wait=1"})
    assert (answer.status, answer.etag, len(answer.body["a"])) == (200, '"7"', 200_000)
    sent = heard[0].decode()
    assert sent.startswith("PUT /v1/x HTTP/1.1\r\nHost: broker\r\n")
    assert "Prefer: wait=1\r\n" in sent
    assert sent.endswith('Content-Length: 8\r\n\r\n{"b": 1}')


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{]}",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 20_000,
    ],
)
def test_what_is_no_answer_is_one_sentence(path: Path, answer: bytes) -> None:
    with answering(path, answer), pytest.raises(Unavailable) as error:
        Transport(str(path)).exchange("GET", "/")
    assert len(str(error.value).splitlines()) == 1


def test_a_silent_broker_is_not_waited_for_longer_than_the_deadline(path: Path) -> None:
    with answering(path, b"HTTP/1.1 200 OK\r\n", closes=False), pytest.raises(Unavailable) as error:
        Transport(str(path)).exchange("GET", "/", deadline_s=0.2)
    assert "too long" in str(error.value)


def test_nobody_there_is_one_sentence(path: Path) -> None:
    with pytest.raises(Unavailable, match="does not answer"):
        Transport(str(path)).exchange("GET", "/")


def test_nothing_is_sent_to_a_server_in_a_folder_that_others_may_write_to(path: Path) -> None:
    path.parent.chmod(0o777)
    with answering(path, b"") as heard, pytest.raises(Unavailable, match="nothing was sent"):
        Transport(str(path)).exchange("GET", "/")
    assert heard in ([], [b""], [b"x"])


@pytest.mark.parametrize("url", ["https://example.org", "unix://relative", "", "http:/x"])
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(Unavailable, match="GPUBROKER_URL"):
        Broker(url)


def test_a_refusal_carries_the_brokers_sentence(double: DoubleBroker) -> None:
    double.refusal = (422, problem("too_many_slots"))
    with pytest.raises(Refused, match="too_many_slots") as error:
        double.client.put_request("1" * 32, {})
    assert (error.value.code, error.value.status) == ("too_many_slots", 422)


def test_a_broker_that_fails_is_unavailable(double: DoubleBroker) -> None:
    double.refusal = (503, problem("not_ready"))
    with pytest.raises(Unavailable, match="not_ready"):
        double.client.put_request("1" * 32, {})


def test_a_poll_waits_for_news(double: DoubleBroker) -> None:
    first = double.client.session(SESSION)
    assert first.view is not None
    assert double.client.session(SESSION, first.etag).view is None

    def change() -> None:
        double.wait_until_asked("GET", SESSION, 3)
        with double.changed():
            double.leases = []

    thread = threading.Thread(target=change)
    thread.start()
    news = double.client.session(SESSION, first.etag, wait_s=10)
    thread.join()
    assert news.view is not None
    assert news.etag != first.etag
