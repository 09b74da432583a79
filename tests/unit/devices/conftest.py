"""Real child processes on simulated GPUs (`start_worker` runs one that executes what the test says), and the real pynvml over
a stub of NVIDIA's library, whose devices are `nvml_world`."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pynvml  # noqa: TID251 - its traps are what is tested
import pytest

from jupyter_gpubroker.devices.nvml import NvmlReader
from jupyter_gpubroker.devices.nvml import reader as nvml_reader
from jupyter_gpubroker.devices.simulated import SimulatedReader
from tests.support.nvml.world import VARIABLE, NvmlWorld, build, four_gpus, has_compiler

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


class Clock:
    """Time that passes when the test says so, for the readers alone."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._passed_ns = 0
        begun_ns, wall_ns = time.monotonic_ns(), time.time_ns()
        monkeypatch.setattr(nvml_reader, "monotonic_ns", lambda: begun_ns + self._passed_ns)
        monkeypatch.setattr(nvml_reader, "time_ns", lambda: wall_ns + self._passed_ns)

    def now_ms(self) -> int:
        """For the simulated devices, which have a clock of their own."""
        return 1_000_000 + self._passed_ns // 1_000_000

    def pass_ms(self, milliseconds: int) -> None:
        self._passed_ns += milliseconds * 1_000_000


@pytest.fixture(scope="session")
def nvml_stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not has_compiler():
        pytest.skip("needs gcc to build a stub of NVIDIA's library")
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def nvml_library(nvml_stub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ctypes.CDLL:
    """The stub, loaded afresh, in the place of NVIDIA's."""
    copy = tmp_path / nvml_stub.name
    shutil.copy(nvml_stub, copy)
    loaded = ctypes.CDLL(str(copy))
    monkeypatch.setattr(pynvml, "nvmlLib", loaded)
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    return loaded


@pytest.fixture
def nvml_world(
    nvml_library: ctypes.CDLL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> NvmlWorld:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "world"))
    return four_gpus(tmp_path / "world")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def nvml(nvml_world: NvmlWorld) -> Iterator[NvmlReader]:
    reader = NvmlReader()
    yield reader
    reader.close()
