"""The process and its lease, in step: listening, applying, orders, notices."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from gpubroker import board, cuda_state
from gpubroker.errors import Unavailable
from gpubroker.link import Link
from gpubroker.main_thread import when_ready
from gpubroker.parkers import ParkFailed
from gpubroker.session import of_environment
from tests.unit.kernel.double import (
    SESSION,
    lease,
    order,
    reason,
    stand_in,
)
from tests.unit.kernel.process import LEASE, Process, Shown, answers

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


def test_what_changes_at_the_broker_is_acted_on(heard: Process) -> None:
    with heard.double.changed():
        heard.double.leases = [lease(state="granted")]
    heard.double.wait_until_asked("POST", ":ack")
    assert heard.devices.lent == ("GPU-1",)


def test_a_session_that_nobody_puts_is_put_by_the_kernel(
    heard: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gpubroker.link.FORGOTTEN_S", 0.0)
    monkeypatch.setattr("gpubroker.link.PAUSE_S", (0.01, 0.02))
    with heard.double.changed():
        heard.double.knows_session = False
    heard.double.wait_until_asked("PUT", SESSION)
    body = heard.double.bodies(SESSION)[-1]
    put = next(b for b in heard.double.bodies(SESSION) if b)
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


def test_the_link_is_no_thread_that_a_debugger_may_stop(heard: Process) -> None:
    thread = heard.link._thread
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
    # An old view shows the order once more.
    process.holder.look()
    assert process.parking.log == ["park", "unpark"]
    assert len(answers(process.double)) == 1


@pytest.mark.parametrize(
    "went_on",
    [
        {"state": "draining", "order": order("checkpointed", 2)},
        {"state": "draining", "gave_back": "checkpointed"},
        {"state": "parked", "gave_back": "checkpointed"},
        {"state": "draining", "order": order("parked", 2)},
    ],
)
def test_an_answer_that_the_broker_did_not_take_is_undone_whatever_else_goes_on(
    process: Process, monkeypatch: pytest.MonkeyPatch, went_on: dict[str, Any]
) -> None:
    process.has_context(monkeypatch)
    process.double.leases = [lease(**went_on)]
    process.session.saw(
        {"leases": [lease(state="draining", order=order("parked"))], "requests": []}
    )
    process.holder.look()
    assert process.parking.log == ["park", "unpark"]
    assert process.away() is None
    assert not any("went to somebody" in line for line in process.notices.take_lines())


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


def test_a_communicator_between_gpus_cannot_be_suspended(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = SimpleNamespace(is_initialized=lambda: True, get_backend=lambda: "nccl")
    monkeypatch.setitem(sys.modules, "torch.distributed", stand_in(distributed))
    refusals = process.offers.body(is_simulated=False)["refusals"]
    assert refusals["checkpointed"]["code"] == "nccl_in_use"
    distributed.get_backend = lambda: "gloo"
    assert "checkpointed" not in process.offers.body(is_simulated=False)["refusals"]


@pytest.mark.asyncio
async def test_a_kernel_sets_itself_up_before_anybody_listens_to_the_broker() -> None:
    done: list[str] = []
    when_ready(SimpleNamespace(kernel=object()), lambda: done.append("kernel"))
    when_ready(SimpleNamespace(), lambda: done.append("shell"))
    assert done == ["shell"]
    await asyncio.sleep(0)
    assert done == ["shell", "kernel"]


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
    assert "Your GPU goes back in" in shown.texts[0]
    assert len(process.notices.take_lines()) == 1
    assert process.notices.take_lines() == []
    assert process.look(lease(kept_for_ms=60_000)) == 30
    assert shown.texts[-1] == "Your GPU stays yours; it is kept for 1 min."


@pytest.mark.parametrize(
    ("prompt", "told"),
    [
        (None, "`%gpu keep` keeps it."),
        ("debugger", "typed at this prompt"),
        ("input", "answer the prompt"),
    ],
)
def test_a_notice_names_what_works_where_its_reader_is(
    process: Process, shown: Shown, prompt: str | None, told: str
) -> None:
    with process.main.waiting(prompt):
        process.look(notice())
    assert told in shown.texts[0]


def test_what_was_said_of_a_gpu_that_is_back_is_not_said_any_more(
    process: Process, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.has_context(monkeypatch)
    process.look(notice())
    process.look(lease(state="draining", order=order("parked")))
    process.look(lease(state="parked", gave_back="parked", home=["GPU-1"]))
    process.look(lease(state="granted", order=order("parked", 2, resume=True)))
    assert process.notices.take_lines() == []
    assert "is back" in shown.texts[-1]


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


def test_code_that_is_faster_than_an_empty_give_back_keeps_its_gpu(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    process.look(lease())
    states = [False, False, True]  # at the offer, at the order, and once the devices are hidden

    def look() -> cuda_state.CudaState:
        return cuda_state.CudaState(cuda_state.UNTOUCHED, has_context=states.pop(0))

    monkeypatch.setattr(cuda_state, "look", look)
    monkeypatch.setattr(process.holder, "offer", lambda _lease: look())
    process.look(lease(state="draining", order=order("empty")))
    answer = answers(process.double)[-1]
    assert (answer["ok"], answer["reason"]["code"]) == (False, "context_alive")
    assert process.devices.lent == ("GPU-1",)
