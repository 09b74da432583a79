"""What the engines did, and how a GPU is: the real pynvml over a stub of NVIDIA's library."""

from __future__ import annotations

from typing import Any

import pytest

from jupyter_gpubroker.devices.reader import GpuReading, Xid
from tests.support.nvml.world import FUNCTION_NOT_FOUND, LOST, NO_PERMISSION, NOT_SUPPORTED


def look(reader, clock, slot="GPU-0") -> Any:
    """A reading, and the time until the next one."""
    (reading,) = reader.observe([slot])
    clock.pass_ms(1000)
    return reading


@pytest.fixture
def reader(nvml):
    """With an inventory."""
    nvml.inventory()
    return nvml


def of(reader, gpu="GPU-0") -> Any:
    return next(reading for reading in reader.health() if reading.uuid == gpu)


# --- engines -----------------------------------------------------------------------------------------------------------------


def test_the_engines_activity_needs_two_samples(reader, clock):
    assert look(reader, clock).missing == {"engines": "first_sample"}
    reading = look(reader, clock)
    assert (reading.engine_percent, reading.sm_percent, reading.dram_percent) == (41, 1, 0)
    assert (reading.window_ms, reading.sample_age_ms, reading.missing) == (1000, 0, {})


def test_an_instance_tells_what_its_own_engines_did(reader, nvml_world, clock):
    nvml_world.mig("MIG-1", engine=0, sm=0, dram=0)
    nvml_world.mig("MIG-4", engine=100, sm=14, dram=3)
    for slot in ("MIG-1", "MIG-4"):
        look(reader, clock, slot)
    assert look(reader, clock, "MIG-1").engine_percent == 0
    busy = look(reader, clock, "MIG-4")
    assert (busy.engine_percent, busy.sm_percent, busy.dram_percent) == (100, 14, 3)


def test_an_older_gpu_has_no_activity_of_engines(reader, nvml_world, clock):
    nvml_world.gpu("GPU-2", gpm=0)
    reading = look(reader, clock, "MIG-1")
    assert (reading.engine_percent, reading.missing["engines"]) == (None, "not_supported")
    assert reading.problems == ()


@pytest.mark.parametrize(
    "function", ["nvmlGpmQueryDeviceSupport", "nvmlGpmMigSampleGet", "nvmlGpmMetricsGet"]
)
@pytest.mark.parametrize(
    ("code", "why"),
    [
        (FUNCTION_NOT_FOUND, "not_supported"),
        (NOT_SUPPORTED, "not_supported"),
        (NO_PERMISSION, "no_permission"),
        (LOST, "failed"),
    ],
)
def test_engines_that_do_not_answer_are_unknown(reader, nvml_world, clock, function, code, why):
    nvml_world.fail(function, code)
    look(reader, clock, "MIG-1")
    reading = look(reader, clock, "MIG-1")
    assert (reading.engine_percent, reading.missing["engines"]) == (None, why)


def test_two_looks_in_quick_succession_repeat_the_figure(reader, clock):
    look(reader, clock)
    (first,) = reader.observe(["GPU-0"])
    clock.pass_ms(50)
    (again,) = reader.observe(["GPU-0"])
    assert again.engine_percent == first.engine_percent == 41
    assert again.sample_age_ms == 50


def test_more_than_everything_is_no_measure(reader, nvml_world, clock):
    # NVIDIA/DCGM#152
    nvml_world.gpu("GPU-0", sm=104.5)
    look(reader, clock)
    reading = look(reader, clock)
    assert (reading.engine_percent, reading.sm_percent) == (41, None)
    assert reading.problems == ("nvmlGpmMetricsGet: 104.5 is no percentage",)


def test_engines_of_which_nothing_is_a_measure_are_unknown(reader, nvml_world, clock):
    nvml_world.gpu("GPU-0", engine=-1, sm=400)
    look(reader, clock)
    reading = look(reader, clock)
    assert (reading.engine_percent, reading.missing) == (None, {"engines": "failed"})


def test_no_sample_is_held_for_longer_than_its_slot_is_there(
    reader, nvml_world, nvml_library, clock
):
    # A handle that is held keeps an instance from being destroyed (NVIDIA/DCGM#276).
    def held() -> Any:
        return nvml_library.stub_samples_held()

    for slot in ("GPU-0", "MIG-1", "MIG-4"):
        look(reader, clock, slot)
    assert held() == 6
    nvml_world.remove("mig MIG-1")
    look(reader, clock, "MIG-1")
    assert held() == 4
    nvml_world.remove("mig MIG-4")
    reader.inventory()
    assert held() == 2
    reader.close()
    assert held() == 0


def test_another_instance_under_the_same_uuid_begins_anew(reader, nvml_world, clock):
    look(reader, clock, "MIG-1")
    nvml_world.mig("MIG-1", gi=9)
    assert look(reader, clock, "MIG-1").missing["engines"] == "first_sample"


