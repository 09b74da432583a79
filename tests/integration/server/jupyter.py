"""A real Jupyter server with our extension, and a front end that speaks to its kernels as a browser would.

with running_server(broker) as server:
    kernel = server.start_kernel()
    with kernel.front_end() as page:
        page.run("1 + 1")
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import httpx
import websocket
from jupyter_client.session import Session
from jupyter_server.services.kernels.connection.base import (
    deserialize_msg_from_ws_v1,
    serialize_msg_to_ws_v1,
)

from jupyter_gpubroker.client import routes
from jupyter_gpubroker.server.tap import V1
from jupyter_gpubroker.wire.bodies import RequestBody
from jupyter_gpubroker.wire.views import LeaseView, SessionView
from tests.support.broker import RunningBroker, new_id

# How long to wait at most, for slow machines at work.
START_S = 120.0
WAIT_S = 60.0
TOKEN = "t"
_PACK = Session(key=b"")

Found = TypeVar("Found")


def until(what: str, holds: Callable[[], Found | None], wait_s: float = WAIT_S) -> Found:
    """The first true value of `holds()`."""
    due = time.monotonic() + wait_s
    while not (found := holds()):
        assert time.monotonic() < due, f"waited in vain: {what}"
        time.sleep(0.05)
    return found


def configure(folder: Path) -> None:
    """Without those extensions of the environment that take seconds to load and are not looked at here."""
    folder.mkdir(exist_ok=True)
    others = dict.fromkeys(("jupyterlab", "jupyter_lsp", "notebook_shim"), False)
    settings = {"ServerApp": {"jpserver_extensions": others}}
    (folder / "jupyter_server_config.json").write_text(json.dumps(settings))


@dataclass
class JupyterServer:
    broker: RunningBroker
    folder: Path
    arguments: Sequence[str] = ()
    environ: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] = field(init=False)
    http: httpx.Client = field(init=False)
    url: str = ""

    @property
    def log(self) -> Path:
        return self.folder / "jupyter.log"

    def __post_init__(self) -> None:
        headers = {"Authorization": f"token {TOKEN}"}
        self.http = httpx.Client(headers=headers, timeout=WAIT_S, trust_env=False)

    def start(self) -> None:
        runtime, config = self.folder / "jupyter", self.folder / "jupyter_config"
        runtime.mkdir(exist_ok=True)
        configure(config)
        environ = {
            **self.broker.environ,
            "JUPYTER_RUNTIME_DIR": str(runtime),
            "JUPYTER_CONFIG_DIR": str(config),
            "IPYTHONDIR": str(self.folder / "ipython"),
            **self.environ,
        }
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "jupyter_server",
                    "--allow-root",
                    "--no-browser",
                    "--ServerApp.port=0",
                    f"--IdentityProvider.token={TOKEN}",
                    f"--ServerApp.root_dir={self.folder}",
                    *self.arguments,
                ],
                env=environ,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        info = runtime / f"jpserver-{self.process.pid}.json"
        until("the server's information file", lambda: self._is_there(info), START_S)
        self.url = f"http://127.0.0.1:{json.loads(info.read_text())['port']}"
        self.http.base_url = self.url
        until("the server's answer", self._answers, START_S)

    def _is_there(self, info: Path) -> bool:
        assert self.process.poll() is None, self.log.read_text()[-3_000:]
        return info.exists()

    def _answers(self) -> bool:
        try:
            return self.http.get("/api/status").is_success
        except httpx.TransportError:
            return False

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(WAIT_S)

    def close(self) -> None:
        self.http.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            try:
                self.stop()
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def start_kernel(self, path: str | None = None) -> Kernel:
        """Start a kernel, for a notebook when `path` is given, and wait until the broker knows it."""
        if path is None:
            answer = self.http.post("/api/kernels", json={"name": "python3"})
            kernel_id = answer.raise_for_status().json()["id"]
        else:
            body = {"path": path, "name": path, "type": "notebook", "kernel": {"name": "python3"}}
            answer = self.http.post("/api/sessions", json=body)
            kernel_id = answer.raise_for_status().json()["kernel"]["id"]
        kernel = Kernel(self, kernel_id)
        kernel.session()
        return kernel

    def delete_kernels(self) -> None:
        for kernel in self.http.get("/api/kernels").raise_for_status().json():
            self.http.delete(f"/api/kernels/{kernel['id']}")


@dataclass(frozen=True)
class Kernel:
    server: JupyterServer
    id: str

    def sessions(self) -> list[SessionView]:
        found = self.server.broker.client.call(routes.SESSIONS).sessions
        return [session for session in found if session.kernel_id == self.id]

    def session(self, *, other_than: str | None = None) -> SessionView:
        """Its live session, once the broker knows it."""
        return until(
            "the kernel's session",
            lambda: next(
                (s for s in self.sessions() if s.state == "live" and s.id != other_than), None
            ),
        )

    def until_gone(self, session_id: str) -> None:
        until("the session's end", lambda: session_id not in {s.id for s in self.sessions()})

    def until_activity(self, activity: str) -> None:
        try:
            until(f"activity {activity}", lambda: self.session().activity == activity)
        except AssertionError as error:
            raise AssertionError(f"{error}; it is {self.session().activity}") from None

    def acquire(self) -> LeaseView:
        """A GPU for the kernel, asked for from outside; the kernel applies it by itself."""
        client, session = self.server.broker.client, self.session()
        client.call(routes.PUT_REQUEST, new_id(), RequestBody(session.id))
        return until("an active lease", self.active_lease)

    def active_lease(self) -> LeaseView | None:
        leases = [lease for session in self.sessions() for lease in session.leases]
        return next((lease for lease in leases if lease.state == "active"), None)

    @property
    def pid(self) -> int:
        """The process the broker watches."""
        with self.front_end() as page:
            return int(page.run("import os; print(os.getpid())"))

    def restart(self) -> None:
        self.server.http.post(f"/api/kernels/{self.id}/restart").raise_for_status()

    def delete(self) -> None:
        self.server.http.delete(f"/api/kernels/{self.id}").raise_for_status()

    @contextmanager
    def front_end(self, protocol: str | None = V1) -> Iterator[FrontEnd]:
        session_id = uuid.uuid4().hex
        url = self.server.url.replace("http", "ws", 1)
        connection = websocket.create_connection(
            f"{url}/api/kernels/{self.id}/channels?session_id={session_id}&token={TOKEN}",
            timeout=WAIT_S,
            subprotocols=[protocol] if protocol else None,
        )
        page = FrontEnd(connection, protocol, Session(session=session_id))
        try:
            # A kernel drops what it asks a page whose channels are not all connected yet; the one for that connects last.
            page.wait_for("kernel_info_reply", page.send("control", "kernel_info_request", {}))
            yield page
        finally:
            connection.close()


@dataclass
class FrontEnd:
    """One open page. Every message that came in is kept."""

    connection: Any
    protocol: str | None
    session: Session
    messages: list[dict[str, Any]] = field(default_factory=list)

    def send(self, channel: str, kind: str, content: dict[str, Any], **header: Any) -> str:
        message = self.session.msg(kind, content=content)
        message["header"].update(header)
        if self.protocol == V1:
            message["buffers"] = []
            self.connection.send_binary(serialize_msg_to_ws_v1(message, channel, _PACK.pack))
        else:
            self.connection.send(json.dumps({**message, "channel": channel}, default=str))
        return str(message["header"]["msg_id"])

    def execute(self, code: str, **header: Any) -> str:
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": True}
        return self.send("shell", "execute_request", {**content, "user_expressions": {}}, **header)

    def answer(self, value: str) -> None:
        self.send("stdin", "input_reply", {"value": value})

    def receive(self) -> dict[str, Any]:
        raw = self.connection.recv()
        if self.protocol == V1:
            channel, parts = deserialize_msg_from_ws_v1(raw)
            header, parent, _, content = (json.loads(part) for part in parts[:4])
            message = {
                "channel": channel,
                "header": header,
                "parent_header": parent,
                "content": content,
            }
        else:
            message = json.loads(raw)
        self.messages.append(message)
        return message

    def wait_for(self, kind: str, parent_id: str | None = None, **content: Any) -> dict[str, Any]:
        """The next message of a kind, to a request, with certain contents."""
        due = time.monotonic() + WAIT_S
        while time.monotonic() < due:
            message = self.receive()
            if (
                message["header"]["msg_type"] == kind
                and (parent_id is None or message["parent_header"].get("msg_id") == parent_id)
                and content.items() <= message["content"].items()
            ):
                return message
        raise AssertionError(f"no {kind} came")

    def run(self, code: str) -> str:
        """Run to the end; what it printed."""
        request = self.execute(code)
        self.wait_for("status", request, execution_state="idle")
        own = [m for m in self.messages if m["parent_header"].get("msg_id") == request]
        errors = [m["content"] for m in own if m["header"]["msg_type"] == "error"]
        assert not errors, errors
        return "".join(m["content"]["text"] for m in own if m["header"]["msg_type"] == "stream")

    def debug(self, command: str, **arguments: Any) -> dict[str, Any]:
        content = {"type": "request", "command": command, "seq": 1, "arguments": arguments}
        request = self.send("control", "debug_request", content)
        answer: dict[str, Any] = self.wait_for("debug_reply", request)["content"]
        return answer


@contextmanager
def running_server(
    broker: RunningBroker, folder: Path, *arguments: str, **environ: str
) -> Iterator[JupyterServer]:
    server = JupyterServer(broker, folder, arguments, environ)
    try:
        server.start()
        yield server
    except BaseException:
        print(server.log.read_text()[-8_000:])
        raise
    finally:
        server.close()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
