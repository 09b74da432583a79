"""The process and its lease, in step: listening, applying, orders, notices, waiting, returning."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpubroker import board, cuda_state
from gpubroker.arrival import Arrival
from gpubroker.errors import Interrupted, Refused, Unavailable
from gpubroker.give_back import GiveBack
from gpubroker.holder import Holder
from gpubroker.link import Link
from gpubroker.main_thread import MainThread
from gpubroker.notices import Notices
from gpubroker.offer import Offers
from gpubroker.parkers import ParkFailed
from gpubroker.saving import Saver
from gpubroker.session import Session, of_environment
from gpubroker.waiting import Wait
from tests.unit.kernel.double import (
    SESSION,
    DoubleBroker,
    lease,
    order,
    reason,
    request,
    stand_in,
)

LEASE = "a" * 32


class Devices:
    """Stands for the variable of this process."""

    def __init__(self) -> None:
        self.lent: tuple[str, ...] = ()

    def show(self, visible_devices: str) -> None:
        self.lent = tuple(visible_devices.split(","))

    def hide(self) -> None:
        self.lent = ()


class ParkingDouble:
    """Parks by a note. `fails` is raised once."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.fails: ParkFailed | None = None

    def refusal(self, is_simulated: bool) -> None:
        """It always works."""

    def park(self, *_: object) -> int:
        self._do("park")
        return 400

    def unpark(self, _deadline_s: float) -> None:
        self._do("unpark")

    def _do(self, what: str) -> None:
        fails, self.fails = self.fails, None
        if fails is not None:
            raise fails
        self.log.append(what)


class Process:
    """All parts of a kernel that hold, without the kernel."""

    def __init__(self, double: DoubleBroker, folder: Path) -> None:
        self.double = double
        self.session = Session(SESSION, double.client, "test.ipynb")
        self.main = MainThread()
        self.devices = stand_in(Devices())
        self.parking = stand_in(ParkingDouble())
        self.offers = Offers(self.main, self.parking, lambda: False)
        self.notices = Notices(double.client)
        self.saver = Saver(str(folder / "restore" / "k"), SimpleNamespace(user_ns={"x": 1}))
        self.events: list[str] = []
        self.arrival: Arrival
        give_back = GiveBack(
            self.main,
            self.devices,
            self.parking,
            self.offers,
            lambda: self.events.append("gave up devices"),
            lambda why: self.arrival.damaged(why["code"]),
        )
        self.holder = Holder(
            self.session,
            self.main,
            self.devices,
            self.offers,
            give_back,
            self.notices,
            self.saver,
            lambda: self.events.append("lost"),
        )
        self.link = Link(self.session, self.holder.look)
        self.arrival = Arrival(self.session, self.main, self.link)

    def away(self) -> str | None:
        return self.main.away

    def look(self, *leases: dict[str, Any]) -> int:
        """One look of the link at a broker that answers these leases."""
        with self.double.changed():
            self.double.leases = list(leases)
        self.session.refresh()
        return self.holder.look()

    def has_context(self, monkeypatch: pytest.MonkeyPatch) -> None:
        state = cuda_state.CudaState(cuda_state.CONTEXT, has_context=True)
        monkeypatch.setattr(cuda_state, "look", lambda: state)


@pytest.fixture
def process(double: DoubleBroker, tmp_path: Path) -> Process:
    return Process(double, tmp_path)


@pytest.fixture
def listening(process: Process) -> Iterator[Process]:
    """The same with its link running."""
    process.link.start()
    yield process
    process.link.stop()
    with process.double.changed():
        process.double.leases = []
    process.link._thread.join(10)


