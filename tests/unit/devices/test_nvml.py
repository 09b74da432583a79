"""The real pynvml over a stub of NVIDIA's library: the odd answers never become wrong numbers."""

from __future__ import annotations

import ctypes
import time
from typing import Any

import pytest

from jupyter_gpubroker.devices.nvml import reader as nvml_reader
from jupyter_gpubroker.devices.reader import (
    CHANGED,
    NO_NVIDIA_DEVICE,
    ProcessReading,
    SlotReading,
)
from tests.support.nvml.world import (
    DRIVER_NOT_LOADED,
    FUNCTION_NOT_FOUND,
    LOST,
    NO_PERMISSION,
    NOT_SUPPORTED,
    UNKNOWN,
)

UNINITIALIZED = 1
REPLACED = 18  # the driver is another than the library


def look(reader, slot="GPU-0") -> Any:
    """A reading of a slot of an inventory that was taken before."""
    (reading,) = reader.observe([slot])
    return reading


@pytest.fixture
def reader(nvml):
    """With an inventory."""
    nvml.inventory()
    return nvml


def percents(reading: SlotReading) -> list[int | None]:
    return [process.utilisation_percent for process in reading.processes or ()]


# --- inventory -----------------------------------------------------------------------------------------------------------


def test_each_gpu_offers_itself_or_its_instances_and_bad_ones_nothing(nvml):
    inventory = nvml.inventory()
    assert (inventory.source, inventory.driver_version) == ("nvml", "580.95.05")
    assert [(gpu.uuid, gpu.state, [slot.uuid for slot in gpu.slots]) for gpu in inventory.gpus] == [
        ("GPU-0", "ok", ["GPU-0"]),
        ("index:1", "no_permission", []),
        ("GPU-2", "ok", ["MIG-1", "MIG-4"]),
        ("index:3", "lost", []),
    ]


def test_a_gpu_without_mig_is_no_problem(nvml):
    gpu = nvml.inventory().gpus[0]
    assert (gpu.mig_enabled, gpu.problems) == (False, ())
    assert (gpu.model, gpu.memory_mib, gpu.pci_bus_id) == (
        "NVIDIA H200",
        143771,
        "00000000:01:00.0",
    )


def test_instances_behind_holes_are_found_with_their_ids_and_places(nvml):
    split = nvml.inventory().gpus[2]
    assert split.problems == ()
    assert [
        (slot.kind, slot.profile, slot.memory_mib, slot.gi_id, slot.ci_id, slot.placement)
        for slot in split.slots
    ] == [
        ("mig", "1g.18gb", 16384, 11, 0, 1),
        ("mig", "1g.18gb", 16384, 14, 0, 4),
    ]


def test_the_place_of_an_instance_is_unknown_without_the_privilege_to_ask(nvml, nvml_world):
    nvml_world.fail("nvmlDeviceGetGpuInstanceById", NO_PERMISSION)
    split = nvml.inventory().gpus[2]
    assert [slot.placement for slot in split.slots] == [None, None]
    assert split.problems == ()


def test_a_profile_that_the_name_does_not_tell_is_made_from_slices_and_memory(nvml, nvml_world):
    nvml_world.mig("MIG-1", profile="", slices=3, memory=71168)
    assert nvml.inventory().gpus[2].slots[0].profile == "3g.70gb"


def test_a_gpu_whose_mig_mode_is_about_to_change_offers_nothing(nvml, nvml_world):
    nvml_world.gpu("GPU-0", mig=0, pending=1)
    gpu = nvml.inventory().gpus[0]
    assert (gpu.state, gpu.slots, gpu.mig_pending) == ("unavailable", (), True)
    assert gpu.problems == ("the MIG mode changes at the next reset",)


def test_the_problems_name_the_call_and_its_error(nvml):
    gpus = nvml.inventory().gpus
    assert gpus[1].problems == ("nvmlDeviceGetHandleByIndex: NoPermission",)
    assert gpus[3].problems == ("nvmlDeviceGetUUID: GpuIsLost",)


def test_the_memory_of_the_whole_gpu_may_be_hidden_in_a_container(nvml, nvml_world):
    # NVIDIA/nvidia-container-toolkit#842: the instances answer, their GPU does not.
    nvml_world.fail("nvmlDeviceGetMemoryInfo", NO_PERMISSION, "GPU-2")
    gpu = nvml.inventory().gpus[2]
    assert (gpu.state, gpu.memory_mib, len(gpu.slots)) == ("ok", None, 2)
    assert look(nvml, "MIG-1").memory_used_mib == 501


