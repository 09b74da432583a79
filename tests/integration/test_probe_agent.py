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
from jupyter_gpubroker.core.model import NodeId, SlotId
from jupyter_gpubroker.devices.choice import Choice
from jupyter_gpubroker.devices.probe_client import ProbeClient, probe_argv
from jupyter_gpubroker.devices.simulated import SimulatedReader
from jupyter_gpubroker.devices.sources import Source, add_source

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


@pytest.mark.parametrize(("ratio", "is_busy"), [(0.2, True), (0, False)])
async def test_an_exporter_tells_whether_a_slice_of_an_a100_is_used(folders, ratio, is_busy):
    spec, folder = "1xA100:3g.40gb+4g.40gb", folders.runtime / "simulated"
    (gpu,) = SimulatedReader(spec, folder).inventory().gpus
    slot = gpu.slots[0].uuid
    pages = [
        f'DCGM_FI_PROF_SM_ACTIVE{{UUID="{gpu.uuid}",GPU_I_ID="{gi_id}"}} {value}\n'
        for gi_id, value in ((1, ratio), (2, 0.5))
    ]

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.0 200 OK\r\n\r\n{''.join(pages)}".encode())
        writer.close()

    exporter = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = exporter.sockets[0].getsockname()[1]
    sources = folders.state / "sources.json"
    add_source(sources, Source("prometheus", f"http://127.0.0.1:{port}/metrics"))

    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        "from gpubroker import simulated; simulated.initialize(); print(flush=True); input()",
        env={**os.environ, "CUDA_VISIBLE_DEVICES": slot, "GPUBROKER_SIMULATED_STATE": str(folder)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    await process.stdout.readline()
    found = ProcessTable().process(process.pid)
    assert found is not None
    holder = Holder(
        "kernel", ProcessOwner.SESSION, os.getuid(), process.pid, found.start_ticks, "kernel"
    )
    holdings = Holdings((holder,), {SlotId(slot): SlotHolding(1, "kernel")})
    events: asyncio.Queue[object] = asyncio.Queue()
    probe = ProbeClient(probe_argv(Choice(spec, folder, sources)))
    agent = Agent(
        NodeId("node"), probe, holdings=lambda: holdings, emit=events.put_nowait, interval_s=0.05
    )
    agent.start()

    async def told() -> SlotObservation:
        while True:
            event = await events.get()
            if isinstance(event, SlotsObserved):
                for one in event.slots:
                    if one.slot_id == slot and one.busy is not None:
                        return one

    observation = await asyncio.wait_for(told(), 30)
    assert (observation.busy, observation.source) == (is_busy, "engines")
    assert observation.utilisation_percent is None
    process.kill()
    await process.wait()
    await agent.close()
    exporter.close()
    await exporter.wait_closed()
