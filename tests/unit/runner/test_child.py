"""A job's process group: its end is the end of all of it, and stopping it keeps the grace exactly."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from jupyter_gpubroker.runner.child import CannotStart, Child, others_in_group
from jupyter_gpubroker.runner.spool import JobSpec

pytestmark = pytest.mark.asyncio

IGNORES_TERM = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"
SAVES_ON_TERM = """
import signal, sys, time
def save(*_):
    print("saved", flush=True)
    sys.exit(3)
signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
time.sleep(60)
"""


def is_alive(pid: int) -> bool:
    """A zombie that its new parent has not reaped yet is dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Output:
    """The pipe a child writes to, read line by line without blocking the loop."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        self.file = os.fdopen(self.reader)

    async def line(self) -> str:
        return await asyncio.to_thread(self.file.readline)

    def close(self) -> None:
        self.file.close()
        os.close(self.writer)


@pytest.fixture
def output():
    opened = Output()
    yield opened
    opened.close()


async def start(
    output: Output,
    *argv: str,
    cwd: str = "/",
    umask: int = 0o022,
    environment: dict[str, str] | None = None,
) -> Child:
    spec = JobSpec(argv, cwd, umask, {})
    return await Child.start(spec, environment or dict(os.environ), output.writer, output.writer)


@pytest.mark.parametrize(
    ("code", "status"), [("exit 0", 0), ("exit 5", 5), ("kill -SEGV $$", -signal.SIGSEGV)]
)
async def test_its_exit_status_is_negative_for_a_signal(output, code, status):
    child = await start(output, "sh", "-c", code)
    assert await child.ended() == status


async def test_it_runs_where_and_as_it_was_submitted(output, tmp_path):
    code = "pwd; umask; echo $COLOUR; cat; ps -o pgid= -o sid= -p $$ | tr -s ' '; echo $$"
    environment = {"PATH": os.environ["PATH"], "COLOUR": "blue"}
    child = await start(
        output, "sh", "-c", code, cwd=str(tmp_path), umask=0o027, environment=environment
    )
    lines = [(await output.line()).strip() for _ in range(5)]
    assert lines[:3] == [str(tmp_path), "0027", "blue"]
    assert lines[3].split() == [str(child.pid), str(child.pid)]
    assert await child.ended() == 0


async def test_a_stop_is_a_wish_first(output):
    child = await start(output, sys.executable, "-c", SAVES_ON_TERM)
    assert await output.line() == "ready\n"
    child.stop(grace_s=30)
    assert await output.line() == "saved\n"
    assert await child.ended() == 3


async def test_when_the_grace_is_over_all_are_killed_and_not_before(output):
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {IGNORES_TERM!r}]); {IGNORES_TERM}"
    child = await start(output, sys.executable, "-c", code)
    assert [await output.line(), await output.line()] == ["ready\n", "ready\n"]
    (worker,) = others_in_group(child.pid)
    asked_s = time.monotonic()
    child.stop(grace_s=0.5)
    assert await child.ended() == -signal.SIGKILL
    assert 0.5 <= time.monotonic() - asked_s < 5
    assert not is_alive(worker)


async def test_a_second_stop_may_only_shorten_the_grace(output):
    child = await start(output, sys.executable, "-c", IGNORES_TERM)
    assert await output.line() == "ready\n"
    asked_s = time.monotonic()
    child.stop(grace_s=30)
    child.stop(grace_s=0.2)
    child.stop(grace_s=60)
    assert await child.ended() == -signal.SIGKILL
    assert time.monotonic() - asked_s < 10


async def test_a_worker_that_saves_its_work_has_the_whole_grace_though_the_leader_has_gone(output):
    # A shell dies of TERM at once; what it started is still saving.
    code = f"import subprocess, sys, signal; subprocess.Popen([sys.executable, '-c', {SAVES_ON_TERM!r}]); signal.pause()"
    child = await start(output, sys.executable, "-c", code)
    assert await output.line() == "ready\n"
    child.stop(grace_s=30)
    assert await output.line() == "saved\n"
    assert await child.ended() == -signal.SIGTERM


async def test_what_the_leader_leaves_running_is_ended_before_the_job_has_ended(output):
    code = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {SAVES_ON_TERM!r}])"
    child = await start(output, sys.executable, "-c", code)
    assert await child.ended() == 0
    assert others_in_group(child.pid) == []


async def test_a_stop_after_the_end_signals_nobody(output, monkeypatch):
    child = await start(output, "true")
    await child.ended()
    signalled = []
    monkeypatch.setattr(os, "killpg", lambda *sent: signalled.append(sent))
    child.stop(grace_s=0)
    child.stop(grace_s=-1)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert signalled == []


@pytest.mark.parametrize(
    ("argv", "cwd", "said", "status"),
    [
        (("no-such-command",), "/", "no command 'no-such-command'", 127),
        (("true",), "/no/such/folder", "cannot be entered", 127),
        (("/etc/passwd",), "/", "cannot be run", 126),
        (("nul\0byte",), "/", "cannot be run", 126),
    ],
)
async def test_what_cannot_be_started_is_said_with_the_next_step(output, argv, cwd, said, status):
    with pytest.raises(CannotStart, match=said) as refused:
        await start(output, *argv, cwd=cwd)
    assert refused.value.exit_status == status
