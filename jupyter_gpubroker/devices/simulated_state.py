"""The folder that is the simulated devices, as its readers see it.

    devices.json                    what there is, written once by the reader
    SLOT/PID-TICKS.json             a context on a slot, written by the process that has it (`gpubroker.simulated`)
    SLOT/lock                       held while memory of the slot is reserved
    processes/PID-TICKS.lock        held shared while a device call runs, exclusively by the checkpoint driver
    processes/PID-TICKS.state       `locked`, `checkpointed` or `failed`, written by the checkpoint driver; none: running
    suspended/PID-TICKS/SLOT.json   the contexts of a checkpointed process

Files of dead processes are ignored and swept away, as the driver frees a dead process' memory. Processes are told by pid
and start time; a zombie is dead, since it holds no device any more.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ..processes import start_ticks

_NAME = re.compile(r"(?P<pid>[0-9]{1,10})-(?P<ticks>[0-9]{1,20})(?:\..*)?")
_FILE_MAX_BYTES = 64 * 1024
_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Context(msgspec.Struct, frozen=True):
    """A process' context on a slot. Times are CLOCK_BOOTTIME in ms; `busy_ms` is the sum of past work."""

    pid: int
    start_ticks: int
    memory_mib: int
    busy_ms: int
    busy_since_ms: int | None
    created_ms: int
    uvm: bool = False
    nccl: bool = False

    @property
    def name(self) -> str:
        return f"{self.pid}-{self.start_ticks}"

    def busy_until(self, now_ms: int) -> int:
        """All work up to now, in ms."""
        return self.busy_ms + (
            0 if self.busy_since_ms is None else max(0, now_ms - self.busy_since_ms)
        )


def now_ms() -> int:
    return int(time.clock_gettime(_CLOCK) * 1000)


class StateFolder:
    """The folder of one set of simulated devices; 0700, and only its owner may use it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.devices = path / "devices.json"
        self.processes = path / "processes"
        self.suspended = path / "suspended"

    def create(self) -> None:
        for folder in (self.path, self.processes, self.suspended):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self.path.stat().st_uid != os.geteuid():
            raise PermissionError(f"{self.path} belongs to another user")
        self.path.chmod(0o700)

    def contexts(self, slot_uuid: str) -> list[Context]:
        """The contexts of living processes on a slot."""
        found = [_read(path) for path in sorted((self.path / slot_uuid).glob("*.json"))]
        return [context for context in found if context is not None and _is_alive(context)]

    def suspended_contexts(self, name: str) -> dict[str, Context]:
        """By slot, what a checkpointed process had there."""
        found = {path.stem: _read(path) for path in (self.suspended / name).glob("*.json")}
        return {slot: context for slot, context in found.items() if context is not None}

    def sweep(self) -> None:
        """Remove what dead processes left."""
        for folder in self.path.iterdir():
            if not folder.is_dir():
                continue
            for path in folder.iterdir():
                match = _NAME.fullmatch(path.name)
                if match is None or start_ticks(int(match["pid"])) == int(match["ticks"]):
                    continue
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def slot_locked(self, slot_uuid: str) -> Iterator[None]:
        """Nobody else reserves memory of the slot meanwhile."""
        fd = os.open(self.path / slot_uuid / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)


def write_atomically(path: Path, content: bytes) -> None:
    """Readers see the old file or the new one."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_bytes(content)
    temporary.replace(path)


def _read(path: Path) -> Context | None:
    try:
        with path.open("rb") as file:
            return msgspec.json.decode(file.read(_FILE_MAX_BYTES), type=Context)
    except (OSError, msgspec.DecodeError):
        # Gone meanwhile, or not written by our stand-in: it stands for no process.
        return None


def _is_alive(context: Context) -> bool:
    return start_ticks(context.pid) == context.start_ticks
