"""What /proc says about processes: who they are, whose child, how much they did. Blocking; called in `offload`'s thread.

A process is told by pid and start time, since pids are used again. Who is gone or not ours to read is None; what cannot be
known just now, as when no file descriptor is left, is an OSError.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ..processes import PROC, Process, process_of, processes, read_file

SESSION_MARK = b"GPUBROKER_SESSION="
JOB_MARK = b"GPUBROKER_JOB="

Identity = tuple[int, int]

_GONE_OR_HIDDEN = (FileNotFoundError, ProcessLookupError, PermissionError)
_GONE = (FileNotFoundError, ProcessLookupError)
_ENVIRON_MAX_BYTES = 4 * 1024 * 1024
_NET_MAX_BYTES = 16 * 1024 * 1024
_SOCKET = "socket:["
_DELETED = " (deleted)"
_SYSTEM_UID_MAX = 999  # SYS_UID_MAX in login.defs(5)
_LISTEN = b"0A"  # TCP_LISTEN in the kernel's include/net/tcp_states.h
_INITIAL_PID_NAMESPACE = 0xEFFFFFFC  # PROC_PID_INIT_INO in the kernel's include/linux/proc_ns.h
# Desktop and server GPUs, Tegra's, and those of WSL2.
_GPU_FILES = ("/dev/nvidia", "/dev/nvhost", "/dev/nvmap", "/dev/nvgpu", "/dev/dxg")


@dataclass(frozen=True, slots=True)
class Status:
    """Parts of /proc/PID/status: `uid` is the real one, `inner_pids` the process' pids in pid namespaces below ours."""

    name: str
    uid: int
    inner_pids: tuple[int, ...]


class ProcessTable:
    """Reads a proc file system; `root` is another only in tests."""

    def __init__(self, root: Path = PROC, devices: Path = Path("/dev")) -> None:
        self._root = root
        self._seen: dict[int, Process | None] | None = None
        # Where no GPU has a file, as in tests of the driver's library, open files prove nothing.
        self.shows_gpu_files = any(
            (devices / Path(name).name).exists() for name in ("nvidiactl", "nvmap", "dxg")
        )

    @contextlib.contextmanager
    def one_look(self) -> Iterator[None]:
        """Within it, a process is read once, however often it is asked for."""
        self._seen = {}
        try:
            yield
        finally:
            self._seen = None

    def process(self, pid: int) -> Process | None:
        if self._seen is None:
            return self._read(pid)
        if pid not in self._seen:
            self._seen[pid] = self._read(pid)
        return self._seen[pid]

    def all(self) -> list[Process]:
        found = list(processes(self._root))
        if self._seen is not None:
            self._seen.update((process.pid, process) for process in found)
        return found

    def exists(self, pid: int) -> bool:
        """Whether anything has this pid, a zombie included."""
        return (self._root / str(pid)).exists()

    def uid(self, pid: int) -> int | None:
        """The real uid."""
        status = self.status(pid)
        return None if status is None else status.uid

    def status(self, pid: int) -> Status | None:
        try:
            text = read_file(f"{self._root}/{pid}/status").decode(errors="replace")
        except _GONE_OR_HIDDEN:
            return None
        fields = dict(line.partition(":")[::2] for line in text.splitlines())
        pids = fields.get("NSpid", "").split()
        return Status(
            fields["Name"].strip(), int(fields["Uid"].split()[0]), tuple(map(int, pids[1:]))
        )

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

    def _read(self, pid: int) -> Process | None:
        try:
            return process_of(pid, self._root)
        except PermissionError:
            return None

    def arguments(self, pid: int) -> tuple[str, ...]:
        """The command line."""
        try:
            line = read_file(f"{self._root}/{pid}/cmdline")
        except _GONE_OR_HIDDEN:
            return ()
        return tuple(line.decode(errors="surrogateescape").split("\0")[:-1])

    def io_bytes(self, pid: int) -> int | None:
        """Bytes read and written through system calls so far; another user's cannot be read."""
        try:
            words = read_file(f"{self._root}/{pid}/io").split(None, 4)
        except _GONE_OR_HIDDEN:
            return None
        assert words[0::2][:2] == [b"rchar:", b"wchar:"], (
            "as the kernel has written it since 2.6.20"
        )
        return int(words[1]) + int(words[3])

    def holds_gpu_file(self, pid: int) -> bool | None:
        """Whether the process has a GPU open; None where that may not be looked at.

        Who computes has: so it proves that a pid means the same to driver and us.
        """
        try:
            targets = self.open_files(pid)
        except _GONE_OR_HIDDEN:
            return None
        return any(target.startswith(_GPU_FILES) for target in targets)

    def open_files(self, pid: int) -> list[str]:
        """What the process' descriptors lead to. Raises OSError where it is gone or not ours to look at."""
        targets = []
        with os.scandir(f"{self._root}/{pid}/fd") as entries:
            for entry in entries:
                with contextlib.suppress(*_GONE):  # closed meanwhile
                    targets.append(os.readlink(entry.path))
        return targets

    def listening_ports(self, pid: int) -> set[int]:
        """The TCP ports at which the process waits for connections. Raises OSError as `open_files`."""
        inodes = {
            target[len(_SOCKET) : -1].encode()
            for target in self.open_files(pid)
            if target.startswith(_SOCKET)
        }
        if not inodes:
            return set()
        return {
            port
            for family in ("tcp", "tcp6")
            for port, inode in _listening(f"{self._root}/{pid}/net/{family}")
            if inode in inodes
        }

    def program(self, pid: int) -> str | None:
        """The name of the program it runs, where the process cannot have made that name up.

        An executable that may be read counts by its file, and only if root owns that; an update may have deleted it. Others'
        cannot be read: there it is the name the process goes by, which a user may choose, so only root's and system users'.
        """
        path = self._root / str(pid) / "exe"
        try:
            name = path.readlink().name.removesuffix(_DELETED)
            return name if path.stat().st_uid == 0 else None
        except PermissionError:
            status = self.status(pid)
            return status.name if status is not None and status.uid <= _SYSTEM_UID_MAX else None
        except _GONE:
            return None

    def is_initial_namespace(self) -> bool:
        """Whether pids here are the ones the driver knows."""
        try:
            return (self._root / "self/ns/pid").stat().st_ino == _INITIAL_PID_NAMESPACE
        except OSError:
            return False


def _listening(path: str) -> Iterator[tuple[int, bytes]]:
    """Port and inode of each listening socket in a file such as /proc/net/tcp; IPv6 may be missing."""
    try:
        with Path(path).open("rb") as file:
            table = file.read(_NET_MAX_BYTES)
    except FileNotFoundError:
        return
    for line in table.splitlines():
        fields = line.split(None, 10)
        if len(fields) > 9 and fields[3] == _LISTEN:
            yield int(fields[1].rpartition(b":")[2], 16), fields[9]
