"""The child that may hang: it answers, is killed when late, and is there again for the next call."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import textwrap
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from jupyter_gpubroker.server import child as child_module
from jupyter_gpubroker.server.child import Child, ChildFailed

pytestmark = pytest.mark.asyncio

SERVES = textwrap.dedent(
    """
    import json, os, sys, time
    for line in sys.stdin:
        call = json.loads(line)
        answer = {"id": call["id"], "result": [os.getpid(), *call["params"]]}
        if call["method"] == "fails": answer = {"id": call["id"], "error": "ValueError: no"}
        if call["method"] == "other": answer["id"] += 1
        if call["method"] == "rubbish": print("rubbish", flush=True); continue
        if call["method"] == "hangs": time.sleep(60)
        if call["method"] == "ends": sys.exit(1)
        print(json.dumps(answer), flush=True)
    """
)


@pytest_asyncio.fixture
async def child(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Child]:
    monkeypatch.setattr(child_module, "START_S", 5.0)
    made = Child((sys.executable, "-c", SERVES))
    yield made
    await made.close()


async def test_one_process_answers_all_calls(child: Child) -> None:
    first = await child.call("adds", 1, "x", deadline_s=5)
    second = await child.call("adds", 2, deadline_s=5)
    assert first == [first[0], 1, "x"]
    assert second == [first[0], 2]


async def test_calls_at_once_are_answered_each_with_its_own(child: Child) -> None:
    answers = await asyncio.gather(*(child.call("adds", n, deadline_s=5) for n in range(5)))
    assert [answer[1] for answer in answers] == list(range(5))


async def test_a_call_that_raises_there_fails_here_and_the_process_stays(child: Child) -> None:
    [pid] = await child.call("adds", deadline_s=5)
    with pytest.raises(ChildFailed, match="ValueError: no"):
        await child.call("fails", deadline_s=5)
    assert await child.call("adds", deadline_s=5) == [pid]


@pytest.mark.parametrize("method", ["hangs", "ends", "rubbish", "other"])
async def test_a_process_that_does_not_answer_is_replaced(child: Child, method: str) -> None:
    [pid] = await child.call("adds", deadline_s=5)
    with pytest.raises(ChildFailed, match=method):
        await child.call(method, deadline_s=0.2)
    [other] = await child.call("adds", deadline_s=5)
    assert other != pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_process_killed_between_calls_is_replaced(child: Child) -> None:
    [pid] = await child.call("adds", deadline_s=5)
    os.kill(pid, signal.SIGKILL)
    while True:
        try:
            [other] = await child.call("adds", deadline_s=5)
            break
        except ChildFailed:
            continue
    assert other != pid


async def test_a_caller_that_goes_away_leaves_no_answer_to_the_next(child: Child) -> None:
    await child.call("adds", deadline_s=5)
    waiting = asyncio.create_task(child.call("hangs", "old", deadline_s=60))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    assert (await child.call("adds", "new", deadline_s=5))[1:] == ["new"]


async def test_what_cannot_be_started_fails() -> None:
    with pytest.raises(ChildFailed, match="not started"):
        await Child(("/nowhere/python",)).call("adds", deadline_s=5)


async def test_closing_ends_the_process() -> None:
    child = Child((sys.executable, "-c", SERVES))
    await child.close()
    [pid] = await child.call("adds", deadline_s=5)
    await child.close()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
