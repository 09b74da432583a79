"""Ending a process that the auditor found: the one that was meant, and no other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from jupyter_gpubroker.agent.stopping import Stopped, stop
from jupyter_gpubroker.processes import start_ticks

IGNORES_TERM = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); signal.pause()"


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-S", "-c", IGNORES_TERM], stdout=-1) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def ticks_of(process: subprocess.Popen[bytes]) -> int:
    found = start_ticks(process.pid)
    assert found is not None
    return found


def test_who_ignores_term_is_killed_by_force(child):
    assert stop(child.pid, ticks_of(child), force=False) is Stopped.SIGNALLED
    assert child.poll() is None
    assert stop(child.pid, ticks_of(child), force=True) is Stopped.SIGNALLED
    assert child.wait() == -signal.SIGKILL


def test_another_process_with_the_number_is_left_alone(child):
    assert stop(child.pid, ticks_of(child) - 1, force=True) is Stopped.GONE
    assert child.poll() is None


def test_who_is_gone_is_gone(child):
    ticks = ticks_of(child)
    child.kill()
    child.wait()
    assert stop(child.pid, ticks, force=True) is Stopped.GONE


@pytest.mark.parametrize(
    "pid", [0, 1, os.getpid(), os.getppid()], ids=["nobody", "init", "broker", "its parent"]
)
def test_the_broker_and_init_are_never_ended(pid):
    assert stop(pid, 0, force=True) is Stopped.OURS


def test_a_process_of_another_user_is_told_as_not_ours_to_end(child, monkeypatch):
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(signal, "pidfd_send_signal", refuse)
    assert stop(child.pid, ticks_of(child), force=False) is Stopped.NOT_PERMITTED
