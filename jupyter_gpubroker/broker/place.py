"""The place of this broker: the lock that makes it the only one, and the socket that clients find.

Held for the life of the process. Whoever cleans temporary folders may take either away; then nobody finds this broker any
more and another may be started, so `is_ours` says no and the process ends.
"""

from __future__ import annotations

import fcntl
import os
import socket
from pathlib import Path

BACKLOG = 1_024


class AnotherBroker(Exception):
    """The lock is another process's."""


class Place:
    """Take it, then `listen`. Raises AnotherBroker."""

    def __init__(self, lock_path: Path, socket_path: Path, *, is_open: bool = False) -> None:
        self._lock_path = lock_path
        self._socket_path = socket_path
        self._is_open = is_open
        self._lock = os.open(lock_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise AnotherBroker(f"Another broker holds {lock_path}.") from None
        self._socket_inode: int | None = None

    def listen(self) -> socket.socket:
        """The listening socket, 0600, or 0666 where it is open to all.

        What a dead broker left at its path is removed; the lock says that it is dead.
        """
        self._socket_path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        listener.setblocking(False)
        before = os.umask(0o111 if self._is_open else 0o177)
        try:
            listener.bind(str(self._socket_path))
        finally:
            os.umask(before)
        listener.listen(BACKLOG)
        self._socket_inode = self._socket_path.lstat().st_ino
        return listener

    @property
    def is_ours(self) -> bool:
        return _inode(self._socket_path) == self._socket_inode and (
            _inode(self._lock_path) == os.fstat(self._lock).st_ino
        )

    def give_up(self) -> None:
        if _inode(self._socket_path) == self._socket_inode:
            self._socket_path.unlink(missing_ok=True)
        os.close(self._lock)


def _inode(path: Path) -> int | None:
    try:
        return path.lstat().st_ino
    except FileNotFoundError:
        return None
