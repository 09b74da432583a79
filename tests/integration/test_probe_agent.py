"""Agent, probe and a real process on a simulated GPU, together."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_gpubroker.agent.agent import Agent
from jupyter_gpubroker.agent.holdings import Holder, Holdings, SlotHolding
from jupyter_gpubroker.agent.processes import ProcessTable
from jupyter_gpubroker.core.events import (
    InventoryReported,
    ProcessOwner,
    SlotObservation,
    SlotsObserved,
)
from jupyter_gpubroker.core.model import NodeId
from jupyter_gpubroker.devices.choice import Choice
from jupyter_gpubroker.devices.probe_client import ProbeClient, probe_argv

pytestmark = pytest.mark.asyncio

WORK = """
from gpubroker import simulated
simulated.burn(0, 100)
print("worked", flush=True)
input()
simulated.burn(600)
"""


async def test_work_is_seen_as_the_holders_and_its_end_at_once(folders):
    folder: Path = folders.runtime / "simulated"
    holdings = Holdings()
    events: asyncio.Queue[object] = asyncio.Queue()
    probe = ProbeClient(probe_argv(Choice("1xL4", folder)))
    agent = Agent(
        NodeId("node"), probe, holdings=lambda: holdings, emit=events.put_nowait, interval_s=0.05
    )
    agent.start()
    inventory = await asyncio.wait_for(events.get(), 20)
    assert isinstance(inventory, InventoryReported)
    slot = inventory.slots[0].id

    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        WORK,
        env={
            **os.environ,
            "CUDA_VISIBLE_DEVICES": slot,
            "GPUBROKER_SIMULATED_STATE": str(folder),
        },
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    found = ProcessTable().process(process.pid)
    assert found is not None
    holder = Holder(
        "kernel", ProcessOwner.SESSION, os.getuid(), process.pid, found.start_ticks, mark="kernel"
    )
    holdings = Holdings((holder,), {slot: SlotHolding(1, "kernel")})
    assert await process.stdout.readline() == b"worked\n"

    async def seen(wanted: Callable[[SlotObservation], bool]) -> None:
        while True:
            event = await events.get()
            if isinstance(event, SlotsObserved) and wanted(event.slots[0]):
                return

    def is_its_own(observation: SlotObservation, *, busy: bool) -> bool:
        return observation.busy is busy and [
            (entry.pid, entry.holder_id) for entry in observation.processes or ()
        ] == [(process.pid, "kernel")]

    await asyncio.wait_for(seen(lambda one: is_its_own(one, busy=False)), 20)
    process.stdin.write(b"\n")
    await asyncio.wait_for(seen(lambda one: is_its_own(one, busy=True)), 20)

    process.kill()
    await process.wait()
    while not events.empty():
        events.get_nowait()
    await agent.inspect([slot])
    event = events.get_nowait()
    assert isinstance(event, SlotsObserved)
    (observation,) = event.slots
    assert (observation.processes, observation.memory_used_mib) == ((), 0)
    await agent.close()
