"""A real Jupyter server, and notebooks driven as a browser does: REST to start a kernel, a websocket to use it."""

from __future__ import annotations

import asyncio
import json
import secrets
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from .place import DemoPlace

LOOK_S = 0.05
MESSAGE_BYTES_MAX = 10_000_000
NO_TIMEOUT = 0.0  # for tornado; the demo has a limit of its own


class Failed(Exception):
    """Something did not happen, and the message says what was seen instead."""


class JupyterServer:
    """A server on a free port of the loopback interface, open only to who has its token."""

    def __init__(self, place: DemoPlace) -> None:
        self._place = place
        self._token = secrets.token_hex(24)
        self._log = place.root / "jupyter.log"
        self._url = ""

    async def start(self) -> None:
        """Start it and wait until it answers. If nobody ended it, it would end itself once it is not used any more."""
        process = await asyncio.to_thread(self._launch)
        while not await self._answers(process.pid):
            if process.poll() is not None:
                raise Failed(f"the Jupyter server did not start: {self._last_words()}")
            await asyncio.sleep(LOOK_S)

    async def request(self, method: str, path: str, body: object = None) -> Any:
        """Call the server's REST API."""
        request = HTTPRequest(
            self._url + path,
            method=method,
            headers=self._headers(),
            body=None if body is None else json.dumps(body),
            connect_timeout=NO_TIMEOUT,
            request_timeout=NO_TIMEOUT,
        )
        try:
            response = await AsyncHTTPClient().fetch(request)
        except HTTPClientError as error:
            raise Failed(f"the Jupyter server refused {method} {path}: {error}") from error
        return json.loads(response.body) if response.body else None

    async def open_notebook(self, name: str) -> Notebook:
        """Open a notebook of that name, as a browser does: a session with a kernel, and its channels."""
        body = {"path": name, "name": name, "type": "notebook", "kernel": {"name": "python3"}}
        session = await self.request("POST", "/api/sessions", body)
        kernel_id = session["kernel"]["id"]
        url = f"ws{self._url.removeprefix('http')}/api/kernels/{kernel_id}/channels?session_id={uuid.uuid4().hex}"
        request = HTTPRequest(url, headers=self._headers(), connect_timeout=NO_TIMEOUT)
        connection = await websocket_connect(request, max_message_size=MESSAGE_BYTES_MAX)
        return Notebook(self, kernel_id, connection)

    def _launch(self) -> subprocess.Popen[bytes]:
        return self._place.spawn(
            [
                sys.executable,
                "-m",
                "jupyter_server",
                "--allow-root",
                "--no-browser",
                "--ServerApp.ip=127.0.0.1",
                "--ServerApp.port=0",
                f"--ServerApp.root_dir={self._place.work}",
                "--ServerApp.jpserver_extensions={'jupyter_gpubroker': True}",
                "--ServerApp.shutdown_no_activity_timeout=120",
                "--MappingKernelManager.cull_idle_timeout=120",
                "--MappingKernelManager.cull_interval=30",
                "--MappingKernelManager.cull_busy=True",
            ],
            {"JUPYTER_TOKEN": self._token},
            self._log,
        )

    async def _answers(self, pid: int) -> bool:
        """Whether it can be used yet. It tells where it listens a moment before it does."""
        self._url = self._told_url(pid)
        if not self._url:
            return False
        try:
            await self.request("GET", "/api/status")
        except OSError:
            return False
        return True

    def _told_url(self, pid: int) -> str:
        """Where the server listens, as it writes down for other programs; nothing until then."""
        told = Path(self._place.environment["JUPYTER_RUNTIME_DIR"], f"jpserver-{pid}.json")
        try:
            return str(json.loads(told.read_bytes())["url"]).rstrip("/")
        except (OSError, ValueError):
            return ""

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"token {self._token}"}

    def _last_words(self) -> str:
        lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else "it said nothing"


