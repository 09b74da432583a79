"""Waiting with a deadline: the result, the end of what is late, and no cancellation lost."""

from __future__ import annotations

import asyncio

import pytest

from jupyter_gpubroker.patience import within

pytestmark = pytest.mark.asyncio


async def test_the_result_or_the_exception_of_what_is_done_in_time() -> None:
    async def failing() -> None:
        raise ValueError("no")

    assert await within(10, asyncio.sleep(0, "done")) == "done"
    with pytest.raises(ValueError, match="no"):
        await within(10, failing())


async def test_what_is_late_is_cancelled() -> None:
    late = asyncio.get_running_loop().create_future()
    with pytest.raises(asyncio.TimeoutError):
        await within(0.01, late)
    assert late.cancelled()


async def test_a_cancellation_that_comes_together_with_the_result_is_not_swallowed() -> None:
    awaited = asyncio.get_running_loop().create_future()
    waiting = asyncio.create_task(within(10, awaited))
    await asyncio.sleep(0)
    awaited.set_result(None)
    waiting.cancel()
    await asyncio.wait((waiting,), timeout=5)
    assert waiting.cancelled()


async def test_who_is_cancelled_cancels_what_it_waits_for() -> None:
    awaited = asyncio.get_running_loop().create_future()
    waiting = asyncio.create_task(within(10, awaited))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait((waiting,), timeout=5)
    assert waiting.cancelled()
    assert awaited.cancelled()
