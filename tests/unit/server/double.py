"""A broker's double: the routes the Jupyter side uses, over a real Unix socket, with everything it was told on record."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from tornado import netutil, web
from tornado.httpserver import HTTPServer

from jupyter_gpubroker.wire.views import (
    HealthView,
    LeaseView,
    OrderView,
    Problem,
    ReportedView,
    SessionsView,
    SessionView,
)


class Told:
    """One call: `what` is method and path, with ids left out."""

    def __init__(self, what: str, thing_id: str | None, body: dict[str, Any]) -> None:
        self.what = what
        self.thing_id = thing_id
        self.body = body


class BrokerDouble:
    """Knows the sessions it was told of. Set `refuse` or `hang` by call to make it fail."""

    def __init__(self, socket: Path) -> None:
        self.url = f"unix://{socket}"
        self.socket = socket
        self.told: list[Told] = []
        self.sessions: dict[str, SessionView] = {}
        self.refuse: dict[str, int] = {}
        self.hang: set[str] = set()
        self.simulated = True
        self.mode = "enforce"
        self.answered: LeaseView | None = None  # what it says to the answer of an order
        self._etag = 0
        self._is_gone = False
        self._changed = asyncio.Condition()
        self._server: HTTPServer | None = None

    async def start(self) -> None:
        self._is_gone = False
        handlers = [(r"/v1(?P<path>/.*)", _Handler, {"double": self})]
        self._server = HTTPServer(web.Application(handlers))
        self._server.add_socket(netutil.bind_unix_socket(str(self.socket)))

    async def stop(self) -> None:
        assert self._server is not None
        self._server.stop()
        async with self._changed:
            self._is_gone = True
            self._changed.notify_all()
        await self._server.close_all_connections()
        self.socket.unlink(missing_ok=True)

    async def change(self, *sessions: SessionView) -> None:
        """Make these the sessions, and answer who polls for them."""
        async with self._changed:
            self.sessions = {session.id: session for session in sessions}
            self._etag += 1
            self._changed.notify_all()

    async def until(self, holds: Callable[[], Any]) -> Any:
        """Wait until `holds()`; looked at after each call."""
        async with self._changed:
            return await asyncio.wait_for(self._changed.wait_for(holds), 10)

    def calls(self, what: str) -> list[Told]:
        return [told for told in self.told if told.what == what]

    async def answer(self, told: Told, etag: str | None, wait_s: float) -> tuple[int, Any, str]:
        async with self._changed:
            self.told.append(told)
            self._changed.notify_all()
        if told.what in self.hang:
            async with self._changed:
                await self._changed.wait_for(lambda: self._is_gone)
        if (status := self.refuse.get(told.what)) is not None:
            return status, Problem(status, "no", "No", "The double says no.", "No.", {}), ""
        if told.what == "GET /sessions":
            return await self._poll(etag, wait_s)
        return 200, self._act(told), ""

    async def _poll(self, etag: str | None, wait_s: float) -> tuple[int, Any, str]:
        async with self._changed:
            try:
                changed = self._changed.wait_for(lambda: str(self._etag) != etag or self._is_gone)
                await asyncio.wait_for(changed, wait_s or None)
            except asyncio.TimeoutError:
                return 304, None, etag or ""
            return 200, SessionsView(tuple(self.sessions.values())), str(self._etag)

    def _act(self, told: Told) -> Any:
        session_id = told.thing_id or ""
        if told.what == "GET /health":
            return HealthView(
                "ok",
                "0",
                1,
                "user",
                self.mode,
                "i",
                1,
                ready=True,
                simulated=self.simulated,
                uptime_ms=0,
            )
        if told.what == "PUT /sessions/ID":
            self.sessions[session_id] = session_view(session_id, told.body["kernel_id"])
        if told.what == "POST /sessions:report":
            ids = {report["session_id"] for report in told.body["sessions"]}
            return ReportedView(tuple(ids - self.sessions.keys()))
        if told.what == "DELETE /sessions/ID":
            return None
        if told.what == "POST /leases/ID:answer":
            return self.answered or lease_view(session_id)
        return self.sessions.get(session_id)


class _Handler(web.RequestHandler):
    def initialize(self, double: BrokerDouble) -> None:
        self.double = double

    async def respond(self, path: str) -> None:
        parts = path.split("/")
        thing_id, what = None, f"{self.request.method} {path}"
        if len(parts) > 2:
            thing_id, colon, verb = parts[2].partition(":")
            what = f"{self.request.method} /{parts[1]}/ID{colon}{verb}"
        told = Told(what, thing_id, json.loads(self.request.body or b"{}"))
        wait_s = float(self.request.headers.get("Prefer", "wait=0").removeprefix("wait="))
        etag = self.request.headers.get("If-None-Match")
        status, view, new_etag = await self.double.answer(told, etag, wait_s)
        self.set_status(status if view is not None or status == 304 else 204)
        if new_etag:
            self.set_header("ETag", new_etag)
        self.finish(msgspec.json.encode(view) if view is not None else None)

    get = put = post = delete = respond


@asynccontextmanager
async def broker_double(folder: Path) -> AsyncIterator[BrokerDouble]:
    double = BrokerDouble(folder / "broker.sock")
    await double.start()
    try:
        yield double
    finally:
        await double.stop()


def lease_view(lease_id: str, **fields: Any) -> LeaseView:
    defaults: dict[str, Any] = {
        "state": "active",
        "session_id": "s" * 32,
        "job_id": None,
        "queue": "interactive",
        "slots": ("GPU-1",),
        "epochs": (1,),
        "models": ("H200",),
        "profiles": (None,),
        "memory_mib": 1000,
        "simulated": True,
        "visible_devices": "GPU-1",
        "home": (),
        "verdict": "idle",
        "verdict_for_ms": 0,
        "held_for_ms": 0,
        "ends_in_ms": None,
        "kept_for_ms": None,
        "keeps_left": 3,
        "context_seen": True,
        "memory_used_mib": 400,
        "utilisation_percent": 0,
        "give_back": "empty",
        "give_backs": (),
        "refusals": {},
        "gave_back": None,
        "notice": None,
        "order": None,
        "reason": None,
        "sentence": "",
        "sentence_es": "",
    }
    known = set(LeaseView.__struct_fields__)
    return LeaseView(id=lease_id, **{k: v for k, v in (defaults | fields).items() if k in known})


def order(number: int, kind: str, *, resume: bool = False) -> OrderView:
    return OrderView(number=number, kind=kind, resume=resume, due_in_ms=60_000)


def session_view(
    session_id: str,
    kernel_id: str,
    *leases: LeaseView,
    activity: str = "idle",
    state: str = "live",
) -> SessionView:
    return SessionView(
        id=session_id,
        kind="kernel",
        name="n",
        kernel_id=kernel_id,
        server_id="server",
        state=state,
        activity=activity,
        mode="enforce",
        policy="gentle",
        leases=leases,
        requests=(),
    )
