"""What the socket accepts and how it says no: identity first, limits, problem documents, long polls."""

from __future__ import annotations

import ctypes
import json
import os
import socket
import stat
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from jupyter_gpubroker.client import BrokerDown, BrokerError, routes
from jupyter_gpubroker.client.http import BrokerClient
from jupyter_gpubroker.wire.bodies import ReportsBody
from jupyter_gpubroker.wire.routes import ROUTES, Route
from jupyter_gpubroker.wire.views import Problem
from tests.support.broker import Holder, RunningBroker, new_id, running_broker

NOBODY = 65_534


@pytest.fixture(scope="module")
def broker(run_root) -> Iterator[RunningBroker]:
    """One for the whole module; what its tests leave behind does not matter to the others."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
            folder = run_root / f"protocol-{name[4:9].lower()}"
            folder.mkdir(mode=0o700)
            patch.setenv(name, str(folder))
        with running_broker("1xH200") as running:
            yield running


@pytest.fixture
def http(broker: RunningBroker) -> Iterator[httpx.Client]:
    transport = httpx.HTTPTransport(uds=str(broker.places.socket))
    with httpx.Client(transport=transport, base_url="http://broker", timeout=20) as client:
        yield client


def problem_of(response: httpx.Response) -> Problem:
    assert response.headers["Content-Type"] == "application/problem+json"
    problem = msgspec.json.decode(response.content, type=Problem)
    assert problem.status == response.status_code
    assert problem.detail
    assert problem.detail_es
    return problem


def test_the_socket_is_its_owners_alone(broker: RunningBroker) -> None:
    assert stat.S_IMODE(broker.places.socket.stat().st_mode) == 0o600
    assert stat.S_IMODE(broker.places.runtime.stat().st_mode) == 0o700
    assert stat.S_IMODE(broker.places.log.stat().st_mode) == 0o600
    assert stat.S_IMODE(broker.places.database.stat().st_mode) == 0o600


def test_there_is_no_listener_on_the_network(broker: RunningBroker) -> None:
    inodes = set()
    for descriptor in os.scandir(f"/proc/{broker.process.pid}/fd"):
        target = os.readlink(descriptor.path)
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    for table in ("tcp", "tcp6", "udp", "udp6"):
        lines = Path(f"/proc/{broker.process.pid}/net/{table}").read_text().splitlines()
        used = {line.split()[9] for line in lines[1:]}
        assert not inodes & used


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/", 404, "no_such_route"),
        ("GET", "/v1/nothing", 404, "no_such_route"),
        ("GET", "/v1/leases/not-an-id", 404, "no_such_route"),
        ("GET", "/v1/leases/%2e%2e/health", 404, "no_such_route"),
        ("GET", "/v2/health", 404, "no_such_route"),
        ("POST", "/v1/health", 405, "method_not_allowed"),
        ("OPTIONS", "/v1/health", 405, "method_not_allowed"),
        ("HEAD", "/v1/health", 405, None),
        ("PATCH", "/v1/health", 405, "method_not_allowed"),
        ("BREW", "/v1/health", 405, "bad_call"),
        ("GET", "/v1/health?x=1", 422, "unknown_query"),
        ("GET", f"/v1/leases/{'0' * 32}", 404, "no_such_lease"),
        ("GET", f"/v1/requests/{'0' * 32}", 404, "no_such_request"),
        ("GET", f"/v1/sessions/{'0' * 32}", 404, "no_such_session"),
        ("GET", f"/v1/jobs/{'0' * 32}", 404, "no_such_job"),
    ],
)
def test_every_error_is_a_problem_document(
    http: httpx.Client, method: str, path: str, status: int, code: str | None
) -> None:
    response = http.request(method, path)
    assert response.status_code == status
    if code is not None:
        assert problem_of(response).code == code


@pytest.mark.parametrize(
    ("content", "headers", "status", "code"),
    [
        (b"{}", {}, 415, "wrong_content_type"),
        (b"{}", {"Content-Type": "text/plain"}, 415, "wrong_content_type"),
        (b"not json", {"Content-Type": "application/json"}, 422, "bad_body"),
        (b"[" * 60_000, {"Content-Type": "application/json"}, 422, "bad_body"),
        (
            b'{"kind": "toaster", "name": "x", "pid": 1}',
            {"Content-Type": "application/json"},
            422,
            "bad_body",
        ),
        (
            b'{"kind": "kernel", "name": "x", "pid": -1}',
            {"Content-Type": "application/json"},
            422,
            "bad_body",
        ),
        (b"\xff\xfe", {"Content-Type": "application/json; charset=utf-16"}, 422, "bad_body"),
        (b" " * 65_537, {"Content-Type": "application/json"}, 413, "body_too_large"),
        (b" " * 3_000_000, {"Content-Type": "application/json"}, 413, "body_too_large"),
    ],
)
def test_a_bad_body_is_refused_with_the_next_step(
    http: httpx.Client, content: bytes, headers: dict[str, str], status: int, code: str
) -> None:
    response = http.put(f"/v1/sessions/{new_id()}", content=content, headers=headers)
    assert response.status_code == status
    assert problem_of(response).code == code


def test_a_body_without_announced_length_has_the_same_limit(http: httpx.Client) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(100):
            yield b" " * 1_000

    headers = {"Content-Type": "application/json"}
    response = http.put(f"/v1/sessions/{new_id()}", content=chunks(), headers=headers)
    assert problem_of(response).code == "body_too_large"


@pytest.mark.parametrize("name", ["Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode"])
def test_web_pages_are_refused(http: httpx.Client, name: str) -> None:
    response = http.get("/v1/health", headers={name: "null"})
    assert (response.status_code, problem_of(response).code) == (403, "no_browsers")


def test_a_refusal_before_the_body_is_read_says_that_the_connection_ends(
    http: httpx.Client,
) -> None:
    early = http.put("/v1/nothing", content=b"{}")
    late = http.put(
        f"/v1/sessions/{new_id()}", content=b"{", headers={"Content-Type": "application/json"}
    )
    assert early.headers["Connection"] == "close"
    assert problem_of(late).code == "bad_body"
    assert late.headers.get("Connection") != "close"


def test_markup_in_names_comes_back_as_it_went_and_controls_replaced(broker: RunningBroker) -> None:
    with Holder(broker, name="<script>\"'\n\x1b[31m\u202e\0.ipynb") as holder:
        assert holder.view.name == "<script>\"'\ufffd\ufffd[31m\ufffd\ufffd.ipynb"
    assert "\x1b" not in broker.places.log.read_text()


def test_every_route_of_the_table_is_served_and_described(http: httpx.Client) -> None:
    described = http.get("/v1/openapi.json").json()
    for route in ROUTES:
        assert route.method.lower() in described["paths"][routes.API + route.path]
        response = call(http, route)
        assert response.status_code != 405
        assert response.status_code < 500
        if response.status_code == 404:
            assert problem_of(response).code.startswith("no_such_")
            assert problem_of(response).code != "no_such_route"


def call(http: httpx.Client, route: Route[Any]) -> httpx.Response:
    headers = {"Content-Type": route.media_type}
    content = None if route.method == "GET" else b"{}" if route.media_type.endswith("json") else b""
    return http.request(route.method, route.url(new_id()), content=content, headers=headers)


# --- who calls ------------------------------------------------------------------------------------------------------------


def in_other_process(uid: int | None, namespace: int, task) -> Any:
    """The result of `task` in a child with another uid or in other namespaces, as JSON over a pipe."""
    told, tells = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            if namespace and ctypes.CDLL(None, use_errno=True).unshare(namespace):
                os._exit(9)
            if uid is not None:
                os.setgroups([])
                os.setresuid(uid, uid, uid)
            os.write(tells, json.dumps(task()).encode())
        finally:
            os._exit(0)
    os.close(tells)
    with os.fdopen(told, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(pid, 0)
    return json.loads(answer) if answer else {"exit": os.waitstatus_to_exitcode(status)}


def connect(path: str) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(10)
    sock.connect(path)
    return sock


def ask(sock: socket.socket, method: str, path: str) -> tuple[int, str]:
    sock.sendall(
        f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}".encode()
    )
    received = b""
    while b"\r\n\r\n" not in received:
        received += sock.recv(65_536)
    head, _, body = received.partition(b"\r\n\r\n")
    length = int(
        next(
            line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
        ).split(b":")[1]
    )
    while len(body) < length:
        body += sock.recv(65_536)
    return int(head.split(b" ")[1]), json.loads(body)["code"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_another_user_is_refused_on_every_route(broker: RunningBroker) -> None:
    path = str(broker.places.socket)
    folders = [broker.places.runtime, *list(broker.places.runtime.parents)[:-2]]

    def walk() -> list[tuple[int, str]]:
        answers = []
        for method, where in [
            *((route.method, route.url(new_id())) for route in ROUTES),
            ("GET", "/v1/nothing"),
            ("OPTIONS", "/v1/health"),
            ("HEAD", "/v1/leases"),
        ]:
            if method == "HEAD":
                continue
            with connect(path) as sock:
                answers.append(ask(sock, method, where))
        return answers

    # Even with the folders and the socket wide open.
    modes = {place: place.stat().st_mode for place in [*folders, broker.places.socket]}
    try:
        for place in modes:
            place.chmod(0o777)
        answers = in_other_process(NOBODY, 0, walk)
    finally:
        for place, mode in modes.items():
            place.chmod(mode)
    assert answers == [[403, "not_served"]] * (len(ROUTES) + 2)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can make namespaces everywhere")
def test_a_caller_from_another_user_namespace_is_refused(broker: RunningBroker) -> None:
    clone_newuser = 0x1000_0000

    def knock() -> tuple[int, str]:
        with connect(str(broker.places.socket)) as sock:
            return ask(sock, "GET", "/v1/me")

    answer = in_other_process(None, clone_newuser, knock)
    if answer == {"exit": 9}:
        pytest.skip("user namespaces are switched off on this machine")
    assert answer == [403, "not_served"]


def test_a_client_does_not_talk_to_a_socket_of_somebody_else(tmp_path, monkeypatch) -> None:
    """The folder says who should listen; a listener of another uid gets no byte."""
    folder = tmp_path / "d"
    folder.mkdir(mode=0o700)
    path = folder / "s"
    received: list[bytes] = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def accept() -> None:
            peer, _ = listener.accept()
            with peer:
                received.append(peer.recv(100))

        thread = threading.Thread(target=accept)
        thread.start()
        folder.chmod(0o777)  # as if anybody could have put it there
        with (
            BrokerClient(f"unix://{path}") as client,
            pytest.raises(BrokerDown, match="not to be trusted"),
        ):
            client.call(routes.HEALTH)
        thread.join(10)
    assert received == [b""]


# --- long polls -----------------------------------------------------------------------------------------------------------


def test_a_long_poll_wakes_when_something_changes(
    broker: RunningBroker, http: httpx.Client
) -> None:
    first = http.get("/v1/leases")
    etag = first.headers["ETag"]
    assert http.get("/v1/leases", headers={"If-None-Match": etag}).status_code == 304
    headers = {"If-None-Match": etag, "Prefer": "wait=20"}
    with ThreadPoolExecutor() as pool, Holder(broker) as holder:
        poll = pool.submit(http.get, "/v1/leases", headers=headers)
        lease = holder.acquire()
        began_s = time.monotonic()
        answer = poll.result(20)
        assert time.monotonic() - began_s < 15, "it did not wait its time out"
        assert answer.status_code == 200
        assert answer.headers["ETag"] != etag
        assert [found["id"] for found in answer.json()["leases"]] == [lease.id]


def test_a_long_poll_ends_unchanged_after_its_wait(http: httpx.Client) -> None:
    etag = http.get("/v1/sessions?server_id=none").headers["ETag"]
    headers = {"If-None-Match": etag, "Prefer": "respond-async, wait=1"}
    began_s = time.monotonic()
    assert http.get("/v1/sessions?server_id=none", headers=headers).status_code == 304
    assert 0.9 <= time.monotonic() - began_s < 5


def test_running_clocks_do_not_wake_anybody(broker: RunningBroker, http: httpx.Client) -> None:
    with Holder(broker) as holder:
        lease = holder.acquire()
        url = f"/v1/leases/{lease.id}"
        holder.report("idle")
        for changed in broker.client.watch(routes.LEASE, lease.id):
            if changed.verdict == "never_used":
                break
        first = http.get(url)
        headers = {"If-None-Match": first.headers["ETag"], "Prefer": "wait=1"}
        assert http.get(url, headers=headers).status_code == 304
        assert http.get(url).json()["held_for_ms"] > first.json()["held_for_ms"]


# --- reports and policies -------------------------------------------------------------------------------------------------


def test_a_report_names_the_sessions_that_are_not_known(broker: RunningBroker) -> None:
    with Holder(broker, server_id="s1") as holder:
        unknown = new_id()
        reports = [
            {"session_id": holder.id, "activity": "input", "front_ends": 2},
            {"session_id": unknown, "activity": "idle"},
        ]
        body = msgspec.convert({"server_id": "s1", "sessions": reports}, ReportsBody)
        assert broker.client.call(routes.REPORT_SESSIONS, body=body).unknown == (unknown,)
        for session in broker.client.watch(routes.SESSION, holder.id):
            if session.activity == "input":
                break
        sessions = broker.client.call(routes.SESSIONS, query={"server_id": "s1"}).sessions
        assert [session.id for session in sessions] == [holder.id]
        assert broker.client.call(routes.SESSIONS, query={"server_id": "s2"}).sessions == ()


def test_a_policy_is_tried_before_it_is_applied(broker: RunningBroker) -> None:
    text = b'[policies.gentle]\nidle = "7m"'
    tried = broker.client.call(routes.APPLY_POLICIES, body=text, query={"dry_run": "1"})
    assert (tried.applied, tried.changes) == (
        False,
        ("policies.gentle.idle: 30 min -> 7 min",),
    )
    applied = broker.client.call(routes.APPLY_POLICIES, body=text)
    assert applied.applied
    assert broker.client.call(routes.APPLY_POLICIES, body=text).changes == ()
    with pytest.raises(BrokerError, match="Did you mean 'idle'"):
        broker.client.call(routes.APPLY_POLICIES, body=b'[policies.gentle]\nidel = "7m"')
