"""The end of a process is seen at once, of the right process only, and once."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace

import pytest

from jupyter_gpubroker.broker import liveness as liveness_module
from jupyter_gpubroker.broker.liveness import Liveness
from jupyter_gpubroker.core.events import Event, JobEnded, SessionEnded
from jupyter_gpubroker.core.model import (
    Job,
    JobId,
    JobState,
    Owner,
    Session,
    SessionId,
    SessionKind,
    SessionState,
    SlotSpec,
    State,
)
from jupyter_gpubroker.processes import boot_id, start_ticks

pytestmark = pytest.mark.asyncio


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    child = subprocess.Popen(["sleep", "infinity"])
    yield child
    child.kill()
    child.wait()


@pytest.fixture
def ended() -> asyncio.Queue[Event]:
    return asyncio.Queue()


def session_of(process: subprocess.Popen[bytes]) -> Session:
    ticks = start_ticks(process.pid)
    assert ticks is not None
    return Session(
        SessionId("s"), Owner("ada"), 1, SessionKind.KERNEL, "n", process.pid, ticks, boot_id()
    )


def state_with(session: Session) -> State:
    return State(sessions={session.id: session})


async def test_the_end_of_a_process_ends_its_session(process, ended) -> None:
    liveness = Liveness(ended.put_nowait)
    state = state_with(session_of(process))
    liveness.sync(state)
    liveness.sync(state)
    process.kill()
    event = await asyncio.wait_for(ended.get(), 5)
    assert isinstance(event, SessionEnded)
    assert event.session_id == "s"
    assert ended.empty()
    liveness.close()


async def test_after_a_restart_those_gone_are_ended_and_those_alive_kept(process, ended) -> None:
    session = session_of(process)
    dead = replace(session, id=SessionId("dead"), pid=2**22 - 1)
    liveness = Liveness(ended.put_nowait)
    liveness.sync(State(sessions={session.id: session, dead.id: dead}))
    assert (await asyncio.wait_for(ended.get(), 5)).session_id == "dead"
    assert ended.empty()
    liveness.close()


@pytest.mark.parametrize("change", [{"start_ticks": 1}, {"boot_id": "another"}])
async def test_a_reused_pid_is_not_the_process(process, ended, change) -> None:
    liveness = Liveness(ended.put_nowait)
    liveness.sync(state_with(replace(session_of(process), **change)))
    assert isinstance(await asyncio.wait_for(ended.get(), 5), SessionEnded)
    liveness.close()


async def test_the_end_of_a_restarting_process_is_reported_as_well(process, ended) -> None:
    liveness = Liveness(ended.put_nowait)
    liveness.sync(state_with(replace(session_of(process), state=SessionState.RESTARTING)))
    process.kill()
    event = await asyncio.wait_for(ended.get(), 5)
    assert isinstance(event, SessionEnded)
    liveness.close()


@pytest.mark.parametrize(
    "known",
    [{"state": SessionState.ENDED}, {"state": SessionState.RESTARTING, "is_gone": True}],
)
async def test_an_end_that_is_known_is_not_reported(process, ended, known) -> None:
    liveness = Liveness(ended.put_nowait)
    session = session_of(process)
    liveness.sync(state_with(session))
    liveness.sync(state_with(replace(session, **known)))
    process.kill()
    process.wait()
    await asyncio.sleep(0.05)
    assert ended.empty()
    liveness.close()


async def test_who_cannot_be_looked_at_is_not_gone_and_looked_at_again(
    process, ended, monkeypatch
) -> None:
    monkeypatch.setattr(liveness_module, "RETRY_S", 0.01)
    is_tried_again = asyncio.Event()
    failures = iter([errno.EMFILE, errno.EMFILE])
    opens = os.pidfd_open

    def pidfd_open(pid: int) -> int:
        for number in failures:
            raise OSError(number, os.strerror(number))
        is_tried_again.set()
        return opens(pid)

    monkeypatch.setattr(os, "pidfd_open", pidfd_open)
    liveness = Liveness(ended.put_nowait)
    liveness.sync(state_with(session_of(process)))
    await asyncio.wait_for(is_tried_again.wait(), 5)
    assert ended.empty()
    process.kill()
    assert isinstance(await asyncio.wait_for(ended.get(), 5), SessionEnded)
    liveness.close()


async def test_a_process_whose_start_cannot_be_read_is_not_gone(
    process, ended, monkeypatch
) -> None:
    monkeypatch.setattr(liveness_module, "RETRY_S", 0.01)
    session, is_read = session_of(process), asyncio.Event()
    failures = iter([errno.EMFILE])

    def ticks_of(pid: int) -> int | None:
        for number in failures:
            raise OSError(number, os.strerror(number))
        is_read.set()
        return start_ticks(pid)

    monkeypatch.setattr(liveness_module, "start_ticks", ticks_of)
    liveness = Liveness(ended.put_nowait)
    liveness.sync(state_with(session))
    await asyncio.wait_for(is_read.wait(), 5)
    assert ended.empty()
    liveness.close()


async def test_a_jobs_runner_is_given_time_to_tell_the_exit_status(
    process, ended, monkeypatch
) -> None:
    monkeypatch.setattr(liveness_module, "RUNNER_TELLS_S", 0.05)
    ticks = start_ticks(process.pid)
    job = Job(
        JobId("j"), 1, Owner("ada"), "train", SessionId("r"), SlotSpec(), "batch", JobState.RUNNING,
        pid=process.pid, start_ticks=ticks,
    )  # fmt: skip
    told, untold = Liveness(ended.put_nowait), Liveness(ended.put_nowait)
    for liveness in (told, untold):
        liveness.sync(State(jobs={job.id: job}))
    process.kill()
    process.wait()
    told.sync(State(jobs={job.id: replace(job, state=JobState.ENDED)}))
    assert await asyncio.wait_for(ended.get(), 5) == JobEnded(job.owner, job.id, job.attempt, None)
    await asyncio.sleep(0.1)
    assert ended.empty()
    untold.close()
