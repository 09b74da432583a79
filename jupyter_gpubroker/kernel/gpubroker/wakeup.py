"""Lets no request to a kernel lie unread: a fault of ipykernel 7 that makes a notebook hang at its start.

There a reply is sent on the socket from which requests are read, past the stream that reads them. Such a send takes the wake-up
of a request that has just arrived, and nobody reads it until another page connects
(https://github.com/ipython/ipykernel/issues/1554). So the stream looks once after each reply. Where ipykernel is built
differently, nothing is touched.
"""

from __future__ import annotations

from typing import Any

_NAME = "_shell_socket"


class _LooksAfterSending:
    """The socket of replies, used by its thread alone."""

    def __init__(self, socket: Any, stream: Any) -> None:
        self._socket = socket
        self._stream = stream

    def send_multipart(self, *args: Any, **kwargs: Any) -> Any:
        sent = self._socket.send_multipart(*args, **kwargs)
        self._stream.io_loop.add_callback(self._look)
        return sent

    def _look(self) -> None:
        if not self._stream.closed():
            self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._socket, name)


def install(kernel: Any) -> None:
    """For the life of the kernel. Installing twice changes nothing."""
    stream = getattr(kernel, "shell_stream", None)
    manager = getattr(getattr(kernel, "shell_channel_thread", None), "manager", None)
    socket = getattr(manager, _NAME, None)
    if stream is not None and socket is not None and not isinstance(socket, _LooksAfterSending):
        setattr(manager, _NAME, _LooksAfterSending(socket, stream))
