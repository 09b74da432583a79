"""Every route, asked by the owner of what it is about, by another person, by an admin, by root and by nobody known.

The table is made from the routes: a new one is tried as its `right` says, and fails here until its body is written below.
"""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from jupyter_gpubroker.wire import bodies
from jupyter_gpubroker.wire.routes import API, ROUTES, WHY, Nothing, Route
from tests.support.people import (
    ADA,
    ADMIN,
    BOB,
    NOT_SEVERAL,
    ROOT,
    Machine,
    Person,
    machine_broker,
    start,
)

pytestmark = pytest.mark.skipif(NOT_SEVERAL is not None, reason=str(NOT_SEVERAL))

# For each line of calls on standard input, a line of answers: [status, body] for each call.
CALLS = """
import json, os, sys
import httpx
transport = httpx.HTTPTransport(uds=os.environ["GPUBROKER_URL"].removeprefix("unix://"))
http = httpx.Client(transport=transport, base_url="http://broker", timeout=20)
for line in sys.stdin:
    answers = []
    for method, url, content, media in json.loads(line):
        headers = {} if content is None else {"Content-Type": media}
        answer = http.request(method, url, content=content, headers=headers)
        answers.append([answer.status_code, answer.text])
    print(json.dumps(answers), flush=True)
http.close()
"""
PIPED: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
Call = tuple[str, str, str | None, str]
Answer = tuple[int, str]


@dataclass(frozen=True)
class Things:
    """What a person has, by the first word of the paths that are about it."""

    session: str
    runner: str
    request: str
    job: str
    pid: int

    def id_for(self, route: Route[Any]) -> str:
        kind = route.path.split("/")[1]
        by_kind = {"sessions": self.session, "jobs": self.job}
        return by_kind.get(kind, self.request)  # a lease has the id of its request

    def body(self, route: Route[Any]) -> Any:
        """A body that can be read, so that it is the right that is tried."""
        session = {"session_id": self.session}
        by_type: dict[type, Any] = {
            bodies.StopBody: {},
            bodies.ModeBody: {"mode": "advise"},
            bodies.GpuBody: {"gpu": "GPU-x", "why": "w"},
            bodies.SlotBody: {"slot": "GPU-x", "why": "w"},
            bodies.RevokeBody: {"why": "w"},
            bodies.SessionBody: {"kind": "kernel", "name": "n", "pid": self.pid},
            bodies.ReportsBody: {"server_id": "s", "sessions": [{**session, "activity": "idle"}]},
            bodies.OfferBody: {},
            bodies.RequestBody: session,
            bodies.KeepBody: {},
            bodies.ReleaseBody: {"kind": "empty", "done": True},
            bodies.UnparkBody: {"request_id": new_id()},
            bodies.NoticeShownBody: {"number": 1},
            bodies.AnswerBody: {"number": 1, "ok": True},
            bodies.JobBody: {"session_id": self.runner, "name": "j"},
            bodies.JobStartedBody: {"attempt": 1, "pid": self.pid},
            bodies.JobEndedBody: {"attempt": 1, "exit_status": 0},
        }
        return by_type[route.body]

    def call(self, route: Route[Any]) -> Call:
        """The route about these things."""
        url = route.url(self.id_for(route)) + (f"?of={self.request}" if route is WHY else "")
        if route.media_type != "application/json":
            return route.method, url, "", route.media_type
        content = None if route.body is Nothing else json.dumps(self.body(route))
        return route.method, url, content, route.media_type


def new_id() -> str:
    return uuid.uuid4().hex


def told(voice: subprocess.Popen[Any], calls: Sequence[Call]) -> list[Answer]:
    assert voice.stdin is not None
    assert voice.stdout is not None
    voice.stdin.write(json.dumps(calls) + "\n")
    voice.stdin.flush()
    return [(status, text) for status, text in json.loads(voice.stdout.readline())]


@pytest.fixture(scope="module")
def machine() -> Iterator[Machine]:
    with machine_broker("--attend-grace-s=600") as running:
        yield running


@pytest.fixture(scope="module")
def asks(machine: Machine) -> Iterator[Callable[[Person, Sequence[Call]], list[Answer]]]:
    """What the broker answers to the calls of a person, who stays the same process."""
    voices: dict[Person, subprocess.Popen[Any]] = {}

    def ask(who: Person, calls: Sequence[Call]) -> list[Answer]:
        if who not in voices:
            voices[who] = start(who, ["-c", CALLS], machine.environ(who), **PIPED)
        return told(voices[who], calls)

    yield ask
    for voice in voices.values():
        voice.communicate()


@pytest.fixture(scope="module")
def things(asks) -> Iterator[Things]:
    """Ada's: a live session with a lease, and a batch job."""
    holder = start(ADA, ["-c", "input()"], {}, stdin=subprocess.PIPE)
    made = Things(new_id(), new_id(), new_id(), new_id(), holder.pid)
    runner = json.dumps({"kind": "runner", "name": "r", "pid": holder.pid})
    calls: list[Call] = [("PUT", f"{API}/sessions/{made.runner}", runner, "application/json")]
    own = [route for route in ROUTES if route.right == "own"]
    calls += [made.call(route) for route in own if route.method == "PUT"]
    try:
        assert [status for status, _ in asks(ADA, calls)] == [200] * 4
        yield made
    finally:
        holder.communicate(b"\n")


