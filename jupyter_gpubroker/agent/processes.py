"""What /proc says about processes: who they are, whose child, how much they did. Blocking; called in `offload`'s thread.

A process is told by pid and start time, since pids are used again. Anything that cannot be read is None.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

SESSION_MARK = b"GPUBROKER_SESSION="
JOB_MARK = b"GPUBROKER_JOB="
_ENVIRON_MAX_BYTES = 4 * 1024 * 1024
_INITIAL_PID_NAMESPACE = 0xEFFFFFFC  # PROC_PID_INIT_INO in the kernel's include/linux/proc_ns.h
_TICK_MS = 1000 // os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Process:
    """One line of /proc/PID/stat. `cpu_ms` includes children that ended and were waited for."""

    pid: int
    parent: int
    group: int
    session: int
    start_ticks: int
    cpu_ms: int


class ProcessTable:
    """Reads a proc file system; `root` is another only in tests."""

    def __init__(self, root: Path = Path("/proc")) -> None:
        self._root = root

    def process(self, pid: int) -> Process | None:
        """None: gone, or dead and only waiting to be collected (a zombie holds no device any more)."""
        try:
            text = (self._root / str(pid) / "stat").read_text(errors="replace")
        except OSError:
            return None
        # The name is in parentheses and may contain anything, so count from its end.
        fields = text.rpartition(")")[2].split()
        if len(fields) < 20 or fields[0] in "ZX":
            return None
        return Process(
            pid=pid,
            parent=int(fields[1]),
            group=int(fields[2]),
            session=int(fields[3]),
            start_ticks=int(fields[19]),
            cpu_ms=sum(map(int, fields[11:15])) * _TICK_MS,
        )

    def all(self) -> list[Process]:
        pids = [int(entry.name) for entry in os.scandir(self._root) if entry.name.isdigit()]
        found = (self.process(pid) for pid in pids)
        return [process for process in found if process is not None]

    def uid(self, pid: int) -> int | None:
        """The real uid."""
        try:
            status = (self._root / str(pid) / "status").read_text(errors="replace")
        except OSError:
            return None
        for line in status.splitlines():
            if line.startswith("Uid:"):
                return int(line.split()[1])
        return None

    def marks(self, pid: int) -> tuple[str, ...]:
        """The ids of job and session in the environment the process was started with, the job first.

        Anybody may set them: they count only together with the uid.
        """
        try:
            with (self._root / str(pid) / "environ").open("rb") as file:
                entries = file.read(_ENVIRON_MAX_BYTES).split(b"\0")
        except OSError:
            return ()
        return tuple(
            entry.removeprefix(mark).decode(errors="replace")
            for mark in (JOB_MARK, SESSION_MARK)
            for entry in entries
            if entry.startswith(mark)
        )

    def io_bytes(self, pid: int) -> int | None:
        """Bytes read and written through system calls so far; another user's cannot be read."""
        try:
            text = (self._root / str(pid) / "io").read_text()
        except OSError:
            return None
        numbers = dict(line.split(": ") for line in text.splitlines())
        return int(numbers.get("rchar", 0)) + int(numbers.get("wchar", 0))

    def holds_gpu_file(self, pid: int) -> bool:
        """Whether the process has an NVIDIA device open, which proves that a pid means the same to driver and us."""
        try:
            return any(
                str(entry.readlink()).startswith("/dev/nvidia")
                for entry in (self._root / str(pid) / "fd").iterdir()
            )
        except OSError:
            return False

    def is_initial_namespace(self) -> bool:
        """Whether pids here are the ones the driver knows."""
        try:
            return (self._root / "self/ns/pid").stat().st_ino == _INITIAL_PID_NAMESPACE
        except OSError:
            return False


def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
