"""What /proc says about processes: who they are, whose child, how much they did. Blocking; called in `offload`'s thread.

A process is told by pid and start time, since pids are used again. Who is gone or not ours to read is None; what cannot be
known just now, as when no file descriptor is left, is an OSError.
"""

from __future__ import annotations

from pathlib import Path

from ..processes import PROC, Process, process_of, processes

_GONE_OR_HIDDEN = (FileNotFoundError, ProcessLookupError, PermissionError)
SESSION_MARK = b"GPUBROKER_SESSION="
JOB_MARK = b"GPUBROKER_JOB="
_ENVIRON_MAX_BYTES = 4 * 1024 * 1024
_INITIAL_PID_NAMESPACE = 0xEFFFFFFC  # PROC_PID_INIT_INO in the kernel's include/linux/proc_ns.h


class ProcessTable:
    """Reads a proc file system; `root` is another only in tests."""

    def __init__(self, root: Path = PROC) -> None:
        self._root = root

    def process(self, pid: int) -> Process | None:
        try:
            return process_of(pid, self._root)
        except PermissionError:
            return None

    def all(self) -> list[Process]:
        return list(processes(self._root))

    def uid(self, pid: int) -> int | None:
        """The real uid."""
        try:
            status = (self._root / str(pid) / "status").read_text(errors="replace")
        except _GONE_OR_HIDDEN:
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
        except _GONE_OR_HIDDEN:
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
        except _GONE_OR_HIDDEN:
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
        except _GONE_OR_HIDDEN:
            return False

    def is_initial_namespace(self) -> bool:
        """Whether pids here are the ones the driver knows."""
        try:
            return (self._root / "self/ns/pid").stat().st_ino == _INITIAL_PID_NAMESPACE
        except OSError:
            return False
