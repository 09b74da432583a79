"""Reports of others about processes and devices mixed up, each by its source; those about pids are in test_pids."""

from __future__ import annotations

from dataclasses import replace

from jupyter_gpubroker.agent.agent import inventory_reported
from jupyter_gpubroker.agent.attribution import Attribution
from jupyter_gpubroker.agent.exempt import Exempt
from jupyter_gpubroker.agent.holdings import HolderIndex, Holdings
from jupyter_gpubroker.agent.lookout import Lookout
from jupyter_gpubroker.agent.pids import Trust
from jupyter_gpubroker.core.explain import sentence
from jupyter_gpubroker.core.model import NodeId
from jupyter_gpubroker.devices.exporter import SM, parse
from jupyter_gpubroker.devices.reader import (
    NO_NVIDIA_DEVICE,
    GpuFound,
    Inventory,
    ProcessReading,
    SlotFound,
    SlotReading,
)
from tests.support.core_world import NODE, World, whole


def test_nvtop_110_zombies_with_absurd_figures_are_on_no_slot(proc, table):
    """A hundred samples of two zombies, with percentages beyond all bounds (the reader makes these None)."""
    for pid in (98, 99):
        proc.process(pid, state="Z")
    readings = [ProcessReading(98 + number % 2, "compute") for number in range(100)]
    found = Attribution(table).on_slot(readings, HolderIndex(), frozenset(), Trust.LIKELY)
    assert found == ()


def test_dcgm_exporter_151_a_samples_owner_is_never_taken_from_its_labels():
    """Also dcgm-exporter#342, #27, #138: owners are missing, or name the exporter itself; the device is all that counts."""
    slot = SlotFound("GPU-1", "gpu", None)
    inventory = Inventory("nvml", "1", (GpuFound("GPU-1", 0, "", "H200", None, slots=(slot,)),))
    text = (
        f'{SM}{{UUID="GPU-1",pod="dcgm-exporter-x7",container="exporter"}} 0.25\n'
        f'{SM}{{pod="train-1"}} 0.5\n'
    )
    assert parse(text, inventory, 0).ratios == {"GPU-1": {SM: 0.25}}


def test_dask_distributed_4117_two_reports_of_one_hosts_devices_are_one_inventory():
    """NVML shows every process all GPUs, so two servers of a host report the same ones."""
    world = World().devices(whole(0), whole(1))
    world.devices(whole(0), whole(1))
    assert sorted(world.state.slots) == ["GPU-0", "GPU-1"]
    assert sorted(world.state.gpus) == ["GPU-0", "GPU-1"]


def test_tensorhive_pr_60_a_lease_follows_its_gpu_when_the_numbers_change_at_a_boot():
    world = World().devices(whole(0), whole(1))
    lease_id = world.holds("kernel")
    (hold,) = world.lease(lease_id).holds
    world.devices(replace(whole(1), index=0), replace(whole(0), index=1))
    assert world.lease(lease_id).holds == (hold,)
    assert world.slot("GPU-0").index == 1
    assert world.slot(hold.slot_id).lease_id == lease_id


def test_tensorhive_270_a_slot_without_a_process_list_costs_the_others_nothing(table):
    """One GPU without a list killed the thread that watched, and no violation was found ever after."""
    readings = [
        SlotReading("GPU-0"),
        SlotReading("GPU-1", 400, 0, (ProcessReading(99, "compute"),)),
    ]
    blind, seen = Lookout(table, Exempt()).look(readings, Holdings(), is_simulated=False)
    assert blind.processes is None
    assert [process.pid for process in seen.processes or ()] == [99]


def test_jupyterlab_nvdashboard_pr_126_without_a_library_there_is_no_gpu_here_and_no_error():
    report = inventory_reported(
        NodeId("node"), Inventory("nvml", None, (), problems=(NO_NVIDIA_DEVICE,))
    )
    world = World()
    world.do(replace(report, node_id=NODE))
    problem = world.state.telemetry[NODE].problem
    assert problem is not None
    assert sentence(problem)[0].startswith("There is no NVIDIA GPU here")
