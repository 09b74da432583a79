"""What it costs to watch 8 GPUs with 64 processes once a second: processor time of the agent and its probe together.

    python tests/perf/sampling.py [--seconds 20]

The real agent, probe and pynvml over the stub of NVIDIA's library (needs gcc), on whole GPUs that give every signal, with real
processes: eight kernels, each with eight processes on its GPU. Prints one JSON object; the shares are of one core.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[2]))

from jupyter_gpubroker.agent.agent import Agent
from jupyter_gpubroker.agent.holdings import Holder, Holdings, SlotHolding
from jupyter_gpubroker.core.events import ProcessOwner, SlotsObserved
from jupyter_gpubroker.core.model import NodeId, SlotId
from jupyter_gpubroker.devices.choice import Choice
from jupyter_gpubroker.devices.probe_client import ProbeClient, probe_argv
from jupyter_gpubroker.processes import process_of
from tests.support.nvml.world import NvmlWorld, build, environment

GPUS, PROCESSES_EACH = 8, 8
KERNEL = f"for i in $(seq {PROCESSES_EACH}); do sleep 3600 & done; echo $(jobs -p); wait"


def start_kernels(world: NvmlWorld, stack: ExitStack) -> Holdings:
    holders, slots = [], {}
    for number in range(GPUS):
        gpu = f"GPU-{number}"
        world.gpu(gpu, gpm=1, used=64_000, util=80, engine=75.5, sm=60, dram=20, power=350_000)
        kernel = subprocess.Popen(
            ["bash", "-c", KERNEL], stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        stack.callback(os.killpg, kernel.pid, 15)
        assert kernel.stdout is not None
        for pid in kernel.stdout.readline().split():
            world.process(gpu, int(pid), memory=8_000, busy=10)
        found = process_of(kernel.pid)
        assert found is not None
        holders.append(
            Holder(gpu, ProcessOwner.SESSION, os.getuid(), kernel.pid, found.start_ticks, gpu)
        )
        slots[SlotId(gpu)] = SlotHolding(1, gpu)
    return Holdings(tuple(holders), slots)


async def measure(seconds: float) -> dict[str, float | int]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gb-")))
        world = NvmlWorld(folder / "world")
        os.environ |= environment(world, build(folder))
        holdings = start_kernels(world, stack)
        seen: asyncio.Queue[object] = asyncio.Queue()
        probe = ProbeClient(probe_argv(Choice(None)))
        agent = Agent(NodeId("node"), probe, holdings=lambda: holdings, emit=seen.put_nowait)
        agent.start()
        event: object = None
        for _ in range(6):  # the inventory, and rounds until every number is there
            event = await seen.get()
        assert isinstance(event, SlotsObserved)
        owned = [one for slot in event.slots for one in slot.processes or () if one.holder_id]
        assert len(owned) == GPUS * PROCESSES_EACH
        assert all(slot.busy for slot in event.slots)
        child = psutil.Process(probe.pid)
        agent_s, child_s, began_s = time.process_time(), cpu_s(child), time.monotonic()
        await asyncio.sleep(seconds)
        took_s = time.monotonic() - began_s
        agent_s, child_s = time.process_time() - agent_s, cpu_s(child) - child_s
        await agent.close()
        return {
            "gpus": GPUS,
            "processes": len(owned),
            "rounds": seen.qsize(),
            "agent_percent": round(100 * agent_s / took_s, 2),
            "probe_percent": round(100 * child_s / took_s, 2),
            "together_percent": round(100 * (agent_s + child_s) / took_s, 2),
        }


def cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=20.0)
    print(json.dumps(asyncio.run(measure(parser.parse_args().seconds)), indent=2))


if __name__ == "__main__":
    main()
