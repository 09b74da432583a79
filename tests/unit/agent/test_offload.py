"""A call that hangs costs one thread and no more."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

import pytest

from jupyter_gpubroker.agent.offload import Hanging, Offload

pytestmark = pytest.mark.asyncio


async def test_it_returns_what_the_function_returns():
    assert await Offload().call(lambda a, b: a + b, 1, 2, deadline_s=10) == 3


async def test_it_raises_what_the_function_raises():
    def fail():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await Offload().call(fail, deadline_s=10)


async def test_after_a_call_that_hangs_none_is_started_until_it_came_back():
    offload, release, came_back = Offload(), threading.Event(), threading.Event()

    def hang():
        release.wait()
        came_back.set()

    with pytest.raises(Hanging):
        await offload.call(hang, deadline_s=0.01)
    with pytest.raises(Hanging):
        await offload.call(lambda: pytest.fail("started"), deadline_s=10)
    release.set()
    assert await asyncio.to_thread(came_back.wait, 10)
    while True:
        try:
            assert await offload.call(lambda: 1, deadline_s=10) == 1
            break
        except Hanging:
            await asyncio.sleep(0.001)


async def test_a_hanging_call_does_not_keep_the_program_from_ending():
    program = (
        "import asyncio, time\n"
        "from jupyter_gpubroker.agent.offload import Offload, Hanging\n"
        "async def main():\n"
        "    try:\n"
        "        await Offload().call(time.sleep, 600, deadline_s=0.01)\n"
        "    except Hanging:\n"
        "        pass\n"
        "asyncio.run(main())\n"
    )
    await asyncio.to_thread(subprocess.run, [sys.executable, "-c", program], check=True, timeout=30)
