"""Starts the processes of `children` and hears what they say; `struck` strikes them at a chosen system call."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

INJECTED = "(INJECTED)"
KILLED = "killed by SIGKILL"


class Nursery:
    """The server that forks the children, one at a time."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.children"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.pid = self._server.pid

    def start(self, name: str, path: Path, seed: int, held: str) -> Child:
        """A child that works on the database at `path`, which holds the state of digest `held`."""
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps([name, str(path), seed]) + "\n")
        started, pid = self.hear()
        assert started == "started"
        return Child(self, int(pid), committed=held, pending=held)

    def hear(self) -> list[str]:
        assert self._server.stdout is not None
        words = self._server.stdout.readline().split()
        assert words, "the server ended"
        return words

    def close(self) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()


@dataclass
class Child:
    """`committed` is the digest it acknowledged last (or found), `pending` the one it was about to commit."""

    nursery: Nursery
    pid: int
    committed: str
    pending: str
    said: list[str] = field(default_factory=list)

    def hear(self) -> bool:
        """Take in the next thing it says; False when it is gone."""
        word, *digest = self.nursery.hear()
        if word == "ended":
            return False
        self.said.append(word)
        if word == "committed":
            (self.committed,) = digest
        elif word == "pending":
            (self.pending,) = digest
        return True

    def hear_out(self) -> None:
        while self.hear():
            pass


@contextmanager
def struck(nursery: Nursery, syscalls: str, number: int, fault: str, log: Path) -> Iterator[None]:
    """Strike each child that is started meanwhile at its `number`th call of one of `syscalls`; the log tells."""
    strace = subprocess.Popen(
        [
            "strace", "--follow-forks", f"--attach={nursery.pid}", f"--output={log}",
            f"--trace={syscalls}", f"--inject={syscalls}:{fault}:when={number}",
        ],
        stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    assert strace.stderr is not None
    try:
        attached = strace.stderr.readline()
        assert "attached" in attached, attached
        yield
    finally:
        strace.terminate()
        strace.wait()
        strace.stderr.close()


def has_struck(log: Path) -> bool:
    """Whether strace, gone meanwhile, found the call that it was to strike."""
    told = log.read_text()
    return INJECTED in told or KILLED in told
