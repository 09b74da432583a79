"""The agent's events, with a probe of the test's own making."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from jupyter_gpubroker.agent.agent import Agent
from jupyter_gpubroker.agent.holdings import Holder, Holdings, SlotHolding
from jupyter_gpubroker.agent.processes import ProcessTable
from jupyter_gpubroker.agent.stopping import Stopped
from jupyter_gpubroker.core.events import (
    GpuSeen,
    GpusObserved,
    InventoryReported,
    NodeUnobserved,
    ProcessOnSlot,
    ProcessOwner,
    SlotObservation,
    SlotsObserved,
)
from jupyter_gpubroker.core.model import GpuId, LeaseId, MiB, NodeId, Reason, SlotId
from jupyter_gpubroker.devices.child import ChildError, ChildUnavailable
from jupyter_gpubroker.devices.probe_client import ProbeClient
from jupyter_gpubroker.devices.reader import (
    NO_NVIDIA_DEVICE,
    GpuFound,
    GpuReading,
    Inventory,
    ProcessReading,
    SlotFound,
    SlotReading,
    Source,
)
from jupyter_gpubroker.processes import Process

pytestmark = pytest.mark.asyncio

NODE = NodeId("node")
SLOT = SlotId("GPU-1")
EMPTY = SlotReading("GPU-1", 500, 0, ())


def inventory(
    *uuids: str, source: Source = "simulated", problems: tuple[str, ...] = ()
) -> Inventory:
    return Inventory(
        source, "1", tuple(_gpu(index, uuid) for index, uuid in enumerate(uuids)), problems
    )


def _gpu(index: int, uuid: str) -> GpuFound:
    slot = SlotFound(uuid, "gpu", 23034)
    return GpuFound(uuid, index, f"0:{index}", "NVIDIA L4", 23034, slots=(slot,))


class FakeProbe(ProbeClient):
    """Answers what the test set, or raises it; no process."""

    pid: int | None = None

    def __init__(self) -> None:
        self.found: Inventory | Exception = inventory("GPU-1")
        self.readings: dict[str, SlotReading] = {"GPU-1": EMPTY}
        self.conditions: tuple[GpuReading, ...] = ()
        self.fails: Exception | None = None
        self.while_observing: Callable[[], None] = lambda: None
        self.inventories = 0
        self.is_closed = False

    async def inventory(self) -> Inventory:
        self.inventories += 1
        if isinstance(self.found, Exception):
            raise self.found
        self.pid = self.pid or 1
        return self.found

    async def observe(self, slot_uuids: Sequence[str] | None = None) -> tuple[SlotReading, ...]:
        if self.fails is not None:
            raise self.fails
        self.while_observing()
        return tuple(self.readings[slot] for slot in slot_uuids or ())

    async def health(self) -> tuple[GpuReading, ...]:
        if self.fails is not None:
            raise self.fails
        return self.conditions

    async def close(self) -> None:
        self.is_closed = True


class Setup:
    def __init__(self, table: ProcessTable | None = None) -> None:
        self.probe = FakeProbe()
        self.events: list[object] = []
        self.held = Holdings()
        self.agent = Agent(
            NODE,
            self.probe,
            holdings=lambda: self.held,
            emit=self.events.append,
            interval_s=0.01,
            table=table,
        )

    async def look(self) -> list[object]:
        """The events of one observation of the first slot."""
        self.events.clear()
        await self.agent.inspect([SLOT])
        return list(self.events)

    async def observed(self) -> SlotObservation:
        (event,) = await self.look()
        assert isinstance(event, SlotsObserved)
        return event.slots[0]


@pytest.fixture
def setup() -> Setup:
    return Setup()


async def test_the_inventory_comes_first_and_then_observations_at_every_tick(setup):
    enough = asyncio.Event()

    def emit(event: object) -> None:
        setup.events.append(event)
        if len(setup.events) == 4:
            enough.set()

    agent = Agent(NODE, setup.probe, holdings=Holdings, emit=emit, interval_s=0.001)
    agent.start()
    await asyncio.wait_for(enough.wait(), 10)
    await agent.close()
    kinds = [type(event) for event in setup.events[:4]]
    assert kinds == [InventoryReported, SlotsObserved, SlotsObserved, SlotsObserved]
    assert setup.probe.is_closed


async def test_the_inventory_says_what_there_is(setup):
    reported, _ = await setup.look()
    (gpu,), (slot,) = reported.gpus, reported.slots
    assert (gpu.id, gpu.node_id, gpu.model, gpu.memory_mib) == ("GPU-1", "node", "NVIDIA L4", 23034)
    assert (slot.id, slot.gpu_id, slot.kind.value, slot.simulated) == (
        "GPU-1",
        "GPU-1",
        "gpu",
        True,
    )


async def test_an_instance_is_told_with_its_generation(setup):
    slot = SlotFound("MIG-1", "mig", 4864, "1g.5gb", gi_id=1, ci_id=0, generation=2)
    gpu = GpuFound("GPU-1", 0, "", "NVIDIA A100", 40960, mig_enabled=True, slots=(slot,))
    setup.probe.found = Inventory("nvml", "1", (gpu,))
    setup.probe.readings["MIG-1"] = replace(EMPTY, uuid="MIG-1")
    (reported,) = await setup.look()
    assert [seen.generation for seen in reported.slots] == [2]


async def test_a_slot_of_unknown_memory_satisfies_no_demand_for_memory(setup):
    gpu = GpuFound("GPU-1", 0, "", "GB10", None, slots=(SlotFound("GPU-1", "gpu", None),))
    setup.probe.found = Inventory("nvml", "1", (gpu,))
    reported, _ = await setup.look()
    assert reported.slots[0].memory_mib == 0


async def test_an_empty_slot_is_told_with_its_memory(setup):
    await setup.look()
    assert await setup.observed() == SlotObservation(
        SLOT, False, None, MiB(500), (), 0, source="device"
    )


async def test_a_holders_process_is_told_with_its_use(setup):
    await setup.look()
    this = ProcessTable().process(os.getpid())
    assert this is not None
    kernel = Holder(
        "kernel", ProcessOwner.SESSION, os.getuid(), this.pid, this.start_ticks, mark="kernel"
    )
    setup.held = Holdings((kernel,), {SLOT: SlotHolding(1, "kernel")})
    setup.probe.readings["GPU-1"] = SlotReading(
        "GPU-1", 900, 70, (ProcessReading(os.getpid(), "compute", 400, 70),)
    )
    seen = await setup.observed()
    assert seen.busy is True
    assert seen.processes == (
        ProcessOnSlot(
            os.getpid(),
            ProcessOwner.SESSION,
            "kernel",
            os.getuid(),
            MiB(400),
            this.start_ticks,
            computes=True,
        ),
    )


async def test_the_condition_of_the_gpus_is_told_before_their_slots_and_once(setup):
    setup.probe.conditions = (
        GpuReading("GPU-1", power_mw=120_000, power_idle_mw=50_000, recovery_action="none"),
    )
    enough = asyncio.Event()

    def emit(event: object) -> None:
        setup.events.append(event)
        if len(setup.events) == 4:
            enough.set()

    agent = Agent(NODE, setup.probe, holdings=Holdings, emit=emit, interval_s=0.001)
    agent.start()
    await asyncio.wait_for(enough.wait(), 10)
    await agent.close()
    _, gpus, first, second = setup.events[:4]
    assert gpus == GpusObserved(NODE, (GpuSeen(GpuId("GPU-1"), "none"),))
    assert [look.slots[0].power_above_idle_mw for look in (first, second)] == [70_000, 70_000]


async def test_what_could_not_be_read_stays_unknown(setup):
    await setup.look()
    setup.probe.readings["GPU-1"] = SlotReading("GPU-1", problems=("nvmlX: Timeout",))
    assert await setup.observed() == SlotObservation(SLOT, None, None, None, None, None)


async def test_slots_that_are_not_there_are_not_asked_for(setup):
    await setup.agent.inspect([SlotId("GPU-9")])
    assert [type(event) for event in setup.events] == [InventoryReported]


async def test_a_probe_that_fails_is_told_once_and_its_return_is_told(setup):
    await setup.look()
    setup.probe.fails = ChildUnavailable("overran", "observe")
    assert await setup.look() == [
        NodeUnobserved(NODE, Reason.of("probe_unavailable", problem="overran"))
    ]
    setup.probe.fails = ChildUnavailable("pausing")
    assert await setup.look() == []
    setup.probe.fails = ChildUnavailable("stuck")
    assert await setup.look() == [
        NodeUnobserved(NODE, Reason.of("probe_unavailable", problem="stuck"))
    ]
    setup.probe.fails = None
    assert (await setup.observed()).memory_used_mib == 500
    setup.probe.fails = ChildError("ValueError")
    assert await setup.look() == [
        NodeUnobserved(NODE, Reason.of("probe_unavailable", problem="failed"))
    ]


async def test_a_new_probe_is_asked_for_the_inventory_first(setup):
    await setup.look()
    await setup.look()
    assert setup.probe.inventories == 1
    setup.probe.pid = 2
    await setup.look()
    assert setup.probe.inventories == 2


async def test_a_device_that_vanished_makes_the_inventory_due(setup):
    await setup.look()
    setup.probe.readings["GPU-1"] = SlotReading(
        "GPU-1", problems=("nvmlDeviceGetHandleByUUID: NotFound",)
    )
    await setup.look()
    setup.probe.found = inventory("GPU-2")
    (event,) = await setup.look()
    assert isinstance(event, InventoryReported)
    assert [slot.id for slot in event.slots] == ["GPU-2"]


async def test_a_broken_driver_is_unobserved_and_not_an_empty_node(setup):
    setup.probe.found = inventory(source="nvml", problems=("nvmlInit: DriverNotLoaded",))
    assert await setup.look() == [
        NodeUnobserved(NODE, Reason.of("driver_unavailable", error="nvmlInit: DriverNotLoaded"))
    ]


async def test_a_node_without_gpus_is_an_empty_inventory(setup):
    setup.probe.found = inventory(source="nvml", problems=(NO_NVIDIA_DEVICE,))
    assert await setup.look() == [InventoryReported(NODE, (), ())]


async def test_a_stop_that_is_asked_for_again_and_again_is_told_once(setup, monkeypatch, caplog):
    outcomes = iter([Stopped.NOT_PERMITTED, Stopped.NOT_PERMITTED, Stopped.GONE])
    monkeypatch.setattr("jupyter_gpubroker.agent.agent.stop", lambda *_, **__: next(outcomes))
    for _ in range(3):
        await setup.agent.stop(900, 7, force=False)
    assert [record.getMessage() for record in caplog.records] == [
        "process_stopped pid=900 force=False outcome=not_permitted",
        "process_stopped pid=900 force=False outcome=gone",
    ]


async def test_an_older_epoch_than_seen_leaves_the_slot_unobserved(setup):
    await setup.look()
    setup.held = Holdings((), {SLOT: SlotHolding(5, "kernel")})
    await setup.look()
    setup.held = Holdings((), {SLOT: SlotHolding(4, "ancient")})
    assert await setup.look() == [SlotsObserved(NODE, (), frozenset())]
    setup.held = Holdings((), {SLOT: SlotHolding(6, "next")})
    assert (await setup.observed()).slot_id == "GPU-1"


async def test_processes_are_unknown_while_proc_hangs(monkeypatch):
    release = threading.Event()

    class HangingTable(ProcessTable):
        def process(self, pid: int) -> Process | None:
            release.wait()
            return super().process(pid)

    monkeypatch.setattr("jupyter_gpubroker.agent.agent.PROC_DEADLINE_S", 0.01)
    setup = Setup(HangingTable())
    setup.probe.readings["GPU-1"] = SlotReading(
        "GPU-1", 900, 70, (ProcessReading(1, "compute", 400, 70),)
    )
    _, event = await setup.look()
    assert isinstance(event, SlotsObserved)
    assert event.slots == (SlotObservation(SLOT, None, None, MiB(900), None, 70, left_behind=None),)
    release.set()


async def test_who_lets_go_while_a_reading_runs_is_not_in_it(setup):
    await setup.look()
    setup.probe.while_observing = lambda: setattr(
        setup, "held", Holdings(leaving=frozenset({LeaseId("lease")}))
    )
    (during,) = await setup.look()
    (after,) = await setup.look()
    assert (during.leaving, after.leaving) == (frozenset(), {"lease"})


async def test_where_proc_cannot_be_read_owners_stay_unknown(setup, monkeypatch):
    def unreadable(_table: ProcessTable, _pid: int) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    await setup.look()
    monkeypatch.setattr(ProcessTable, "process", unreadable)
    setup.probe.readings["GPU-1"] = SlotReading(
        "GPU-1", 900, 70, (ProcessReading(os.getpid(), "compute", 400, 70),)
    )
    assert await setup.observed() == SlotObservation(
        SLOT, None, None, MiB(900), None, 70, left_behind=None
    )
