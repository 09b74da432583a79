"""Suspending a real process on a simulated GPU, with the real preconditions and failures."""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest

from jupyter_gpubroker.devices.checkpoint import Checkpointer
from jupyter_gpubroker.devices.checkpoint_driver import (
    DriverError,
    HostMemory,
    LockTimeout,
    Refusal,
)
from jupyter_gpubroker.devices.checkpoint_simulated import SimulatedCheckpointDriver
from jupyter_gpubroker.devices.simulated import SimulatedReader

ROOMY = HostMemory(available_mib=1 << 20)


def used_mib(reader: SimulatedReader, slot: str) -> int | None:
    (reading,) = reader.observe([slot])
    return reading.memory_used_mib


def codes(refusals: Iterable[Refusal]) -> list[str]:
    return [refusal.code for refusal in refusals]


@pytest.fixture
def driver(state, reader):
    return SimulatedCheckpointDriver(state)


@pytest.fixture
def checkpointer(driver):
    return Checkpointer(driver, host=lambda _: ROOMY)


@pytest.fixture
def worker(slots, start_worker):
    """A process with 1000 MiB and a context on the first GPU."""
    worker = start_worker(slots[0])
    worker.run("buffer = simulated.allocate(1000)")
    return worker


def test_a_suspended_process_leaves_nothing_on_the_slot_and_comes_back_whole(
    reader, slots, checkpointer, worker
):
    before = worker.run("simulated.checksums()")
    suspended = checkpointer.suspend(worker.pid, slots[0], 1000)
    assert (suspended.ok, suspended.state, suspended.memory_mib) == (True, "checkpointed", 1400)
    assert suspended.took_ms >= 1400 * 1000 // 20_000
    assert reader.observe([slots[0]])[0].processes == ()
    assert used_mib(reader, slots[0]) == 0

    resumed = checkpointer.resume(worker.pid, slots[0], suspended.memory_mib)
    assert (resumed.ok, resumed.state) == (True, "running")
    assert used_mib(reader, slots[0]) == 1400
    assert worker.run("simulated.checksums()") == before
    worker.run("buffer.write(b'more')")


def test_device_calls_of_a_suspended_process_wait_and_other_work_goes_on(
    slots, checkpointer, worker
):
    assert checkpointer.suspend(worker.pid, slots[0], 1000).ok
    assert worker.run("1 + 1") == 2
    worker.run(
        "import threading; done = threading.Event();"
        "threading.Thread(target=lambda: (simulated.burn(0), done.set()), daemon=True).start()"
    )
    assert worker.run("done.wait(0.2)") is False
    assert checkpointer.resume(worker.pid, slots[0], 1400).ok
    assert worker.run("done.wait(10)") is True


def test_the_slot_serves_another_process_meanwhile(
    reader, slots, checkpointer, worker, start_worker
):
    assert checkpointer.suspend(worker.pid, slots[0], 1000).ok
    other = start_worker(slots[0])
    other.run("taken = simulated.allocate(22000)")
    assert used_mib(reader, slots[0]) == 22400


def test_a_busy_process_is_not_suspended_and_runs_on(reader, slots, checkpointer, worker, until):
    worker.begin("simulated.burn(60)")
    until(lambda: bool(reader.observe([slots[0]])[0].utilisation_percent))
    outcome = checkpointer.suspend(worker.pid, slots[0], 50)
    assert (outcome.ok, outcome.state, codes(outcome.refusals)) == (False, "running", ["busy"])
    assert outcome.took_ms >= 50
    until(lambda: bool(reader.observe([slots[0]])[0].utilisation_percent))
    worker.interrupt()


def test_the_lock_waits_for_work_that_ends_in_time(reader, slots, checkpointer, worker, until):
    worker.begin("simulated.burn(0.3)")
    until(lambda: bool(reader.observe([slots[0]])[0].utilisation_percent))
    assert checkpointer.suspend(worker.pid, slots[0], 10_000).ok
    worker.end()


@pytest.mark.parametrize(
    ("code", "slot", "refusal"),
    [
        ("simulated.initialize(uvm=True)", 0, "uvm_memory"),
        ("simulated.initialize(nccl=True)", 0, "nccl_in_use"),
        ("simulated.initialize(device=1)", 0, "several_gpus"),
        ("None", 1, "no_context"),
    ],
)
def test_what_the_driver_cannot_do_is_refused_beforehand(
    reader, slots, checkpointer, start_worker, code, slot, refusal
):
    worker = start_worker(f"{slots[0]},{slots[1]}")
    worker.run("simulated.initialize()")
    worker.run(code)
    before = used_mib(reader, slots[0])
    assert refusal in codes(checkpointer.can(worker.pid, slots[slot]))
    outcome = checkpointer.suspend(worker.pid, slots[slot], 1000)
    assert (outcome.ok, outcome.state) == (False, "running")
    assert refusal in codes(outcome.refusals)
    assert used_mib(reader, slots[0]) == before
    worker.run("simulated.burn(0)")


def test_instances_are_refused(slots, checkpointer, start_worker):
    worker = start_worker(slots[2])
    worker.run("simulated.initialize()")
    assert codes(checkpointer.can(worker.pid, slots[2])) == ["mig_slot"]