class Shown:
    """What boards would show in a notebook."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, text: str, _display_id: str, **_: bool) -> None:
        self.texts.append(text)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    made = Shown()
    monkeypatch.setattr(board, "_in_notebook", lambda: True)
    monkeypatch.setattr(board, "_publish", made)
    return made


def answers(double: DoubleBroker) -> list[dict[str, Any]]:
    return double.bodies(":answer")


# --- who this process is --------------------------------------------------------------------------


MARK = {"GPUBROKER_SESSION": SESSION, "GPUBROKER_URL": "unix:///x/b.sock"}


def test_a_kernel_claims_its_session_and_children_find_the_claim() -> None:
    environ = dict(MARK)
    session = of_environment(environ)
    assert (session.id, session.pid) == (SESSION, os.getpid())
    assert of_environment(environ).id == SESSION
    environ["GPUBROKER_HOLDER"] = f"{SESSION}:1"
    with pytest.raises(Unavailable, match="started by a kernel"):
        of_environment(environ)
    environ["GPUBROKER_HOLDER"] = f"{'6' * 32}:1"
    assert of_environment(environ).id == SESSION


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        ({}, "borrows no GPUs"),
        ({**MARK, "GPUBROKER": "OFF"}, "switched off"),
        ({**MARK, "GPUBROKER_INHERITED": "1"}, "keeps the devices"),
        ({**MARK, "GPUBROKER_JOB": "1"}, "keeps the devices"),
    ],
)
def test_others_are_told_why_not(environ: dict[str, str], said: str) -> None:
    with pytest.raises(Unavailable, match=said):
        of_environment(environ)


# --- listening ------------------------------------------------------------------------------------


def test_what_changes_at_the_broker_is_acted_on(listening: Process) -> None:
    with listening.double.changed():
        listening.double.leases = [lease(state="granted")]
    listening.double.wait_until_asked("POST", ":ack")
    assert listening.devices.lent == ("GPU-1",)


def test_a_session_that_nobody_puts_is_put_by_the_kernel(
    listening: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpubroker.link.FORGOTTEN_S", 0.0)
    monkeypatch.setattr("gpubroker.link.PAUSE_S", (0.01, 0.02))
    with listening.double.changed():
        listening.double.knows_session = False
    listening.double.wait_until_asked("PUT", SESSION)
    body = listening.double.bodies(SESSION)[-1]
    put = next(b for b in listening.double.bodies(SESSION) if b)
    assert put == {"kind": "kernel", "name": "test.ipynb", "pid": os.getpid()}, body


def test_a_fault_of_ours_does_not_leave_the_kernel_deaf(
    process: Process, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("gpubroker.link.PAUSE_S", (0.01, 0.02))
    calls = threading.Semaphore(0)
    failures = [ZeroDivisionError("a fault")]

    def listener() -> int:
        calls.release()
        if failures:
            raise failures.pop()
        return 0

    link = Link(process.session, listener)
    link.start()
    assert all(calls.acquire(timeout=10) for _ in range(3))
    link.stop()
    link._thread.join(10)
    assert "a fault" in caplog.text


def test_the_link_is_no_thread_that_a_debugger_may_stop(listening: Process) -> None:
    thread = listening.link._thread
    assert thread.daemon
    assert thread.pydev_do_not_trace
    assert thread.is_pydev_daemon_thread


# --- applying and handing back --------------------------------------------------------------------


def test_a_grant_is_applied_once(process: Process) -> None:
    process.look(lease(state="granted"))
    process.look(lease())
    assert process.devices.lent == ("GPU-1",)
    assert len(process.double.bodies(":ack")) == 1


def test_what_was_handed_back_is_not_shown_again_by_an_old_view(process: Process) -> None:
    process.look(lease())
    process.holder.hand_back(lease())
    assert process.double.bodies(":release") == [{"kind": "empty", "done": True}]
    process.look(lease())
    assert process.devices.lent == ()
    process.look(lease(lease_id="b" * 32, visible_devices="GPU-2"))
    assert process.devices.lent == ("GPU-2",)


def test_a_release_that_the_broker_did_not_hear_changes_nothing(process: Process) -> None:
    process.look(lease())
    process.double.refusal = (503, {"code": "down", "detail": "Down."})
    with pytest.raises(Unavailable):
        process.holder.hand_back(lease())
    assert process.devices.lent == ("GPU-1",)


def test_a_lease_that_is_too_new_for_a_view_is_not_taken_for_lost(process: Process) -> None:
    process.holder.apply(lease(state="active"))
    with process.double.changed():
        process.double.leases = [lease()]
    process.session.saw({"leases": [], "requests": []})
    process.holder.look()
    assert process.devices.lent == ("GPU-1",)
    process.look(lease(state="cleared"))
    assert process.devices.lent == ()
    assert process.events == ["lost"]


# --- orders ---------------------------------------------------------------------------------------


def test_empty_hides_the_devices_and_says_so_once(process: Process) -> None:
    process.look(lease())
    process.double.leases = []
    process.look(lease(state="draining", order=order("empty")))
    assert answers(process.double) == [{"number": 1, "ok": True, "residue_mib": 0}]
    assert process.devices.lent == ()
    assert process.events == ["gave up devices"]
    assert any("went to somebody" in line for line in process.notices.take_lines())


def test_an_answer_is_repeated_and_not_the_act(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.has_context(monkeypatch)
    process.look(lease())
    for _ in range(2):
        process.look(lease(state="draining", order=order("parked")))
    assert len(answers(process.double)) == 2
    assert process.parking.log == ["park"]


def test_memory_is_parked_and_returns(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    process.has_context(monkeypatch)
    process.look(lease())
    process.look(lease(state="draining", order=order("parked")))
    assert process.away() == "parked"
    assert answers(process.double)[-1] == {"number": 1, "ok": True, "residue_mib": 400}
    process.look(lease(state="granted", order=order("parked", 2, resume=True)))
    assert process.away() is None
    assert answers(process.double)[-1]["number"] == 2
    assert process.parking.log == ["park", "unpark"]


def test_code_that_runs_is_not_disturbed(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    process.has_context(monkeypatch)
    process.main.begins()
    process.look(lease(state="draining", order=order("parked")))
    answer = answers(process.double)[-1]
    assert (answer["ok"], answer["reason"]["code"]) == (False, "cell_running")
    assert process.parking.log == []


def test_a_context_that_appears_stops_empty(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.look(lease())
    process.has_context(monkeypatch)
    process.look(lease(state="draining", order=order("empty")))
    answer = answers(process.double)[-1]
    assert (answer["ok"], answer["reason"]["code"]) == (False, "context_alive")
    assert process.devices.lent == ("GPU-1",)


def test_an_order_that_ran_out_is_undone(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    process.has_context(monkeypatch)
    # The broker shows the order to the link, but has gone on when the answer comes.
    process.double.leases = [lease()]
    process.session.saw(
        {"leases": [lease(state="draining", order=order("parked"))], "requests": []}
    )
    process.holder.look()
    assert process.parking.log == ["park", "unpark"]
    assert process.away() is None


def test_a_failed_return_keeps_the_memory_parked(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.has_context(monkeypatch)
    process.look(lease(state="draining", order=order("parked")))
    process.parking.fails = ParkFailed({"code": "gpu_memory_short", "values": {}})
    process.look(lease(state="granted", order=order("parked", 2, resume=True)))
    answer = answers(process.double)[-1]
    assert (answer["ok"], answer["reason"]["code"]) == (False, "gpu_memory_short")
    assert process.away() == "parked"


def test_a_suspension_by_the_server_is_followed(process: Process) -> None:
    process.look(lease())
    process.look(lease(state="draining", order=order("checkpointed")))
    assert process.away() == "checkpointed"
    assert answers(process.double) == []
    process.look(lease(state="parked", gave_back="checkpointed"))
    process.look(lease(state="granted", order=order("checkpointed", 2, resume=True)))
    assert process.away() == "checkpointed"
    process.look(lease())
    assert process.away() is None


def test_before_a_restart_everything_is_saved_for_this_very_order(process: Process) -> None:
    process.look(lease(state="draining", order=order("restarted", 7)))
    manifest = process.saver.manifest()
    assert manifest is not None
    assert (manifest["cause"], manifest["saved"]) == (f"{LEASE}:7", ["x"])
    assert answers(process.double) == []


def test_a_save_that_fails_ends_the_order(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_cause: str) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(process.saver, "save", fail)
    process.look(lease(state="draining", order=order("restarted")))
    answer = answers(process.double)[-1]
    assert (answer["ok"], answer["reason"]["values"]) == (False, {"error": "OSError: disk full"})


def test_an_offer_is_made_when_it_is_news(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.look(lease())
    process.look(lease())
    assert [body["kinds"] for body in process.double.bodies(":offer")] == [["empty"]]
    process.has_context(monkeypatch)
    process.look(lease())
    assert [body["kinds"] for body in process.double.bodies(":offer")] == [["empty"], ["parked"]]


# --- notices --------------------------------------------------------------------------------------


def notice(number: int = 1, **changes: Any) -> dict[str, Any]:
    made = {"number": number, "due_in_ms": 60_000, "reason": reason("idle"), "shown": False}
    return lease(notice=made, **changes)


def test_a_notice_is_shown_counted_down_and_told_before_the_next_cell(
    process: Process, shown: Shown
) -> None:
    assert process.look(notice()) == 5
    process.look(notice())
    assert process.double.bodies(":shown") == [{"number": 1}]
    assert "So it is. It goes back in" in shown.texts[0]
    assert len(process.notices.take_lines()) == 1
    assert process.notices.take_lines() == []
    assert process.look(lease(sentence="Kept.")) == 30
    assert "stays yours. Kept." in shown.texts[-1]


def test_a_second_notice_is_another(process: Process, shown: Shown) -> None:
    process.look(notice())
    process.look(notice(number=2))
    assert process.double.bodies(":shown") == [{"number": 1}, {"number": 2}]


def test_without_a_place_to_show_it_a_notice_is_not_called_shown(process: Process) -> None:
    process.look(notice())
    assert process.double.bodies(":shown") == []
    assert process.notices.take_lines()


def test_markup_of_others_is_only_text() -> None:
    published: list[dict[str, str]] = []

    class Display:
        @staticmethod
        def display(data: dict[str, str], **_options: Any) -> None:
            published.append(data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(__import__("sys").modules, "IPython.display", Display)
        board._publish("<img src=x onerror=alert(1)>", "id", update=False)
    assert "<img" not in published[0]["text/html"]
    assert published[0]["text/plain"] == "<img src=x onerror=alert(1)>"


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
    listening: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    parked(listening, monkeypatch)

    def on_request(request_id: str) -> dict[str, Any]:
        listening.double.leases = [lease(state="granted", order=order("parked", 2, resume=True))]
        listening.double._version += 1
        return granted(request_id)

    listening.double.on_request = on_request
    listening.main.begins()
    listening.arrival.bring_back()
    assert listening.parking.log == ["park", "unpark"]


def test_damage_is_told_to_the_code_that_waits(
    listening: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    parked(listening, monkeypatch)
    changed = {"code": "contents_changed", "values": {}}
    listening.parking.fails = ParkFailed(changed, is_back=True)

    def on_request(request_id: str) -> dict[str, Any]:
        listening.double.leases = [lease(state="granted", order=order("parked", 2, resume=True))]
        listening.double._version += 1
        return granted(request_id)

    listening.double.on_request = on_request
    with pytest.raises(Refused, match="contents_changed"):
        listening.arrival.bring_back()
    listening.arrival.bring_back()


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


def failing(error: BaseException) -> Callable[..., Any]:
    def fail(*_: Any) -> None:
        raise error

    return fail
