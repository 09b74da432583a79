"""Whose process is on the slot: by descent, group and mark, and never by what a process merely claims."""

from __future__ import annotations

import pytest

from jupyter_gpubroker.agent.attribution import Attribution
from jupyter_gpubroker.agent.exempt import Exempt
from jupyter_gpubroker.agent.holdings import Holder, HolderIndex
from jupyter_gpubroker.agent.pids import Trust
from jupyter_gpubroker.agent.processes import ProcessTable
from jupyter_gpubroker.core.events import ProcessOnSlot, ProcessOwner
from jupyter_gpubroker.core.model import MiB
from jupyter_gpubroker.devices.reader import ProcessReading

KERNEL = Holder("kernel", ProcessOwner.SESSION, uid=1000, pid=10, start_ticks=100, mark="kernel")
RUNNER = Holder("runner", ProcessOwner.SESSION, uid=1000, pid=20, start_ticks=100, mark="runner")
JOB = Holder("job", ProcessOwner.JOB, uid=1000, pid=30, start_ticks=100, mark="job")
HOLDERS = (KERNEL, RUNNER, JOB)
USED = MiB(400)


class Looking:
    """Looks at slots of these holders again and again, as the agent does."""

    def __init__(self, table: ProcessTable) -> None:
        self.holders: tuple[Holder, ...] = HOLDERS
        self.now_s = 1000.0
        self.attribution = Attribution(
            table, lambda: self.now_s, Exempt(frozenset({"Xorg"}), frozenset({1500}))
        )

    def all(
        self, *holder_ids: str, readings: list[ProcessReading], trust: Trust = Trust.LIKELY
    ) -> tuple[ProcessOnSlot, ...]:
        return self.attribution.on_slot(
            readings, HolderIndex(self.holders), frozenset(holder_ids), trust
        )

    def __call__(
        self, *holder_ids: str, pid: int = 99, trust: Trust = Trust.LIKELY
    ) -> ProcessOnSlot | None:
        found = self.all(
            *holder_ids, readings=[ProcessReading(pid, "compute", USED, 7)], trust=trust
        )
        return found[0] if found else None


@pytest.fixture
def owner_of(proc, table) -> Looking:
    proc.process(10, parent=1)
    proc.process(20, parent=1)
    proc.process(30, parent=20)
    return Looking(table)


def test_the_holders_own_process_is_its(owner_of):
    assert owner_of("kernel", pid=10) == ProcessOnSlot(
        10, ProcessOwner.SESSION, "kernel", 1000, USED, 100, computes=True
    )


def test_a_grandchild_is_the_holders(proc, owner_of):
    proc.process(50, parent=10)
    proc.process(99, parent=50)
    found = owner_of("kernel")
    assert (found.owned_by, found.holder_id, found.uid) == (ProcessOwner.SESSION, "kernel", 1000)


def test_a_child_of_another_user_is_the_holders_since_descent_cannot_be_faked(proc, owner_of):
    proc.process(99, parent=10, uid=0)
    assert owner_of("kernel").holder_id == "kernel"


def test_the_nearest_holder_counts(proc, owner_of):
    proc.process(99, parent=30)
    found = owner_of("job", "runner")
    assert (found.owned_by, found.holder_id) == (ProcessOwner.JOB, "job")


def test_a_kernel_started_inside_a_job_works_on_the_jobs_slot(proc, owner_of):
    proc.process(40, parent=30)
    owner_of.holders += (
        Holder("inner", ProcessOwner.SESSION, 1000, pid=40, start_ticks=100, mark="inner"),
    )
    assert owner_of("job", "runner", pid=40).holder_id == "job"
    assert owner_of("inner", pid=40).holder_id == "inner"


@pytest.mark.parametrize("where", ["group", "session"])
def test_an_orphan_is_known_by_the_group_or_session_it_kept(proc, owner_of, where):
    proc.process(99, parent=1, **{where: 10})
    assert owner_of("kernel").holder_id == "kernel"


def test_an_orphan_of_an_ended_holder_is_still_its(proc, owner_of):
    proc.end(10)
    proc.process(99, parent=1, session=10)
    assert owner_of("kernel").holder_id == "kernel"


def test_a_daemons_child_is_known_by_the_group_its_parent_kept(proc, owner_of):
    proc.process(50, parent=1, session=10)
    proc.process(99, parent=50, session=99)
    assert owner_of("kernel").holder_id == "kernel"


