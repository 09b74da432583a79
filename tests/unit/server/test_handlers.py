"""What browsers may ask, who may ask it, and that what they ask for keeps its place in line only while one of them is there."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
import pytest_asyncio
from jupyter_events import EventLogger
from jupyter_server.auth import AllowAllAuthorizer, Authorizer, IdentityProvider
from tornado import netutil, web
from tornado.httpserver import HTTPServer

from jupyter_gpubroker.client.http import Answer
from jupyter_gpubroker.client.places import Places
from jupyter_gpubroker.server import audience, hints, proxy
from jupyter_gpubroker.server.audience import Audience
from jupyter_gpubroker.server.desk import Desk
from jupyter_gpubroker.server.handlers import HANDLERS
from jupyter_gpubroker.server.hosts import Launched
from jupyter_gpubroker.server.link import ServerLink
from jupyter_gpubroker.wire import routes
from jupyter_gpubroker.wire.bodies import SessionBody
from jupyter_gpubroker.wire.views import GpusView, JobsView, QueueView, RequestView
from tests.conftest import Folders
from tests.unit.server.double import BrokerDouble, Told, lease_view, session_view
from tests.unit.server.test_link import Manager

pytestmark = pytest.mark.asyncio

TOKEN = "token"
SESSION, LEASE, REQUEST = "5" * 32, "1" * 32, "2" * 32
METHODS = ("GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS")
ASK = {"session_id": SESSION}
POLL_REQUEST = "GET /requests/ID"
EMPTY: dict[str, Any] = {
    "GET /queue": QueueView((), 0, 0),
    "GET /gpus": GpusView(()),
    "GET /jobs": JobsView(()),
}
LOG = logging.getLogger("handlers")


def request_view(state: str = "waiting") -> RequestView:
    return RequestView(
        REQUEST, state, SESSION, None, "interactive", 1, 1, 0, None, None, None, "", ""
    )


class Broker(BrokerDouble):
    """Also has lists that never change, and one request that is granted when told."""

    is_granted = False

    async def answer(self, told: Told, etag: str | None, wait_s: float) -> tuple[int, Any, str]:
        if told.what in EMPTY and told.what not in self.refuse:
            return await self._polled(told, etag, EMPTY[told.what], "steady")
        if told.what == POLL_REQUEST:
            return await self._polled(told, etag, None, "waiting")
        return await super().answer(told, etag, wait_s)

    async def _polled(
        self, told: Told, etag: str | None, view: Any, known: str
    ) -> tuple[int, Any, str]:
        async with self._changed:
            self.told.append(told)
            self._changed.notify_all()
            if etag == known:
                await self._changed.wait_for(lambda: self._is_gone or self.is_granted)
        if view is not None:
            return 200, view, known
        state = "granted" if self.is_granted else "waiting"
        return 200, request_view(state), state

    async def grant(self) -> None:
        async with self._changed:
            self.is_granted = True
            self._changed.notify_all()

    def _act(self, told: Told) -> Any:
        if told.what in {"PUT /requests/ID", "POST /leases/ID:unpark"}:
            return request_view()
        if told.what.startswith("POST /leases"):
            return lease_view(str(told.thing_id))
        return super()._act(told)


class ReadersOnly(Authorizer):
    def is_authorized(self, _handler: Any, _user: Any, action: str, resource: str) -> bool:
        return action == "read" and resource == "gpubroker"


class Server:
    """The handlers as a Jupyter server runs them, `link` with one kernel of its own."""

    def __init__(
        self,
        broker: Broker,
        authorizer: type[Authorizer] = AllowAllAuthorizer,
        contents: Any = None,
    ) -> None:
        self.broker = broker
        self.events: list[dict[str, Any]] = []
        self.heard = asyncio.Event()
        places = Places.find(url=broker.url)
        self.link = ServerLink(places, "server", LOG, lambda _: None, lambda: None)
        body = SessionBody("kernel", "a.ipynb", 1, kernel_id="k")
        self.link.launched(Launched(SESSION, body, Manager()))
        self.desk = Desk(self.link, contents, self._hear)
        provider = IdentityProvider(token=TOKEN)
        settings: dict[str, Any] = {
            "base_url": "/user/alice/",
            "cookie_secret": b"s",
            "xsrf_cookies": True,
            "identity_provider": provider,
            "authorizer": authorizer(identity_provider=provider),
            "headers": {},
            "local_hostnames": ["localhost"],
        }
        handlers = [
            (f"/user/alice/{path}", handler, {"desk": self.desk})
            for path, handler in HANDLERS.items()
        ]
        self._http = HTTPServer(web.Application(handlers, **settings))

    def _hear(self, facts: dict[str, Any]) -> None:
        self.events.append(facts)
        self.heard.set()

    async def start(self) -> None:
        (listening,) = netutil.bind_sockets(0, "127.0.0.1")
        self._http.add_sockets([listening])
        port = listening.getsockname()[1]
        base = f"http://127.0.0.1:{port}/user/alice/{proxy.PREFIX}"
        self.stranger = httpx.AsyncClient(base_url=base, trust_env=False)
        headers = {"Authorization": f"token {TOKEN}"}
        self.browser = httpx.AsyncClient(base_url=base, headers=headers, trust_env=False)
        self.desk.start()

    async def stop(self) -> None:
        await self.desk.close()
        self.link.given_up(SESSION)
        await self.link.stop()
        await self.stranger.aclose()
        await self.browser.aclose()
        self._http.stop()
        await self._http.close_all_connections()

    async def told(self, *names: str) -> None:
        """Wait until events have named these resources, then forget those events."""
        while not set(names) <= {name for event in self.events for name in event["resources"]}:
            self.heard.clear()
            await asyncio.wait_for(self.heard.wait(), 10)
        self.heard.clear()
        self.events.clear()


@asynccontextmanager
async def serving(broker: Broker, **options: Any) -> AsyncIterator[Server]:
    server = Server(broker, **options)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


@pytest_asyncio.fixture
async def broker(folders: Folders) -> AsyncIterator[Broker]:
    double = Broker(folders.runtime / "broker.sock")
    await double.start()
    yield double
    await double.stop()


@pytest_asyncio.fixture
async def server(broker: Broker) -> AsyncIterator[Server]:
    async with serving(broker) as made:
        yield made


def paths() -> list[str]:
    """Every path of the broker, passed or not, and one of nobody's."""
    return sorted({route.path.replace("{id}", LEASE) for route in routes.ROUTES} | {"/nothing"})


