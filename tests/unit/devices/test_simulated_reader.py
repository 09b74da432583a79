"""The reader of simulated GPUs sees what real processes do, as NVML would."""

from __future__ import annotations

import os

import msgspec

from jupyter_gpubroker.devices.reader import Inventory, SlotReading
from jupyter_gpubroker.devices.simulated import SimulatedReader


def one(reader: SimulatedReader, slot: str) -> SlotReading:
    (reading,) = reader.observe([slot])
    return reading


def is_empty(reading: SlotReading) -> bool:
    return (reading.memory_used_mib, reading.utilisation_percent, reading.processes) == (0, 0, ())


def test_the_same_folder_has_the_same_devices_after_a_restart(state, reader):
    again = SimulatedReader("2xL4,1xA100:3g.40gb+4g.40gb", state)
    assert again.inventory() == reader.inventory()


def test_other_folders_have_other_devices(state, reader):
    other = SimulatedReader("2xL4", state.with_name("other"))
    uuids = {gpu.uuid for gpu in reader.inventory().gpus}
    assert uuids.isdisjoint(gpu.uuid for gpu in other.inventory().gpus)


def test_a_gpu_offers_itself_or_its_instances(reader):
    whole, _, split = reader.inventory().gpus
    assert [(slot.kind, slot.uuid) for slot in whole.slots] == [("gpu", whole.uuid)]
    assert [(slot.kind, slot.profile, slot.memory_mib) for slot in split.slots] == [
        ("mig", "3g.40gb", 40192),
        ("mig", "4g.40gb", 40192),
    ]
    assert split.mig_enabled
    assert all(slot.uuid.startswith("MIG-") for slot in split.slots)


def test_records_survive_json(reader, slots):
    inventory = reader.inventory()
    assert msgspec.json.decode(msgspec.json.encode(inventory), type=Inventory) == inventory
    readings = reader.observe()
    encoded = msgspec.json.encode(readings)
    assert msgspec.json.decode(encoded, type=tuple[SlotReading, ...]) == readings


def test_the_folder_is_its_owners_alone(state, reader):
    assert state.stat().st_mode & 0o777 == 0o700


def test_an_empty_slot_has_no_memory_and_no_process_in_use(reader, slots):
    assert is_empty(one(reader, slots[0]))


def test_a_context_is_listed_with_its_memory_until_the_process_ends(reader, slots, start_worker):
    worker = start_worker(slots[0])
    assert one(reader, slots[0]).processes == ()
    worker.run("simulated.initialize()")
    reading = one(reader, slots[0])
    assert reading.memory_used_mib == 400
    assert [(process.pid, process.memory_mib) for process in reading.processes or ()] == [
        (worker.pid, 400)
    ]
    worker.run("simulated.burn(0, 1000)")
    assert one(reader, slots[0]).memory_used_mib == 400
    worker.stop()
    assert one(reader, slots[0]).processes == ()
    assert not list((reader._folder.path / slots[0]).glob("*.json"))


def test_a_killed_process_that_nobody_collected_holds_nothing(reader, slots, start_worker):
    worker = start_worker(slots[0])
    worker.run("simulated.initialize()")
    worker.process.send_signal(9)
    # Dead and still a child of this process: a zombie.
    os.waitid(os.P_PID, worker.pid, os.WEXITED | os.WNOWAIT)
    assert one(reader, slots[0]).processes == ()


def test_work_is_seen_in_the_window_in_which_it_ran(reader, slots, start_worker):
    worker = start_worker(slots[0])
    worker.run("simulated.initialize()")
    one(reader, slots[0])
    worker.run("simulated.burn(0.05)")
    reading = one(reader, slots[0])
    assert 0 < (reading.utilisation_percent or 0) <= 100
    own = [process.utilisation_percent for process in reading.processes or ()]
    assert own == [reading.utilisation_percent]
    assert one(reader, slots[0]).utilisation_percent == 0


def test_running_work_is_seen_before_it_ends(reader, slots, start_worker, until):
    worker = start_worker(slots[0])
    worker.begin("simulated.burn(60)")
    until(lambda: bool(one(reader, slots[0]).utilisation_percent))
    worker.interrupt()


def test_use_before_the_reader_looked_is_unknown_not_zero(state, reader, slots, start_worker):
    worker = start_worker(slots[0])
    worker.run("simulated.burn(0.01)")
    late = SimulatedReader("2xL4,1xA100:3g.40gb+4g.40gb", state)
    assert one(late, slots[0]).utilisation_percent is None
    assert one(late, slots[0]).utilisation_percent == 0


def test_an_instance_has_memory_and_processes_but_no_utilisation(reader, slots, start_worker):
    worker = start_worker(slots[2])
    worker.run("simulated.burn(0.01)")
    reading = one(reader, slots[2])
    assert reading.utilisation_percent is None
    assert reading.memory_used_mib == 400
    assert [(process.pid, process.utilisation_percent) for process in reading.processes or ()] == [
        (worker.pid, None)
    ]


def test_a_slot_that_is_not_there_is_a_problem_of_that_slot_alone(reader, slots):
    lost, fine = reader.observe(["GPU-none", slots[0]])
    assert lost.problems == ("simulated: NotFound",)
    assert (lost.memory_used_mib, lost.processes) == (None, None)
    assert fine.memory_used_mib == 0


def test_files_that_no_process_of_ours_wrote_stand_for_nothing(reader, slots, state):
    (state / slots[0] / "1-1.json").write_text("{")
    (state / slots[0] / "notes.json").write_text("[]")
    assert is_empty(one(reader, slots[0]))
