"""Which process a pid of the driver's is: the traps that others fell into, each by its report."""

from __future__ import annotations

import pytest

from jupyter_gpubroker.agent.attribution import Attribution
from jupyter_gpubroker.agent.holdings import Holder, HolderIndex
from jupyter_gpubroker.agent.pids import Trust
from jupyter_gpubroker.agent.processes import ProcessTable
from jupyter_gpubroker.core.events import ProcessOnSlot, ProcessOwner
from jupyter_gpubroker.core.model import MiB
from jupyter_gpubroker.devices.reader import ProcessReading

KERNEL = Holder("kernel", ProcessOwner.SESSION, uid=1000, pid=10, start_ticks=100, mark="kernel")


@pytest.fixture
def look(proc, tmp_path):
    """What one look at the kernel's slot makes of the pids that the driver lists."""
    devices = tmp_path / "dev"
    devices.mkdir()
    (devices / "nvidiactl").touch()
    proc.process(10, parent=1)
    attribution = Attribution(ProcessTable(proc.root, devices))

    def look(*pids: int, trust: Trust = Trust.LIKELY) -> tuple[ProcessOnSlot, ...]:
        readings = [ProcessReading(pid, "compute", 400, 50) for pid in pids]
        return attribution.on_slot(readings, HolderIndex([KERNEL]), frozenset({"kernel"}), trust)

    return look


def unmapped(pid: int) -> ProcessOnSlot:
    return ProcessOnSlot(pid, ProcessOwner.UNMAPPED, memory_mib=MiB(400), computes=True)


def test_nvidia_docker_1483_a_pid_of_the_host_means_nothing_in_a_container(proc, look):
    """Also gpu-monitoring-tools#63, nvidia-docker#179, pynvml#36, nvtop#149, lxd#9755: an unknown owner, never no process."""
    assert look(99, trust=Trust.TO_BE_PROVEN) == (unmapped(99),)
    proc.process(99, parent=10)  # a process of the container that happens to have the number
    assert look(99, trust=Trust.TO_BE_PROVEN) == (unmapped(99),)


def test_nvidia_docker_179_a_pid_in_a_container_counts_when_its_process_has_a_gpu_open(proc, look):
    proc.process(99, parent=10)
    proc.open_file(99, "/dev/nvidia0")
    (found,) = look(99, trust=Trust.TO_BE_PROVEN)
    assert found.holder_id == "kernel"


def test_gpu_monitoring_tools_63_a_pid_of_a_container_is_found_by_nspid(proc, look):
    proc.process(5000, parent=10, inner=(324,))
    proc.open_file(5000, "/dev/nvidia0")
    (found,) = look(324)
    assert (found.pid, found.holder_id) == (5000, "kernel")


def test_nvtop_149_a_pid_that_matches_a_process_without_a_gpu_is_another_processs(proc, look):
    proc.process(324, parent=10)  # a shell of the kernel, which has no GPU open
    assert look(324) == (unmapped(324),)
    proc.process(5000, parent=1, inner=(324,), uid=1001)
    proc.open_file(5000, "/dev/nvidia-uvm")


def test_hami_core_112_one_process_under_two_numbers_is_one_process(proc, look):
    """Driver 560.35.03: the list said 324, the utilisation 645400."""
    proc.process(645400, parent=10, inner=(324,))
    proc.open_file(645400, "/dev/nvidia0")
    (found,) = look(324, 645400)
    assert (found.pid, found.holder_id, found.computes) == (645400, "kernel", True)


def test_hami_core_112_two_numbers_that_cannot_be_joined_are_unknown(look):
    assert look(324, 645400) == (unmapped(324), unmapped(645400))


def test_open_gpu_kernel_modules_614_a_pid_that_is_not_found_is_not_gone(proc, look):
    assert look(99) == (unmapped(99),)
    proc.process(99, parent=10)
    proc.open_file(99, "/dev/nvidia0")
    (found,) = look(99)
    assert found.holder_id == "kernel"


def test_two_containers_with_the_same_pid_inside_are_not_told_apart(proc, look):
    for outer in (5000, 6000):
        proc.process(outer, parent=10, inner=(324,))
        proc.open_file(outer, "/dev/nvidia0")
    assert look(324) == (unmapped(324),)


def test_where_gpus_have_no_files_a_pid_of_the_host_is_believed(proc, table):
    proc.process(10, parent=1)
    proc.process(99, parent=10)
    (found,) = Attribution(table).on_slot(
        [ProcessReading(99, "compute")], HolderIndex([KERNEL]), frozenset({"kernel"}), Trust.LIKELY
    )
    assert found.holder_id == "kernel"
