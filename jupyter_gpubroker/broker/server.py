"""The HTTP server with a bound on connections, so that clients never use up the files that the broker needs itself."""

from __future__ import annotations

import resource
import sys
from contextlib import suppress
from typing import Any

import msgspec
from tornado import httpserver
from tornado.iostream import IOStream, StreamClosedError

from ..core.model import Reason
from .api.problems import problem_of


class Server(httpserver.HTTPServer):
    """Tells whoever connects when half of our files are connections to come back later."""

    def handle_stream(self, stream: IOStream, address: Any) -> None:
        if len(self._connections) < open_files_max() // 2:
            super().handle_stream(stream, address)
        else:
            _turn_away(stream)


def raise_open_files_max() -> None:
    """As many open files as the system allows us; the usual limit is for programs that use select."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def open_files_max() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


def _turn_away(stream: IOStream) -> None:
    body = msgspec.json.encode(problem_of(503, Reason.of("broker_overloaded")))
    head = (
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n"
        f"Content-Length: {len(body)}\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"
    )
    try:
        stream.write(head.encode() + body).add_done_callback(lambda _: stream.close())
    except StreamClosedError:
        stream.close()