# --- who may ask ----------------------------------------------------------------------------------


async def test_nothing_is_answered_without_a_login(server: Server) -> None:
    for method, path in itertools.product(METHODS, paths()):
        answer = await server.stranger.request(method, path, headers={"Sec-Fetch-Mode": "cors"})
        assert answer.status_code in {401, 403}, (method, path)
    assert server.broker.told == []
    assert not server.desk.audience.is_there


async def test_only_what_is_in_the_table_passes(server: Server) -> None:
    allowed = {(passage.route.method, passage.route.path) for passage in proxy.PASSAGES}
    for method, path in itertools.product(METHODS, paths()):
        template = path.replace(LEASE, "{id}")
        answer = await server.browser.request(method, path, json={})
        if (method, template) not in allowed:
            assert answer.status_code in {404, 405} or method == "OPTIONS", (method, path)
            assert method != "OPTIONS" or answer.content == b""
    whats = {told.what for told in server.broker.told} - {"GET /health"}
    assert whats <= {f"{method} {path.replace('{id}', 'ID')}" for method, path in allowed}


async def test_a_page_never_speaks_for_a_process(server: Server) -> None:
    answer = await server.browser.post(
        f"/leases/{LEASE}:release", json={"kind": "parked", "done": True, "residue_mib": 7}
    )
    assert answer.status_code == 200
    (told,) = server.broker.calls("POST /leases/ID:release")
    assert told.body == {"kind": "parked"}
    for verb in ("ack", "answer", "shown"):
        answer = await server.browser.post(f"/leases/{LEASE}:{verb}", json={"number": 1})
        assert answer.status_code == 404


