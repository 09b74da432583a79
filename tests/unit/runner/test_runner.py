"""The runner's loop against a double of its link: what it starts, stops and tells, and when it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from jupyter_gpubroker.client import BrokerDown, BrokerError, routes
from jupyter_gpubroker.runner.runner import Runner
from jupyter_gpubroker.runner.spool import JobSpec, SpecLost, Spool
from jupyter_gpubroker.runner.start import RunnerLock, submitting
from jupyter_gpubroker.wire.views import JobView, LeaseView, Problem

pytestmark = pytest.mark.asyncio

JOB = "0" * 32
REASONLESS: dict[str, Any] = {"reason": None, "sentence": "", "sentence_es": ""}
PAUSES = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: sys.exit(4))
open(sys.argv[1], "w").write("ready")
signal.pause()
"""


def lease(**fields: Any) -> LeaseView:
    """A lease that only has what a runner reads of it."""
    values = dict.fromkeys(LeaseView.__struct_fields__)
    return LeaseView(**{**values, "visible_devices": "GPU-1", "simulated": True, **fields})


def job(state: str, **fields: Any) -> JobView:
    values = dict.fromkeys(JobView.__struct_fields__)
    return JobView(**{**values, "id": JOB, "state": state, "attempt": 1, **REASONLESS, **fields})


def is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


class LinkDouble:
    """Shows the jobs it is given and remembers what it is told. `refuses` names routes that are answered with a no."""

    url = "unix:///run/gpubroker/broker.sock"

    def __init__(self) -> None:
        self.told: asyncio.Queue[tuple[str, msgspec.Struct]] = asyncio.Queue()
        self.refuses: set[str] = set()
        self.has_ended = False
        self.is_down = False
        self._shown: asyncio.Queue[tuple[JobView, ...]] = asyncio.Queue()
        self._latest: tuple[JobView, ...] = ()

    def show(self, *jobs: JobView) -> None:
        self._latest = jobs
        self._shown.put_nowait(jobs)

    async def watch_jobs(self) -> AsyncIterator[tuple[JobView, ...]]:
        while True:
            yield await self._shown.get()

    async def jobs(self) -> tuple[JobView, ...]:
        if self.is_down:
            raise BrokerDown("No broker answers.")
        return self._latest

    async def tell(self, route: routes.Route[Any], thing_id: str, body: msgspec.Struct) -> JobView:
        assert thing_id == JOB
        verb = route.path.rpartition(":")[2]
        self.told.put_nowait((verb, body))
        if verb in self.refuses:
            raise BrokerError(Problem(409, "gone", "Gone", "It is another's now.", "", {}))
        return job("ended" if verb == "ended" else "running")

    async def end(self) -> None:
        self.has_ended = True


class Stage:
    """A running runner and what it stands on."""

    def __init__(self, folders: Any, linger_s: float) -> None:
        self.link = LinkDouble()
        self.spool = Spool(folders.state)
        self.pipe = folders.root / "pipe"
        self.output = self.spool.output(JOB, "stdout")
        lock = RunnerLock.take(folders.runtime)
        assert lock is not None
        runner = Runner(self.link, self.spool, folders.runtime, lock, linger_s)  # type: ignore[arg-type]
        self.running = asyncio.create_task(runner.run())

    def submit(self, *argv: str) -> None:
        self.spool.write(JOB, JobSpec(argv, "/", 0o022, dict(os.environ)))

    async def told(self) -> tuple[str, Any]:
        return await asyncio.wait_for(self.link.told.get(), 20)

    def submit_pausing(self) -> None:
        """A job that says over a pipe that it is ready, and ends with 4 when asked to."""
        os.mkfifo(self.pipe)
        self.submit(sys.executable, "-c", PAUSES, str(self.pipe))

    async def is_ready(self) -> None:
        assert await asyncio.to_thread(self.pipe.read_text) == "ready"


@asynccontextmanager
async def stage(folders: Any, linger_s: float = 60) -> AsyncIterator[Stage]:
    made = Stage(folders, linger_s)
    try:
        yield made
    finally:
        if not made.running.done():
            os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(made.running, 20)


async def test_a_granted_job_runs_with_its_devices_and_its_end_is_told(folders):
    code = "import os; print({name: os.environ.get(name) for name in (%r)})"
    names = (
        "CUDA_VISIBLE_DEVICES",
        "CUDA_DEVICE_ORDER",
        "GPUBROKER_JOB",
        "GPUBROKER_INHERITED",
        "GPUBROKER_SIMULATED_STATE",
    )
    async with stage(folders) as on:
        on.submit(sys.executable, "-c", code % (names,))
        on.link.show(job("starting", lease=lease()))
        verb, started = await on.told()
        assert verb == "started"
        assert started.pid > 1
        assert await on.told() == ("ended", routes.JOB_ENDED.body(1, 0))
        assert eval(on.output.read_text()) == {  # noqa: S307 - our own child's dictionary
            "CUDA_VISIBLE_DEVICES": "GPU-1",
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "GPUBROKER_JOB": JOB,
            "GPUBROKER_INHERITED": "1",
            "GPUBROKER_SIMULATED_STATE": "/run/gpubroker/simulated",
        }


