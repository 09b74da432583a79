"""A real broker process on simulated GPUs, for every test that needs one.

    with running_broker("2xH200", policy=POLICY) as broker:
        broker.client.call(routes.GPUS)

It lives in the places that the environment names (the `folders` fixture makes them for each test) and is given a policy
whose limits are short. `broker.kill()` is the worst end, `broker.start()` starts it anew on the same state. `Holder` is a
child process that stands for a kernel.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, final

import msgspec
import psutil

from jupyter_gpubroker.client import BrokerClient, Places, routes
from jupyter_gpubroker.wire.bodies import ReportsBody, RequestBody, SessionBody, SpecBody
from jupyter_gpubroker.wire.views import LeaseView, RequestView, SessionView

# How long to wait at most, for slow machines at work.
START_S = 60.0
END_S = 30.0


def new_id() -> str:
    return uuid.uuid4().hex


@dataclass
class RunningBroker:
    """`environ` is what its clients need to find it; `client` stays the same over restarts."""

    environ: Mapping[str, str]
    places: Places
    arguments: Sequence[str]
    client: BrokerClient = field(init=False)
    process: subprocess.Popen[bytes] = field(init=False)
    start_cpu_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.client = BrokerClient(self.places.user_url)

    @property
    def url(self) -> str:
        return self.places.user_url

    def start(self) -> None:
        """Start it and wait until its devices were looked at."""
        told, tells = os.pipe()
        with self.places.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "jupyter_gpubroker.broker",
                    f"--ready-fd={tells}",
                    *self.arguments,
                ],
                env=dict(self.environ),
                stderr=log,
                pass_fds=[tells],
            )
        os.close(tells)
        is_told = bool(select.select([told], [], [], START_S)[0])
        listens = is_told and os.read(told, 1) != b""
        os.close(told)
        assert listens, self.places.log.read_text()[-2_000:]
        self.start_cpu_s = psutil.Process(self.process.pid).cpu_times().user
        for health in self.client.watch(routes.HEALTH, wait_s=5):
            if health.ready:
                break

    def until_free(self, slots: int) -> None:
        """Wait until so many slots are free and nobody waits for one."""
        for queue in self.client.watch(routes.QUEUE):
            if queue.free_slots == slots and not queue.waiting:
                return

    def stop(self) -> int:
        """End it as a service manager would; its exit status."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(END_S)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(END_S)


@contextmanager
def running_broker(
    simulate: str = "2xH200",
    *,
    policy: str | None = None,
    arguments: Sequence[str] = ("--observe-every-s=0.1", "--attend-grace-s=600"),
) -> Iterator[RunningBroker]:
    """A broker that listens and knows its devices. `policy` is the text of its policy file.

    Requests stay in line though no test polls them; where leaving it is tested, `arguments` say when.
    """
    environ = {**os.environ, "GPUBROKER_SIMULATE": simulate}
    places = Places.find(environ)
    places.prepare()
    if policy is not None:
        places.config.mkdir(parents=True, exist_ok=True)
        places.policy.write_text(policy)
    broker = RunningBroker(environ, places, arguments)
    try:
        broker.start()
        yield broker
    finally:
        if broker.process.poll() is None:
            broker.stop()
        broker.client.close()


@final
class Holder:
    """A process that lives until told otherwise, registered as a kernel's session."""

    def __init__(self, broker: RunningBroker, kind: str = "kernel", **fields: object) -> None:
        self.id = new_id()
        self._client = broker.client
        self.process = subprocess.Popen(["sleep", "infinity"])
        fields = {"kind": kind, "name": "test.ipynb", "pid": self.process.pid, **fields}
        body = msgspec.convert(fields, SessionBody)
        self.view: SessionView = self._client.call(routes.PUT_SESSION, self.id, body)

    def __enter__(self) -> Holder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def report(self, activity: str, front_ends: int = 1) -> None:
        """What its Jupyter server would report."""
        report = {"session_id": self.id, "activity": activity, "front_ends": front_ends}
        body = msgspec.convert({"server_id": "test", "sessions": [report]}, ReportsBody)
        self._client.call(routes.REPORT_SESSIONS, body=body)

    def ask(
        self, *, wait_ms: int | None = None, queue: str = "interactive", **spec: Any
    ) -> RequestView:
        """Make a request; it may be granted already in the answer."""
        body = RequestBody(self.id, msgspec.convert(spec, SpecBody), queue=queue, wait_ms=wait_ms)
        return self._client.call(routes.PUT_REQUEST, new_id(), body)

    def acquire(self, **spec: Any) -> LeaseView:
        """Ask, wait until granted, and acknowledge."""
        request = self.ask(**spec)
        for view in self._client.watch(routes.REQUEST, request.id):
            if view.lease is not None:
                return self._client.call(routes.ACKNOWLEDGE, view.lease.id)
            assert view.state == "waiting", view.sentence
        raise AssertionError("a watch never ends")