@pytest.mark.parametrize("code", [8, 11])  # no power cable, no interrupts
def test_a_gpu_that_cannot_be_opened_is_unavailable_and_the_others_are_found(
    nvml, nvml_world, code
):
    nvml_world.fail("nvmlDeviceGetHandleByIndex_v2", code, "GPU-0")
    inventory = nvml.inventory()
    assert (inventory.gpus[0].state, inventory.gpus[0].slots) == ("unavailable", ())
    assert len(inventory.gpus[2].slots) == 2


def test_below_windows_neither_counters_nor_lists_mean_anything(nvml_world, monkeypatch):
    # microsoft/WSL#7162, dask/distributed#5342, Syllo/nvtop#109: they read 0 and nobody.
    monkeypatch.setattr(nvml_reader, "is_windows_below", lambda: True)
    reader = nvml_reader.NvmlReader()
    reader.inventory()
    reading = look(reader)
    reader.close()
    assert (reading.utilisation_percent, reading.processes) == (None, None)
    assert reading.missing["utilisation"] == reading.missing["processes"] == "not_supported"
    assert reading.memory_used_mib == 501


# --- the session -----------------------------------------------------------------------------------------------------------


def test_a_driver_that_does_not_start_is_reported_and_tried_again(nvml, nvml_world, monkeypatch):
    monkeypatch.setattr(nvml_reader, "nvidia_present", lambda: True)
    nvml_world.fail("nvmlInitWithFlags", DRIVER_NOT_LOADED)
    broken = nvml.inventory()
    assert (broken.gpus, broken.problems) == ((), ("nvmlInit: DriverNotLoaded",))
    nvml_world.fail("nvmlInitWithFlags", 0)
    assert len(nvml.inventory().gpus) == 4


def test_a_missing_library_is_no_problem_where_there_is_no_nvidia_gpu(
    nvml, nvml_world, monkeypatch
):
    monkeypatch.setattr(nvml_reader, "nvidia_present", lambda: False)
    nvml_world.fail("nvmlInitWithFlags", DRIVER_NOT_LOADED)
    assert nvml.inventory().problems == (NO_NVIDIA_DEVICE,)


@pytest.mark.parametrize("code", [UNINITIALIZED, DRIVER_NOT_LOADED, LOST, UNKNOWN])
def test_a_driver_that_was_loaded_anew_is_opened_anew(reader, nvml_world, code):
    # To the sessions before, every call fails.
    nvml_world.quirk("stale_error", code)
    nvml_world.quirk("stale", 1)
    assert look(reader).problems[0].endswith(CHANGED)
    assert len(reader.inventory().gpus) == 4
    assert look(reader).memory_used_mib == 501
    nvml_world.report("GPU-0", 31)
    assert [xid.code for xid in reader.health()[0].xids] == [31]


@pytest.mark.parametrize(("code", "state"), [(LOST, "lost"), (UNKNOWN, "unavailable")])
def test_gpus_that_no_session_can_open_are_told_one_by_one(reader, nvml_world, code, state):
    nvml_world.fail("nvmlDeviceGetHandleByIndex_v2", code)
    states = [gpu.state for gpu in reader.inventory().gpus]
    assert states == [state, "no_permission", state, state]
    nvml_world.fail("nvmlDeviceGetHandleByIndex_v2", 0)
    assert look(reader).memory_used_mib == 501
    assert reader.inventory().gpus[0].state == "ok"


def test_a_replaced_library_ends_the_process_that_has_the_old_one(reader, nvml_world):
    nvml_world.fail("nvmlDeviceGetCount_v2", UNKNOWN)
    nvml_world.fail("nvmlInitWithFlags", REPLACED)
    with pytest.raises(SystemExit, match="a new probe loads its library"):
        reader.inventory()


def test_a_library_that_never_fitted_its_driver_is_reported(nvml, nvml_world, monkeypatch):
    monkeypatch.setattr(nvml_reader, "nvidia_present", lambda: True)
    nvml_world.fail("nvmlInitWithFlags", REPLACED)
    assert nvml.inventory().problems == ("nvmlInit: LibRmVersionMismatch",)


