"""Whether the fence stands: only where it was put up, and as long as the kernel does what it is told."""

from __future__ import annotations

import pytest

from jupyter_gpubroker.agent import fencing as module
from jupyter_gpubroker.agent.device_fence import DeviceFence
from jupyter_gpubroker.agent.device_rules import Device
from jupyter_gpubroker.agent.fencing import Fencing
from jupyter_gpubroker.agent.holdings import Holdings
from jupyter_gpubroker.core.model import SlotId
from jupyter_gpubroker.devices.reader import Inventory

pytestmark = pytest.mark.asyncio

INVENTORY = Inventory("nvml", "1", ())
NODES = {SlotId("GPU-1"): frozenset({Device(195, 0)})}


class FakeFence(DeviceFence):
    """Does what the test says, in no cgroup."""

    def __init__(self) -> None:
        self.nodes = {}
        self.fails: OSError | None = None
        self.synced = 0

    def sync(self, _holdings: Holdings) -> None:
        if self.fails is not None:
            raise self.fails
        self.synced += 1


@pytest.fixture
def fence() -> FakeFence:
    return FakeFence()


@pytest.fixture
def nodes(monkeypatch):
    monkeypatch.setattr(module, "device_nodes", lambda _: NODES)


async def test_it_stands_once_the_devices_are_known_and_holders_are_fenced(fence, nodes):
    fencing = Fencing(fence)
    await fencing.keep(Holdings())
    assert (fencing.stands, fence.synced) == (False, 0)
    await fencing.know(INVENTORY)
    await fencing.keep(Holdings())
    assert (fencing.stands, fence.synced) == (True, 1)


async def test_it_does_not_stand_where_the_driver_names_no_device_files(fence, monkeypatch):
    def fail(_: Inventory) -> None:
        raise FileNotFoundError("/proc/driver/nvidia")

    monkeypatch.setattr(module, "device_nodes", fail)
    fencing = Fencing(fence)
    await fencing.know(INVENTORY)
    await fencing.keep(Holdings())
    assert (fencing.stands, fence.synced) == (False, 0)


async def test_a_failure_is_told_once_and_what_works_again_stands_again(fence, nodes, caplog):
    fencing = Fencing(fence)
    await fencing.know(INVENTORY)
    fence.fails = PermissionError("no")
    for _ in range(3):
        await fencing.keep(Holdings())
    assert not fencing.stands
    assert [record.getMessage() for record in caplog.records] == [
        "fence_fails error=PermissionError: no"
    ]
    fence.fails = None
    await fencing.keep(Holdings())
    assert fencing.stands
