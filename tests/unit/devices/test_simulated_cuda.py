"""`gpubroker.simulated` keeps CUDA's rules, in real processes."""

from __future__ import annotations

import pytest

from jupyter_gpubroker.devices.simulated import SimulatedReader


def processes(reader: SimulatedReader, slot: str) -> list[int]:
    (reading,) = reader.observe([slot])
    return [process.pid for process in reading.processes or ()]


def used_mib(reader: SimulatedReader, slot: str) -> int | None:
    (reading,) = reader.observe([slot])
    return reading.memory_used_mib


# --- visibility ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("variable", "expected"),
    [
        (None, [0, 1]),  # all whole GPUs; instances must be named
        ("0", [0]),
        ("1,0", [1, 0]),
        ("{1}", [1]),
        ("{1},{0}", [1, 0]),
        ("{3}", [3]),
        ("{2},{3}", [2]),  # one instance per process
        ("2", [2]),  # an index of a split GPU means its first instance
        ("0,7,1", [0]),  # up to the first that names nothing
        ("0,0", [0]),
        ("{0},{2}", [0]),  # whole GPUs and instances do not mix
        ("", []),
        ("-1", []),
        ("7", []),
        ("GPU-", []),  # a prefix of several
        ("nonsense", []),
    ],
)
def test_the_variable_is_read_as_cuda_reads_it(slots, start_worker, variable, expected):
    worker = start_worker(None if variable is None else variable.format(*slots))
    assert worker.run(
        "[slot for slot, _ in simulated._process.devices()] if simulated.device_count() else []"
    ) == [slots[index] for index in expected]


def test_an_unambiguous_prefix_names_a_device(slots, start_worker):
    assert start_worker(slots[1][:13]).run("simulated.device_count()") == 1


def test_the_variable_is_read_at_the_first_use_and_only_then(reader, slots, start_worker):
    worker = start_worker("")
    worker.run(f"os.environ['CUDA_VISIBLE_DEVICES'] = '{slots[1]}'")
    worker.run("simulated.initialize()")
    worker.run(f"os.environ['CUDA_VISIBLE_DEVICES'] = '{slots[0]}'")
    worker.run("simulated.burn(0)")
    assert processes(reader, slots[0]) == []
    assert processes(reader, slots[1]) == [worker.pid]


def test_without_a_device_work_fails_as_in_cuda(slots, start_worker, worker_error):
    worker = start_worker("")
    assert worker.run("simulated.is_poisoned()") is False
    for _ in range(2):
        with pytest.raises(worker_error) as failure:
            worker.run("simulated.burn(0)")
        assert failure.value.name == "NoDeviceError"
    assert worker.run("simulated.is_poisoned()") is True
    assert worker.run("simulated.is_initialized()") is False


def test_a_process_that_saw_no_device_can_never_be_given_one(
    reader, slots, start_worker, worker_error
):
    worker = start_worker("")
    assert worker.run("simulated.device_count()") == 0
    worker.run(f"os.environ['CUDA_VISIBLE_DEVICES'] = '{slots[0]}'")
    with pytest.raises(worker_error, match="Restart") as failure:
        worker.run("simulated.burn(0)")
    assert failure.value.name == "DeviceUnavailableError"
    assert worker.run("simulated.device_count()") == 0
    assert processes(reader, slots[0]) == []


def test_asking_whether_it_is_initialized_does_not_initialize(slots, start_worker):
    worker = start_worker("")
    assert worker.run("simulated.is_initialized()") is False
    worker.run(f"os.environ['CUDA_VISIBLE_DEVICES'] = '{slots[0]}'")
    worker.run("simulated.initialize()")
    assert worker.run("simulated.is_initialized()") is True


def test_a_missing_folder_is_no_driver_and_does_not_poison(
    state, slots, start_worker, worker_error
):
    worker = start_worker(slots[0], GPUBROKER_SIMULATED_STATE=str(state / "none"))
    with pytest.raises(worker_error) as failure:
        worker.run("simulated.burn(0)")
    assert failure.value.name == "NoDriverError"
    worker.run(f"os.environ['GPUBROKER_SIMULATED_STATE'] = '{state}'")
    assert worker.run("simulated.device_count()") == 1


def test_the_folder_is_found_beside_the_brokers_socket(state, slots, start_worker):
    url = f"unix://{state.parent}/broker.sock"
    worker = start_worker(slots[0], GPUBROKER_SIMULATED_STATE="", GPUBROKER_URL=url)
    assert worker.run("simulated.device_count()") == 1


