"""What the main thread of a kernel does, told from the messages the kernel exchanges with its front ends.

Pure: messages in, a new state out; `watcher` and `tap` do the listening. Jupyter's own `execution_state` is of no use here: it
says "busy" at every prompt and breakpoint, and "idle" while a subshell answers a widget during a running cell. So the
`execute_request`s in flight on the main shell are counted instead, and prompts and debugger stops are told apart from work.
What front ends send by themselves (debug, kernel and comm info, widget messages, subshell traffic) is never activity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

Activity = Literal["unknown", "idle", "running", "input", "debugger"]

# Enough for every cell of a long "run all"; older ones can only be ones whose end was lost on the way.
IN_FLIGHT_MAX = 1_000
FINISHED_MAX = 64
_CONTINUES = frozenset({"continued", "terminated", "exited"})


@dataclass(frozen=True, slots=True)
class Message:
    """One message on iopub or stdin. `parent` is the header of the request that caused it (may be empty)."""

    kind: str
    parent: Mapping[str, Any]
    content: Mapping[str, Any]

    @property
    def parent_id(self) -> str:
        return str(self.parent.get("msg_id", ""))

    @property
    def in_subshell(self) -> bool:
        return self.parent.get("subshell_id") is not None


@dataclass(frozen=True, slots=True)
class KernelState:
    """What is known of one kernel incarnation.

    in_flight: ids of the main shell's unfinished execute requests, oldest first.
    finished:  the latest finished ones; iopub and stdin are separate sockets, so a prompt may arrive after its cell's end.
    prompts:   ids of the requests that wait for an answer on stdin.
    stopped:   the debugger holds the process.
    """

    in_flight: tuple[str, ...] = ()
    finished: tuple[str, ...] = ()
    prompts: frozenset[str] = frozenset()
    stopped: bool = False

    @property
    def activity(self) -> Activity:
        if self.stopped:
            return "debugger"
        if self.prompts:
            return "input"
        return "running" if self.in_flight else "idle"


WATCHED_KINDS = frozenset({"status", "debug_event", "input_request", "input_reply"})


def after(state: KernelState, message: Message) -> KernelState:
    """The state once `message` was seen; the same object when it changes nothing."""
    if message.kind == "status":
        return _after_status(state, message)
    if message.kind == "debug_event":
        return _after_debug_event(state, str(message.content.get("event")))
    if message.kind == "input_request":
        return _after_prompt(state, message)
    if message.kind == "input_reply" and state.prompts:
        # One thread reads stdin, so there is one prompt; clients do not all say which one they answer.
        return replace(state, prompts=frozenset())
    return state


def _after_status(state: KernelState, message: Message) -> KernelState:
    request = message.parent_id
    if message.parent.get("msg_type") != "execute_request" or message.in_subshell or not request:
        return state
    match message.content.get("execution_state"):
        case "busy" if request not in state.in_flight:
            return replace(state, in_flight=(*state.in_flight, request)[-IN_FLIGHT_MAX:])
        case "idle":
            in_flight = tuple(other for other in state.in_flight if other != request)
            return KernelState(
                in_flight=in_flight,
                finished=(*state.finished, request)[-FINISHED_MAX:],
                prompts=state.prompts - {request},
                stopped=state.stopped and bool(in_flight),
            )
    return state


def _after_debug_event(state: KernelState, event: str) -> KernelState:
    if event == "stopped" and not state.stopped:
        return replace(state, stopped=True)
    if event in _CONTINUES and state.stopped:
        return replace(state, stopped=False)
    return state


def _after_prompt(state: KernelState, message: Message) -> KernelState:
    request = message.parent_id
    if message.in_subshell or request in state.finished or request in state.prompts:
        return state
    return replace(state, prompts=state.prompts | {request})