async def test_who_may_only_read_changes_nothing(broker: Broker) -> None:
    async with serving(broker, authorizer=ReadersOnly) as server:
        assert (await server.browser.get("/queue")).status_code != 403
        refused = await server.browser.post(f"/leases/{LEASE}:keep", json={})
        assert (refused.status_code, refused.json()["code"]) == (403, "not_allowed")
        # In this order too: what a method may do is not what the method before might.
        assert (await server.browser.get("/queue")).status_code != 403
        assert (await server.browser.delete(f"/requests/{REQUEST}")).status_code == 403
    assert not [told for told in broker.told if not told.what.startswith("GET")]


async def test_a_login_by_cookie_needs_the_xsrf_token_for_changes(server: Server) -> None:
    login = await server.stranger.get("/queue", params={"token": TOKEN})
    assert login.status_code == 200
    cookies = dict(server.stranger.cookies)
    assert cookies, "the server logs in by cookie"
    for headers in ({}, {"X-XSRFToken": "forged"}, {"Origin": "https://evil.example"}):
        answer = await server.stranger.post(f"/leases/{LEASE}:keep", json={}, headers=headers)
        assert answer.status_code in {403, 404}, headers
    assert server.broker.calls("POST /leases/ID:keep") == []


async def test_a_form_is_no_body(server: Server) -> None:
    answer = await server.browser.post(
        f"/leases/{LEASE}:keep", content=b"{}", headers={"Content-Type": "text/plain"}
    )
    assert (answer.status_code, answer.json()["code"]) == (415, "wrong_content_type")
    assert answer.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize("content", [b"", b"[", b'{"keep_ms": -1}', b'{"keep_ms": "1h"}'])
