"""Which process a pid is, as /proc tells it. Linux only; reading may block where a process hangs in the kernel.

Pids are used again: (pid, start ticks, boot id) names one process for good. A zombie is nobody here, since it holds no
device any more. None says that there is no such process; that it cannot be known just now, as when no file descriptor is
left, is no answer but an OSError. `proc` is another folder than /proc only in tests.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PROC = Path("/proc")

_GENERATIONS_MAX = 64
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


def process_of(pid: int, proc: Path = PROC) -> Process | None:
    """The process that has this pid now. Raises OSError when that cannot be known."""
    try:
        line = read_file(f"{proc}/{pid}/stat")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name, field 2, is in parentheses and may contain anything, so count from its end.
    fields = line.rpartition(b")")[2].split(None, 20)
    if len(fields) < 20 or fields[0] in b"ZX":
        return None
    return Process(
        pid=pid,
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        start_ticks=int(fields[19]),
        cpu_ms=sum(map(int, fields[11:15])) * _TICK_MS,
    )


def read_file(path: str, bytes_max: int = 64 * 1024) -> bytes:
    """A file of /proc, read at once: a quarter of what a Path costs, and there are thousands of them."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, bytes_max)
    finally:
        os.close(fd)


def processes(proc: Path = PROC) -> Iterator[Process]:
    """All that there are and may be read."""
    with os.scandir(proc) as entries:
        pids = [int(entry.name) for entry in entries if entry.name.isdigit()]
    for pid in pids:
        with contextlib.suppress(PermissionError):
            process = process_of(pid, proc)
            if process is not None:
                yield process


def start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot. Raises OSError when that cannot be known."""
    process = process_of(pid)
    return None if process is None else process.start_ticks


def descends(pid: int, ancestor: int, proc: Path = PROC) -> bool:
    """Whether one process is a child of another, or a child's child."""
    for _ in range(_GENERATIONS_MAX):
        process = process_of(pid, proc)
        if process is None:
            return False
        pid = process.parent
        if pid == ancestor:
            return True
    return False


def uid_of(pid: int, proc: Path = PROC) -> int | None:
    """Whose it is by its folder in /proc: the effective uid, but root's where the process hides itself from its owner."""
    try:
        return (proc / str(pid)).stat().st_uid
    except (FileNotFoundError, ProcessLookupError):
        return None


@cache
def boot_id() -> str:
    """Tells this boot of the machine from all others."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