def test_who_was_seen_while_its_parent_lived_is_known_afterwards(proc, owner_of):
    proc.process(50, parent=10)
    proc.process(99, parent=50)
    assert owner_of("kernel").holder_id == "kernel"
    proc.end(50)
    proc.process(99, parent=1)  # a double fork: the parent in between is gone, and init adopts it
    assert owner_of("kernel").holder_id == "kernel"


def test_who_was_never_asked_about_for_a_while_is_looked_up_anew(proc, owner_of):
    proc.process(99, parent=10)
    owner_of("kernel")
    proc.process(99, parent=1)
    owner_of.now_s += 1000
    owner_of.attribution.sweep()
    assert owner_of("kernel").owned_by is ProcessOwner.FOREIGN


def test_a_reused_pid_is_not_the_holder(proc, owner_of):
    proc.process(10, parent=1, ticks=500)
    proc.process(99, parent=10, ticks=600)
    assert owner_of("kernel").owned_by is ProcessOwner.FOREIGN


def test_a_reused_pid_is_not_what_it_was(proc, owner_of):
    proc.process(99, parent=10, ticks=200)
    assert owner_of("kernel").holder_id == "kernel"
    proc.process(99, parent=1, ticks=900)
    assert owner_of("kernel").owned_by is ProcessOwner.FOREIGN


def test_a_leftover_of_the_incarnation_before_a_restart_is_its_successors(proc, owner_of):
    proc.end(10)
    before = Holder("kernel", ProcessOwner.SESSION, 1000, pid=10, start_ticks=100, mark="old")
    after = Holder("kernel", ProcessOwner.SESSION, 1000, pid=60, start_ticks=700, mark="kernel")
    owner_of.holders = (after, before)
    proc.process(98, parent=1, session=10)
    proc.process(99, parent=1, marks={"GPUBROKER_SESSION": "old"})
    assert [owner_of("kernel", pid=pid).holder_id for pid in (98, 99)] == ["kernel", "kernel"]


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


def test_a_mark_that_was_dropped_on_the_way_counts_where_an_ancestor_carries_it(proc, owner_of):
    """A rootless container: its monitor was started by the kernel, its processes with an environment of their own."""
    proc.process(50, parent=1, marks={"GPUBROKER_SESSION": "kernel"}, name="conmon")
    proc.process(99, parent=50, uid=101000)
    assert owner_of("kernel").holder_id == "kernel"


def test_of_two_marks_the_one_that_holds_the_slot_counts(proc, owner_of):
    proc.process(99, parent=1, marks={"GPUBROKER_JOB": "job", "GPUBROKER_SESSION": "kernel"})
    assert owner_of("kernel").holder_id == "kernel"


def test_a_mark_of_another_users_process_does_not_count(proc, owner_of):
    proc.process(99, parent=1, uid=1001, marks={"GPUBROKER_SESSION": "kernel"})
    found = owner_of("kernel")
    assert (found.owned_by, found.uid) == (ProcessOwner.FOREIGN, 1001)


def test_who_is_seen_to_end_is_not_there(proc, owner_of):
    proc.process(99, parent=10)
    owner_of("kernel")
    proc.end(99)
    assert owner_of("kernel") is None


def test_a_zombie_is_not_there(proc, owner_of):
    proc.process(99, parent=10, state="Z")
    assert owner_of("kernel") is None


def test_simulated_processes_that_are_not_found_have_ended(owner_of):
    assert owner_of("kernel", trust=Trust.EXACT) is None


def test_graphics_processes_are_nobodys_business(proc, owner_of):
    proc.process(99, parent=1)
    assert owner_of.all("kernel", readings=[ProcessReading(99, "graphics", 50)]) == ()


def test_unknown_numbers_stay_unknown(proc, owner_of):
    proc.process(99)
    (found,) = owner_of.all(readings=[ProcessReading(99, "compute")])
    assert (found.memory_mib, found.computes) == (None, None)


def test_a_user_on_the_admins_list_is_exempt_and_a_holders_process_is_not(proc, owner_of):
    proc.process(98, parent=10, uid=1500)
    proc.process(99, parent=1, uid=1500)
    assert owner_of("kernel").is_exempt
    assert not owner_of("kernel", pid=98).is_exempt


def test_a_name_with_spaces_and_parentheses_is_read_right(proc, table):
    proc.process(99, parent=10, name="a) S (b 1 2 3", ticks=77)
    process = table.process(99)
    assert (process.parent, process.start_ticks) == (10, 77)
