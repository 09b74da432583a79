"""Whose process is on the slot: by descent, group and mark, and never by what a process merely claims."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from jupyter_gpubroker.agent.attribution import Attribution
from jupyter_gpubroker.agent.holdings import Holder
from jupyter_gpubroker.agent.processes import ProcessTable
from jupyter_gpubroker.core.events import ProcessOnSlot, ProcessOwner
from jupyter_gpubroker.core.model import MiB
from jupyter_gpubroker.devices.reader import ProcessReading

KERNEL = Holder("kernel", ProcessOwner.SESSION, uid=1000, pid=10, start_ticks=100)
RUNNER = Holder("runner", ProcessOwner.SESSION, uid=1000, pid=20, start_ticks=100)
JOB = Holder("job", ProcessOwner.JOB, uid=1000, pid=30, start_ticks=100)
HOLDERS = (KERNEL, RUNNER, JOB)
USED = MiB(400)


@pytest.fixture
def owner_of(proc, table):
    """Whose process 99 is, on a slot of these holders."""
    proc.process(10, parent=1)
    proc.process(20, parent=1)
    proc.process(30, parent=20)

    def owner_of(*holder_ids: str, pids_are_ours: bool = True) -> ProcessOnSlot | None:
        attribution = Attribution(table, HOLDERS, pids_are_ours)
        found = attribution.on_slot([ProcessReading(99, "compute", 400)], frozenset(holder_ids))
        return found[0] if found else None

    return owner_of


def test_the_holders_own_process_is_its(table, proc, owner_of):
    found = Attribution(table, HOLDERS, True).on_slot(
        [ProcessReading(10, "compute", 400)], frozenset({"kernel"})
    )
    assert found == (ProcessOnSlot(10, ProcessOwner.SESSION, "kernel", 1000, USED),)


def test_a_grandchild_is_the_holders(proc, owner_of):
    proc.process(50, parent=10)
    proc.process(99, parent=50)
    assert owner_of("kernel") == ProcessOnSlot(99, ProcessOwner.SESSION, "kernel", 1000, USED)


def test_the_nearest_holder_counts(proc, owner_of):
    proc.process(99, parent=30)
    assert owner_of("job", "runner") == ProcessOnSlot(99, ProcessOwner.JOB, "job", 1000, USED)


def test_a_kernel_started_inside_a_job_works_on_the_jobs_slot(proc, table):
    inner = Holder("inner", ProcessOwner.SESSION, 1000, pid=40, start_ticks=100)
    proc.process(20)
    proc.process(30, parent=20)
    proc.process(40, parent=30)
    attribution = Attribution(table, (*HOLDERS, inner), True)
    (found,) = attribution.on_slot([ProcessReading(40, "compute")], frozenset({"job", "runner"}))
    assert found.holder_id == "job"
    (found,) = attribution.on_slot([ProcessReading(40, "compute")], frozenset({"inner"}))
    assert found.holder_id == "inner"


@pytest.mark.parametrize("where", ["group", "session"])
def test_an_orphan_is_known_by_the_group_or_session_it_kept(proc, owner_of, where):
    proc.process(99, parent=1, **{where: 10})
    assert owner_of("kernel").holder_id == "kernel"


def test_an_orphan_of_an_ended_holder_is_still_its(proc, owner_of):
    proc.end(10)
    proc.process(99, parent=1, session=10)
    assert owner_of("kernel").holder_id == "kernel"


def test_a_reused_pid_is_not_the_holder(proc, owner_of):
    proc.process(10, parent=1, ticks=500)
    proc.process(99, parent=10, ticks=600)
    assert owner_of("kernel").owned_by is ProcessOwner.FOREIGN


@pytest.mark.parametrize(
    ("marks", "owner"),
    [
        ({"GPUBROKER_SESSION": "kernel"}, (ProcessOwner.SESSION, "kernel")),
        ({"GPUBROKER_JOB": "job"}, (ProcessOwner.JOB, "job")),
        ({"GPUBROKER_JOB": "job", "GPUBROKER_SESSION": "kernel"}, (ProcessOwner.JOB, "job")),
        ({"GPUBROKER_SESSION": "nobody"}, (ProcessOwner.FOREIGN, None)),
        ({}, (ProcessOwner.FOREIGN, None)),
    ],
)
def test_a_daemon_is_known_by_its_inherited_mark(proc, owner_of, marks, owner):
    proc.process(99, parent=1, marks=marks)
    found = owner_of("other")
    assert (found.owned_by, found.holder_id) == owner


def test_of_two_marks_the_one_that_holds_the_slot_counts(proc, owner_of):
    proc.process(99, parent=1, marks={"GPUBROKER_JOB": "job", "GPUBROKER_SESSION": "kernel"})
    assert owner_of("kernel").holder_id == "kernel"


def test_a_mark_of_another_users_process_does_not_count(proc, owner_of):
    proc.process(99, parent=1, uid=1001, marks={"GPUBROKER_SESSION": "kernel"})
    assert owner_of("kernel") == ProcessOnSlot(99, ProcessOwner.FOREIGN, None, 1001, USED)


def test_who_left_before_we_looked_is_not_there(owner_of):
    assert owner_of("kernel") is None


def test_a_zombie_is_not_there(proc, owner_of):
    proc.process(99, parent=10, state="Z")
    assert owner_of("kernel") is None


def test_a_pid_of_the_host_means_nothing_in_a_container(proc, owner_of):
    unmapped = ProcessOnSlot(99, ProcessOwner.UNMAPPED, memory_mib=USED)
    assert owner_of("kernel", pids_are_ours=False) == unmapped
    proc.process(99, parent=10)  # a process of the container that happens to have the number
    assert owner_of("kernel", pids_are_ours=False) == unmapped


def test_a_pid_in_a_container_counts_when_its_process_has_a_gpu_open(proc, owner_of):
    proc.process(99, parent=10)
    proc.open_file(99, "/dev/nvidia0")
    assert owner_of("kernel", pids_are_ours=False).holder_id == "kernel"


def test_graphics_processes_are_nobodys_business(proc, table):
    proc.process(99, parent=1)
    readings = [ProcessReading(99, "graphics", 50)]
    assert Attribution(table, HOLDERS, True).on_slot(readings, frozenset({"kernel"})) == ()


def test_unknown_memory_stays_unknown(proc, table):
    proc.process(99)
    (found,) = Attribution(table, (), True).on_slot([ProcessReading(99, "compute")], frozenset())
    assert found.memory_mib is None


def test_a_real_daemon_is_known_by_its_mark():
    daemon = subprocess.Popen(
        [sys.executable, "-c", "print(1, flush=True); input()"],
        env={**os.environ, "GPUBROKER_SESSION": "mine"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert daemon.stdout is not None
    daemon.stdout.readline()
    # A holder that is neither its parent nor its leader.
    holder = Holder("mine", ProcessOwner.SESSION, os.getuid(), pid=1 << 29, start_ticks=0)
    try:
        attribution = Attribution(ProcessTable(), (holder,), True)
        (found,) = attribution.on_slot([ProcessReading(daemon.pid, "compute")], frozenset({"mine"}))
        assert (found.holder_id, found.uid) == ("mine", os.getuid())
    finally:
        daemon.communicate(b"")


def test_a_name_with_spaces_and_parentheses_is_read_right(proc, table):
    proc.process(99, parent=10, name="a) S (b 1 2 3", ticks=77)
    process = table.process(99)
    assert (process.parent, process.start_ticks) == (10, 77)
