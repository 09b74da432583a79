"""Waiting in line, and for memory that comes back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from gpubroker.errors import Interrupted, Refused
from gpubroker.parkers import ParkFailed
from gpubroker.waiting import Wait
from tests.unit.kernel.double import (
    lease,
    order,
    reason,
    request,
)
from tests.unit.kernel.process import LEASE, Process, Shown, failing

# --- waiting in line ------------------------------------------------------------------------------


def wait_for(process: Process, given_up: list[Any] | None = None) -> Wait:
    client = process.double.client
    give_up: Callable[[Any], None] = (given_up if given_up is not None else []).append
    return Wait(client, lambda request_id: client.put_request(request_id, {}), "a GPU", give_up)


def granted(request_id: str) -> dict[str, Any]:
    return request(request_id, state="granted", lease=lease(state="granted"))


def test_what_is_free_is_had_at_once(process: Process, shown: Shown) -> None:
    process.double.on_request = granted
    assert wait_for(process).here()["lease"]["id"] == LEASE
    assert shown.texts == []


def test_the_place_in_line_is_shown_until_the_turn_comes(process: Process, shown: Shown) -> None:
    def serve() -> None:
        process.double.wait_until_asked("GET", "", 2)
        with process.double.changed():
            for request_id in process.double.requests:
                process.double.requests[request_id] = granted(request_id)

    thread = threading.Thread(target=serve)
    thread.start()
    assert wait_for(process).here()["state"] == "granted"
    thread.join()
    assert "place 1 of 1" in shown.texts[0]
    assert shown.texts[-1].startswith("Waited")


def test_who_waits_for_more_than_a_turn_is_told_for_what(process: Process, shown: Shown) -> None:
    told = "The driver does not answer. `gpubroker doctor` says more."
    process.double.on_request = lambda request_id: request(
        request_id, sentence=told, reason=reason("driver_unavailable")
    )

    def serve() -> None:
        process.double.wait_until_asked("GET", "", 1)
        with process.double.changed():
            for request_id in process.double.requests:
                process.double.requests[request_id] = granted(request_id)

    thread = threading.Thread(target=serve)
    thread.start()
    wait_for(process).here()
    thread.join()
    assert shown.texts[0].startswith(told)


def test_an_interrupt_leaves_the_line(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    waits = wait_for(process)
    monkeypatch.setattr(waits, "_show", failing(KeyboardInterrupt()))
    with pytest.raises(Interrupted, match="left the line"):
        waits.here()
    assert len(process.double.paths("DELETE")) == 1


def test_a_grant_in_the_moment_of_leaving_is_given_up(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_up: list[Any] = []
    waits = wait_for(process, given_up)
    monkeypatch.setattr(process.double.client, "cancel", granted)
    monkeypatch.setattr(waits, "_show", failing(KeyboardInterrupt()))
    with pytest.raises(Interrupted):
        waits.here()
    assert [given["id"] for given in given_up] == [LEASE]


def test_a_refused_request_is_its_sentence(process: Process) -> None:
    process.double.on_request = lambda request_id: request(
        request_id, state="refused", sentence="There is none.", reason=reason("unknown_model")
    )
    with pytest.raises(Refused, match="There is none") as error:
        wait_for(process).here()
    assert error.value.code == "unknown_model"


def test_a_request_that_a_broker_lost_is_put_again(process: Process, shown: Shown) -> None:
    def lose() -> None:
        process.double.wait_until_asked("GET", "", 1)
        with process.double.changed():
            process.double.requests.clear()
            process.double.on_request = granted

    thread = threading.Thread(target=lose)
    thread.start()
    assert wait_for(process).here()["state"] == "granted"
    thread.join()
    puts = process.double.paths("PUT")
    assert len(puts) == 2
    assert len(set(puts)) == 1


# --- coming back ----------------------------------------------------------------------------------


def parked(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    process.has_context(monkeypatch)
    process.look(lease())
    process.look(lease(state="draining", order=order("parked")))
    process.look(lease(state="parked", gave_back="parked", home=["GPU-1"]))


def test_code_waits_until_the_memory_is_back(
    heard: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    parked(heard, monkeypatch)

    def on_request(request_id: str) -> dict[str, Any]:
        heard.double.leases = [lease(state="granted", order=order("parked", 2, resume=True))]
        heard.double._version += 1
        return granted(request_id)

    heard.double.on_request = on_request
    heard.main.begins()
    heard.arrival.bring_back()
    assert heard.parking.log == ["park", "unpark"]


def test_damage_is_told_to_the_code_that_waits(
    heard: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    parked(heard, monkeypatch)
    changed = {"code": "contents_changed", "values": {}}
    heard.parking.fails = ParkFailed(changed, is_back=True)

    def on_request(request_id: str) -> dict[str, Any]:
        heard.double.leases = [lease(state="granted", order=order("parked", 2, resume=True))]
        heard.double._version += 1
        return granted(request_id)

    heard.double.on_request = on_request
    with pytest.raises(Refused, match="contents_changed"):
        heard.arrival.bring_back()
    heard.arrival.bring_back()


def test_a_parked_lease_that_is_gone_is_told_once(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    parked(process, monkeypatch)
    process.session.saw({"leases": [], "requests": []})
    with pytest.raises(Refused, match="has ended"):
        process.arrival.bring_back()
    process.arrival.bring_back()


def test_an_interrupt_while_waiting_leaves_the_memory_away(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    parked(process, monkeypatch)
    monkeypatch.setattr(Wait, "_show", failing(KeyboardInterrupt()))
    with pytest.raises(Interrupted):
        process.arrival.bring_back()
    assert process.arrival.is_needed
    assert len(process.double.paths("DELETE")) == 1


def test_those_who_ask_meanwhile_share_one_return(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.main.away = "parked"
    calls: list[str] = []
    go_on, done = threading.Event(), threading.Semaphore(0)

    def bring_back() -> None:
        calls.append("x")
        go_on.wait(10)

    monkeypatch.setattr(process.arrival, "bring_back", bring_back)
    heard: list[Any] = []
    for _ in range(3):
        process.arrival.begin(lambda why_not: (heard.append(why_not), done.release())[1])  # type: ignore[func-returns-value]
    go_on.set()
    assert all(done.acquire(timeout=10) for _ in range(3))
    assert (calls, heard) == (["x"], [None, None, None])
