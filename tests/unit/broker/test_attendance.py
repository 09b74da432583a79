"""A request that nobody waits for leaves the line, after a grace and only then."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from jupyter_gpubroker.broker.attendance import Attendance
from jupyter_gpubroker.core.events import Event, RequestAbandoned
from jupyter_gpubroker.core.model import (
    JobId,
    Owner,
    Request,
    RequestId,
    RequestState,
    SessionId,
    SlotSpec,
    State,
)

pytestmark = pytest.mark.asyncio

REQUEST = Request(RequestId("r"), 1, Owner("ada"), SessionId("s"), SlotSpec(), "interactive")
WAITING = State(requests={REQUEST.id: REQUEST})
GRACE_S = 0.02


class Heard(list[Event]):
    """Events in the order of their coming."""

    def __init__(self) -> None:
        super().__init__()
        self.any = asyncio.Event()

    def __call__(self, event: Event) -> None:
        self.append(event)
        self.any.set()


async def test_without_a_listener_it_is_abandoned() -> None:
    heard = Heard()
    Attendance(heard, GRACE_S).sync(WAITING)
    await asyncio.wait_for(heard.any.wait(), 5)
    assert heard == [RequestAbandoned(REQUEST.id)]


async def test_a_listener_keeps_it_and_the_grace_begins_when_the_last_one_leaves() -> None:
    heard = Heard()
    attendance = Attendance(heard, GRACE_S)
    attendance.sync(WAITING)
    with attendance.listening(REQUEST.id):
        with attendance.listening(REQUEST.id):
            await asyncio.sleep(GRACE_S * 3)
        await asyncio.sleep(GRACE_S * 3)
        assert heard == []
    await asyncio.wait_for(heard.any.wait(), 5)
    assert heard == [RequestAbandoned(REQUEST.id)]


async def test_one_that_no_longer_waits_is_left_alone() -> None:
    heard = Heard()
    attendance = Attendance(heard, GRACE_S)
    attendance.sync(WAITING)
    granted = replace(REQUEST, state=RequestState.GRANTED)
    attendance.sync(State(requests={REQUEST.id: granted}))
    with attendance.listening(REQUEST.id):
        pass
    await asyncio.sleep(GRACE_S * 3)
    assert heard == []


async def test_a_job_needs_no_listener() -> None:
    heard = Heard()
    job_request = replace(REQUEST, job_id=JobId("j"))
    Attendance(heard, GRACE_S).sync(State(requests={REQUEST.id: job_request}))
    await asyncio.sleep(GRACE_S * 3)
    assert heard == []


async def test_nothing_is_said_after_close() -> None:
    heard = Heard()
    attendance = Attendance(heard, GRACE_S)
    attendance.sync(WAITING)
    attendance.close()
    await asyncio.sleep(GRACE_S * 3)
    assert heard == []
