"""Broker time never runs backwards, counts suspend, and believes a wall clock as little as it can."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from jupyter_gpubroker.broker.clock import Clock, SystemSources
from jupyter_gpubroker.core.model import Millis
from jupyter_gpubroker.store.records import ClockMark

MS = 1_000_000
HOUR = 3_600_000
CAP = 60_000


@dataclass
class Machine:
    """Clocks that move only when told. `slow_read_ms` is how long the process is stopped after each reading."""

    boot: str = "boot-1"
    boottime: int = 5_000
    monotonic: int = 5_000
    wall: int = 1_700_000_000_000
    slow_read_ms: int = 0

    def run(self, ms: int) -> None:
        self.boottime += ms
        self.monotonic += ms
        self.wall += ms

    def suspend(self, ms: int) -> None:
        self.boottime += ms
        self.wall += ms

    def reboot(self, off_ms: int) -> None:
        self.boot += "+"
        self.boottime = self.monotonic = 2_000
        self.wall += off_ms

    def boot_id(self) -> str:
        return self.boot

    def boottime_ns(self) -> int:
        self.run(self.slow_read_ms)
        return self.boottime * MS

    def monotonic_ns(self) -> int:
        self.run(self.slow_read_ms)
        return self.monotonic * MS

    def wall_ms(self) -> int:
        return self.wall


def test_a_first_broker_starts_at_zero_and_counts_what_passes():
    machine = Machine()
    clock = Clock(None, machine)
    assert (clock.read().now, clock.down_ms) == (0, 0)
    machine.run(1_500)
    assert clock.read().now == 1_500


def test_a_restart_within_one_boot_counts_the_time_without_a_broker_by_boottime_alone():
    machine = Machine()
    mark = Clock(None, machine).mark()
    machine.run(7_000)
    machine.wall -= HOUR
    clock = Clock(mark, machine)
    assert (clock.read().now, clock.down_ms) == (7_000, 7_000)


def test_a_suspend_between_two_brokers_counts_in_full():
    machine = Machine()
    mark = Clock(None, machine).mark()
    machine.suspend(8 * HOUR)
    assert Clock(mark, machine).read().now == 8 * HOUR


def test_over_a_reboot_time_advances_by_the_wall_clock_up_to_the_cap():
    machine = Machine()
    mark = Clock(None, machine).mark()
    machine.reboot(off_ms=20_000)
    assert Clock(mark, machine, CAP).read().now == 20_000
    machine.wall += 10 * 365 * 24 * HOUR
    assert Clock(mark, machine, CAP).read().now == CAP


def test_over_a_reboot_with_the_wall_clock_set_back_time_stands_still():
    machine = Machine()
    mark = Clock(None, machine).mark()
    machine.reboot(off_ms=-HOUR)
    clock = Clock(mark, machine, CAP)
    assert (clock.read().now, clock.down_ms) == (0, 0)


def test_a_boottime_before_the_marks_is_a_reboot_even_under_the_same_boot_id():
    machine = Machine(boottime=9_000)
    mark = Clock(None, machine).mark()
    machine.boottime = 1_000
    machine.wall += 3_000
    assert Clock(mark, machine, CAP).read().now == 3_000


def test_without_a_boot_id_every_start_is_a_reboot():
    machine = Machine(boot="")
    mark = Clock(None, machine).mark()
    machine.run(2 * CAP)
    assert Clock(mark, machine, CAP).read().now == CAP


def test_a_wall_clock_that_jumps_changes_nothing_in_a_running_broker():
    machine = Machine()
    clock = Clock(None, machine)
    machine.wall += 10 * 365 * 24 * HOUR
    machine.run(10)
    assert clock.read().now == 10
    machine.wall = 0
    assert clock.read().now == 10


def test_a_suspend_is_told_once_and_counts_as_time():
    machine = Machine()
    clock = Clock(None, machine)
    machine.run(100)
    machine.suspend(8 * HOUR)
    reading = clock.read()
    assert (reading.now, reading.suspended_ms) == (8 * HOUR + 100, 8 * HOUR)
    assert clock.read().suspended_ms == 0


def test_a_process_stopped_while_it_reads_the_clocks_saw_no_suspend():
    machine = Machine()
    clock = Clock(None, machine)
    machine.slow_read_ms = 60_000
    assert clock.read().suspended_ms == 0
    machine.slow_read_ms = 0
    assert clock.read().suspended_ms == 0
    machine.suspend(5_000)
    assert clock.read().suspended_ms == 5_000


def test_the_mark_holds_the_same_moment_on_all_clocks():
    machine = Machine()
    clock = Clock(None, machine)
    machine.run(250)
    assert clock.mark() == ClockMark(Millis(250), "boot-1", machine.boottime, machine.wall)


within_a_process = st.lists(
    st.tuples(st.sampled_from(["run", "suspend", "wall", "slow"]), st.integers(0, 10 * HOUR)),
    max_size=10,
)
between_processes = st.tuples(
    st.sampled_from(["run", "suspend", "reboot"]), st.integers(0, 10 * HOUR)
)


def happen(machine: Machine, what: str, ms: int) -> None:
    if what == "run":
        machine.run(ms)
    elif what == "suspend":
        machine.suspend(ms)
    elif what == "wall":
        machine.wall = ms
    elif what == "slow":
        machine.slow_read_ms = ms % 1_000
    else:
        machine.reboot(off_ms=ms - 5 * HOUR)


@given(st.lists(st.tuples(between_processes, within_a_process), max_size=6))
def test_whatever_happens_to_the_machine_time_never_runs_back_nor_past_what_boottime_allows(story):
    machine = Machine()
    mark = Clock(None, machine).mark()
    for before, meanwhile in story:
        happen(machine, *before)
        same_boot = machine.boot == mark.boot_id
        since_ms = machine.boottime - mark.boottime_ms if same_boot else CAP
        clock = Clock(mark, machine, CAP)
        assert mark.broker_ms <= clock.read().now <= mark.broker_ms + since_ms

        made, last, told, slept = machine.boottime, clock.read().now, 0, 0
        first = last
        awake: int = last
        for what, ms in meanwhile:
            happen(machine, what, ms)
            slept += ms if what == "suspend" else 0
            reading = clock.read()
            told += reading.suspended_ms
            assert last <= reading.now <= first + machine.boottime - made
            assert awake <= reading.now - told, "what was told may not be more than what passed"
            assert told <= slept
            last, awake = reading.now, reading.now - told
        machine.slow_read_ms = 0
        mark = clock.mark()
        assert last <= mark.broker_ms


@given(st.lists(st.integers(0, HOUR), max_size=20), st.integers(0, 500))
def test_all_suspends_together_are_told_in_full_once_reading_is_quick_again(sleeps, slow):
    machine = Machine()
    clock = Clock(None, machine)
    machine.slow_read_ms = slow
    told = 0
    for sleep in sleeps:
        machine.suspend(sleep)
        told += clock.read().suspended_ms
    machine.slow_read_ms = 0
    told += clock.read().suspended_ms
    assert told == sum(sleeps)


def test_this_machines_clocks_run_forward_and_name_the_boot():
    sources = SystemSources()
    clock = Clock(None, sources)
    first, second = clock.read(), clock.read()
    assert first.now <= second.now
    assert second.suspended_ms == 0
    assert sources.boot_id()
    assert sources.boottime_ns() >= sources.monotonic_ns() - MS
