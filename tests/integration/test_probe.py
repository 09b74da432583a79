"""The probe as a real child process: it answers, and whatever happens to it costs its parent nothing but a reading."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from jupyter_gpubroker.devices.child import ChildError, ChildUnavailable, JsonLinesChild
from jupyter_gpubroker.devices.choice import Choice
from jupyter_gpubroker.devices.probe_client import ProbeClient, probe_argv
from jupyter_gpubroker.devices.reader import Xid
from jupyter_gpubroker.devices.simulated_faults import FAULTS
from tests.support.nvml.world import VARIABLE, NvmlWorld, build, four_gpus, has_compiler

pytestmark = pytest.mark.asyncio

# A child that answers at once, never, after a while or with noise, as its caller says.
OBEDIENT = """
import time
from jupyter_gpubroker.devices.jsonlines import serve
def fail(): raise ValueError("no such thing")
serve({
    "echo": lambda value: value,
    "hang": lambda: time.sleep(600),
    "pause": lambda seconds: time.sleep(seconds),
    "noise": lambda: print("a library says hello"),
    "fail": fail,
    "exit": lambda: __import__("os")._exit(3),
})
"""


def is_alive(process_id: int) -> bool:
    """Not gone, and not dead and only waiting to be collected."""
    try:
        text = Path(f"/proc/{process_id}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return text.rpartition(")")[2].split()[0] not in "ZX"


async def ended(process_id: int) -> None:
    async def look() -> None:
        while is_alive(process_id):  # noqa: ASYNC110 - of a process there is no event here
            await asyncio.sleep(0.005)

    await asyncio.wait_for(look(), 10)


@pytest.fixture
def folder(folders) -> Path:
    path: Path = folders.runtime / "simulated"
    return path


@pytest.fixture
def nvml_world(tmp_path, monkeypatch) -> NvmlWorld:
    """A stub of NVIDIA's library for the probes that the test starts."""
    if not has_compiler():
        pytest.skip("needs gcc to build a stub of NVIDIA's library")
    build(tmp_path)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    monkeypatch.setenv(VARIABLE, str(tmp_path / "world"))
    return four_gpus(tmp_path / "world")


@pytest.fixture
def child():
    return JsonLinesChild([sys.executable, "-c", OBEDIENT])


async def call(
    child: JsonLinesChild, method: str, *params: object, deadline_s: float = 10.0
) -> str:
    return bytes(await child.call(method, *params, deadline_s=deadline_s)).decode()


async def recovered(child: JsonLinesChild) -> str:
    """The first answer after a failure, once the pause is over."""
    while True:
        try:
            return await call(child, "echo", "back")
        except ChildUnavailable as error:
            if error.problem not in ("pausing", "stuck"):
                raise
            await asyncio.sleep(0.02)


async def test_the_simulated_devices_are_read_through_the_probe(folder):
    probe = ProbeClient(probe_argv(Choice("1xL4,1xA100:3g.40gb+4g.40gb", folder)))
    inventory = await probe.inventory()
    slots = [slot.uuid for gpu in inventory.gpus for slot in gpu.slots]
    assert len(slots) == 3
    readings = await probe.observe()
    assert [(reading.uuid, reading.processes) for reading in readings] == [
        (slot, ()) for slot in slots
    ]
    assert [reading.uuid for reading in await probe.observe(slots[1:2])] == slots[1:2]
    await probe.close()


async def test_nvidias_library_is_read_through_the_probe(nvml_world):
    probe = ProbeClient(probe_argv(Choice(None)))
    inventory = await probe.inventory()
    assert [(gpu.uuid, gpu.state) for gpu in inventory.gpus] == [
        ("GPU-0", "ok"),
        ("index:1", "no_permission"),
        ("GPU-2", "ok"),
        ("index:3", "lost"),
    ]
    (reading,) = await probe.observe(["MIG-4"])
    assert reading.memory_used_mib == 501
    nvml_world.report("GPU-0", 31)
    assert (await probe.health())[0].xids == (Xid(31),)
    assert {one.gpu_uuid for one in await probe.capabilities()} >= {"GPU-0", "GPU-2"}
    await probe.close()


@pytest.mark.parametrize("function", ["nvmlDeviceGetMemoryInfo", "nvmlGpmSampleGet"])
async def test_a_library_that_hangs_costs_one_probe_and_is_read_again(nvml_world, function):
    probe = ProbeClient(probe_argv(Choice(None)), observe_s=0.3)
    await probe.inventory()
    first = probe.pid
    assert first is not None
    nvml_world.hang(function, "GPU-0")
    with pytest.raises(ChildUnavailable) as failure:
        await probe.observe(["GPU-0"])
    assert failure.value.problem == "overran"
    await ended(first)
    nvml_world.remove("hang")
    while probe.pid in (None, first):
        with contextlib.suppress(ChildUnavailable):
            await probe.inventory()
        await asyncio.sleep(0.02)
    (reading,) = await probe.observe(["GPU-0"])
    assert reading.memory_used_mib == 501
    await probe.close()


