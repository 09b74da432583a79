"""Real child processes on simulated GPUs: `start_worker` runs one that executes what the test says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpubroker.devices.simulated import SimulatedReader

_LOOP = """
import json, os, sys
from gpubroker import simulated
names = {"simulated": simulated, "os": os}
print("ready", flush=True)
for line in sys.stdin:
    code = json.loads(line)
    try:
        try:
            value = eval(compile(code, "test", "eval"), names)
        except SyntaxError:
            value = exec(code, names)
        answer = {"value": value if isinstance(value, (int, str, bool, dict, list)) else None}
    except (Exception, KeyboardInterrupt) as error:
        answer = {"error": type(error).__name__, "text": str(error)}
    print(json.dumps(answer), flush=True)
"""


class WorkerError(Exception):
    """The code raised in the worker; `name` is the exception's class."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name = name


class Worker:
    """A process that sees the given devices. `run` waits for the answer, `begin` and `end` do not and do."""

    def __init__(self, folder: Path, visible: str | None, **environment: str) -> None:
        given = {"GPUBROKER_SIMULATED_STATE": str(folder), **environment}
        if visible is not None:
            given["CUDA_VISIBLE_DEVICES"] = visible
        self.process = subprocess.Popen(
            [sys.executable, "-c", _LOOP],
            env={**os.environ, **given},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    @property
    def pid(self) -> int:
        return self.process.pid

    def begin(self, code: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(code) + "\n")
        self.process.stdin.flush()

    def end(self) -> Any:
        assert self.process.stdout is not None
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise WorkerError(answer["error"], answer["text"])
        return answer["value"]

    def run(self, code: str) -> Any:
        self.begin(code)
        return self.end()

    def interrupt(self) -> None:
        self.process.send_signal(signal.SIGINT)

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()


StartWorker = Callable[..., Worker]


def eventually(is_so: Callable[[], bool], within_s: float = 10.0) -> None:
    """Wait for something that another process does."""
    deadline_s = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline_s, "it did not happen"
        time.sleep(0.005)


@pytest.fixture
def state(folders: Any) -> Path:
    path: Path = folders.runtime / "simulated"
    return path


@pytest.fixture
def reader(state: Path) -> SimulatedReader:
    """Two whole GPUs and one split in two."""
    return SimulatedReader("2xL4,1xA100:3g.40gb+4g.40gb", state)


@pytest.fixture
def slots(reader: SimulatedReader) -> list[str]:
    return [slot.uuid for gpu in reader.inventory().gpus for slot in gpu.slots]


@pytest.fixture
def start_worker(state: Path) -> Iterator[StartWorker]:
    started: list[Worker] = []

    def start(visible: str | None, **environment: str) -> Worker:
        started.append(Worker(state, visible, **environment))
        return started[-1]

    yield start
    for worker in started:
        worker.stop()


@pytest.fixture
def until() -> Callable[..., None]:
    return eventually


@pytest.fixture
def worker_error() -> type[WorkerError]:
    return WorkerError
