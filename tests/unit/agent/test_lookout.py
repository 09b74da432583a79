"""What the agent makes of readings: who was left behind by a holder that is gone, and what a tree did on the host."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jupyter_gpubroker.agent.exempt import Exempt
from jupyter_gpubroker.agent.holdings import Holder, Holdings, SlotHolding
from jupyter_gpubroker.agent.lookout import Lookout
from jupyter_gpubroker.core.events import ProcessOnSlot, ProcessOwner, SlotObservation
from jupyter_gpubroker.core.model import SlotId
from jupyter_gpubroker.devices.reader import SlotReading

SLOT = SlotId("GPU-1")
KERNEL = Holder("kernel", ProcessOwner.SESSION, 1000, pid=10, start_ticks=100, mark="kernel")
HOLDING = SlotHolding(1, "kernel")
DESERTED = SlotHolding(1, "kernel", is_leaving=True, is_deserted=True)


@pytest.fixture
def look(table):
    lookout = Lookout(table, Exempt())

    def look(holding: SlotHolding = DESERTED, *holders: Holder) -> SlotObservation:
        holdings = Holdings(holders or (KERNEL,), {SLOT: holding})
        (seen,) = lookout.look([SlotReading(SLOT, 0, 0, ())], holdings, is_simulated=False)
        return seen

    return look


def left(pid: int, ticks: int = 200) -> ProcessOnSlot:
    return ProcessOnSlot(pid, ProcessOwner.SESSION, "kernel", 1000, start_ticks=ticks)


def test_nobody_is_left_of_a_kernel_that_ended_alone(look):
    assert look().left_behind == ()


@pytest.mark.parametrize(
    "tie",
    [{"group": 10}, {"session": 10}, {"marks": {"GPUBROKER_SESSION": "kernel"}}],
    ids=["group", "session", "mark"],
)
def test_an_orphan_of_a_killed_kernel_is_left_though_it_is_not_on_the_device_yet(proc, look, tie):
    proc.process(11, parent=1, ticks=200, **tie)
    assert look().left_behind == (left(11),)
    proc.end(11)
    assert look().left_behind == ()


def test_the_children_of_an_orphan_are_left_as_well(proc, look):
    proc.process(11, parent=1, ticks=200, session=10)
    proc.process(12, parent=11, ticks=300)
    assert look().left_behind == (left(11), left(12, 300))


def test_a_kernel_that_lives_leaves_nobody_behind(proc, look):
    proc.process(10)
    proc.process(11, parent=10, ticks=200)
    assert look().left_behind == ()


@pytest.mark.parametrize("holding", [HOLDING, replace(HOLDING, is_leaving=True)])
def test_a_holder_that_lives_leaves_nobody_behind(proc, look, holding):
    """Not even what it started before it was restarted, such as a server that never saw the GPU."""
    proc.process(11, parent=1, ticks=200, session=10)
    assert look(holding).left_behind == ()


def test_leftovers_of_the_kernel_before_a_restart_are_left_and_the_new_one_is_not(proc, look):
    successor = Holder("kernel", ProcessOwner.SESSION, 1000, 20, 500, mark="new")
    proc.process(20, ticks=500, marks={"GPUBROKER_SESSION": "new"})
    proc.process(11, parent=1, ticks=200, session=10)
    assert look(DESERTED, successor, KERNEL).left_behind == (left(11),)


def test_a_holder_that_one_that_is_gone_had_started_is_not_left_behind(proc, look):
    """`!nohup gpubroker run train.py &` in a notebook whose kernel ended since."""
    job = Holder("job", ProcessOwner.JOB, 1000, pid=20, start_ticks=200, mark="job")
    proc.process(20, parent=1, ticks=200, session=10, marks={"GPUBROKER_SESSION": "kernel"})
    proc.process(21, parent=20, ticks=300, session=10)
    proc.process(11, parent=1, ticks=200, session=10)
    assert look(DESERTED, KERNEL, job).left_behind == (left(11),)


def test_a_mark_that_another_user_put_on_holds_nothing(proc, look):
    proc.process(11, parent=1, ticks=200, uid=1001, marks={"GPUBROKER_SESSION": "kernel"})
    assert look().left_behind == ()


def test_who_started_before_the_kernel_is_none_of_its(proc, look):
    proc.process(11, parent=1, ticks=50, marks={"GPUBROKER_SESSION": "kernel"})
    assert look().left_behind == ()


def test_a_process_that_got_the_number_of_the_kernels_group_is_none_of_its(proc, look):
    proc.process(10, parent=1, ticks=700)
    proc.process(11, parent=1, ticks=800, group=10)
    assert look().left_behind == ()


def test_what_the_tree_does_on_the_host_is_told_with_its_size(proc, look):
    proc.process(10)
    proc.process(11, parent=10)
    seen = look(HOLDING)
    assert (seen.host_busy, seen.host.processes, seen.host.cpu_percent) == (None, 2, None)
