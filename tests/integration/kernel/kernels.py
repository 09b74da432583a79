"""A real ipykernel in the environment that the provisioner would give it, with a front end that answers prompts.

with running_kernel(broker) as kernel:
    kernel.run("%gpu request")

No Jupyter server: what one would say to the broker (the session, what the kernel does) is said here.
"""

from __future__ import annotations

import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, final

import msgspec
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.connect import write_connection_file

from jupyter_gpubroker.client import routes
from jupyter_gpubroker.server.environment import Terms, managed, with_magic
from jupyter_gpubroker.wire.bodies import ReportsBody, SessionBody
from jupyter_gpubroker.wire.views import LeaseView, SessionView
from tests.support.broker import Holder, RunningBroker, new_id

WAIT_S = 60.0
SERVER_ID = "test"

Found = TypeVar("Found")
Answer = Callable[[str], str]


def until(what: str, holds: Callable[[], Found | None], wait_s: float = WAIT_S) -> Found:
    """The first true value of `holds()`."""
    due = time.monotonic() + wait_s
    while not (found := holds()):
        assert time.monotonic() < due, f"waited in vain: {what}"
        time.sleep(0.02)
    return found


@dataclass
class Ran:
    """What a cell showed. `displays` maps ids of updated displays to all their texts, in order."""

    status: str = ""
    text: str = ""
    error: str = ""
    prompts: list[str] = field(default_factory=list)
    displays: dict[str, list[str]] = field(default_factory=dict)
    replies: list[dict[str, Any]] = field(default_factory=list)

    @property
    def displayed(self) -> str:
        return "\n".join(text for texts in self.displays.values() for text in texts)


