"""What every call passes: who calls, what they may send, which endpoint answers, and how errors look.

The caller is known before a byte of the body is read. Every error, an unknown route included, is a problem document
(RFC 9457). Browsers are no clients: whatever carries an Origin is refused. Limits: body 64 KiB, wait 60 s.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import re
import secrets
import time
from contextlib import nullcontext
from typing import Any
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Struct
from tornado import web
from tornado.iostream import IOStream, StreamClosedError

from ...core.model import Reason
from ...errors import Refused
from ...wire.routes import API, BODY_BYTES_MAX, HEALTH, WAIT_S_MAX, Nothing, Route
from ...wire.views import Problem
from ..identity import Caller, Unidentified
from .call import Action, Answer, Broker, Call, Read
from .problems import problem_of

log = logging.getLogger(__name__)

_ID_IN_PATH = re.compile(r"(?<=/)[0-9a-f]{32}(?=[:/]|$)")
_WAIT = re.compile(r"(?:^|[,;\s])wait=(\d{1,6})(?:$|[,;\s])")
_BROWSER_HEADERS = ("Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode")
# Who connected never changes, so it is found out once for each connection.
_CALLERS: WeakKeyDictionary[IOStream, Caller] = WeakKeyDictionary()


class Refusal(Exception):
    """An error of the protocol itself, with its status."""

    def __init__(self, status: int, code: str, **values: str | int | bool | None) -> None:
        super().__init__(code)
        self.status = status
        self.reason = Reason.of(code, **values)


class Endpoints:
    """Finds the endpoint of a method and a path."""

    def __init__(self, reads: dict[Route[Any], Read], actions: dict[Route[Any], Action]) -> None:
        self.reads = reads
        self.actions = actions
        self._routes: dict[str, dict[str, Route[Any]]] = {}
        for route in (*reads, *actions):
            self._routes.setdefault(API + route.path, {})[route.method] = route

    def find(self, method: str, path: str) -> tuple[Route[Any], str]:
        """The route and the id in the path. Raises Refusal 404 or 405."""
        template, count = _ID_IN_PATH.subn("{id}", path)
        by_method = self._routes.get(template)
        if by_method is None or count > 1:
            raise Refusal(404, "no_such_route", path=path[:200])
        route = by_method.get(method)
        if route is None:
            raise Refusal(
                405, "method_not_allowed", method=method[:20], allowed=", ".join(sorted(by_method))
            )
        found = _ID_IN_PATH.search(path)
        return route, found[0] if found else ""


@web.stream_request_body
class Handler(web.RequestHandler):
    """The only handler. Its instances serve one call each."""

    SUPPORTED_METHODS = ("GET", "HEAD", "POST", "DELETE", "PATCH", "PUT", "OPTIONS")

    def initialize(self, broker: Broker, endpoints: Endpoints) -> None:
        self._broker = broker
        self._endpoints = endpoints
        self._received = bytearray()
        self._gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._is_counted = False
        self._is_read = False
        self._call_id = secrets.token_hex(8)

    # --- before the body ---------------------------------------------------------------------------------------------

    def prepare(self) -> None:
        self._caller = self._identify()
        self._broker.presence.began()
        self._is_counted = True
        if any(name in self.request.headers for name in _BROWSER_HEADERS):
            raise Refusal(403, "no_browsers")
        method, path = self.request.method or "", self.request.path
        self._route, self._thing_id = self._endpoints.find(method, path)
        if self._route.right == "admin" and not self._caller.is_admin:
            raise Refusal(403, "admins_only", group=self._broker.settings.served.admins)
        if self._route.body is not Nothing or self._route.media_type != "application/json":
            given = self.request.headers.get("Content-Type", "").partition(";")[0].strip().lower()
            if given != self._route.media_type:
                raise Refusal(
                    415, "wrong_content_type", given=given[:80], wanted=self._route.media_type
                )
        announced = self.request.headers.get("Content-Length", "0")
        if announced.isdigit() and int(announced) > BODY_BYTES_MAX:
            raise Refusal(413, "body_too_large", limit=BODY_BYTES_MAX)

    def data_received(self, chunk: bytes) -> None:
        # What is too long is read to its end, which the server's own limit bounds, and then refused in words.
        if len(self._received) <= BODY_BYTES_MAX:
            self._received += chunk

    def _identify(self) -> Caller:
        connection: Any = self.request.connection
        caller = _CALLERS.get(connection.stream)
        if caller is None:
            try:
                caller = self._broker.settings.served.identify(connection.stream.socket)
            except Unidentified as error:
                raise Refusal(403, "not_served", why=str(error)) from error
            _CALLERS[connection.stream] = caller
        return caller

    # --- the call ----------------------------------------------------------------------------------------------------

    async def get(self) -> None:
        await self._serve()

    put = post = delete = patch = head = options = get

    async def _serve(self) -> None:
        self._is_read = True
        call = self._parse()
        read = self._endpoints.reads.get(self._route)
        if read is not None:
            await self._read(read, call)
            return
        view = await self._endpoints.actions[self._route](call)
        if view is None:
            self.set_status(204)
            await self.finish()
        else:
            await self._send(view)

    def _parse(self) -> Call:
        if len(self._received) > BODY_BYTES_MAX:
            raise Refusal(413, "body_too_large", limit=BODY_BYTES_MAX)
        body: Struct | bytes = bytes(self._received)
        if self._route.body is not Nothing:
            try:
                body = msgspec.json.decode(self._received, type=self._route.body)
            except (msgspec.MsgspecError, RecursionError) as error:
                raise Refusal(422, "bad_body", why=str(error)[:300]) from error
        query = {
            name: self.get_query_argument(name, "")[:200] for name in self.request.query_arguments
        }
        unknown = sorted(query.keys() - set(self._route.queries))
        if unknown:
            known = ", ".join(self._route.queries)
            raise Refusal(422, "unknown_query", name=unknown[0][:80], known=known)
        return Call(self._broker, self._caller, self._call_id, self._thing_id, body, query)

    async def _read(self, read: Read, call: Call) -> None:
        answer = read(call)
        known = self.request.headers.get("If-None-Match")
        wait_s = self._wait_s() if self._route.poll else 0
        if known == answer.etag and wait_s:
            answer = await self._changed(read, call, answer, known, wait_s)
        self.set_header("ETag", answer.etag)
        if known == answer.etag:
            self.set_status(304)
            await self.finish()
        else:
            await self._send(answer.view())

    # --- waiting -----------------------------------------------------------------------------------------------------

    def _wait_s(self) -> int:
        found = _WAIT.search(self.request.headers.get("Prefer", ""))
        return min(int(found[1]), WAIT_S_MAX) if found else 0

    async def _changed(
        self, read: Read, call: Call, answer: Answer, known: str, wait_s: int
    ) -> Answer:
        """The next answer that differs from `known`, or the last one when the wait is over or the caller is gone."""
        attendance = self._broker.attendance
        # Whoever is about to end a broker asks how it is: that alone is no use of it.
        is_use = self._route is not HEALTH
        with (
            self._broker.presence.waiting() if is_use else nullcontext(),
            attendance.listening(answer.attends) if answer.attends else nullcontext(),
        ):
            deadline = time.monotonic() + wait_s
            while answer.etag == known and not self._gone.done():
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    break
                change = self._broker.loop.next_change()
                await asyncio.wait(
                    (change, self._gone), timeout=left_s, return_when=asyncio.FIRST_COMPLETED
                )
                answer = read(call)
        return answer

    def on_finish(self) -> None:
        if self._is_counted:
            self._broker.presence.ended()

    def on_connection_close(self) -> None:
        if not self._gone.done():
            self._gone.set_result(None)

    # --- answers -----------------------------------------------------------------------------------------------------

    async def _send(self, view: Struct | bytes) -> None:
        self.set_header("Content-Type", "application/json")
        await self.finish(view if isinstance(view, bytes) else msgspec.json.encode(view))

    def set_default_headers(self) -> None:
        self.set_header("Server", "gpubroker")
        self.set_header("Cache-Control", "no-store")
        self.set_header("X-Content-Type-Options", "nosniff")

    def compute_etag(self) -> str | None:
        """Ours come from what an answer depends on, not from its bytes."""
        return None

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        error = kwargs["exc_info"][1] if "exc_info" in kwargs else None
        problem = _problem(error, status_code)
        self.set_status(problem.status)
        self.set_header("Content-Type", "application/problem+json")
        if not self._is_read:  # what follows on this connection may be the rest of the body
            self.set_header("Connection", "close")
        if problem.status in (429, 503):
            self.set_header("Retry-After", "1")
        self.finish(msgspec.json.encode(problem))

    def log_exception(self, _typ: Any, value: BaseException | None, _tb: Any) -> None:
        if not isinstance(value, Refusal | Refused | web.HTTPError | StreamClosedError):
            log.error("call_failed call=%s", self._call_id, exc_info=value)


def _problem(error: BaseException | None, status: int) -> Problem:
    if isinstance(error, Refusal | Refused):
        return problem_of(error.status, error.reason)
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return problem_of(503, Reason.of("broker_overloaded"))
    if isinstance(error, web.HTTPError) and error.status_code < 500:
        return problem_of(error.status_code, Reason.of("bad_call"))
    return problem_of(max(status, 500), Reason.of("internal_error"))
