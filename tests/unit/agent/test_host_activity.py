"""The host side of a holder: CPU and input/output of its whole tree, over windows of time."""

from __future__ import annotations

import pytest

from jupyter_gpubroker.agent.holdings import Holder
from jupyter_gpubroker.agent.host_activity import HostActivity
from jupyter_gpubroker.agent.trees import Trees
from jupyter_gpubroker.core.events import HostUse, ProcessOwner

KERNEL = Holder("kernel", ProcessOwner.SESSION, uid=1000, pid=10, start_ticks=100, mark="kernel")
OTHER = Holder("other", ProcessOwner.SESSION, uid=1000, pid=20, start_ticks=100, mark="other")


class Clock:
    now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def sample(proc, table, clock):
    proc.process(10)
    activity = HostActivity(table, Trees(table), clock)

    def sample(after_s: float, *holders: Holder) -> dict[str, bool | None]:
        clock.now_s += after_s
        found = activity.sample(holders or (KERNEL,))
        return {holder_id: one.is_busy for holder_id, one in found.items()}

    return sample


def test_the_first_sample_knows_nothing_yet(sample):
    assert sample(0) == {"kernel": None}


def test_a_kernel_that_only_answers_heartbeats_is_quiet(proc, sample):
    sample(0)
    proc.process(10, cpu=1)  # 10 ms
    assert sample(1) == {"kernel": False}


def test_a_loop_on_the_cpu_is_work(proc, sample):
    sample(0)
    proc.process(10, cpu=90)
    assert sample(1) == {"kernel": True}


def test_a_child_works_for_its_kernel(proc, sample):
    proc.process(11, parent=10)
    sample(0)
    proc.process(11, parent=10, cpu=50)
    assert sample(1) == {"kernel": True}


def test_an_orphan_that_kept_the_session_works_for_its_kernel(proc, sample):
    proc.process(11, parent=1, session=10, ticks=200)
    sample(0)
    proc.process(11, parent=1, session=10, ticks=200, cpu=50)
    assert sample(1) == {"kernel": True}


def test_a_child_that_came_and_went_between_samples_counts(proc, sample):
    sample(0)
    # The kernel's own counter includes children it waited for.
    proc.process(10, cpu=60)
    assert sample(1) == {"kernel": True}


def test_reading_data_is_work_though_the_cpu_is_quiet(proc, sample):
    proc.io(10, read=0, written=0)
    sample(0)
    proc.io(10, read=50 << 20, written=0)
    assert sample(1) == {"kernel": True}


def test_trees_do_not_share_their_work(proc, sample):
    proc.process(20)
    proc.process(21, parent=20)
    sample(0, KERNEL, OTHER)
    proc.process(21, parent=20, cpu=90)
    assert sample(1, KERNEL, OTHER) == {"kernel": False, "other": True}


def test_a_sum_that_falls_because_a_member_left_is_not_idleness(proc, sample):
    proc.process(11, parent=10, cpu=500)
    sample(0)
    proc.end(11)
    assert sample(1) == {"kernel": None}
    assert sample(1) == {"kernel": False}


def test_samples_in_quick_succession_give_the_last_answer(proc, sample):
    sample(0)
    proc.process(10, cpu=90)
    assert sample(1) == {"kernel": True}
    assert sample(0.1) == {"kernel": True}
    assert sample(0.9) == {"kernel": False}


def test_a_child_that_joined_later_is_found_by_the_next_scan(proc, sample):
    sample(0)
    proc.process(11, parent=10, cpu=0)
    sample(1)
    sample(6)
    proc.process(11, parent=10, cpu=90)
    assert sample(1) == {"kernel": True}


def test_what_another_user_reads_cannot_be_known_and_is_not_taken_for_nothing(proc, sample):
    (proc.root / "10" / "io").unlink()
    sample(0)
    assert sample(1) == {"kernel": None}
    proc.process(10, cpu=90)
    (proc.root / "10" / "io").unlink()
    assert sample(1) == {"kernel": True}


def test_the_numbers_are_told_with_the_size_of_the_tree(proc, table, clock):
    activity = HostActivity(table, Trees(table), clock)
    proc.process(10)
    proc.process(11, parent=10)
    activity.sample([KERNEL])
    proc.process(11, parent=10, cpu=150)
    proc.io(10, read=2 << 20, written=0)
    clock.now_s += 2
    assert activity.sample([KERNEL])["kernel"].use == HostUse(2, cpu_percent=75, io_kib_per_s=1024)


def test_whether_a_tree_listens_is_looked_at_now_and_then_and_of_quiet_ones(
    proc, table, clock, monkeypatch
):
    looked = []

    def listens(_: object, pids: list[int]) -> bool:
        looked.append(pids)
        return True

    monkeypatch.setattr("jupyter_gpubroker.agent.host_activity.listens", listens)
    activity = HostActivity(table, Trees(table), clock)
    proc.process(10)

    def sample(*quiet: str) -> bool | None:
        clock.now_s += 4
        return activity.sample([KERNEL], quiet)["kernel"].use.listens

    assert [sample(), sample("kernel"), sample("kernel"), sample()] == [None, True, True, True]
    assert looked == [[10]]
    assert [sample("kernel"), sample("kernel")] == [True, True]
    assert looked == [[10], [10]]
