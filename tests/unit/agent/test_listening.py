"""Whether a tree serves: real sockets, a kernel's own among them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_gpubroker.agent.listening import listens
from jupyter_gpubroker.agent.processes import ProcessTable

SERVER = """
import socket, sys
listening = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print(*[one.getsockname()[1] for one in listening], flush=True)
sys.stdin.read()
"""


class Serving:
    """A process that listens at so many ports; its further arguments are as a kernel's."""

    def __init__(self, script: Path, count: int, *arguments: str) -> None:
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(SERVER)
        program = script.parent if script.name == "__main__.py" else script
        self.process = subprocess.Popen(
            [sys.executable, "-S", str(program), str(count), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        self.ports = list(map(int, self.process.stdout.readline().split()))

    def end(self) -> None:
        self.process.communicate()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[object]:
    started: list[Serving] = []

    def serve(count: int, *arguments: str, script: str = "server.py") -> Serving:
        started.append(Serving(tmp_path / script, count, *arguments))
        return started[-1]

    yield serve
    for one in started:
        one.end()


def test_a_process_that_listens_serves_and_one_that_does_not_does_not(serve):
    server, quiet = serve(1), serve(0)
    assert listens(ProcessTable(), [quiet.process.pid]) is False
    assert listens(ProcessTable(), [quiet.process.pid, server.process.pid]) is True


def test_a_socket_that_is_connected_is_no_server(serve):
    server = serve(1)
    with socket.create_connection(("127.0.0.1", server.ports[0])):
        assert listens(ProcessTable(), [os.getpid()]) is False


def test_the_ports_that_a_kernel_needs_for_itself_do_not_count(serve, tmp_path):
    connection = tmp_path / "kernel-1.json"
    connection.write_text("{}")
    kernel = serve(2, "-f", str(connection))
    shell, hb = kernel.ports
    connection.write_text(json.dumps({"shell_port": shell, "ip": "127.0.0.1"}))
    assert listens(ProcessTable(), [kernel.process.pid]) is True
    connection.write_text(json.dumps({"shell_port": shell, "hb_port": hb}))
    assert listens(ProcessTable(), [kernel.process.pid]) is False


def test_a_debuggers_adapter_is_no_server(serve):
    adapter = serve(1, script="debugpy/adapter/__main__.py")
    assert listens(ProcessTable(), [adapter.process.pid]) is False


def test_a_process_that_may_not_be_looked_at_leaves_it_unknown(proc, table, monkeypatch):
    def refuse(*_: object) -> list[str]:
        raise PermissionError

    monkeypatch.setattr(ProcessTable, "open_files", refuse)
    assert listens(table, [10]) is None


def test_who_is_gone_does_not_serve(table):
    assert listens(table, [10]) is False