# --- use of whole GPUs -------------------------------------------------------------------------------------------------------


def test_a_whole_gpu_tells_memory_use_and_processes(reader):
    reading = look(reader)
    assert (reading.memory_used_mib, reading.utilisation_percent) == (501, 1)
    assert reading.processes == (ProcessReading(1000, "compute", 400, 50),)
    assert reading.problems == ()


def test_unknown_process_memory_is_none_and_not_zero(reader, nvml_world):
    nvml_world.process("GPU-0", 1000, busy=50)
    assert look(reader).processes == (ProcessReading(1000, "compute", None, 50),)


def test_illegal_samples_are_dropped_and_seen_work_is_never_rounded_to_zero(reader, nvml_world):
    nvml_world.ring("GPU-0", 0, 2147483632, 1)
    assert look(reader).utilisation_percent == 1


def test_a_ring_of_illegal_samples_alone_is_unknown(reader, nvml_world):
    nvml_world.ring("GPU-0", 2147483632)
    reading = look(reader)
    assert (reading.utilisation_percent, reading.missing["utilisation"]) == (None, "no_samples")


def test_the_next_window_begins_where_the_last_ended(reader, nvml_world, nvml_library):
    nvml_world.ring("GPU-0", 0, 0, 0)
    look(reader)
    first = ctypes.c_ulonglong.in_dll(nvml_library, "stub_samples_since").value
    look(reader)
    assert ctypes.c_ulonglong.in_dll(nvml_library, "stub_samples_since").value == first + 30


def test_a_clock_that_is_set_back_hides_no_samples(reader, clock, nvml_library):
    look(reader)
    clock.pass_ms(-3_600_000)
    look(reader)
    since = ctypes.c_ulonglong.in_dll(nvml_library, "stub_samples_since").value
    assert since <= time.time_ns() // 1000 - 3_500_000_000


def test_a_window_covers_no_more_than_the_ring_remembers(reader, clock):
    # Asked for more than a minute, the driver has the last 120 samples, 20 s of them.
    clock.pass_ms(-60_000)
    assert 19_000 < (look(reader).window_ms or 0) < 21_100


def test_late_process_samples_are_waited_for(reader, nvml_library):
    look(reader)
    device = ctypes.c_ulonglong.in_dll(nvml_library, "stub_samples_since").value
    process = ctypes.c_ulonglong.in_dll(nvml_library, "stub_utilisation_since").value
    assert process <= device


def test_a_second_look_before_the_next_sample_repeats_the_figure(reader, nvml_world, clock):
    first = look(reader)
    nvml_world.ring("GPU-0")
    clock.pass_ms(100)
    again = look(reader)
    assert again.utilisation_percent == first.utilisation_percent == 1
    assert again.missing == {}


def test_a_ring_that_stands_still_is_unknown(reader, nvml_world, clock):
    look(reader)
    nvml_world.ring("GPU-0")
    clock.pass_ms(3_000)
    reading = look(reader)
    assert (reading.utilisation_percent, reading.problems) == (None, ())
    assert reading.missing["utilisation"] == "no_samples"


@pytest.mark.parametrize("quirk", ["empty_success", "not_found"])
def test_no_process_samples_mean_that_none_worked(reader, nvml_world, quirk):
    # The library's success with nothing in it is an error named Success in pynvml.
    nvml_world.quirk(quirk)
    nvml_world.process("GPU-0", 1000, memory=400, busy=0)
    reading = look(reader)
    assert reading.processes == (ProcessReading(1000, "compute", 400, 0),)
    assert reading.problems == ()


def test_an_unsupported_counter_is_unknown_and_not_asked_again(reader, nvml_world, nvml_library):
    nvml_world.fail("nvmlDeviceGetProcessUtilization", NOT_SUPPORTED)
    first = look(reader)
    assert percents(first) == [None]
    assert first.missing["process_utilisation"] == "not_supported"
    assert first.problems == ()
    nvml_world.fail("nvmlDeviceGetProcessUtilization", 0)
    assert percents(look(reader)) == [None]
    reader.inventory()
    assert percents(look(reader)) == [50]


def test_a_list_that_grows_between_two_calls_is_read_again(reader, nvml_world):
    nvml_world.quirk("grows", 2)
    assert percents(look(reader)) == [50]


