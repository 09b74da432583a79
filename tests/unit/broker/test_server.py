"""Connections are bounded, and who comes too late is told so."""

from __future__ import annotations

import asyncio

import pytest
from tornado import web
from tornado.testing import bind_unused_port

from jupyter_gpubroker.broker import server as server_module
from jupyter_gpubroker.broker.server import Server

pytestmark = pytest.mark.asyncio


async def test_who_connects_beyond_half_of_the_files_is_told_to_come_back(monkeypatch) -> None:
    monkeypatch.setattr(server_module, "open_files_max", lambda: 2)
    listener, port = bind_unused_port()
    server = Server(web.Application([]))
    server.add_socket(listener)
    call = b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(call)
    assert b"404" in await reader.readline()
    late_reader, late_writer = await asyncio.open_connection("127.0.0.1", port)
    refusal = await late_reader.read()
    assert refusal.startswith(b"HTTP/1.1 503 ")
    assert b"Connection: close" in refusal
    assert b"broker_overloaded" in refusal
    for one in (writer, late_writer):
        one.close()
    await server.close_all_connections()
    server.stop()
