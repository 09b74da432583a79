"""One HTTP/1.1 exchange with the broker over its Unix socket, with a deadline.

Written by hand because importing the standard library's client costs every kernel start some 30 ms. Before the first byte is
sent the server is checked: only the owner of the socket's folder is talked to, and only where nobody else may write there.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from typing import Any, Dict, NamedTuple, Optional, Tuple

from .errors import Unavailable
from .sentences import say

ANSWER_BYTES_MAX = 4 * 1024 * 1024
HEAD_BYTES_MAX = 64 * 1024
CONNECT_S = 2.0


class Answer(NamedTuple):
    """`body` is the decoded JSON, None where there is none (204, 304)."""

    status: int
    etag: Optional[str]
    body: Any


class Transport:
    """`path` is the broker's socket. Safe to use from several threads: each exchange has its own connection."""

    def __init__(self, path: str) -> None:
        self.path = path

    def exchange(
        self,
        method: str,
        target: str,
        body: Optional[Dict[str, Any]] = None,
        headers: Optional[Dict[str, str]] = None,
        deadline_s: float = 10.0,
    ) -> Answer:
        """Raises Unavailable when nobody (or somebody else) is there, or the answer is late or no answer."""
        due = time.monotonic() + deadline_s
        try:
            with self._connected() as connection:
                connection.settimeout(deadline_s)
                connection.sendall(_request(method, target, body, headers or {}))
                head, rest = _read_head(connection, due)
                status, fields = _parse_head(head)
                content = _read_content(connection, due, rest, status, fields)
        except socket.timeout:
            raise Unavailable(say("broker_silent")) from None
        except (OSError, ValueError, EOFError, IndexError):
            raise Unavailable(say("no_broker")) from None
        return Answer(status, fields.get("etag"), _decoded(content))

    def _connected(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(CONNECT_S)
            connection.connect(self.path)
            _check_server(connection, os.path.dirname(self.path))
        except BaseException:
            connection.close()
            raise
        return connection


def _check_server(connection: socket.socket, folder: str) -> None:
    credentials = connection.getsockopt(
        socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")
    )
    uid = struct.unpack("3i", credentials)[1]
    owner = os.stat(folder)
    if uid != owner.st_uid or owner.st_mode & 0o022:
        raise Unavailable(say("broker_not_trusted", uid=uid, owner=owner.st_uid))


def _request(
    method: str, target: str, body: Optional[Dict[str, Any]], headers: Dict[str, str]
) -> bytes:
    content = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {target} HTTP/1.1", "Host: broker", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body is not None:
        lines += ["Content-Type: application/json"]
    if content or method in ("POST", "PUT"):
        lines += [f"Content-Length: {len(content)}"]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + content


def _read_head(connection: socket.socket, due: float) -> Tuple[bytes, bytes]:
    received = b""
    while b"\r\n\r\n" not in received:
        if len(received) > HEAD_BYTES_MAX:
            raise ValueError("the answer's head is too long")
        received += _receive(connection, due)
    head, _, rest = received.partition(b"\r\n\r\n")
    return head, rest


def _parse_head(head: bytes) -> Tuple[int, Dict[str, str]]:
    first, *lines = head.decode("latin-1").split("\r\n")
    fields = {}
    for line in lines:
        name, _, value = line.partition(":")
        fields[name.strip().lower()] = value.strip()
    return int(first.split(" ", 2)[1]), fields


def _read_content(
    connection: socket.socket, due: float, rest: bytes, status: int, fields: Dict[str, str]
) -> bytes:
    if status in (204, 304):
        return b""
    length = int(fields["content-length"]) if "content-length" in fields else None
    if length is None and "transfer-encoding" in fields:
        raise ValueError("the broker always says how long its answers are")
    content = bytearray(rest)
    while length is None or len(content) < length:
        if len(content) > ANSWER_BYTES_MAX:
            raise ValueError("the answer is too long")
        try:
            content += _receive(connection, due)
        except EOFError:
            if length is not None:
                raise
            break
    return bytes(content)


def _receive(connection: socket.socket, due: float) -> bytes:
    left_s = due - time.monotonic()
    if left_s <= 0:
        raise socket.timeout
    connection.settimeout(left_s)
    received = connection.recv(64 * 1024)
    if not received:
        raise EOFError("the connection ended in the middle of an answer")
    return received


def _decoded(content: bytes) -> Any:
    if not content:
        return None
    try:
        return json.loads(content)
    except ValueError:
        raise Unavailable(say("broker_unreadable")) from None
