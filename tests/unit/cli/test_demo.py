"""What stops the demo in the middle."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from jupyter_gpubroker.cli.demo.play import Interruption


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
