"""What stops the demo in the middle, and what it leaves and says then."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from jupyter_gpubroker.cli.demo.play import Interruption, too_slow
from jupyter_gpubroker.cli.demo.report import Report
from jupyter_gpubroker.cli.demo.scene import output_of


@pytest.mark.asyncio
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_cancels_the_play_and_is_then_as_before(number: signal.Signals) -> None:
    before = signal.getsignal(number)

    async def play() -> None:
        await asyncio.Event().wait()

    with Interruption() as interruption:
        playing = asyncio.create_task(play())
        asyncio.get_running_loop().call_soon(os.kill, os.getpid(), number)
        with pytest.raises(asyncio.CancelledError):
            await interruption.cancels(playing)
    assert playing.cancelled()
    assert signal.getsignal(number) == before


@pytest.mark.asyncio
async def test_a_command_that_is_cut_off_has_ended_before_the_play_has(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    script = f"exec 9>{pipe}; echo $$ >&9; exec sleep 600"
    running = asyncio.create_task(output_of(["sh", "-c", script], tmp_path, dict(os.environ)))
    readable = asyncio.Event()
    asyncio.get_running_loop().add_reader(reading, readable.set)
    await readable.wait()
    asyncio.get_running_loop().remove_reader(reading)
    pid = int(os.read(reading, 100))
    os.close(reading)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_who_reaches_the_limit_is_told_what_went_on_and_what_to_do() -> None:
    report = Report(as_json=True)
    report.begin("parked", "").unfinished("batch_job_started")
    assert too_slow(82, report.unfinished) == (
        "the machine was too slow: the limit of 1 min 22 s was reached. Still going on: batch job started (parked). "
        "Play it again when the machine has less to do, or with more time: gpubroker demo --limit 164s"
    )
