"""Listens to kernels: one iopub subscription each, what the websocket `tap` hears, and prompts nobody is there to see.

This is the I/O around `activity`, which decides what the messages mean. A listener of our own is used, with an identity of its
own, because the server's is closed and reopened at will; `connect_iopub` carries the keys of encrypted kernels. All of it
runs on the server's event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any
from weakref import WeakSet

from jupyter_client.session import Session

from .activity import WATCHED_KINDS, Activity, KernelState, Message, after

BUFFER_LOOK_S = 0.5

Changed = Callable[[], None]


class KernelWatch:
    """One kernel, over all its restarts. `changed` is called whenever `activity` or `front_ends` has changed."""

    def __init__(self, kernel_id: str, changed: Changed, log: Any | None = None) -> None:
        self.kernel_id = kernel_id
        self._changed = changed
        self._log = log or logging.getLogger(__name__)
        self._state: KernelState | None = None
        self._connections: WeakSet[object] = WeakSet()
        self._stream: Any = None
        self._session: Any = None
        self._manager: Any = None

    @property
    def activity(self) -> Activity:
        """`unknown` while nobody listens."""
        return self._state.activity if self._state is not None else "unknown"

    @property
    def front_ends(self) -> int:
        return len(self._connections)

    def attach(self, manager: Any) -> None:
        """Listen to the kernel process that `manager` has just started; ports may differ from its predecessor's."""
        self.detach()
        self._manager = manager
        self._session = Session(config=manager.session.config, key=manager.session.key)
        self._stream = manager.connect_iopub()
        self._stream.on_recv(self._on_iopub)
        self._become(KernelState())

    def detach(self) -> None:
        """Stop listening."""
        if self._stream is not None and not self._stream.closed():
            self._stream.close()
        self._stream = self._manager = None
        self._become(None)

    # --- what the websockets tell (`tap.Listener`) -----------------------------------------------

    def connected(self, connection: object) -> None:
        self._connections.add(connection)
        self._changed()

    def disconnected(self, connection: object) -> None:
        if connection in self._connections:
            self._connections.discard(connection)
            self._changed()

    def tell_of_restart(self) -> None:
        """The process was replaced, and no page asked for it: without a word they wait for what the old one was doing."""
        for connection in tuple(self._connections):
            with suppress(AttributeError):  # not every connection class has it
                connection.on_kernel_restarted()  # type: ignore[attr-defined]

    def heard(self, message: Message) -> None:
        if self._state is not None:
            self._become(after(self._state, message))

    # --- prompts that came after the last front end had gone -------------------------------------

    def look_at_buffer(self) -> None:
        """The server keeps what a kernel sends while no front end is open; a prompt in there waits for its reader."""
        if self._manager is None or self._connections or self.activity != "running":
            return
        for frames in _buffered_stdin(self._manager, self.kernel_id):
            message = self._read(frames)
            if message is not None and message.kind == "input_request":
                self.heard(message)

    # --- inside ----------------------------------------------------------------------------------

    def _become(self, state: KernelState | None) -> None:
        before, self._state = self.activity, state
        if self.activity != before:
            self._changed()

    def _on_iopub(self, frames: list[bytes]) -> None:
        message = self._read(frames)
        if message is not None:
            self.heard(message)

    def _read(self, frames: list[bytes]) -> Message | None:
        """The message when it is of a kind that matters; outputs are neither verified nor decoded beyond their header."""
        try:
            _, parts = self._session.feed_identities(frames)
            if self._session.unpack(parts[1]).get("msg_type") not in WATCHED_KINDS:
                return None
            message = self._session.deserialize(parts)
        except Exception:  # noqa: BLE001 - one message that cannot be read must not end the listening
            self._log.debug("kernel_message_unreadable", exc_info=True)
            return None
        return Message(
            message["msg_type"], message["parent_header"] or {}, message["content"] or {}
        )


class Watches:
    """The watches of all kernels of this server."""

    def __init__(self, changed: Changed, log: Any | None = None) -> None:
        self._changed = changed
        self._log = log or logging.getLogger(__name__)
        self._watches: dict[str, KernelWatch] = {}

    def get(self, kernel_id: str) -> KernelWatch | None:
        return self._watches.get(kernel_id)

    def __iter__(self) -> Iterator[KernelWatch]:
        return iter(tuple(self._watches.values()))

    def attach(self, kernel_id: str, manager: Any) -> KernelWatch:
        watch = self._watches.get(kernel_id)
        if watch is None:
            watch = self._watches[kernel_id] = KernelWatch(kernel_id, self._changed, self._log)
        try:
            watch.attach(manager)
        except Exception:  # noqa: BLE001
            # A kernel that cannot be watched starts all the same; `unknown` is never taken for idle.
            self._log.exception("kernel_not_watched kernel=%s", kernel_id)
            watch.detach()
        return watch

    def forget(self, kernel_id: str) -> None:
        watch = self._watches.pop(kernel_id, None)
        if watch is not None:
            watch.detach()

    async def look_at_buffers(self) -> None:
        """Runs for ever."""
        while True:
            await asyncio.sleep(BUFFER_LOOK_S)
            for watch in self:
                watch.look_at_buffer()


def _buffered_stdin(manager: Any, kernel_id: str) -> Iterable[list[bytes]]:
    """What waits on stdin in the server's buffer of an unconnected kernel. It has no public name: absent means none."""
    with suppress(AttributeError, KeyError, TypeError, ValueError):
        buffers = manager.parent._kernel_buffers
        if kernel_id in buffers:  # it is a defaultdict
            buffer = buffers[kernel_id]["buffer"]
            return [list(frames) for channel, frames in buffer if channel == "stdin"]
    return []