def test_a_child_with_a_context_of_its_own_is_a_refusal(slots, checkpointer, worker):
    child = worker.run(
        "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c',"
        "'from gpubroker import simulated; simulated.initialize(); print(1, flush=True); input()'],"
        "stdin=subprocess.PIPE, stdout=subprocess.PIPE)"
    )
    assert child is None
    pid = worker.run("(child.stdout.readline(), child.pid)[1]")
    (refusal,) = checkpointer.can(worker.pid, slots[0])
    assert (refusal.code, refusal.values) == ("child_has_context", {"pid": pid})
    worker.run("child.communicate(b'')")
    worker.run("child.wait()")
    assert checkpointer.can(worker.pid, slots[0]) == ()


@pytest.mark.parametrize(
    ("host", "refusal"),
    [
        (HostMemory(1539), "host_memory_short"),
        (HostMemory(1 << 20, cgroup_free_mib=1539), "cgroup_memory_short"),
    ],
)
def test_the_host_must_have_room_for_a_tenth_more_than_the_device_memory(
    slots, driver, worker, host, refusal
):
    (found,) = Checkpointer(driver, host=lambda _: host).can(worker.pid, slots[0])
    assert (found.code, found.values) == (refusal, {"needed_mib": 1540, "free_mib": 1539})
    enough = HostMemory(1540, 1540)
    assert Checkpointer(driver, host=lambda _: enough).can(worker.pid, slots[0]) == ()


def test_a_return_without_enough_memory_is_not_tried_and_can_be_tried_again(
    slots, checkpointer, worker, start_worker
):
    assert checkpointer.suspend(worker.pid, slots[0], 1000).ok
    other = start_worker(slots[0])
    other.run("taken = simulated.allocate(22000)")
    outcome = checkpointer.resume(worker.pid, slots[0], 1400)
    assert (outcome.ok, outcome.state) == (False, "checkpointed")
    assert outcome.refusals[0].code == "slot_memory_short"
    assert outcome.refusals[0].values == {"needed_mib": 1400, "free_mib": 23034 - 22400}
    other.stop()
    assert checkpointer.resume(worker.pid, slots[0], 1400).ok


def test_the_bare_driver_wedges_a_process_restored_into_too_little_memory(
    slots, driver, checkpointer, worker, start_worker
):
    assert checkpointer.suspend(worker.pid, slots[0], 1000).ok
    start_worker(slots[0]).run("taken = simulated.allocate(22000)")
    with pytest.raises(DriverError, match="out_of_memory"):
        driver.restore(worker.pid)
    assert driver.state(worker.pid) == "failed"
    for call in (driver.restore, driver.unlock, driver.checkpoint):
        with pytest.raises(DriverError, match="illegal_state"):
            call(worker.pid)
    worker.run(
        "import threading; done = threading.Event();"
        "threading.Thread(target=lambda: (simulated.burn(0), done.set()), daemon=True).start()"
    )
    assert worker.run("done.wait(0.1)") is False
    outcome = checkpointer.resume(worker.pid, slots[0], 1400)
    assert (outcome.ok, outcome.state) == (False, "failed")


def test_the_bare_driver_loses_a_process_it_cannot_checkpoint(slots, driver, start_worker):
    worker = start_worker(slots[0])
    worker.run("simulated.initialize(uvm=True)")
    driver.lock(worker.pid, 1000)
    with pytest.raises(DriverError, match="not_supported"):
        driver.checkpoint(worker.pid)
    assert driver.state(worker.pid) == "failed"


def test_the_calls_have_one_order(driver, worker):
    for call in (driver.checkpoint, driver.restore, driver.unlock):
        with pytest.raises(DriverError, match="illegal_state"):
            call(worker.pid)
    driver.lock(worker.pid, 0)
    with pytest.raises(DriverError, match="illegal_state"):
        driver.lock(worker.pid, 0)
    driver.unlock(worker.pid)
    assert driver.state(worker.pid) == "running"


def test_a_process_left_locked_by_a_dead_helper_is_freed_by_resume(
    slots, driver, checkpointer, worker
):
    driver.lock(worker.pid, 0)
    assert checkpointer.resume(worker.pid, slots[0], 1400).ok
    worker.run("simulated.burn(0)")


def test_a_lock_that_times_out_is_told_from_other_failures(driver, worker, reader, slots, until):
    worker.begin("simulated.burn(60)")
    until(lambda: bool(reader.observe([slots[0]])[0].utilisation_percent))
    with pytest.raises(LockTimeout):
        driver.lock(worker.pid, 0)
    worker.interrupt()


def test_a_process_that_dies_suspended_leaves_nothing(state, reader, slots, checkpointer, worker):
    assert checkpointer.suspend(worker.pid, slots[0], 1000).ok
    worker.stop()
    outcome = checkpointer.resume(worker.pid, slots[0], 1400)
    assert (outcome.ok, outcome.state) == (False, "gone")
    reader.observe()
    assert not list((state / "suspended").iterdir())
    assert not [path for path in (state / "processes").iterdir() if str(worker.pid) in path.name]


def test_a_process_that_is_not_there_is_refused(slots, driver):
    outcome = Checkpointer(driver).suspend(os.getpid() + 1_000_000_000, slots[0], 100)
    assert (outcome.ok, outcome.state) == (False, "gone")
