"""One runner per user and host, started by the first `submit` that finds none, as `tmux` starts its server.

Two lock files beside the broker's socket keep it simple. `runner.lock` is held by the runner for as long as it lives and
says which session it is, once it is registered. `submit.lock` is shared by those who submit; a runner that wants to end
takes it alone, so that none ends between being found and being given a job.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

READY_S = 20.0
LOOK_S = 0.02


class RunnerDown(Exception):
    """No runner is there for these jobs; the message says what to do."""


class Announcement(msgspec.Struct, frozen=True):
    """What a living runner says of itself: its session, its process and the broker it serves."""

    session_id: str
    pid: int
    url: str


class RunnerLock:
    """What a runner holds while it lives. Got by `take`, given up by `release` or the end of the process."""

    def __init__(self, fd: int) -> None:
        self._fd = fd

    @classmethod
    def take(cls, runtime_folder: Path) -> RunnerLock | None:
        """The lock, or None while another runner of this user lives on this host."""
        fd = os.open(runtime_folder / "runner.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not _locked(fd, fcntl.LOCK_EX):
            os.close(fd)
            return None
        os.truncate(fd, 0)
        return cls(fd)

    def announce(self, announcement: Announcement) -> None:
        """Tell those who submit which session to give their jobs to."""
        os.pwrite(self._fd, msgspec.json.encode(announcement), 0)

    def release(self) -> None:
        """Let another runner start."""
        os.truncate(self._fd, 0)
        os.close(self._fd)


def take_or_find(runtime_folder: Path) -> RunnerLock | Announcement:
    """The lock for a new runner, or what the runner that has it says, as soon as it says it."""
    deadline_s = time.monotonic() + READY_S
    while time.monotonic() < deadline_s:
        if found := RunnerLock.take(runtime_folder) or announced(runtime_folder):
            return found
        time.sleep(LOOK_S)
    raise RunnerDown("Another runner has been starting for too long. End it and submit again.")


def announced(runtime_folder: Path) -> Announcement | None:
    """What the living, registered runner says, if there is one."""
    try:
        fd = os.open(runtime_folder / "runner.lock", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        content = b"" if _locked(fd, fcntl.LOCK_SH) else os.pread(fd, 4096, 0)
        return msgspec.json.decode(content, type=Announcement) if content else None
    finally:
        os.close(fd)


@contextlib.contextmanager
def submitting(runtime_folder: Path) -> Iterator[None]:
    """Meanwhile no runner of this user ends for want of jobs."""
    fd = _open_submit_lock(runtime_folder)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH)
        yield
    finally:
        os.close(fd)


@contextlib.contextmanager
def nobody_submits(runtime_folder: Path) -> Iterator[bool]:
    """Whether nobody is submitting; if so, nobody begins before the block ends."""
    fd = _open_submit_lock(runtime_folder)
    try:
        yield _locked(fd, fcntl.LOCK_EX)
    finally:
        os.close(fd)


def ensure_runner(runtime_folder: Path, log: Path, url: str, environment: Mapping[str, str]) -> str:
    """The session id of this user's runner, which is started where there is none. Raises RunnerDown.

    Call it within `submitting`. `environment` is the scrubbed one: a daemon must not inherit a notebook's marks.
    """
    runner = announced(runtime_folder) or _start(log, url, environment)
    if runner.url != url:
        raise RunnerDown(
            f"Your runner serves the broker at {runner.url}, and this command talks to {url}. "
            "Wait until its jobs have ended, or submit with the same GPUBROKER_URL."
        )
    return runner.session_id


def _start(log: Path, url: str, environment: Mapping[str, str]) -> Announcement:
    """Start a runner; its first line says who won the race. It forks away from us, so it never becomes our zombie."""
    with os.fdopen(
        os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "ab"
    ) as log_file:
        starter = subprocess.Popen(
            [sys.executable, "-m", "jupyter_gpubroker.runner", "--detach", "--url", url],
            env=dict(environment),
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log_file,
            start_new_session=True,
        )
    assert starter.stdout is not None
    with starter.stdout as pipe:
        is_there = bool(select.select([pipe], [], [], READY_S)[0])
        line = pipe.readline() if is_there else b""
    if is_there:
        starter.wait(timeout=5)
    if not line:
        raise RunnerDown(
            f"The runner, which starts your batch jobs, did not start. Its reasons are in {log}."
        )
    return msgspec.json.decode(line, type=Announcement)


def _locked(fd: int, operation: int) -> bool:
    """Whether the lock could be had at once."""
    try:
        fcntl.flock(fd, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _open_submit_lock(runtime_folder: Path) -> int:
    return os.open(runtime_folder / "submit.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