class Cell:
    """One execution. `text` is all it printed, returned or raised so far."""

    def __init__(self) -> None:
        self.text = ""
        self.failed = False
        self._left = {"execute_reply", "idle"}
        self._ended = asyncio.Event()

    async def ended(self) -> str:
        """Wait for its end; what it said. Raises Failed when it raised."""
        await self._ended.wait()
        if self.failed:
            raise Failed(f"a cell failed: {self.text.strip()[-500:]}")
        return self.text

    async def interrupted(self) -> None:
        """Wait for its end by an interrupt. Raises Failed when it ended otherwise."""
        await self._ended.wait()
        if "KeyboardInterrupt" not in self.text:
            raise Failed(f"a cell ended before it was interrupted: {self.text.strip()[-500:]}")

    def saw(self, what: str) -> None:
        """A sign of its end; it has ended when both were seen."""
        self._left.discard(what)
        if not self._left:
            self._ended.set()


class Notebook:
    """An open notebook. `displays` are the texts of everything displayed, newest last, whoever displayed it."""

    def __init__(
        self, server: JupyterServer, kernel_id: str, connection: WebSocketClientConnection
    ) -> None:
        self.kernel_id = kernel_id
        self.displays: list[str] = []
        self._server = server
        self._connection = connection
        self._cells: dict[str, Cell] = {}
        self._asked: dict[str, Any] | None = None
        self._changed = asyncio.Condition()
        self._reader = asyncio.create_task(self._read())

    def run(self, code: str) -> Cell:
        """Execute a cell; it may ask for input."""
        cell = Cell()
        content = {
            "code": code,
            "silent": False,
            "store_history": True,
            "allow_stdin": True,
            "stop_on_error": True,
        }
        self._cells[self._send("shell", "execute_request", content)] = cell
        return cell

    async def evaluate(self, code: str) -> str:
        """Execute a cell and wait for its end; what it said."""
        return await self.run(code).ended()

    async def prompted(self) -> None:
        """Wait until the kernel asks for input, as a debugger's prompt does."""
        await self.until(lambda: self._asked is not None)

    def answer(self, text: str) -> None:
        """Type an answer at the prompt."""
        assert self._asked is not None, "nothing was asked"
        asked, self._asked = self._asked, None
        self._send("stdin", "input_reply", {"value": text}, asked["header"])

    async def interrupt(self) -> None:
        """Press the stop button."""
        await self._server.request("POST", f"/api/kernels/{self.kernel_id}/interrupt", {})

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so, looked at after each message."""
        async with self._changed:
            await self._changed.wait_for(is_so)

    async def close(self) -> None:
        """Close the tab and shut the kernel down."""
        self._reader.cancel()
        self._connection.close()
        await self._server.request("DELETE", f"/api/kernels/{self.kernel_id}")

    def _send(self, channel: str, kind: str, content: object, parent: object = None) -> str:
        message_id = uuid.uuid4().hex
        header = {
            "msg_id": message_id,
            "msg_type": kind,
            "session": self.kernel_id,
            "username": "demo",
            "version": "5.3",
        }
        message = {
            "channel": channel,
            "header": header,
            "parent_header": parent or {},
            "metadata": {},
            "content": content,
            "buffers": [],
        }
        self._connection.write_message(json.dumps(message))
        return message_id

    async def _read(self) -> None:
        while (raw := await self._connection.read_message()) is not None:
            async with self._changed:
                self._take(json.loads(raw))
                self._changed.notify_all()

    def _take(self, message: dict[str, Any]) -> None:
        kind, content = message["header"]["msg_type"], message["content"]
        if kind == "input_request":
            self._asked = message
        elif kind in {"display_data", "update_display_data"}:
            self.displays.append(content["data"].get("text/plain", ""))
        cell = self._cells.get(message["parent_header"].get("msg_id", ""))
        if cell is None:
            return
        if kind == "stream":
            cell.text += content["text"]
        elif kind == "execute_result":
            cell.text += content["data"]["text/plain"] + "\n"
        elif kind == "error":
            cell.failed = True
            cell.text += f"{content['ename']}: {content['evalue']}\n"
        elif kind == "execute_reply":
            cell.saw("execute_reply")
        elif kind == "status" and content["execution_state"] == "idle":
            cell.saw("idle")