# --- condition ---------------------------------------------------------------------------------------------------------------


def test_a_gpu_tells_its_condition(reader, nvml_world):
    nvml_world.gpu("GPU-0", power=301_000, temperature=61, ecc=2)
    assert of(reader) == GpuReading(
        "GPU-0",
        "ok",
        power_mw=301_000,
        temperature_c=61,
        ecc_uncorrected=2,
        recovery_action="none",
    )


def test_the_power_of_an_idle_board_is_the_least_seen_while_nobody_was_on_it(
    reader, nvml_world, clock
):
    look(reader, clock)
    assert (of(reader).power_idle_mw, of(reader).power_idle_mw) == (None, None)
    nvml_world.remove("process GPU-0")
    for power in (120_000, 74_000, 76_000):
        nvml_world.gpu("GPU-0", power=power)
        look(reader, clock)
        of(reader)
    nvml_world.process("GPU-0", 1000, memory=400)
    nvml_world.gpu("GPU-0", power=50_000)
    look(reader, clock)
    assert of(reader).power_idle_mw == 74_000


def test_each_error_is_told_once(reader, nvml_world):
    nvml_world.report("GPU-0", 31)
    nvml_world.report("GPU-2", 43, gi_id=14)
    nvml_world.report("GPU-0", 79)
    assert of(reader).xids == (Xid(31), Xid(79))
    assert of(reader).xids == ()


def test_an_error_names_its_instance(reader, nvml_world):
    nvml_world.report("GPU-2", 43, gi_id=14)
    assert of(reader, "GPU-2").xids == (Xid(43, 14),)


def test_errors_are_heard_again_after_the_driver_was_reloaded(reader, nvml_world):
    reader.close()
    reader.inventory()
    nvml_world.report("GPU-0", 31)
    assert of(reader).xids == (Xid(31),)


def test_a_gpu_without_events_is_not_sick_for_it(nvml, nvml_world):
    # NVIDIA/k8s-device-plugin#1562
    nvml_world.gpu("GPU-0", events=0)
    nvml.inventory()
    reading = of(nvml)
    assert (reading.state, reading.missing) == ("ok", {"faults": "not_supported"})


@pytest.mark.parametrize(
    ("code", "action"),
    [
        (0, "none"),
        (1, "gpu_reset"),
        (4, "drain_and_reset"),
        (7, "system_reboot"),
        (12, "action_12"),
    ],
)
def test_what_the_driver_asks_for_is_told(reader, nvml_world, code, action):
    nvml_world.gpu("GPU-0", action=code)
    assert of(reader).recovery_action == action


def test_an_older_driver_asks_for_nothing_that_could_be_known(reader, nvml_world):
    nvml_world.gpu("GPU-0", action=-1)
    reading = of(reader)
    assert (reading.recovery_action, reading.missing) == (
        None,
        {"recovery_action": "not_supported"},
    )


def test_a_gpu_that_fell_off_the_bus_is_lost_and_the_others_are_told(reader, nvml_world):
    # XuehaiPan/nvitop#139, rossumai/nvgpu#6, wookayin/gpustat#125
    nvml_world.fail("*", LOST, "GPU-0")
    states = {reading.uuid: reading.state for reading in reader.health()}
    assert states == {"GPU-0": "lost", "index:1": "no_permission", "GPU-2": "ok", "index:3": "lost"}


def test_a_condition_that_cannot_be_read_is_unknown(reader, nvml_world):
    nvml_world.fail("nvmlDeviceGetPowerUsage", NO_PERMISSION)
    nvml_world.fail("nvmlDeviceGetTotalEccErrors", NOT_SUPPORTED)
    reading = of(reader)
    assert (reading.power_mw, reading.ecc_uncorrected) == (None, None)
    assert reading.missing == {"power": "no_permission", "ecc": "not_supported"}


# --- what can be known at all ------------------------------------------------------------------------------------------------


def test_the_capabilities_say_which_signals_exist(reader):
    found = {one.slot_uuid or one.gpu_uuid: one.signals for one in reader.capabilities()}
    assert found["GPU-0"] == dict.fromkeys(
        ("memory", "processes", "utilisation", "process_utilisation", "engines"), "ok"
    )
    assert found["MIG-1"] == {
        "memory": "ok",
        "processes": "ok",
        "utilisation": "not_supported",
        "process_utilisation": "not_supported",
        "engines": "ok",
    }
    assert set(found["index:1"].values()) == {"no_permission"}
    assert set(found["index:3"].values()) == {"failed"}


def test_accounting_exists_where_it_is_switched_on(reader, nvml_world):
    def accounting() -> Any:
        return next(iter(reader.capabilities())).signals["accounting"]

    assert accounting() == "not_supported"
    nvml_world.gpu("GPU-0", accounting=1)
    assert accounting() == "ok"
