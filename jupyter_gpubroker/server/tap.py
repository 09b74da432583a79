"""Sees the prompts of a kernel (`input()`, pdb, `%debug`) and counts its open front ends, on their websockets.

A prompt travels only on the stdin socket of the client that ran the cell, so no second listener can see it; the websocket
connection can. `tapped` makes a subclass of whatever connection class the server is configured with, and wraps the handler's
`write_message` instead of overriding methods of a particular class. Only stdin messages are ever decoded; nothing is changed,
and no failure here may disturb the connection.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Protocol

from jupyter_server.services.kernels.connection.base import (
    deserialize_binary_message,
    deserialize_msg_from_ws_v1,
)

from .activity import Message

V1 = "v1.kernel.websocket.jupyter.org"
_STDIN_KINDS = ("input_request", "input_reply")


class Listener(Protocol):
    """Who wants to know what goes over the websockets of one kernel."""

    def connected(self, connection: object) -> None: ...

    def disconnected(self, connection: object) -> None: ...

    def heard(self, message: Message) -> None: ...


ListenerOf = Callable[[str], "Listener | None"]


def tapped(base: type[Any], listener_of: ListenerOf) -> type[Any]:
    """A subclass of the connection class `base` that tells `listener_of(kernel_id)` what it sees."""

    class TappedConnection(base):  # type: ignore[misc]
        def __init__(self, **traits: Any) -> None:
            super().__init__(**traits)
            handler = self.websocket_handler
            write_message = handler.write_message

            def write_and_tell(message: Any, *args: Any, **named: Any) -> Any:
                self._tell(message)
                return write_message(message, *args, **named)

            handler.write_message = write_and_tell

        def connect(self) -> Any:
            if listener := self._listener():
                listener.connected(self)
            return super().connect()

        def disconnect(self) -> Any:
            if listener := self._listener():
                listener.disconnected(self)
            return super().disconnect()

        def handle_incoming_message(self, incoming_msg: Any) -> Any:
            self._tell(incoming_msg)
            return super().handle_incoming_message(incoming_msg)

        def _listener(self) -> Listener | None:
            return listener_of(str(self.kernel_id))

        def _tell(self, raw: Any) -> None:
            try:
                protocol = getattr(self.websocket_handler, "selected_subprotocol", None)
                message = stdin_message(raw, protocol)
                if message is not None and (listener := self._listener()):
                    listener.heard(message)
            except Exception:
                # What we cannot read is still the user's message.
                self.log.debug("stdin_message_unreadable", exc_info=True)

    TappedConnection.__name__ = f"Tapped{base.__name__}"
    TappedConnection.__qualname__ = TappedConnection.__name__
    return TappedConnection


def stdin_message(raw: str | bytes | dict[str, Any], protocol: str | None) -> Message | None:
    """The stdin message in `raw` as sent over a websocket of `protocol`, or None for any other channel's."""
    if protocol == V1:
        return _from_v1(raw) if isinstance(raw, bytes) and _v1_channel(raw) == b"stdin" else None
    if isinstance(raw, str):
        # The legacy format has no envelope: a cheap look first, so that a large output is not decoded for nothing.
        return _from_legacy(json.loads(raw)) if any(kind in raw for kind in _STDIN_KINDS) else None
    if isinstance(raw, bytes):
        named = any(kind.encode() in raw for kind in _STDIN_KINDS)
        return _from_legacy(deserialize_binary_message(raw)) if named else None
    return _from_legacy(raw)


def _v1_channel(raw: bytes) -> bytes:
    first, second = (int.from_bytes(raw[at : at + 8], "little") for at in (8, 16))
    return raw[first:second]


def _from_v1(raw: bytes) -> Message | None:
    _, (header, parent, _, content, *_) = deserialize_msg_from_ws_v1(raw)
    kind = json.loads(header)["msg_type"]
    return Message(kind, json.loads(parent), json.loads(content)) if kind in _STDIN_KINDS else None


def _from_legacy(message: dict[str, Any]) -> Message | None:
    kind = message["header"]["msg_type"]
    if message.get("channel") != "stdin" or kind not in _STDIN_KINDS:
        return None
    return Message(kind, message.get("parent_header") or {}, message.get("content") or {})