def code_of(answer: Answer) -> tuple[int, str]:
    return answer[0], json.loads(answer[1])["code"]


@pytest.mark.parametrize("who", [BOB, ADMIN, ROOT], ids=lambda who: who.name)
def test_what_is_anothers_is_not_there(asks, things, who) -> None:
    own = [route for route in ROUTES if route.right == "own"]
    answers = asks(who, [things.call(route) for route in own])
    wrong = {}
    for route, (status, text) in zip(own, answers, strict=True):
        names_it = "{id}" in route.path or "session_id" in route.body.__struct_fields__
        if names_it or route is WHY:
            if status not in ({404, 409, 422} if route.method == "PUT" else {404}):
                wrong[route.summary] = status
        elif status != 200 or ("sessions:report" not in route.path and things.request in text):
            wrong[route.summary] = text
    assert wrong == {}


def test_nothing_of_ada_changed_by_what_others_tried(asks, things) -> None:
    calls: list[Call] = [
        ("GET", f"{API}/{kind}", None, "") for kind in ("sessions", "leases", "jobs")
    ]
    (_, sessions), (_, leases), (_, jobs) = asks(ADA, calls)
    live = {one["id"] for one in json.loads(sessions)["sessions"] if one["state"] == "live"}
    assert live == {things.session, things.runner}
    assert [lease["id"] for lease in json.loads(leases)["leases"]][:1] == [things.request]
    assert [job["id"] for job in json.loads(jobs)["jobs"]] == [things.job]


@pytest.mark.parametrize("who", [ADA, BOB, ROOT], ids=lambda who: who.name)
def test_only_admins_administer(asks, things, who) -> None:
    calls = [things.call(route) for route in ROUTES if route.right == "admin"]
    assert {code_of(answer) for answer in asks(who, calls)} == {(403, "admins_only")}


@pytest.mark.parametrize("who", [ADA, ADMIN, ROOT], ids=lambda who: who.name)
def test_what_anyone_may_ask_names_nobody_else(asks, things, who) -> None:
    anyone = [route for route in ROUTES if route.right == "anyone"]
    answers = asks(who, [things.call(route) for route in anyone])
    assert {status for status, _ in answers} <= {200, 503}
    if who is not ADA:
        assert not [text for _, text in answers if things.session in text or things.request in text]
        assert not [text for _, text in answers if f'"{ADA.name}"' in text]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "requests", {}),
        ("PUT", "jobs", {"name": "j"}),
    ],
)
def test_nobody_asks_for_a_gpu_in_anothers_name(asks, things, method, path, body) -> None:
    session_id = things.runner if path == "jobs" else things.session
    content = json.dumps({**body, "session_id": session_id})
    (answer,) = asks(BOB, [(method, f"{API}/{path}/{new_id()}", content, "application/json")])
    assert answer[0] == 404


def test_nobody_registers_anothers_process_or_follows_anothers_session(asks, things) -> None:
    own = start(BOB, ["-c", "input()"], {}, stdin=subprocess.PIPE)
    url, media = f"{API}/sessions/{new_id()}", "application/json"
    body = {"kind": "kernel", "name": "n"}
    follows = {**body, "pid": own.pid, "predecessor": things.session}
    answers = asks(
        BOB,
        [
            ("PUT", url, json.dumps({**body, "pid": things.pid}), media),
            ("PUT", url, json.dumps(follows), media),
        ],
    )
    own.communicate(b"\n")
    assert [code_of(answer) for answer in answers] == [
        (422, "process_not_yours"),
        (404, "no_such_session"),
    ]


@pytest.mark.parametrize("namespace", ["--user", "--pid"])
def test_no_route_and_no_method_answers_who_comes_from_a_container(
    machine, things, namespace
) -> None:
    """The same uid as Ada's, but in a namespace where it may be anybody."""
    known = [things.call(route) for route in ROUTES]
    others: list[Call] = [
        (method, route.url(things.id_for(route)), None, "")
        for route in ROUTES
        for method in ("GET", "PUT", "POST", "DELETE", "PATCH")
        if route.method != method
    ]
    inside = ["unshare", namespace, "--fork"]
    if namespace == "--user":
        child = start(ADA, ["-c", CALLS], machine.environ(ADA), inside, **PIPED)
    else:  # which only root may make
        inside += ["setpriv", f"--reuid={ADA.uid}", f"--regid={ADA.uid}", "--clear-groups"]
        child = start(ROOT, ["-c", CALLS], machine.environ(ADA), inside, **PIPED)
    answers = told(child, [*known, *others])
    child.communicate()
    assert {code_of(answer) for answer in answers} == {(403, "not_served")}


def test_the_owner_may_do_all_of_it(asks, things) -> None:
    """Last, since it ends what it is about. Nothing is forbidden or not there; not everything fits the moment."""
    order = ["GET", "PUT", "POST", "DELETE"]
    own = sorted(
        (route for route in ROUTES if route.right == "own"),
        key=lambda route: order.index(route.method),
    )
    answers = asks(ADA, [things.call(route) for route in own])
    refused = {
        route.summary: status
        for route, (status, _) in zip(own, answers, strict=True)
        if status in {401, 403, 404} or status >= 500
    }
    assert refused == {}
