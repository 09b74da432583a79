"""What the checks work with: readings of one whole GPU, and processes that use it."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jupyter_gpubroker.devices.reader import GpuReading, Inventory, Reader, SlotReading

ROOT = Path(__file__).parents[2]


class Skipped(Exception):
    """This check cannot be made here; the text says why."""


class WorkerFailed(Exception):
    """The driver refused what a worker was asked to do, or the worker did not answer in time."""

    def __init__(self, text: str, code: int = -1) -> None:
        super().__init__(text)
        self.code = code


class Worker:
    """A process that sees `visible`; see `worker`. Every answer has a deadline: a sick driver never gives one."""

    def __init__(self, visible: str, *, answer_s: float = 60.0) -> None:
        self._answer_s = answer_s
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.hardware.worker"],
            cwd=ROOT,
            env={**os.environ, "CUDA_VISIBLE_DEVICES": visible},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._answer()

    @property
    def pid(self) -> int:
        return self._process.pid

    def call(self, name: str, *arguments: Any) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"call": name, "arguments": arguments}) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def try_call(self, name: str, *arguments: Any) -> tuple[Any, int]:
        """The value and the driver's error code, 0 if there was none."""
        try:
            return self.call(name, *arguments), 0
        except WorkerFailed as error:
            return None, error.code

    def end(self) -> None:
        self._process.kill()
        self._process.communicate(timeout=30)

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(self._answer_s):
                raise WorkerFailed(f"no answer within {self._answer_s:g} s")
        line = self._process.stdout.readline()
        if not line:
            raise WorkerFailed("the worker has ended")
        answer = json.loads(line)
        if "error" in answer:
            raise WorkerFailed(answer["error"], answer["code"])
        return answer["value"]


@dataclass(slots=True)
class Bench:
    """The first whole GPU on which nobody is. `left_s` tells how much of the time for all checks is left."""

    reader: Reader
    inventory: Inventory
    slot: str
    model: str
    memory_mib: int
    left_s: Callable[[], float]

    @property
    def driver_version(self) -> str:
        return self.inventory.driver_version or ""

    @contextmanager
    def worker(self, visible: str | None = None) -> Iterator[Worker]:
        made = Worker(self.slot if visible is None else visible)
        try:
            yield made
        finally:
            made.end()

    def look(self) -> SlotReading:
        (reading,) = self.reader.observe([self.slot])
        return reading

    def looks(self, count: int, every_s: float = 1.0) -> list[SlotReading]:
        """Readings one after another; the first only begins the window."""
        self.look()
        found = []
        for _ in range(count):
            time.sleep(every_s)
            found.append(self.look())
        return found

    def condition(self) -> GpuReading:
        return next(one for one in self.reader.health() if one.uuid == self.slot)

    def memory_mib_of(self, pid: int) -> int | None:
        """As the driver lists it."""
        for process in self.look().processes or ():
            if process.pid == pid:
                return process.memory_mib
        return None

    def used_mib(self) -> int:
        used_mib = self.look().memory_used_mib
        assert used_mib is not None, "the memory in use cannot be read"
        return used_mib


def open_bench(reader: Reader, left_s: Callable[[], float]) -> Bench:
    """Raises Skipped where there is no whole GPU that is free."""
    inventory = reader.inventory()
    slots = [(gpu, slot) for gpu in inventory.gpus for slot in gpu.slots if slot.kind == "gpu"]
    if not slots:
        raise Skipped(_why_none(inventory))
    for gpu, slot in slots:
        (reading,) = reader.observe([slot.uuid])
        if reading.processes == ():
            memory_mib = slot.memory_mib or 0
            return Bench(reader, inventory, slot.uuid, gpu.model, memory_mib, left_s)
    raise Skipped("every whole GPU of this machine is in use; the checks need one for themselves")


def _why_none(inventory: Inventory) -> str:
    if inventory.problems:
        return f"no NVIDIA GPU can be read on this machine ({', '.join(inventory.problems)})"
    if inventory.gpus:
        states = ", ".join(f"{gpu.model or gpu.uuid} {gpu.state}" for gpu in inventory.gpus)
        return f"no whole GPU is on offer on this machine ({states})"
    return "there is no NVIDIA GPU on this machine"