# --- contexts and forks ---------------------------------------------------------------------------------------------------


def test_two_devices_have_a_context_each(reader, slots, start_worker):
    worker = start_worker(f"{slots[0]},{slots[1]}")
    worker.run("simulated.burn(0, device=1)")
    assert (processes(reader, slots[0]), processes(reader, slots[1])) == ([], [worker.pid])
    worker.run("simulated.burn(0, device=0)")
    assert processes(reader, slots[0]) == [worker.pid]


def test_threads_that_begin_together_share_one_context(reader, slots, start_worker):
    worker = start_worker(slots[0])
    worker.run("from concurrent.futures import ThreadPoolExecutor")
    worker.run("list(ThreadPoolExecutor(8).map(lambda _: simulated.burn(0, 10), range(40)))")
    assert processes(reader, slots[0]) == [worker.pid]
    assert used_mib(reader, slots[0]) == 400


def test_a_device_that_is_not_visible_is_refused(slots, start_worker, worker_error):
    with pytest.raises(worker_error, match="invalid device ordinal 1"):
        start_worker(slots[0]).run("simulated.burn(0, device=1)")


_FORK = """
import os
def in_child(action):
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            action()
            text = "fine"
        except Exception as error:
            text = str(error)
        os.write(writer, text.encode())
        os._exit(0)
    os.waitpid(pid, 0)
    return os.read(reader, 1000).decode()
"""


def test_a_child_forked_after_the_first_use_cannot_use_it(reader, slots, start_worker):
    worker = start_worker(slots[0])
    worker.run(_FORK)
    worker.run("buffer = simulated.allocate(100)")
    assert "spawn" in worker.run("in_child(lambda: simulated.burn(0))")
    assert used_mib(reader, slots[0]) == 500


def test_a_child_forked_before_the_first_use_can(slots, start_worker):
    worker = start_worker(slots[0])
    worker.run(_FORK)
    assert worker.run("in_child(lambda: simulated.burn(0))") == "fine"


def test_a_forked_child_that_drops_a_buffer_frees_nothing_of_its_parent(
    reader, slots, start_worker
):
    worker = start_worker(slots[0])
    worker.run(_FORK)
    worker.run("names = {'buffer': simulated.allocate(100)}")
    assert worker.run("in_child(lambda: names.clear())") == "fine"
    assert used_mib(reader, slots[0]) == 500


# --- memory ----------------------------------------------------------------------------------------------------------------


def test_memory_counts_until_it_is_freed_or_forgotten(reader, slots, start_worker):
    worker = start_worker(slots[0])
    worker.run("first, second = simulated.allocate(1000), simulated.allocate(2000)")
    assert used_mib(reader, slots[0]) == 3400
    worker.run("first.free()")
    assert used_mib(reader, slots[0]) == 2400
    worker.run("del second")
    assert used_mib(reader, slots[0]) == 400


def test_more_than_is_free_is_out_of_memory_and_changes_nothing(
    reader, slots, start_worker, worker_error
):
    holder, late = start_worker(slots[0]), start_worker(slots[0])
    holder.run("buffer = simulated.allocate(20000)")
    with pytest.raises(worker_error) as failure:
        late.run("simulated.allocate(2000 + 500)")
    assert failure.value.name == "OutOfMemoryError"
    assert used_mib(reader, slots[0]) == 20000 + 2 * 400
    holder.stop()
    late.run("simulated.allocate(2000 + 500)")


def test_a_full_slot_has_no_room_for_a_context(slots, start_worker, worker_error):
    holder, late = start_worker(slots[0]), start_worker(slots[0])
    holder.run("buffer = simulated.allocate(23034 - 400 - 399)")
    with pytest.raises(worker_error, match="out of memory"):
        late.run("simulated.initialize()")
    assert late.run("simulated.is_initialized()") is False


def test_contents_move_to_the_host_and_back(reader, slots, start_worker):
    worker = start_worker(slots[0])
    worker.run("buffer = simulated.allocate(100)")
    worker.run("buffer.write(b'weights')")
    worker.run("buffer.to_host()")
    assert used_mib(reader, slots[0]) == 400
    assert worker.run("buffer.read().decode()") == "weights"
    worker.run("buffer.to_device()")
    assert used_mib(reader, slots[0]) == 500
    assert worker.run("buffer.read().decode()") == "weights"


