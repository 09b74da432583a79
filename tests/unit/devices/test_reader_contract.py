"""What every reader must answer, whatever is behind it: the real pynvml over a stub, and the simulated devices."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from jupyter_gpubroker.devices import simulated
from jupyter_gpubroker.devices.reader import (
    GPU_SIGNALS,
    SLOT_SIGNALS,
    Capability,
    GpuReading,
    Inventory,
    Missing,
    Signal,
    SlotReading,
    Xid,
)
from tests.support.machines import (
    GI_IDS,
    PROCESS_MIB,
    SLICES,
    SPLIT,
    WHOLE,
    Machine,
    NvmlMachine,
    SimulatedMachine,
)

PID = os.getpid()
WHYS: tuple[Missing, ...] = ("not_supported", "no_permission", "failed")
NUMBERS: dict[Signal, Callable[[SlotReading], object]] = {
    "memory": lambda reading: reading.memory_used_mib,
    "processes": lambda reading: reading.processes,
    "utilisation": lambda reading: reading.utilisation_percent,
    "process_utilisation": lambda reading: next(
        (one.utilisation_percent for one in reading.processes or ()), None
    ),
    "engines": lambda reading: reading.engine_percent,
}
CONDITIONS: dict[Signal, Callable[[GpuReading], object]] = {
    "power": lambda reading: reading.power_mw,
    "temperature": lambda reading: reading.temperature_c,
    "ecc": lambda reading: reading.ecc_uncorrected,
    "recovery_action": lambda reading: reading.recovery_action,
}


@pytest.fixture(params=["nvml", "simulated"])
def machine(
    request: pytest.FixtureRequest, nvml_world: Any, state: Any, clock: Any, monkeypatch: Any
) -> Iterator[Machine]:
    made: Machine = NvmlMachine(nvml_world)
    if request.param == "simulated":
        original = made.reader
        monkeypatch.setattr(simulated, "now_ms", clock.now_ms)
        made = SimulatedMachine(original, state, clock.now_ms)
        original.close()
    made.reader.inventory()
    yield made
    made.reader.close()


@pytest.fixture
def look(machine: Machine, clock: Any) -> Callable[..., SlotReading]:
    """A reading that covers the second before it."""

    def read(slot: str = WHOLE) -> SlotReading:
        machine.reader.observe([slot])
        clock.pass_ms(1000)
        (reading,) = machine.reader.observe([slot])
        return reading

    return read


def of(machine: Machine, gpu: str = WHOLE) -> GpuReading:
    return next(reading for reading in machine.reader.health() if reading.uuid == gpu)


# --- whole GPUs -----------------------------------------------------------------------------------------------------------


def test_each_gpu_offers_itself_or_its_instances_and_bad_ones_nothing(machine):
    inventory = machine.reader.inventory()
    assert [(gpu.state, [slot.uuid for slot in gpu.slots]) for gpu in inventory.gpus] == [
        ("ok", [WHOLE]),
        ("no_permission", []),
        ("ok", list(SLICES)),
        ("lost", []),
    ]
    split = inventory.gpus[2]
    assert [
        (slot.profile, slot.memory_mib, slot.gi_id, slot.ci_id, slot.placement, slot.position)
        for slot in split.slots
    ] == [("1g.18gb", 16384, 11, 0, 1, 1), ("1g.18gb", 16384, 14, 0, 4, 4)]


def test_an_empty_slot_is_known_to_be_empty(look):
    reading = look()
    assert (reading.memory_used_mib, reading.processes) == (0, ())
    assert (reading.utilisation_percent, reading.engine_percent, reading.sm_percent) == (0, 0, 0)
    assert reading.missing == {}


def test_work_is_seen_with_its_process_and_its_window(machine, look):
    machine.enter(WHOLE, PID, works=True)
    reading = look()
    assert reading.utilisation_percent
    assert reading.engine_percent
    assert reading.processes is not None
    (process,) = reading.processes
    assert (process.pid, process.memory_mib, process.kind) == (PID, PROCESS_MIB, "compute")
    assert process.utilisation_percent
    assert reading.memory_used_mib == PROCESS_MIB
    assert 0 < (reading.window_ms or 0) <= 1000
    assert 0 <= (reading.sample_age_ms or 0) < 1000


def test_a_process_that_does_nothing_is_known_to_do_nothing(machine, look):
    machine.enter(WHOLE, PID, works=False)
    reading = look()
    assert (reading.utilisation_percent, reading.engine_percent) == (0, 0)
    assert [process.utilisation_percent for process in reading.processes or ()] == [0]


def test_who_left_is_not_there_any_more(machine, look):
    machine.enter(WHOLE, PID, works=True)
    look()
    machine.leave(WHOLE, PID)
    assert (look().processes, look().memory_used_mib) == ((), 0)


# --- instances ------------------------------------------------------------------------------------------------------------


def test_an_instance_tells_its_own_processes_memory_and_activity(machine, look):
    machine.enter(SLICES[1], PID, works=True)
    quiet, busy = look(SLICES[0]), look(SLICES[1])
    assert (quiet.processes, quiet.engine_percent) == ((), 0)
    assert busy.engine_percent
    assert [process.pid for process in busy.processes or ()] == [PID]
    assert busy.memory_used_mib == PROCESS_MIB


def test_an_instance_never_has_the_drivers_counters(machine, look):
    # XuehaiPan/nvitop#5, dask/distributed#8739, NordicHPC/sonar#247
    machine.enter(SLICES[0], PID, works=False)
    reading = look(SLICES[0])
    assert reading.utilisation_percent is None
    assert [process.utilisation_percent for process in reading.processes or ()] == [None]
    assert reading.missing == {
        "utilisation": "not_supported",
        "process_utilisation": "not_supported",
    }


def test_an_instance_that_vanished_costs_its_own_reading_alone(machine, look):
    machine.remove(SLICES[0])
    gone, fine = machine.reader.observe(SLICES)
    assert gone.problems[0].endswith(": NotFound")
    assert (gone.memory_used_mib, gone.processes, gone.engine_percent) == (None, None, None)
    assert set(gone.missing) == set(SLOT_SIGNALS)
    assert fine.processes == ()
    split = machine.reader.inventory().gpus[2]
    assert [slot.uuid for slot in split.slots] == [SLICES[1]]


# --- numbers that are missing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("why", WHYS)
@pytest.mark.parametrize("signal", SLOT_SIGNALS)
def test_a_number_that_cannot_be_read_is_none_with_its_reason_and_costs_no_other(
    machine, look, signal, why
):
    # roscisz/TensorHive#270
    machine.enter(WHOLE, PID, works=True)
    machine.miss(signal, why)
    reading = look()
    assert NUMBERS[signal](reading) is None
    assert reading.missing[signal] == why
    others = set(SLOT_SIGNALS) - {signal}
    if signal == "processes":
        others.remove("process_utilisation")
    assert all(NUMBERS[other](reading) is not None for other in others)
    assert not others & reading.missing.keys()


@pytest.mark.parametrize("why", WHYS)
@pytest.mark.parametrize("signal", CONDITIONS)
def test_a_condition_that_cannot_be_read_is_none_with_its_reason(machine, signal, why):
    machine.miss(signal, why)
    reading = of(machine)
    assert CONDITIONS[signal](reading) is None
    assert reading.missing[signal] == why
    assert all(
        condition(reading) is not None for other, condition in CONDITIONS.items() if other != signal
    )


def test_without_any_counter_a_slot_is_unknown_and_never_quiet(machine, look):
    # Syllo/nvtop#256: the process is listed, its use is not.
    machine.enter(WHOLE, PID, works=True)
    for signal in ("utilisation", "process_utilisation", "engines"):
        machine.miss(signal, "not_supported")
    reading = look()
    assert [NUMBERS[signal](reading) for signal in SLOT_SIGNALS[2:]] == [None, None, None]
    assert (reading.window_ms, reading.sample_age_ms) == (None, None)


# --- condition ------------------------------------------------------------------------------------------------------------


def test_a_lost_gpu_offers_nothing_and_the_others_are_read(machine, look):
    # XuehaiPan/nvitop#139, rossumai/nvgpu#6, wookayin/gpustat#125, leptonai/gpud#604
    machine.lose(WHOLE)
    (reading,) = machine.reader.observe([WHOLE])
    assert reading.problems[0].endswith(": GpuIsLost")
    assert (reading.memory_used_mib, reading.processes, reading.utilisation_percent) == (
        None,
        None,
        None,
    )
    assert of(machine).state == "lost"
    inventory = machine.reader.inventory()
    assert [gpu.state for gpu in inventory.gpus] == ["lost", "no_permission", "ok", "lost"]
    assert look(SLICES[0]).memory_used_mib == 0


def test_a_gpu_that_may_not_be_opened_says_so(machine):
    reading = of(machine, "index:1")
    assert reading.state == "no_permission"
    assert set(reading.missing.values()) == {"no_permission"}


def test_each_error_is_told_once_with_its_instance(machine):
    machine.report(WHOLE, 31)
    machine.report(SPLIT, 43, GI_IDS["MIG-4"])
    found = {reading.uuid: reading.xids for reading in machine.reader.health()}
    assert (found[WHOLE], found[SPLIT]) == ((Xid(31),), (Xid(43, 14),))
    machine.report(WHOLE, 79)
    assert (of(machine).xids, of(machine).xids) == ((Xid(79),), ())


@pytest.mark.parametrize("action", ["gpu_reset", "node_reboot"])
def test_what_the_driver_asks_for_is_told(machine, action):
    assert of(machine).recovery_action == "none"
    machine.ask_for(WHOLE, action)
    assert of(machine).recovery_action == action
    assert of(machine, SPLIT).recovery_action == "none"


# --- what can be known, and its form --------------------------------------------------------------------------------------


def test_the_capabilities_name_every_signal_of_every_device(machine):
    found = machine.reader.capabilities()
    of_gpus = {one.gpu_uuid: one for one in found if one.slot_uuid is None}
    of_slots = {one.slot_uuid: one for one in found if one.slot_uuid is not None}
    assert list(of_gpus) == [gpu.uuid for gpu in machine.reader.inventory().gpus]
    assert set(of_slots) == {WHOLE, *SLICES}
    assert all(set(one.signals) == set(GPU_SIGNALS) for one in of_gpus.values())
    assert all(set(one.signals) == set(SLOT_SIGNALS) for one in of_slots.values())
    assert set(of_slots[WHOLE].signals.values()) == {"ok"}
    assert of_slots[SLICES[0]].signals["engines"] == "ok"
    assert of_slots[SLICES[0]].signals["utilisation"] == "not_supported"


def test_a_signal_that_may_not_be_read_is_no_capability(machine):
    machine.miss("power", "no_permission")
    machine.miss("processes", "failed")
    found = {(one.gpu_uuid, one.slot_uuid): one.signals for one in machine.reader.capabilities()}
    assert found[WHOLE, None]["power"] == "no_permission"
    assert found[WHOLE, WHOLE]["processes"] == "failed"


def test_records_survive_json(machine):
    def survives(value: object, kind: Any) -> bool:
        return bool(msgspec.json.decode(msgspec.json.encode(value), type=kind) == value)

    assert survives(machine.reader.inventory(), Inventory)
    assert survives(machine.reader.observe(), tuple[SlotReading, ...])
    assert survives(machine.reader.health(), tuple[GpuReading, ...])
    assert survives(machine.reader.capabilities(), tuple[Capability, ...])
