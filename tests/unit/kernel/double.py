"""A tiny broker over a Unix socket: the routes that a kernel uses, with state that a test sets and a record of what was asked.

Long polls are answered as the real one does: at once when the ETag is another, else after the wait or a change.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer
from typing import Any

from gpubroker.broker import Broker

View = dict[str, Any]


def stand_in(double: object) -> Any:
    """A double in the place of what it stands for."""
    return double


SESSION = "5" * 32


def lease(lease_id: str = "a" * 32, **changes: Any) -> View:
    """A LeaseView as the broker sends it."""
    made: View = {
        "id": lease_id,
        "state": "active",
        "session_id": SESSION,
        "job_id": None,
        "queue": "interactive",
        "slots": ["GPU-1"],
        "epochs": [1],
        "models": ["H200"],
        "profiles": [None],
        "memory_mib": 143_360,
        "simulated": True,
        "visible_devices": "GPU-1",
        "home": [],
        "verdict": "active",
        "verdict_for_ms": 0,
        "held_for_ms": 0,
        "ends_in_ms": None,
        "kept_for_ms": None,
        "keeps_left": 3,
        "context_seen": False,
        "memory_used_mib": None,
        "utilisation_percent": None,
        "give_back": "empty",
        "give_backs": ["empty"],
        "refusals": {},
        "gave_back": None,
        "notice": None,
        "order": None,
        "reason": None,
        "sentence": "It is held.",
        "sentence_es": "Se tiene.",
    }
    return {**made, **changes}


def request(request_id: str, **changes: Any) -> View:
    """A RequestView."""
    made: View = {
        "id": request_id,
        "state": "waiting",
        "session_id": SESSION,
        "job_id": None,
        "queue": "interactive",
        "place": 1,
        "waiting": 1,
        "waited_ms": 0,
        "expected_in_ms": None,
        "lease": None,
        "reason": None,
        "sentence": "It waits.",
        "sentence_es": "Espera.",
    }
    return {**made, **changes}


def answered(lease: View, answer: View) -> View:
    """What the broker makes of an answer: only that to the order which is there is taken."""
    order = lease["order"]
    if order is None or order["number"] != answer["number"] or not answer["ok"]:
        return lease
    if order["resume"]:
        return {**lease, "state": "active", "order": None, "gave_back": None}
    return {**lease, "state": "draining", "order": None, "gave_back": order["kind"]}


QUESTIONS: dict[str, View] = {
    "why": {"sentence": "It is so.", "numbers": {}, "story": []},
    "/v1/health": {"version": "1", "mode": "enforce", "problem": None, "simulated": True},
    "/v1/queue": {"waiting": [], "free_slots": 1, "slots": 1},
    "/v1/policies": {
        "policies": [
            {"name": "gentle", "sentence": "Idle for 30 min.", "sentence_es": "Ociosa 30 min."},
            {"name": "balanced", "sentence": "Idle for 20 min.", "sentence_es": "Ociosa 20 min."},
        ],
        "queues": [
            {"name": "interactive", "policy": "gentle"},
            {"name": "quickstart", "policy": "balanced"},
        ],
    },
}


def reason(code: str, sentence: str = "So it is.") -> View:
    return {"code": code, "values": {}, "sentence": sentence, "sentence_es": "Así es."}


def order(kind: str, number: int = 1, *, resume: bool = False) -> View:
    return {"number": number, "kind": kind, "resume": resume, "due_in_ms": 60_000}


class DoubleBroker:
    """`leases` and `requests` are what it answers; change them with `changed()`. `asked` is what it was asked, in order."""

    def __init__(self, socket: Path) -> None:
        self.url = f"unix://{socket}"
        self.client = Broker(self.url)
        self.asked: list[tuple[str, str, View]] = []
        self.knows_session = True
        self.leases: list[View] = []
        self.last_lease: View | None = None
        self.requests: dict[str, View] = {}
        self.on_request: Callable[[str], View] = request
        self.refusal: tuple[int, View] | None = None
        self._version = 1
        self._change = threading.Condition()

    @contextmanager
    def changed(self) -> Iterator[None]:
        """Change what it answers."""
        with self._change:
            yield
            self._version += 1
            self._change.notify_all()

    def paths(self, method: str) -> list[str]:
        return [path for asked, path, _ in self.asked if asked == method]

    def bodies(self, path_end: str) -> list[View]:
        return [body for _, path, body in self.asked if path.endswith(path_end)]

    def wait_until_asked(self, method: str, path_end: str, count: int = 1) -> None:
        with self._change:
            assert self._change.wait_for(
                lambda: sum(p.endswith(path_end) for p in self.paths(method)) >= count, 10.0
            ), self.asked

    # --- answers -----------------------------------------------------------------------------------

    def answer(self, method: str, path: str, body: View, etag: str, wait_s: int) -> Any:
        with self._change:
            self.asked.append((method, path, body))
            self._change.notify_all()
            if wait_s and etag == self._etag:
                self._change.wait_for(lambda: etag != self._etag, wait_s)
            if method == "GET" and etag == self._etag:
                return 304, self._etag, None
            told = QUESTIONS.get("why" if path.endswith("/why") else path)
            status, view = (200, told) if told else self._view(method, path, body)
            return status, self._etag, view

    @property
    def _etag(self) -> str:
        return f'"{self._version}"'

    def _view(self, method: str, path: str, body: View) -> tuple[int, View]:
        if self.refusal is not None and method != "GET":
            return self.refusal
        _, _, kind, rest = path.split("/", 3)
        thing, _, verb = rest.partition(":")
        if kind == "sessions":
            return self._session(method)
        if kind == "requests":
            return self._request(method, thing)
        found = [lease for lease in self.leases if lease["id"] == thing]
        if not found:
            return 404, problem("no_such_lease", 404)
        if verb == "unpark":
            self.requests[body["request_id"]] = self.on_request(body["request_id"])
            return 200, self.requests[body["request_id"]]
        if verb == "answer":
            return 200, answered(found[0], body)
        return 200, found[0]

    def _session(self, method: str) -> tuple[int, View]:
        if method == "PUT":
            self.knows_session = True
        if not self.knows_session:
            return 404, problem("no_such_session", 404)
        waiting = list(self.requests.values())
        session = {"id": SESSION, "server_id": "s", "policy": "gentle", "mode": "enforce"}
        last = None if self.leases else self.last_lease
        return 200, {**session, "leases": self.leases, "requests": waiting, "last_lease": last}

    def _request(self, method: str, thing: str) -> tuple[int, View]:
        if method == "PUT":
            self.requests[thing] = self.on_request(thing)
        elif thing not in self.requests:
            return 404, problem("no_such_request", 404)
        elif method == "DELETE":
            self.requests[thing] = {**self.requests[thing], "state": "cancelled"}
        return 200, self.requests[thing]


def problem(code: str, status: int = 422) -> View:
    return {
        "status": status,
        "code": code,
        "title": code,
        "detail": f"It cannot be done ({code}).",
        "detail_es": f"No se puede ({code}).",
        "values": {},
    }


class _Server(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True
    double: DoubleBroker

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away in the middle of a long poll is no error."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        wait_s = int(self.headers.get("Prefer", "wait=0").partition("=")[2])
        etag = self.headers.get("If-None-Match", "")
        status, now, view = self.server.double.answer(self.command, self.path, body, etag, wait_s)
        content = b"" if view is None else json.dumps(view).encode()
        self.send_response(status)
        self.send_header("ETag", now)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_POST = do_DELETE = do  # noqa: N815 - the names that http.server looks for

    def address_string(self) -> str:
        return "a Unix socket"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - its name in http.server
        """Nobody reads it."""


@contextmanager
def listening(double: DoubleBroker) -> Iterator[DoubleBroker]:
    """Answer at its socket until the end of the block."""
    server = _Server(double.url[len("unix://") :], _Handler)
    server.double = double
    thread = threading.Thread(target=lambda: server.serve_forever(poll_interval=0.01))
    thread.start()
    try:
        yield double
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        Path(double.url[len("unix://") :]).unlink()