async def test_marks_of_the_notebook_it_was_submitted_from_are_not_inherited(folders, monkeypatch):
    monkeypatch.setenv("GPUBROKER_SESSION", "f" * 32)
    monkeypatch.setenv("GPUBROKER_LEASE", "f" * 32)
    async with stage(folders) as on:
        on.submit("sh", "-c", "env | grep -c -e ^GPUBROKER_SESSION= -e ^GPUBROKER_LEASE=")
        on.link.show(job("starting", lease=lease()))
        await on.told()
        assert (await on.told())[1].exit_status == 1
        assert on.output.read_text() == "0\n"


async def test_a_job_is_started_once_however_often_it_is_shown(folders):
    async with stage(folders) as on:
        on.submit_pausing()
        for _ in range(3):
            on.link.show(job("starting", lease=lease()))
        assert (await on.told())[0] == "started"
        await on.is_ready()
        on.link.show(job("stopping", kill_in_ms=20_000))
        assert await on.told() == ("ended", routes.JOB_ENDED.body(1, 4))
        assert on.link.told.empty()


async def test_a_command_that_does_not_exist_ends_the_job_with_a_sentence(folders):
    async with stage(folders) as on:
        on.submit("no-such-command")
        on.link.show(job("starting", lease=lease()))
        assert await on.told() == ("ended", routes.JOB_ENDED.body(1, 127))
        assert "no command 'no-such-command'" in on.spool.output(JOB, "stderr").read_text()


async def test_a_spec_that_vanished_ends_the_job_with_a_sentence(folders):
    async with stage(folders) as on:
        on.link.show(job("starting", lease=lease()))
        assert await on.told() == ("ended", routes.JOB_ENDED.body(1, 127))
        assert "Submit it again" in on.spool.output(JOB, "stderr").read_text()


async def test_a_start_the_broker_does_not_take_note_of_is_undone(folders):
    async with stage(folders) as on:
        on.link.refuses = {"started", "ended"}
        on.submit("sleep", "600")
        on.link.show(job("starting", lease=lease()))
        pid = (await on.told())[1].pid
        assert (await on.told())[1].exit_status == -signal.SIGTERM
        assert is_gone(pid)


async def test_a_later_attempt_ends_the_earlier_one_first_and_only_its_end_is_told(folders):
    async with stage(folders) as on:
        on.submit_pausing()
        on.link.show(job("starting", lease=lease()))
        first = (await on.told())[1].pid
        on.link.show(job("starting", attempt=2, lease=lease(visible_devices="GPU-2")))
        verb, second = await on.told()
        assert (verb, second.pid != first) == ("started", True)
        assert is_gone(first)
        on.link.show(job("stopping", attempt=2, kill_in_ms=0))
        assert (await on.told())[0] == "ended"
        assert on.link.told.empty()


async def test_the_spec_is_removed_when_the_job_has_ended(folders):
    async with stage(folders) as on:
        on.submit("true")
        on.link.show(job("queued"))
        on.link.show(job("starting", lease=lease()))
        assert [(await on.told())[0], (await on.told())[0]] == ["started", "ended"]
    with pytest.raises(SpecLost):
        on.spool.read(JOB)


async def test_a_job_that_was_cancelled_in_the_line_leaves_no_spec(folders):
    async with stage(folders, linger_s=0.1) as on:
        on.submit("true")
        on.link.show(job("ended"))
        await asyncio.wait_for(asyncio.shield(on.running), 20)
    with pytest.raises(SpecLost):
        on.spool.read(JOB)


async def test_it_ends_by_itself_when_there_were_no_jobs_for_a_while(folders):
    async with stage(folders, linger_s=0.1) as on:
        on.link.show(job("ended"))
        await asyncio.wait_for(asyncio.shield(on.running), 20)
        assert on.link.has_ended
    assert RunnerLock.take(folders.runtime) is not None


async def test_it_stays_while_somebody_submits_or_a_job_waits(folders):
    async with stage(folders, linger_s=0.05) as on:
        with submitting(folders.runtime):
            done, _ = await asyncio.wait({on.running}, timeout=0.5)
            assert not done
            on.link.show(job("queued"))
        done, _ = await asyncio.wait({on.running}, timeout=0.5)
        assert not done


async def test_it_stays_while_nobody_can_say_that_there_are_no_jobs(folders):
    async with stage(folders, linger_s=0.05) as on:
        on.link.is_down = True
        done, _ = await asyncio.wait({on.running}, timeout=0.5)
        assert not done
        on.link.is_down = False
        await asyncio.wait_for(asyncio.shield(on.running), 20)


async def test_told_to_end_it_lets_jobs_save_their_work_and_tells_their_end(folders):
    async with stage(folders) as on:
        on.submit_pausing()
        on.link.show(job("starting", lease=lease()))
        assert (await on.told())[0] == "started"
        await on.is_ready()
        os.kill(os.getpid(), signal.SIGTERM)
        assert await on.told() == ("ended", routes.JOB_ENDED.body(1, 4))
        await on.running
        assert on.link.has_ended
