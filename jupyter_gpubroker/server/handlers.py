"""Lets logged-in browsers talk to the broker through this server, at `<base_url>gpubroker/v1/…`, as far as `proxy` lets them.

The page never sees the broker's address or a token. ETags and long polls pass through, problem documents too; where no
broker answers the page gets one as well, with status 503. Who may do what is the server's identity provider and
authorizer's to say, for the resource `gpubroker`.
"""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import APIHandler
from tornado import web

from ..client.errors import BrokerError
from ..client.http import Answer
from ..client.output import STREAMS
from ..wire import routes
from ..wire.bodies import RequestBody
from ..wire.views import Problem
from . import proxy
from .batch import SubmitBody
from .desk import Desk
from .hosts import UNAVAILABLE
from .proxy import NoPassage, Passage


class DeskHandler(APIHandler):
    """One call of a browser. `desk` is None where GPUs are not lent at all. Every refusal is a problem document."""

    auth_resource = "gpubroker"
    # A page that is open is no activity of its user.
    _track_activity = False

    def initialize(self, desk: Desk | None) -> None:
        self._desk = desk

    async def prepare(self) -> None:  # type: ignore[override]
        """Nobody gets past here without a login, whichever method is added below or inherited from above."""
        await super().prepare()
        if not self.current_user:
            raise web.HTTPError(403)

    @property
    def desk(self) -> Desk:
        """Raises NoPassage where there is none. Who asks for it is somebody who looks."""
        if self._desk is None:
            raise NoPassage(proxy.problem(503, "switched_off"))
        self._desk.audience.looked()
        return self._desk

    def set_default_headers(self) -> None:
        super().set_default_headers()
        self.set_header("Cache-Control", "no-store")

    def compute_etag(self) -> str | None:
        """The broker's, or none."""
        return None

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        """In the form of the broker's own."""
        error = kwargs["exc_info"][1] if "exc_info" in kwargs else None
        problem = error.problem if isinstance(error, NoPassage) else _problem_for(status_code)
        self.set_status(problem.status)
        content = msgspec.json.encode(problem)
        self.finish(content, set_content_type="application/problem+json")

    def log_exception(self, typ: Any, value: Any, tb: Any) -> None:
        if not isinstance(value, NoPassage):
            super().log_exception(typ, value, tb)


class BrokerHandler(DeskHandler):
    """What the broker is to be asked, as far as `proxy` lets it pass."""

    def initialize(self, desk: Desk | None) -> None:
        super().initialize(desk)
        self._task: asyncio.Task[Answer] | None = None
        self._is_gone = False

    # `authorized` keeps the action of its first call, so each method needs its own.

    @web.authenticated
    @authorized
    async def get(self, path: str) -> None:
        await self._serve(path)

    @web.authenticated
    @authorized
    async def put(self, path: str) -> None:
        await self._serve(path)

    @web.authenticated
    @authorized
    async def post(self, path: str) -> None:
        await self._serve(path)

    @web.authenticated
    @authorized
    async def delete(self, path: str) -> None:
        await self._serve(path)

    async def _serve(self, path: str) -> None:
        passage, thing_id = proxy.find(str(self.request.method), f"/{path}")
        self._task = asyncio.create_task(self._answer(self.desk, passage, thing_id))
        try:
            answer = await self._task
        except asyncio.CancelledError:
            if not self._is_gone:
                raise
            return
        except UNAVAILABLE as error:
            raise NoPassage(_problem_of(error)) from error
        if answer.etag:
            self.set_header("ETag", answer.etag)
        if answer.body is None:
            self.set_status(304)
        elif not answer.body:
            self.set_status(204)
        await self.finish(answer.body or None)

    async def _answer(self, desk: Desk, passage: Passage, thing_id: str | None) -> Answer:
        headers = self.request.headers
        body = proxy.parse(passage, headers.get("Content-Type", ""), self.request.body)
        if isinstance(body, RequestBody) and desk.link.launched_kernel(body.session_id) is None:
            raise NoPassage(proxy.problem(404, "kernel_not_here"))
        answer = await desk.link.answer(
            passage.route,
            thing_id,
            body,
            self._query(passage),
            etag=headers.get("If-None-Match"),
            wait_s=proxy.wait_s(headers.get("Prefer", "")) if passage.route.poll else 0,
        )
        if passage.route in {routes.PUT_REQUEST, routes.UNPARK}:
            desk.attendance.attend(_id_of(answer))
        return answer

    def _query(self, passage: Passage) -> dict[str, str]:
        """What is the broker's of the arguments; Jupyter's pages add some of their own to all that they ask."""
        known = self.request.query_arguments.keys() & set(passage.route.queries)
        return {name: self.get_query_argument(name) for name in known}

    def on_connection_close(self) -> None:
        self._is_gone = True
        if self._task is not None:
            self._task.cancel()


class SubmitHandler(DeskHandler):
    """POST: a batch job from a command or a notebook. It runs code, so whoever may not run any may not do this."""

    @web.authenticated
    @authorized("execute", resource="kernels")  # type: ignore[untyped-decorator]
    async def post(self) -> None:
        body = proxy.decoded(
            SubmitBody, self.request.headers.get("Content-Type", ""), self.request.body
        )
        job = await self.desk.batch.submit(body)
        self.set_status(201)
        await self.finish(msgspec.json.encode(job))


class OutputHandler(DeskHandler):
    """GET: what a batch job wrote, from the byte that `stdout` and `stderr` name; the end of it without."""

    @web.authenticated
    @authorized
    async def get(self, job_id: str) -> None:
        starts = {name: self._start(name) for name in STREAMS}
        await self.finish(msgspec.json.encode(await self.desk.batch.output(job_id, starts)))

    def _start(self, stream: str) -> int | None:
        given = self.get_query_argument(stream, "")
        return int(given) if given.isdecimal() else None


HANDLERS: dict[str, type[DeskHandler]] = {
    rf"{proxy.PREFIX}/(.*)": BrokerHandler,
    rf"{proxy.BATCH}/jobs": SubmitHandler,
    rf"{proxy.BATCH}/jobs/([0-9a-f]{{32}})/output": OutputHandler,
}


def _id_of(answer: Answer) -> str:
    return str(msgspec.json.decode(answer.body or b"{}")["id"])


def _problem_of(error: Exception) -> Problem:
    if isinstance(error, BrokerError):
        return error.problem
    return proxy.problem(503, "broker_down", why=str(error))


def _problem_for(status: int) -> Problem:
    if status in {401, 403}:
        return proxy.problem(status, "not_allowed")
    return proxy.problem(status, "bad_call" if status < 500 else "server_failed")
