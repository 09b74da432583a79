"""The broker's routes as methods. A view is the decoded JSON of an answer (a dict); ids are chosen here.

Everything may be repeated: the same id with the same content is the same act. Refusals raise Refused with the broker's own
sentence in the user's language, silence raises Unavailable.
"""

from __future__ import annotations

import os
from typing import Any, Dict, NamedTuple, Optional

from .errors import Refused, Unavailable
from .sentences import of_view, say
from .transport import Transport

View = Dict[str, Any]

ANSWER_S = 10.0


def new_id() -> str:
    """128 random bits as the broker wants its ids."""
    return os.urandom(16).hex()


class Watched(NamedTuple):
    """The newest view, and the mark by which the next poll waits for a newer one. `view` is None when nothing changed."""

    view: Optional[View]
    etag: Optional[str]


class Broker:
    """`url` is `unix:///path/of/broker.sock`, as in GPUBROKER_URL."""

    def __init__(self, url: str) -> None:
        if not url.startswith("unix:///"):
            raise Unavailable(say("bad_url"))
        self.url = url
        self._transport = Transport(url[len("unix://") :])

    def health(self) -> View:
        return self._call("GET", "/v1/health")

    def gpus(self) -> View:
        return self._call("GET", "/v1/gpus")

    def policies(self) -> View:
        return self._call("GET", "/v1/policies")

    def queue(self) -> View:
        return self._call("GET", "/v1/queue")

    def put_session(self, session_id: str, body: View) -> View:
        return self._call("PUT", f"/v1/sessions/{session_id}", body)

    def session(self, session_id: str, etag: Optional[str] = None, wait_s: int = 0) -> Watched:
        return self._poll(f"/v1/sessions/{session_id}", etag, wait_s)

    def announce_restart(self, session_id: str) -> View:
        return self._call("POST", f"/v1/sessions/{session_id}:restart")

    def offer(self, session_id: str, body: View) -> View:
        return self._call("POST", f"/v1/sessions/{session_id}:offer", body)

    def put_request(self, request_id: str, body: View) -> View:
        return self._call("PUT", f"/v1/requests/{request_id}", body)

    def request(self, request_id: str, etag: Optional[str] = None, wait_s: int = 0) -> Watched:
        return self._poll(f"/v1/requests/{request_id}", etag, wait_s)

    def cancel(self, request_id: str) -> View:
        return self._call("DELETE", f"/v1/requests/{request_id}", deadline_s=3.0)

    def lease(self, lease_id: str) -> View:
        return self._call("GET", f"/v1/leases/{lease_id}")

    def acknowledge(self, lease_id: str) -> View:
        return self._call("POST", f"/v1/leases/{lease_id}:ack")

    def keep(self, lease_id: str, keep_ms: Optional[int] = None) -> View:
        return self._call("POST", f"/v1/leases/{lease_id}:keep", {"keep_ms": keep_ms})

    def release(self, lease_id: str, kind: str, done: bool = False) -> View:
        return self._call("POST", f"/v1/leases/{lease_id}:release", {"kind": kind, "done": done})

    def park(self, lease_id: str) -> View:
        return self._call("POST", f"/v1/leases/{lease_id}:park", {"kind": "parked"})

    def unpark(self, lease_id: str, request_id: str) -> View:
        return self._call("POST", f"/v1/leases/{lease_id}:unpark", {"request_id": request_id})

    def notice_shown(self, lease_id: str, number: int) -> View:
        return self._call("POST", f"/v1/leases/{lease_id}:shown", {"number": number})

    def answer(self, lease_id: str, body: View) -> View:
        return self._call("POST", f"/v1/leases/{lease_id}:answer", body)

    def why(self, kind: str, thing_id: str) -> View:
        """`kind` is `leases` or `requests`."""
        return self._call("GET", f"/v1/{kind}/{thing_id}/why")

    def _call(
        self, method: str, target: str, body: Optional[View] = None, deadline_s: float = ANSWER_S
    ) -> View:
        answer = self._transport.exchange(method, target, body, deadline_s=deadline_s)
        return _view(answer.status, answer.body)

    def _poll(self, target: str, etag: Optional[str], wait_s: int) -> Watched:
        headers = {} if etag is None else {"If-None-Match": etag}
        if wait_s:
            headers["Prefer"] = f"wait={wait_s}"
        answer = self._transport.exchange(
            "GET", target, headers=headers, deadline_s=wait_s + ANSWER_S
        )
        if answer.status == 304:
            return Watched(None, etag)
        return Watched(_view(answer.status, answer.body), answer.etag)


def _view(status: int, body: Any) -> View:
    if status < 300 and (body is None or isinstance(body, dict)):
        return body or {}
    if not isinstance(body, dict) or "code" not in body:
        raise Unavailable(say("broker_unreadable"))
    if status >= 500:
        raise Unavailable(of_view(body, "detail"))
    raise Refused(of_view(body, "detail"), str(body["code"]), body.get("values"), status)