class Kernel:
    """One kernel process and its front end."""

    def __init__(self, broker: RunningBroker, folder: Path, first_use: str, python: str) -> None:
        self.broker = broker
        self.id = new_id()
        self.python = python
        self.front_ends = 1
        self._displays: dict[str, list[str]] = {}
        self._unheard: list[dict[str, Any]] = []
        connection_file = str(folder / f"kernel-{self.id}.json")
        # No TCP: free ports are not free for long where tests run side by side.
        write_connection_file(connection_file, ip=str(folder / "k"), transport="ipc")
        terms = Terms(broker.url, self.id, first_use, broker.places.simulated)
        argv = [python, "-m", "ipykernel_launcher", "-f", connection_file]
        argv, environ = with_magic(argv, managed(dict(broker.environ), terms))
        self.log = folder / f"{self.id}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                argv, env={**environ, "LANG": "C.UTF-8"}, stdout=log, stderr=log, cwd=folder
            )
        self.register()
        self.client = BlockingKernelClient(connection_file=connection_file)
        self.client.load_connection_file()
        self.client.start_channels(hb=False)

    def until_ready(self) -> None:
        """Until it hears and is heard."""
        until("the kernel's first words", self._answers)

    def _answers(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()[-3_000:]
        try:
            self.client.kernel_info(reply=True, timeout=2)
            self.client.get_iopub_msg(timeout=1)
        except (queue.Empty, TimeoutError):
            return False
        return True

    def register(self) -> None:
        """Say what the provisioner says."""
        body = SessionBody("kernel", "work.ipynb", self.process.pid, self.id, SERVER_ID)
        self.broker.client.call(routes.PUT_SESSION, self.id, body)

    def report(self, activity: str) -> None:
        """Say what the watcher sees."""
        report = {"session_id": self.id, "activity": activity, "front_ends": self.front_ends}
        body = msgspec.convert({"server_id": SERVER_ID, "sessions": [report]}, ReportsBody)
        self.broker.client.call(routes.REPORT_SESSIONS, body=body)

    # --- cells -----------------------------------------------------------------------------------

    def start(self, code: str, *, silent: bool = False) -> str:
        """Send a cell and do not wait."""
        return str(self.client.execute(code, silent=silent, allow_stdin=True))

    def run(
        self,
        code: str,
        answers: Sequence[str | Answer] = (),
        *,
        silent: bool = False,
        reported: bool = True,
    ) -> Ran:
        """Run a cell to its end. Prompts are answered in turn; a function answers when it returns.

        `reported` is False where there is no broker to hear of it.
        """
        if reported:
            self.report("running")
        ran = self.finish(self.start(code, silent=silent), answers)
        if reported:
            self.report("idle")
        return ran

    def finish(self, cell: str, answers: Sequence[str | Answer] = ()) -> Ran:
        ran = Ran()
        left = list(answers)
        due = time.monotonic() + WAIT_S
        ended = False
        while not (ended and ran.status):
            assert time.monotonic() < due, f"{ran}\n{self.log.read_text()[-3_000:]}"
            ended |= self._hear(cell, ran)
            self._answer_prompts(ran, left)
            self._take_reply(cell, ran)
        return ran

    def _hear(self, cell: str, ran: Ran) -> bool:
        """Take one message from iopub; True for the end of the cell."""
        if not self._unheard:
            self._listen()
        if not self._unheard:
            return False
        message = self._unheard.pop(0)
        if message["parent_header"].get("msg_id") != cell:
            return False
        content = message["content"]
        if message["msg_type"] == "stream":
            ran.text += content["text"]
        elif message["msg_type"] == "execute_result":
            ran.text += content["data"]["text/plain"]
        elif message["msg_type"] == "error":
            ran.error = "\n".join(content["traceback"])
        ran.displays = self._displays
        return bool(message["msg_type"] == "status" and content["execution_state"] == "idle")

    def _take_display(self, message: Mapping[str, Any]) -> None:
        content = message["content"]
        if message["msg_type"] in ("display_data", "update_display_data"):
            display_id = content.get("transient", {}).get("display_id", "")
            self._displays.setdefault(display_id, []).append(content["data"]["text/plain"])

    def forget_displays(self) -> None:
        """For the next test."""
        self.displayed()
        self._displays = {}

    def displayed(self) -> str:
        """All texts displayed so far, whatever cell they belong to."""
        while self._listen():
            pass
        return "\n".join(text for texts in self._displays.values() for text in texts)

    def _listen(self) -> bool:
        """Take a message from iopub, if there is one, for whoever asks for it."""
        try:
            message = self.client.get_iopub_msg(timeout=0.02)
        except queue.Empty:
            return False
        self._take_display(message)
        self._unheard.append(message)
        return True

    def _answer_prompts(self, ran: Ran, left: list[str | Answer]) -> None:
        try:
            message = self.client.get_stdin_msg(timeout=0.0)
        except queue.Empty:
            return
        prompt = message["content"]["prompt"]
        ran.prompts.append(prompt)
        assert left, f"asked {prompt!r} unexpectedly: {ran}"
        answer = left.pop(0)
        self.report("input")
        text = answer if isinstance(answer, str) else answer(prompt)
        self.report("running")
        self.client.input(text)

    def _take_reply(self, cell: str, ran: Ran) -> None:
        try:
            reply = self.client.get_shell_msg(timeout=0.0)
        except queue.Empty:
            return
        if reply["parent_header"].get("msg_id") == cell:
            ran.status = reply["content"]["status"]

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    # --- what the broker says ----------------------------------------------------------------------

    def session(self) -> SessionView:
        return self.broker.client.call(routes.SESSION, self.id)

    @property
    def lease(self) -> LeaseView | None:
        """Its newest lease that is not over."""
        leases = [lease for lease in self.session().leases if lease.state != "cleared"]
        return leases[-1] if leases else None

    def until_lease(self, *states: str) -> LeaseView:
        return until(
            f"a lease that is {states}",
            lambda: lease if (lease := self.lease) and lease.state in states else None,
        )

    def ends_up_without_a_gpu(self) -> None:
        """For the next test. Only where nothing of this process is on the device."""
        self.run("%gpu")
        if self.lease is not None:
            self.run("%gpu release")
            until("the lease's end", lambda: self.lease is None)

    def close(self) -> None:
        self.client.stop_channels()
        self.process.kill()
        self.process.wait()


@contextmanager
def running_kernel(
    broker: RunningBroker, folder: Path, first_use: str = "none", python: str = sys.executable
) -> Iterator[Kernel]:
    kernel = Kernel(broker, folder, first_use, python)
    try:
        kernel.until_ready()
        yield kernel
    finally:
        kernel.close()


@final
class Rival:
    """Somebody else who asks for the only GPU, listens for the answer, uses it and gives it back."""

    def __init__(self, broker: RunningBroker) -> None:
        self._client = broker.client
        self._holder = Holder(broker)
        self._request = self._holder.ask()
        self._stopped = threading.Event()
        self._listener = threading.Thread(target=self._listen)

    def __enter__(self) -> Rival:
        self._listener.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._listener.join()
        self._holder.kill()

    def _listen(self) -> None:
        """A request is demand only while its client is there."""
        while not self._stopped.wait(0.1):
            self._client.call(routes.REQUEST, self._request.id)

    def until_served(self) -> LeaseView:
        view = until(
            "the rival's turn",
            lambda: self._client.call(routes.REQUEST, self._request.id).lease,
        )
        self._stopped.set()
        self._listener.join()
        return self._client.call(routes.ACKNOWLEDGE, view.id)

    def gives_back(self) -> None:
        """Its process ends, which frees the GPU."""
        self._holder.kill()
