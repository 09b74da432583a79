"""Whoever asks a broker that has just started is judged by the devices as they are, not as they were."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from jupyter_gpubroker.broker.api import call as call_module
from jupyter_gpubroker.broker.api.call import Broker, Call
from jupyter_gpubroker.broker.identity import Caller
from jupyter_gpubroker.broker.latest import Latest
from jupyter_gpubroker.core.events import (
    Event,
    InventoryReported,
    NodeUnobserved,
    RequestMade,
    SlotObservation,
    SlotSeen,
    SlotsObserved,
)
from jupyter_gpubroker.core.model import (
    Gpu,
    GpuId,
    MiB,
    NodeId,
    Owner,
    Reason,
    RequestId,
    SessionId,
    SlotId,
    SlotKind,
    SlotSpec,
)

pytestmark = pytest.mark.asyncio

NODE = NodeId("n")
SLOT = SlotId("GPU-1")
INVENTORY = InventoryReported(
    NODE,
    (Gpu(GpuId("GPU-1"), NODE, 0, "0", "H200", MiB(100_000)),),
    (SlotSeen(SLOT, GpuId("GPU-1"), SlotKind.GPU, "H200", MiB(100_000)),),
)
LOOK = SlotsObserved(NODE, (SlotObservation(SLOT, False, None, MiB(0), ()),), frozenset())
ASKED = RequestMade(Owner("ada"), RequestId("r"), SessionId("s"), SlotSpec())


class Lobby:
    """A broker's loop that only notes what is sent to it."""

    def __init__(self) -> None:
        self.sent: list[Event] = []

    async def submit(self, event: Event, _cause_id: str) -> None:
        self.sent.append(event)


def call_of(latest: Latest, lobby: Lobby) -> Call:
    broker: Any = SimpleNamespace(latest=latest, loop=lobby)
    return Call(cast("Broker", broker), cast("Caller", None), "c", "", b"", {})


async def test_a_request_waits_until_the_slots_were_looked_at() -> None:
    latest, lobby = Latest(), Lobby()
    asking = asyncio.create_task(call_of(latest, lobby).ask(ASKED))
    await asyncio.sleep(0)
    latest.note(INVENTORY)
    await asyncio.sleep(0)
    assert (latest.has_looked, lobby.sent) == (False, [])
    latest.note(LOOK)
    await asking
    assert (latest.has_looked, lobby.sent) == (True, [ASKED])


@pytest.mark.parametrize(
    "event",
    [
        InventoryReported(NODE, (), ()),
        NodeUnobserved(NODE, Reason.of("driver_unavailable", error="broken")),
    ],
    ids=["no-device", "broken-driver"],
)
async def test_devices_that_are_not_there_or_cannot_be_seen_are_waited_for_no_longer(
    event: InventoryReported | NodeUnobserved,
) -> None:
    latest = Latest()
    latest.note(event)
    assert latest.has_looked


async def test_a_driver_that_hangs_does_not_stop_anybody(monkeypatch) -> None:
    monkeypatch.setattr(call_module, "FIRST_LOOK_S", 0.0)
    lobby = Lobby()
    await call_of(Latest(), lobby).ask(ASKED)
    assert lobby.sent == [ASKED]