async def test_a_simulated_device_that_hangs_costs_one_probe_and_is_read_again(folder):
    probe = ProbeClient(probe_argv(Choice("2xL4", folder)), observe_s=0.3)
    inventory = await probe.inventory()
    sick, well = (gpu.uuid for gpu in inventory.gpus)
    first = probe.pid
    assert first is not None
    (folder / FAULTS).write_text(json.dumps({"hanging": [sick]}))
    with pytest.raises(ChildUnavailable) as failure:
        await probe.observe()
    assert failure.value.problem == "overran"
    await ended(first)
    while probe.pid in (None, first):
        with contextlib.suppress(ChildUnavailable):
            await probe.inventory()
        await asyncio.sleep(0.02)
    assert [reading.memory_used_mib for reading in await probe.observe([well])] == [0]
    await probe.close()


async def test_a_call_that_takes_too_long_ends_the_child_and_a_new_one_follows(child):
    assert await call(child, "echo", 1) == "1"
    first = child.pid
    with pytest.raises(ChildUnavailable) as failure:
        await call(child, "hang", deadline_s=0.1)
    assert failure.value.problem == "overran"
    await ended(first)
    assert await recovered(child) == '"back"'
    assert child.pid != first
    await child.close()


async def test_no_new_child_is_started_while_a_killed_one_does_not_go(child, monkeypatch):
    # The kernel cannot end a process in D state; here nobody tries.
    monkeypatch.setattr(child, "_send_kill", lambda _process: None)
    await call(child, "echo", 1)
    first = child.pid
    with pytest.raises(ChildUnavailable):
        await call(child, "hang", deadline_s=0.1)
    for _ in range(3):
        with pytest.raises(ChildUnavailable) as failure:
            await call(child, "echo", 1)
        assert failure.value.problem == "stuck"
    assert is_alive(first)
    os.kill(first, signal.SIGKILL)
    assert await recovered(child) == '"back"'
    monkeypatch.undo()
    await child.close()


async def test_after_a_failure_there_is_a_pause(child):
    with pytest.raises(ChildUnavailable) as failure:
        await call(child, "exit")
    assert failure.value.problem == "ended"
    with pytest.raises(ChildUnavailable) as failure:
        await call(child, "echo", 1)
    assert failure.value.problem == "pausing"
    assert await recovered(child) == '"back"'
    await child.close()


async def test_a_child_killed_by_somebody_is_replaced(child):
    await call(child, "echo", 1)
    os.kill(child.pid, signal.SIGKILL)
    with pytest.raises(ChildUnavailable) as failure:
        await call(child, "echo", 1)
    assert failure.value.problem == "ended"
    assert await recovered(child) == '"back"'
    await child.close()


async def test_a_program_that_is_not_there_is_not_started():
    child = JsonLinesChild(["/nonexistent/python"])
    with pytest.raises(ChildUnavailable) as failure:
        await call(child, "echo", 1)
    assert failure.value.problem == "not_started"


async def test_an_error_in_a_call_leaves_the_child_alive(child):
    with pytest.raises(ChildError, match="ValueError: no such thing"):
        await call(child, "fail")
    assert await call(child, "echo", 2) == "2"
    await child.close()


async def test_what_libraries_print_is_no_answer(child, capfd):
    assert await call(child, "noise") == "null"
    assert await call(child, "echo", 3) == "3"
    await child.close()
    assert "a library says hello" in capfd.readouterr().err


async def test_the_answer_to_a_cancelled_call_is_not_taken_for_the_next_ones(child):
    await call(child, "echo", 1)
    task = asyncio.create_task(call(child, "pause", 0.1))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await call(child, "echo", "mine") == '"mine"'
    await child.close()


async def test_calls_take_turns(child):
    answers = await asyncio.gather(*(call(child, "echo", number) for number in range(20)))
    assert answers == [str(number) for number in range(20)]
    await child.close()


async def test_closing_ends_even_a_child_that_hangs(child):
    await call(child, "echo", 1)
    process = child.pid
    task = asyncio.create_task(call(child, "hang", deadline_s=60))
    await asyncio.sleep(0)
    task.cancel()
    await child.close()
    await ended(process)


async def test_the_probe_does_not_outlive_its_parent(folder):
    script = (
        "import asyncio, sys, time\n"
        "from pathlib import Path\n"
        "from jupyter_gpubroker.devices.choice import Choice\n"
        "from jupyter_gpubroker.devices.probe_client import *\n"
        "async def main():\n"
        "    probe = ProbeClient(probe_argv(Choice('1xL4', Path(sys.argv[1]))))\n"
        "    await probe.inventory()\n"
        "    print(probe.pid, flush=True)\n"
        "    time.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, str(folder), stdout=asyncio.subprocess.PIPE
    )
    assert parent.stdout is not None
    probe = int(await parent.stdout.readline())
    assert is_alive(probe)
    parent.kill()
    await parent.wait()
    await ended(probe)
