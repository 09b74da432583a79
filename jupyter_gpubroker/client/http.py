"""The one HTTP client: over the broker's Unix socket or a URL, synchronous and asynchronous.

Every call has a deadline and may be repeated safely, since ids are chosen by the client; what breaks off on the way is
tried again a few times. Before the first byte is sent over a socket its server is checked: only the owner of the
socket's folder is talked to. Redirects are never followed. Refusals raise BrokerError, silence raises BrokerDown.
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from traceback import walk_tb
from types import TracebackType
from typing import Any, final

import httpx
import msgspec

from ..wire.routes import Nothing, Route, View
from ..wire.views import Problem
from .errors import BrokerDown, BrokerError

ATTEMPTS = 3
CONNECT_S = 2.0
ANSWER_S = 10.0
WATCH_S = 30
PAUSE_S = (0.05, 0.25)

Query = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """A response that is not a refusal: `etag` and `body`, or `body` None when nothing changed (304)."""

    etag: str
    body: bytes | None


class _Base:
    def __init__(self, url: str, *, answer_s: float = ANSWER_S) -> None:
        self.url = url
        self._answer_s = answer_s
        self._socket_path = Path(url.removeprefix("unix://")) if url.startswith("unix://") else None
        self._peer_pid: int | None = None
        self._options: dict[str, Any] = {
            "base_url": "http://broker" if self._socket_path else url,
            "follow_redirects": False,
            "trust_env": False,
            "limits": httpx.Limits(max_connections=1_000, max_keepalive_connections=8),
        }

    @property
    def _uds(self) -> str | None:
        return None if self._socket_path is None else str(self._socket_path)

    def _request(
        self,
        route: Route[Any],
        thing_id: str | None,
        body: msgspec.Struct | bytes | None,
        query: Query | None,
        wait: tuple[str | None, int] | None,
    ) -> dict[str, Any]:
        """The arguments of httpx' `request`, but for the trace that checks the peer."""
        headers: dict[str, str] = {}
        content: bytes | None = None
        if isinstance(body, bytes):
            content, headers["Content-Type"] = body, route.media_type
        elif body is not None or route.body is not Nothing:
            content = msgspec.json.encode(body if body is not None else route.body())
            headers["Content-Type"] = "application/json"
        answer_s = self._answer_s
        if wait is not None:
            etag, wait_s = wait
            answer_s += wait_s
            headers["Prefer"] = f"wait={wait_s}"
            if etag is not None:
                headers["If-None-Match"] = etag
        return {
            "method": route.method,
            "url": route.url(thing_id),
            "params": query,
            "content": content,
            "headers": headers,
            "timeout": httpx.Timeout(answer_s, connect=CONNECT_S),
        }

    def _check_peer(self, event: str, info: Mapping[str, Any]) -> None:
        """httpcore calls this as the connection grows; raising here ends it before anything is sent."""
        if self._socket_path is None or event != "connection.connect_unix_socket.complete":
            return
        sock: socket.socket = info["return_value"].get_extra_info("socket")
        credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        self._peer_pid, uid, _ = struct.unpack("3i", credentials)
        folder = self._socket_path.parent.stat()
        if uid != folder.st_uid or folder.st_mode & 0o022:
            raise BrokerDown(
                f"What answers at {self._socket_path} runs as uid {uid} and is not to be trusted: the folder belongs to "
                f"uid {folder.st_uid} with mode {folder.st_mode & 0o777:o}. Nothing was sent to it."
            )

    def _down(self, error: Exception) -> BrokerDown:
        where = self._socket_path or self.url
        if isinstance(error, httpx.TimeoutException):
            return BrokerDown(_silent(where, self._peer_pid))
        return BrokerDown(f"No broker answers at {where} ({str(error) or type(error).__name__}).")


def _silent(where: object, pid: int | None) -> str:
    """The sentence about a broker that is there but does not answer, with what to do where its process is known."""
    if pid is None:
        return f"The broker at {where} does not answer in time. Try again in a moment."
    return (
        f"The broker (process {pid}, at {where}) does not answer in time. If it was stopped, `kill -CONT {pid}` lets it go on. "
        f"`kill -KILL {pid}` ends it, which costs nobody a GPU: a new one is started and finds everything as it was."
    )


def _answer(response: httpx.Response) -> Answer:
    if response.status_code == 304:
        return Answer(response.headers.get("ETag", ""), None)
    if response.is_success:
        return Answer(response.headers.get("ETag", ""), response.content)
    try:
        problem = msgspec.json.decode(response.content, type=Problem)
    except msgspec.MsgspecError:
        detail = f"Something that is not a broker answered with status {response.status_code}."
        problem = Problem(response.status_code, "not_a_broker", "Not a broker", detail, detail, {})
    raise BrokerError(problem)


def _decoded(route: Route[View], answer: Answer) -> View:
    if route.view is Nothing or not answer.body:
        return route.view()
    try:
        return msgspec.json.decode(answer.body, type=route.view)
    except msgspec.MsgspecError as error:
        raise BrokerDown(
            f"The broker's answer cannot be read ({error}). Are broker and client of one version?"
        ) from error


def _is_worth_repeating(error: httpx.TransportError, attempt: int) -> bool:
    """A connection that broke is: calls may be repeated. Nobody there, or too slow, is for the caller to judge."""
    return attempt < ATTEMPTS and not isinstance(error, httpx.ConnectError | httpx.TimeoutException)