async def test_a_body_that_cannot_be_read_is_refused_in_words(
    server: Server, content: bytes
) -> None:
    headers = {"Content-Type": "application/json"}
    answer = await server.browser.post(f"/leases/{LEASE}:keep", content=content, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (422, "bad_body")
    assert server.broker.calls("POST /leases/ID:keep") == []


async def test_arguments_that_are_not_the_brokers_stay_here(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JupyterLab makes each address new by the time, against caches."""
    passed = []
    answer = server.link.answer

    async def noting(route: Any, thing_id: Any, body: Any, query: Any, **wait: Any) -> Answer:
        passed.append(query)
        return await answer(route, thing_id, body, query, **wait)

    with monkeypatch.context() as patched:
        patched.setattr(server.link, "answer", noting)
        answered = await server.browser.get("/sessions?1796047200000&server_id=x")
    assert answered.status_code == 200
    assert passed == [{"server_id": "x"}]


# --- what passes ----------------------------------------------------------------------------------


async def test_a_long_poll_passes_through(server: Server) -> None:
    await server.broker.change(session_view(SESSION, "k"))
    first = await server.browser.get("/sessions")
    assert [session["id"] for session in first.json()["sessions"]] == [SESSION]
    headers = {"If-None-Match": first.headers["ETag"], "Prefer": "wait=30"}
    before = len(server.broker.calls("GET /sessions"))
    poll = asyncio.create_task(server.browser.get("/sessions", headers=headers))
    await server.broker.until(lambda: len(server.broker.calls("GET /sessions")) > before)
    assert not poll.done()
    await server.broker.change()
    assert (await asyncio.wait_for(poll, 10)).json() == {"sessions": []}


async def test_a_poll_whose_page_is_gone_ends(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await server.browser.get("/sessions")
    headers = {"If-None-Match": first.headers["ETag"], "Prefer": "wait=60"}
    asked, ended = asyncio.Event(), asyncio.Event()

    async def endless(*_: Any, **__: Any) -> Answer:
        asked.set()
        try:
            return await asyncio.Future()
        finally:
            ended.set()

    monkeypatch.setattr(server.link, "answer", endless)
    poll = asyncio.create_task(server.browser.get("/sessions", headers=headers))
    await asked.wait()
    poll.cancel()
    await asyncio.wait_for(ended.wait(), 10)


async def test_refusals_of_the_broker_pass_through(server: Server) -> None:
    server.broker.refuse["GET /queue"] = 429
    answer = await server.browser.get("/queue")
    assert answer.status_code == 429
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json()["detail"] == "The double says no."


async def test_without_a_broker_there_is_a_sentence(server: Server, broker: Broker) -> None:
    await broker.stop()
    answer = await server.browser.get("/queue")
    await broker.start()
    assert (answer.status_code, answer.json()["code"]) == (503, "broker_down")
    assert "gpubroker doctor" in answer.json()["detail"]
    assert "gpubroker doctor" in answer.json()["detail_es"]


async def test_a_gpu_is_asked_for_kernels_of_this_server_only(server: Server) -> None:
    elsewhere = {"session_id": "e" * 32}
    refused = await server.browser.put(f"/requests/{REQUEST}", json=elsewhere)
    assert (refused.status_code, refused.json()["code"]) == (404, "kernel_not_here")
    assert (await server.browser.put(f"/requests/{REQUEST}", json=ASK)).status_code == 200
    (told,) = server.broker.calls("PUT /requests/ID")
    assert told.body["session_id"] == SESSION


# --- as long as somebody looks --------------------------------------------------------------------


async def test_the_server_waits_in_line_in_the_pages_stead(server: Server) -> None:
    await server.browser.put(f"/requests/{REQUEST}", json=ASK)
    await server.broker.until(lambda: len(server.broker.calls(POLL_REQUEST)) == 2)
    await server.broker.grant()
    await asyncio.wait_for(server.desk.attendance.nobody_waits(), 10)
    assert len(server.broker.calls(POLL_REQUEST)) == 2


async def test_a_place_is_held_over_a_restart_of_the_broker(server: Server) -> None:
    await server.browser.put(f"/requests/{REQUEST}", json=ASK)
    await server.broker.until(lambda: len(server.broker.calls(POLL_REQUEST)) == 2)
    await server.broker.stop()
    await server.broker.start()
    await server.broker.until(lambda: len(server.broker.calls(POLL_REQUEST)) == 3)


async def test_when_the_last_page_is_gone_nothing_is_asked_any_more(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = Audience(absent_s=0.0)
    absent.looked()
    assert not absent.is_there
    async with serving(broker) as server:
        monkeypatch.setattr(server.desk.audience, "_absent_s", 0.0)
        await server.browser.put(f"/requests/{REQUEST}", json=ASK)
    assert broker.calls("GET /requests/ID") == []
    assert broker.calls("GET /sessions") == []


async def test_changes_are_told_while_somebody_looks(server: Server) -> None:
    assert server.events == []
    await server.browser.get("/sessions")
    await server.told(*hints.WATCHED)
    await server.broker.change(session_view(SESSION, "k", lease_view(LEASE)))
    await asyncio.wait_for(server.heard.wait(), 10)
    assert server.events == [{"resources": ["sessions"]}], "nothing of what changed"


async def test_a_broker_that_went_away_and_came_back_is_told_too(server: Server) -> None:
    await server.browser.get("/sessions")
    await server.told(*hints.WATCHED)
    await server.broker.stop()
    await server.told(*hints.WATCHED)
    await server.broker.start()
    await server.told(*hints.WATCHED)


async def test_hints_are_valid_by_their_schema() -> None:
    logger = EventLogger()
    logger.register_event_schema(hints.CHANGED_SCHEMA)
    heard: list[dict[str, Any]] = []

    async def listen(logger: EventLogger, schema_id: str, data: dict[str, Any]) -> None:
        heard.append(data)

    logger.add_listener(schema_id=hints.CHANGED_SCHEMA_ID, listener=listen)
    logger.emit(schema_id=hints.CHANGED_SCHEMA_ID, data={"resources": ["queue"]})
    await logger.gather_listeners()
    assert [event["resources"] for event in heard] == [["queue"]]


async def test_a_page_that_sleeps_a_minute_is_not_missed() -> None:
    assert audience.ABSENT_S >= 2 * 60
