"""What a kernel does, told from messages: recorded from real kernels, and the orders in which they may arrive."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpubroker.server.activity import (
    FINISHED_MAX,
    IN_FLIGHT_MAX,
    KernelState,
    Message,
    after,
)

RECORDINGS = sorted((Path(__file__).parent / "recordings").glob("*.json"))


def status(state: str, request: str, kind: str = "execute_request", **parent: Any) -> Message:
    header = {"msg_type": kind, "msg_id": request, **parent}
    return Message("status", header, {"execution_state": state})


def prompt(request: str, **parent: Any) -> Message:
    return Message(
        "input_request", {"msg_type": "execute_request", "msg_id": request, **parent}, {}
    )


def debug(event: str) -> Message:
    return Message("debug_event", {"msg_type": "debug_request", "msg_id": "d"}, {"event": event})


ANSWER = Message("input_reply", {}, {"value": "x"})


def after_all(*messages: Message) -> KernelState:
    state = KernelState()
    for message in messages:
        state = after(state, message)
    return state


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_a_recorded_kernel_is_told_right_at_each_step(path: Path) -> None:
    state = KernelState()
    recording = json.loads(path.read_text())
    for number, step in enumerate(recording["steps"]):
        if "expect" in step:
            assert state.activity == step["expect"], f"step {number} of: {recording['about']}"
        else:
            state = after(state, Message(step["kind"], step["parent"], step["content"]))
    assert state.activity == "idle", "every recording ends with an idle kernel"


@pytest.mark.parametrize("name", ["tab_switch", "page_reload"])
def test_what_front_ends_send_by_themselves_changes_nothing(name: str) -> None:
    state = KernelState(in_flight=("cell",))
    for step in json.loads((RECORDINGS[0].parent / f"{name}.json").read_text())["steps"]:
        if "expect" not in step:
            assert after(state, Message(step["kind"], step["parent"], step["content"])) is state


@pytest.mark.parametrize("kind", ["comm_msg", "execute_request", "comm_info_request"])
def test_traffic_in_a_subshell_does_not_end_the_running_cell(kind: str) -> None:
    state = after_all(
        status("busy", "cell"),
        status("busy", "other", kind, subshell_id="s"),
        status("idle", "other", kind, subshell_id="s"),
    )
    assert state.activity == "running"


def test_a_prompt_of_a_subshell_is_not_the_main_threads() -> None:
    assert after_all(status("busy", "cell"), prompt("other", subshell_id="s")).activity == "running"


def test_the_order_of_prompt_and_busy_does_not_matter() -> None:
    for order in itertools.permutations((status("busy", "cell"), prompt("cell"))):
        assert after_all(*order).activity == "input"


def test_a_prompt_that_arrives_after_the_end_of_its_cell_is_over() -> None:
    late = after_all(status("busy", "cell"), status("idle", "cell"), prompt("cell"))
    assert late.activity == "idle"


def test_an_answer_without_a_question_changes_nothing() -> None:
    state = after_all(status("busy", "cell"))
    assert after(state, ANSWER) is state


def test_a_second_prompt_of_the_same_cell_waits_again() -> None:
    asked = after_all(status("busy", "cell"), prompt("cell"), ANSWER, prompt("cell"))
    assert asked.activity == "input"


def test_a_stop_outside_any_cell_lasts_until_it_is_continued() -> None:
    assert after_all(debug("stopped")).activity == "debugger"
    assert after_all(debug("stopped"), debug("continued")).activity == "idle"


@pytest.mark.parametrize("event", ["terminated", "exited"])
def test_a_debugger_that_ends_lets_the_cell_run_on(event: str) -> None:
    assert after_all(status("busy", "cell"), debug("stopped"), debug(event)).activity == "running"


def test_a_stop_is_left_with_its_cell_but_not_with_a_request_of_the_debugger() -> None:
    stopped = after_all(status("busy", "cell"), debug("stopped"))
    inspected = after(after(stopped, status("busy", "inspection")), status("idle", "inspection"))
    assert inspected.activity == "debugger"
    assert after(inspected, status("idle", "cell")).activity == "idle"


def test_queued_cells_run_until_the_last_one_ends() -> None:
    state = after_all(status("busy", "a"), status("busy", "b"), status("idle", "a"))
    assert state.activity == "running"
    assert after(state, status("idle", "b")).activity == "idle"


def test_memory_is_bounded_however_much_is_lost_on_the_way() -> None:
    state = after_all(*(status("busy", str(number)) for number in range(2 * IN_FLIGHT_MAX)))
    assert len(state.in_flight) == IN_FLIGHT_MAX
    state = after_all(*(status("idle", str(number)) for number in range(2 * FINISHED_MAX)))
    assert len(state.finished) == FINISHED_MAX


@pytest.mark.parametrize(
    "message",
    [
        Message("status", {}, {"execution_state": "busy"}),
        Message("status", {"msg_type": "execute_request"}, {"execution_state": "busy"}),
        Message("status", {"msg_type": "execute_request", "msg_id": "x"}, {}),
        Message("debug_event", {}, {}),
        Message("stream", {"msg_type": "execute_request", "msg_id": "x"}, {"text": "out"}),
    ],
)
def test_messages_that_say_nothing_change_nothing(message: Message) -> None:
    state = KernelState()
    assert after(state, message) is state