def _close_failed_sockets(error: BaseException | None) -> None:
    """Close the socket of a connect that failed: httpcore 1.0's `SyncBackend.connect_unix_socket` leaves it open."""
    while error is not None:
        for frame, _ in walk_tb(error.__traceback__):
            left = frame.f_locals.get("sock")
            if isinstance(left, socket.socket):
                left.close()
        error = error.__cause__ or error.__context__


@final
class BrokerClient(_Base):
    """For code without an event loop. Safe to use from several threads. Close it, or use it as a context manager.

    `revive` starts the broker again where nobody is there any more, as when it was just ending while it was found.
    """

    def __init__(
        self,
        url: str,
        *,
        answer_s: float = ANSWER_S,
        revive: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(url, answer_s=answer_s)
        self._revive = revive
        self._http = httpx.Client(transport=httpx.HTTPTransport(uds=self._uds), **self._options)

    def __enter__(self) -> BrokerClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def call(
        self,
        route: Route[View],
        thing_id: str | None = None,
        body: msgspec.Struct | bytes | None = None,
        query: Query | None = None,
    ) -> View:
        """Call a route. Raises BrokerError when refused, BrokerDown when nobody answers."""
        return _decoded(route, self._send(self._request(route, thing_id, body, query, None)))

    def watch(
        self,
        route: Route[View],
        thing_id: str | None = None,
        query: Query | None = None,
        *,
        wait_s: int = WATCH_S,
    ) -> Generator[View, None, None]:
        """The answer now, and again each time it changes, for ever. Raises as `call` does."""
        etag: str | None = None
        while True:
            answer = self._send(self._request(route, thing_id, None, query, (etag, wait_s)))
            if answer.body is not None:
                etag = answer.etag
                yield _decoded(route, answer)

    def _send(self, arguments: dict[str, Any]) -> Answer:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return _answer(self._http.request(**arguments, extensions={"trace": self._trace}))
            except httpx.TransportError as error:
                _close_failed_sockets(error)
                if self._revives(error, attempt):
                    continue
                if not _is_worth_repeating(error, attempt):
                    raise self._down(error) from error
                time.sleep(random.uniform(*PAUSE_S))  # noqa: S311 - jitter, not a secret
        raise AssertionError("the last attempt returns or raises")

    def _revives(self, error: httpx.TransportError, attempt: int) -> bool:
        """Whether there is a broker again. Raises what starting one raises."""
        if self._revive is None or attempt == ATTEMPTS or not isinstance(error, httpx.ConnectError):
            return False
        self._revive()
        return True

    def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        try:
            self._check_peer(event, info)
        except BrokerDown:
            info["return_value"].close()
            raise


@final
class AsyncBrokerClient(_Base):
    """For asyncio. Close it with `aclose`, or use it as an asynchronous context manager."""

    def __init__(self, url: str, *, answer_s: float = ANSWER_S) -> None:
        super().__init__(url, answer_s=answer_s)
        self._http = httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(uds=self._uds), **self._options
        )

    async def __aenter__(self) -> AsyncBrokerClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._http.aclose()

    async def call(
        self,
        route: Route[View],
        thing_id: str | None = None,
        body: msgspec.Struct | bytes | None = None,
        query: Query | None = None,
    ) -> View:
        """Call a route. Raises BrokerError when refused, BrokerDown when nobody answers."""
        return _decoded(route, await self._send(self._request(route, thing_id, body, query, None)))

    async def answer(
        self,
        route: Route[Any],
        thing_id: str | None = None,
        body: msgspec.Struct | bytes | None = None,
        query: Query | None = None,
        *,
        etag: str | None = None,
        wait_s: int = 0,
    ) -> Answer:
        """As `call`, but the answer as it came, to be passed on. Waits up to `wait_s` for one that differs from `etag`."""
        return await self._send(self._request(route, thing_id, body, query, (etag, wait_s)))

    async def watch(
        self,
        route: Route[View],
        thing_id: str | None = None,
        query: Query | None = None,
        *,
        wait_s: int = WATCH_S,
    ) -> AsyncGenerator[View, None]:
        """The answer now, and again each time it changes, for ever. Raises as `call` does."""
        etag: str | None = None
        while True:
            answer = await self._send(self._request(route, thing_id, None, query, (etag, wait_s)))
            if answer.body is not None:
                etag = answer.etag
                yield _decoded(route, answer)

    async def _send(self, arguments: dict[str, Any]) -> Answer:
        for attempt in range(1, ATTEMPTS + 1):
            if self._http.is_closed:  # a server that ends, while its kernels still do
                raise BrokerDown("The connection to the broker was closed here.")
            try:
                return _answer(
                    await self._http.request(**arguments, extensions={"trace": self._trace})
                )
            except httpx.TransportError as error:
                if not _is_worth_repeating(error, attempt):
                    raise self._down(error) from error
                await asyncio.sleep(random.uniform(*PAUSE_S))  # noqa: S311 - jitter, not a secret
        raise AssertionError("the last attempt returns or raises")

    async def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        try:
            self._check_peer(event, info)
        except BrokerDown:
            await info["return_value"].aclose()
            raise