def test_a_pickled_buffer_comes_back_on_the_host_of_another_process(
    reader, slots, start_worker, tmp_path
):
    first, second = start_worker(slots[0]), start_worker(slots[1])
    first.run("buffer = simulated.allocate(100)")
    first.run("buffer.write(b'weights')")
    first.run(f"import pickle; pickle.dump(buffer, open('{tmp_path}/saved', 'wb'))")
    second.run(f"import pickle; buffer = pickle.load(open('{tmp_path}/saved', 'rb'))")
    assert processes(reader, slots[1]) == []
    second.run("buffer.to_device()")
    assert used_mib(reader, slots[1]) == 500
    assert second.run("buffer.read().decode()") == "weights"


def test_a_freed_buffer_cannot_be_read(slots, start_worker, worker_error):
    worker = start_worker(slots[0])
    worker.run("buffer = simulated.allocate(1)")
    worker.run("buffer.free()")
    with pytest.raises(worker_error, match="freed"):
        worker.run("buffer.read()")


def test_work_can_be_interrupted_and_frees_what_it_used(
    reader, slots, start_worker, until, worker_error
):
    worker = start_worker(slots[0])
    worker.begin("simulated.burn(60, 1000)")
    until(lambda: used_mib(reader, slots[0]) == 1400)
    until(lambda: bool(reader.observe([slots[0]])[0].utilisation_percent))
    worker.interrupt()
    with pytest.raises(worker_error) as failure:
        worker.end()
    assert failure.value.name == "KeyboardInterrupt"
    assert used_mib(reader, slots[0]) == 400
    assert reader.observe([slots[0]])[0].utilisation_percent == 0


# --- pausing ---------------------------------------------------------------------------------------------------------------


def test_pausing_leaves_only_the_context_and_keeps_addresses_and_contents(
    reader, slots, start_worker
):
    worker = start_worker(slots[2])
    worker.run("buffers = [simulated.allocate(100), simulated.allocate(200)]")
    before = worker.run("simulated.checksums()")
    assert len(before) == 2
    assert worker.run("simulated.pause()") == 300
    assert used_mib(reader, slots[2]) == 400
    assert worker.run("simulated.checksums()") == before
    assert worker.run("simulated.resume()") == 300
    assert used_mib(reader, slots[2]) == 700
    assert worker.run("simulated.checksums()") == before
    worker.run("simulated.burn(0)")


def test_using_paused_memory_poisons_the_context_for_good(slots, start_worker, worker_error):
    worker = start_worker(slots[0])
    worker.run("buffer = simulated.allocate(100)")
    worker.run("simulated.pause()")
    for code in ("buffer.read()", "simulated.burn(0)", "simulated.allocate(1)"):
        with pytest.raises(worker_error) as failure:
            worker.run(code)
        assert failure.value.name == "IllegalAccessError"
    assert worker.run("simulated.is_poisoned()") is True


def test_a_return_without_enough_memory_leaves_everything_paused(
    reader, slots, start_worker, worker_error
):
    worker, other = start_worker(slots[0]), start_worker(slots[0])
    worker.run("buffer = simulated.allocate(20000)")
    worker.run("simulated.pause()")
    other.run("taken = simulated.allocate(20000)")
    with pytest.raises(worker_error) as failure:
        worker.run("simulated.resume()")
    assert failure.value.name == "OutOfMemoryError"
    assert used_mib(reader, slots[0]) == 20800
    other.stop()
    worker.run("simulated.resume()")
    assert used_mib(reader, slots[0]) == 20400


def test_pausing_while_another_thread_works_is_refused(
    reader, slots, start_worker, until, worker_error
):
    worker = start_worker(slots[0])
    worker.run("buffer = simulated.allocate(100)")
    worker.run(
        "import threading; threading.Thread(target=simulated.burn, args=(60,), daemon=True).start()"
    )
    until(lambda: bool(reader.observe([slots[0]])[0].utilisation_percent))
    with pytest.raises(worker_error) as failure:
        worker.run("simulated.pause()")
    assert failure.value.name == "BusyError"
    assert worker.run("buffer.location") == "device"


def test_a_buffer_forgotten_while_paused_is_not_given_back_twice(reader, slots, start_worker):
    worker = start_worker(slots[0])
    worker.run("first, second = simulated.allocate(100), simulated.allocate(200)")
    worker.run("simulated.pause()")
    worker.run("del first")
    assert worker.run("simulated.resume()") == 200
    assert used_mib(reader, slots[0]) == 600
