"""The tap reads prompts off websockets, in both formats and under any connection class, and disturbs nothing."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from jupyter_client.session import Session
from jupyter_server.services.kernels.connection.base import (
    serialize_binary_message,
    serialize_msg_to_ws_v1,
)

from jupyter_gpubroker.server.activity import Message
from jupyter_gpubroker.server.tap import V1, stdin_message, tapped

SESSION = Session(key=b"secret")


def message(
    kind: str, content: dict[str, Any], buffers: list[bytes] | None = None
) -> dict[str, Any]:
    made: dict[str, Any] = SESSION.msg(kind, content=content, parent=SESSION.msg("execute_request"))
    return made | {"buffers": buffers or []}


def legacy(channel: str, made: dict[str, Any]) -> str:
    return json.dumps({**made, "channel": channel}, default=str)


def v1(channel: str, made: dict[str, Any]) -> bytes:
    return bytes(serialize_msg_to_ws_v1(made, channel, SESSION.pack))


PROMPT = message("input_request", {"prompt": "? ", "password": False})


@pytest.mark.parametrize("kind", ["input_request", "input_reply"])
def test_stdin_messages_are_read_in_all_formats(kind: str) -> None:
    made = message(kind, {"value": "x"})
    binary = serialize_binary_message({**json.loads(legacy("stdin", made)), "buffers": [b"\0\1"]})
    for raw, protocol in ((legacy("stdin", made), None), (v1("stdin", made), V1), (binary, None)):
        read = stdin_message(raw, protocol)
        assert read is not None
        assert (read.kind, read.parent_id) == (kind, made["parent_header"]["msg_id"])


@pytest.mark.parametrize("channel", ["iopub", "shell", "control"])
def test_other_channels_are_never_taken_for_stdin(channel: str) -> None:
    talks_about_it = message("stream", {"text": '"input_request" on "channel": "stdin"'})
    for made in (PROMPT, talks_about_it):
        assert stdin_message(legacy(channel, made), None) is None
        assert stdin_message(v1(channel, made), V1) is None


def test_frames_of_other_channels_are_not_decoded() -> None:
    assert stdin_message(v1("iopub", PROMPT)[:60] + b"not JSON at all", V1) is None


class Handler:
    """A websocket handler that keeps what is written."""

    def __init__(self, protocol: str | None) -> None:
        self.selected_subprotocol = protocol
        self.written: list[tuple[Any, bool]] = []

    def write_message(self, message: Any, binary: bool = False) -> str:
        self.written.append((message, binary))
        return "written"


class Connection:
    """A connection class that has nothing in common with the server's own but the interface."""

    kernel_id = "k"
    log = logging.getLogger("connection")

    def __init__(self, websocket_handler: Handler) -> None:
        self.websocket_handler = websocket_handler
        self.incoming: list[Any] = []

    def connect(self) -> str:
        return "connecting"

    def disconnect(self) -> str:
        return "disconnecting"

    def handle_incoming_message(self, incoming_msg: Any) -> None:
        self.incoming.append(incoming_msg)


class Heard:
    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.open: list[object] = []

    def connected(self, connection: object) -> None:
        self.open.append(connection)

    def disconnected(self, connection: object) -> None:
        self.open.remove(connection)

    def heard(self, message: Message) -> None:
        self.messages.append(message)


def connection(heard: Heard | None, protocol: str | None = V1) -> Any:
    return tapped(Connection, {"k": heard}.get)(websocket_handler=Handler(protocol))


@pytest.mark.parametrize(("protocol", "wire"), [(V1, v1), (None, legacy)])
def test_prompt_and_answer_are_heard_and_passed_on_unchanged(
    protocol: str | None, wire: Any
) -> None:
    heard = Heard()
    tap = connection(heard, protocol)
    asked, answered = wire("stdin", PROMPT), wire("stdin", message("input_reply", {"value": "x"}))

    assert tap.websocket_handler.write_message(asked, binary=True) == "written"
    tap.handle_incoming_message(answered)

    assert [told.kind for told in heard.messages] == ["input_request", "input_reply"]
    assert tap.websocket_handler.written == [(asked, True)]
    assert tap.incoming == [answered]


def test_open_connections_are_told_as_front_ends() -> None:
    heard = Heard()
    one, other = connection(heard), connection(heard)
    assert one.connect() == "connecting"
    other.connect()
    assert heard.open == [one, other]
    assert one.disconnect() == "disconnecting"
    assert heard.open == [other]


@pytest.mark.parametrize("raw", [b"", b"\xff" * 7, b"\1" * 40, '{"input_request"', "[]input_reply"])
@pytest.mark.parametrize("protocol", [V1, None])
def test_what_cannot_be_read_is_passed_on(raw: Any, protocol: str | None) -> None:
    tap = connection(Heard(), protocol)
    tap.handle_incoming_message(raw)
    tap.websocket_handler.write_message(raw)
    assert tap.incoming == [raw]
    assert tap.websocket_handler.written == [(raw, False)]


def test_a_listener_that_fails_does_not_disturb_the_connection() -> None:
    class Failing(Heard):
        def heard(self, message: Message) -> None:  # noqa: ARG002
            raise RuntimeError("a fault of ours")

    tap = connection(Failing())
    tap.handle_incoming_message(v1("stdin", PROMPT))
    assert len(tap.incoming) == 1


def test_a_kernel_that_nobody_watches_is_left_alone() -> None:
    tap = connection(None)
    tap.connect()
    tap.handle_incoming_message(v1("stdin", PROMPT))
    tap.disconnect()
    assert len(tap.incoming) == 1
