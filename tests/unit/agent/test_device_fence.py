"""The device fence, with stand-in device files and the kernel's own rules where this machine lets us."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_gpubroker.agent.device_fence import PREFIX, DeviceFence, rules_that_work
from jupyter_gpubroker.agent.device_nodes import device_nodes
from jupyter_gpubroker.agent.device_rules import (
    Device,
    Rules,
    available_rules,
    denial,
)
from jupyter_gpubroker.agent.holdings import Holder, Holdings, SlotHolding
from jupyter_gpubroker.agent.processes import ProcessTable
from jupyter_gpubroker.core.events import ProcessOwner
from jupyter_gpubroker.core.model import SlotId
from jupyter_gpubroker.devices.reader import GpuFound, Inventory, SlotFound

# /dev/zero and /dev/full stand for two GPUs.
FIRST, SECOND = SlotId("GPU-1"), SlotId("GPU-2")
NODES = {FIRST: frozenset({Device(1, 5)}), SECOND: frozenset({Device(1, 7)})}
FILES = {FIRST: "/dev/zero", SECOND: "/dev/full"}
OPENS = """
import sys
for path in sys.stdin:
    try:
        open(path.strip(), "rb").close()
        print("opened", flush=True)
    except PermissionError:
        print("refused", flush=True)
"""

try:
    RULES = available_rules() if os.geteuid() == 0 else []
except OSError:
    RULES = []


class Kernel:
    """A process that tries to open what it is told to."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-c", OPENS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        found = ProcessTable().process(self.process.pid)
        assert found is not None
        name = uuid.uuid4().hex
        self.holder = Holder(
            name, ProcessOwner.SESSION, os.getuid(), found.pid, found.start_ticks, name
        )

    def opens(self, slot_id: SlotId) -> bool:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(FILES[slot_id] + "\n")
        return self.process.stdout.readline() == "opened\n"

    def end(self) -> None:
        self.process.communicate()


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    kernel = Kernel()
    yield kernel
    kernel.end()


@pytest.fixture(params=RULES, ids=lambda rules: rules.name)
def rules(request: pytest.FixtureRequest) -> Rules:
    rules: Rules = request.param
    return rules


def holdings(kernel: Kernel, *slots: SlotId, is_leaving: bool = False) -> Holdings:
    held = SlotHolding(1, kernel.holder.id, is_leaving=is_leaving)
    return Holdings((kernel.holder,), dict.fromkeys(slots, held))


@pytest.mark.skipif(not RULES, reason="only root may make cgroups and judge opens")
def test_a_running_process_opens_what_is_lent_to_it_and_nothing_else(rules, kernel):
    fence = DeviceFence(rules, ProcessTable(), NODES)
    assert (kernel.opens(FIRST), kernel.opens(SECOND)) == (True, True)
    fence.sync(holdings(kernel))
    assert (kernel.opens(FIRST), kernel.opens(SECOND)) == (False, False)
    fence.sync(holdings(kernel, SECOND))
    assert (kernel.opens(FIRST), kernel.opens(SECOND)) == (False, True)
    fence.sync(holdings(kernel, FIRST, SECOND))
    assert (kernel.opens(FIRST), kernel.opens(SECOND)) == (True, True)
    fence.sync(holdings(kernel, FIRST, SECOND, is_leaving=True))
    assert (kernel.opens(FIRST), kernel.opens(SECOND)) == (False, False)
    cgroup = rules.cgroup_of(kernel.process.pid)
    assert cgroup.name == PREFIX + kernel.holder.id
    kernel.end()
    fence.sync(Holdings())
    assert not cgroup.exists()


@pytest.mark.skipif(not RULES, reason="only root may make cgroups and judge opens")
def test_a_broker_that_starts_anew_goes_on_with_the_cgroup_that_is_there(rules, kernel):
    DeviceFence(rules, ProcessTable(), NODES).sync(holdings(kernel))
    cgroup = rules.cgroup_of(kernel.process.pid)
    fence = DeviceFence(rules, ProcessTable(), NODES)
    fence.sync(holdings(kernel, FIRST))
    assert rules.cgroup_of(kernel.process.pid) == cgroup
    assert (kernel.opens(FIRST), kernel.opens(SECOND)) == (True, False)
    kernel.end()
    fence.sync(Holdings())
    assert not cgroup.exists()


@pytest.mark.skipif(not RULES, reason="only root may make cgroups and judge opens")
def test_what_works_here_is_found_by_trying_and_leaves_nothing():
    found = rules_that_work()
    assert found is not None
    assert not list(found.cgroup_of(os.getpid()).glob(f"{PREFIX}trial*"))


def test_where_no_cgroups_are_mounted_there_is_no_fence(tmp_path: Path):
    (tmp_path / "self").mkdir()
    (tmp_path / "self/mounts").write_text("proc /proc proc rw 0 0\n")
    assert rules_that_work(tmp_path) is None


def test_a_program_denies_each_device_and_allows_the_rest():
    assert len(denial([])) == 4 * 8
    assert len(denial([Device(195, 0), Device(195, 1)])) == (4 + 2 * 4) * 8


# --- which files a slot has -------------------------------------------------------------------------------------------------


@pytest.fixture
def driver(tmp_path: Path) -> Path:
    """What the NVIDIA driver tells in /proc of a GPU that is NVML's first and the driver's fourth."""
    gpu = tmp_path / "driver/nvidia/gpus/0000:3b:00.0"
    gpu.mkdir(parents=True)
    (gpu / "information").write_text("Model: \t\t NVIDIA A100\nDevice Minor: \t 3\n")
    (tmp_path / "devices").write_text("Character devices:\n195 nvidia-frontend\n236 nvidia-caps\n")
    caps = tmp_path / "driver/nvidia-caps"
    caps.mkdir()
    (caps / "mig-minors").write_text("gpu3/gi7/access 66\ngpu3/gi7/ci0/access 67\nconfig 1\n")
    return tmp_path


def inventory(slot: SlotFound) -> Inventory:
    gpu = GpuFound("GPU-1", 0, "00000000:3B:00.0", "NVIDIA A100", None, slots=(slot,))
    return Inventory("nvml", "1", (gpu,))


def test_a_whole_gpu_is_the_file_of_the_drivers_own_number(driver):
    found = device_nodes(inventory(SlotFound("GPU-1", "gpu", None)), driver)
    assert found == {FIRST: {Device(195, 3)}}


def test_a_slice_is_its_gpus_file_and_its_two_capabilities(driver):
    slot = SlotFound("MIG-1", "mig", None, "1g.5gb", gi_id=7, ci_id=0)
    assert device_nodes(inventory(slot), driver) == {
        "MIG-1": {Device(195, 3), Device(236, 66), Device(236, 67)}
    }


def test_a_driver_that_does_not_tell_is_an_error_and_not_an_open_fence(driver):
    (driver / "driver/nvidia/gpus/0000:3b:00.0/information").write_text("Model: NVIDIA A100\n")
    with pytest.raises(ValueError, match="which file"):
        device_nodes(inventory(SlotFound("GPU-1", "gpu", None)), driver)