def test_a_list_that_grows_for_ever_is_unknown(reader, nvml_world):
    nvml_world.quirk("grows", 1000)
    reading = look(reader)
    assert percents(reading) == [None]
    assert reading.problems == ("nvmlDeviceGetProcessUtilization: InsufficientSize",)


def test_an_illegal_process_sample_is_dropped(reader, nvml_world):
    nvml_world.process("GPU-0", 1000, memory=400, busy=2147483632)
    assert percents(look(reader)) == [0]


# --- processes ---------------------------------------------------------------------------------------------------------------


def test_no_processes_are_an_empty_list(reader, nvml_world):
    nvml_world.remove("process GPU-0")
    assert look(reader).processes == ()


def test_processes_that_cannot_be_listed_are_unknown_and_the_rest_is_told(reader, nvml_world):
    nvml_world.fail("nvmlDeviceGetComputeRunningProcesses_v3", NO_PERMISSION)
    reading = look(reader)
    assert (reading.processes, reading.memory_used_mib) == (None, 501)
    assert reading.problems == ("nvmlDeviceGetComputeRunningProcesses_v3: NoPermission",)
    assert reading.missing["processes"] == "no_permission"


def test_an_older_driver_lists_its_processes_by_the_older_call(reader, nvml_world):
    for kind in ("Compute", "Graphics"):
        nvml_world.fail(f"nvmlDeviceGet{kind}RunningProcesses_v3", FUNCTION_NOT_FOUND)
    for _ in range(2):
        reading = look(reader)
        assert reading.processes == (ProcessReading(1000, "compute", 400, 50),)
        assert "processes" not in reading.missing
        assert reading.problems == ()


def test_graphics_processes_are_told_apart(reader, nvml_world):
    nvml_world.process("GPU-0", 77, graphics=1, memory=10)
    assert [(process.pid, process.kind) for process in look(reader).processes or ()] == [
        (77, "graphics"),
        (1000, "compute"),
    ]


def test_a_process_in_both_lists_computes(reader, nvml_world):
    nvml_world.remove("process GPU-0")
    nvml_world.process("GPU-0", 1000, graphics=1, memory=10)
    nvml_world.process("GPU-0", 1001, memory=10)
    kinds = {process.pid: process.kind for process in look(reader).processes or ()}
    assert kinds == {1000: "graphics", 1001: "compute"}


def test_samples_of_another_pid_namespace_make_nobody_look_idle(reader, nvml_world):
    # Project-HAMi/HAMi-core#112: the list tells the container's pids, the samples the host's.
    nvml_world.remove("process GPU-0")
    nvml_world.process("GPU-0", 324, memory=400)
    nvml_world.quirk("sample_pid", 645400)
    reading = look(reader)
    assert [(process.pid, process.utilisation_percent) for process in reading.processes or ()] == [
        (324, None)
    ]
    assert reading.missing["process_utilisation"] == "failed"


def test_a_process_without_a_pid_is_none(reader, nvml_world):
    nvml_world.process("GPU-0", 0, memory=10)
    assert [process.pid for process in look(reader).processes or ()] == [1000]


# --- instances ---------------------------------------------------------------------------------------------------------------


def test_memory_that_cannot_be_read_is_unknown(reader, nvml_world):
    nvml_world.fail("nvmlDeviceGetMemoryInfo", LOST)
    reading = look(reader)
    assert (reading.memory_used_mib, reading.missing["memory"]) == (None, "failed")
    assert "nvmlDeviceGetMemoryInfo: GpuIsLost" in reading.problems


def test_instances_are_looked_up_anew_each_time(reader, nvml_world):
    nvml_world.remove("mig MIG-1")
    gone, fine = reader.observe(["MIG-1", "GPU-0"])
    assert gone.problems == ("nvmlDeviceGetHandleByUUID: NotFound",)
    assert (gone.memory_used_mib, gone.processes) == (None, None)
    assert fine.memory_used_mib == 501


def test_an_instance_has_no_counter_of_the_drivers(reader):
    reading = look(reader, "MIG-4")
    assert (reading.utilisation_percent, percents(reading)) == (None, [None])
    assert reading.missing["utilisation"] == "not_supported"
    assert reading.missing["process_utilisation"] == "not_supported"
    assert reading.memory_used_mib == 501
