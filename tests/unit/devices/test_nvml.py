"""The real pynvml over a stub of NVIDIA's library: the odd answers never become wrong numbers."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pynvml  # noqa: TID251 - its traps are what is tested
import pytest

from jupyter_gpubroker.devices import nvml
from jupyter_gpubroker.devices.nvml import NvmlReader
from jupyter_gpubroker.devices.reader import NO_NVIDIA_DEVICE, ProcessReading, SlotReading

NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, DRIVER_NOT_LOADED, LOST = 3, 4, 6, 9, 15

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc to build the stub")

Knob = Callable[[str, int], None]


@pytest.fixture(scope="session")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1"
    source = Path(__file__).with_name("nvml_stub.c")
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-o", library, source], check=True
    )
    return library


@pytest.fixture
def library(stub: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ctypes.CDLL:
    """The stub, loaded afresh, in the place of NVIDIA's."""
    copy = tmp_path / stub.name
    shutil.copy(stub, copy)
    loaded = ctypes.CDLL(str(copy))
    monkeypatch.setattr(pynvml, "nvmlLib", loaded)
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    return loaded


@pytest.fixture
def knob(library: ctypes.CDLL) -> Knob:
    def turn(name: str, value: int) -> None:
        ctypes.c_int.in_dll(library, name).value = value

    return turn


@pytest.fixture
def reader(library: ctypes.CDLL) -> Iterator[NvmlReader]:
    reader = NvmlReader()
    yield reader
    reader.close()


def whole(reader: NvmlReader) -> SlotReading:
    reader.inventory()
    (reading,) = reader.observe(["GPU-0"])
    return reading


# --- inventory -----------------------------------------------------------------------------------------------------------


def test_each_gpu_offers_itself_or_its_instances_and_bad_ones_nothing(reader):
    inventory = reader.inventory()
    assert (inventory.source, inventory.driver_version) == ("nvml", "580.95.05")
    assert [(gpu.uuid, gpu.state, [slot.uuid for slot in gpu.slots]) for gpu in inventory.gpus] == [
        ("GPU-0", "ok", ["GPU-0"]),
        ("index:1", "no_permission", []),
        ("GPU-2", "ok", ["MIG-1", "MIG-4"]),
        ("index:3", "lost", []),
    ]


def test_a_gpu_without_mig_is_no_problem(reader):
    gpu = reader.inventory().gpus[0]
    assert (gpu.mig_enabled, gpu.problems) == (False, ())
    assert (gpu.model, gpu.memory_mib, gpu.pci_bus_id) == (
        "NVIDIA H200",
        143771,
        "00000000:01:00.0",
    )


def test_instances_behind_holes_are_found_with_their_ids(reader):
    split = reader.inventory().gpus[2]
    assert split.problems == ()
    assert [
        (slot.kind, slot.profile, slot.memory_mib, slot.gi_id, slot.ci_id) for slot in split.slots
    ] == [
        ("mig", "1g.18gb", 16384, 11, 0),
        ("mig", "1g.18gb", 16384, 14, 0),
    ]


def test_a_profile_that_the_name_does_not_tell_is_made_from_slices_and_memory(reader, knob):
    knob("name_has_profile", 0)
    assert reader.inventory().gpus[2].slots[0].profile == "3g.70gb"


def test_the_problems_name_the_call_and_its_error(reader):
    gpus = reader.inventory().gpus
    assert gpus[1].problems == ("nvmlDeviceGetHandleByIndex: NoPermission",)
    assert gpus[3].problems == ("nvmlDeviceGetUUID: GpuIsLost",)


def test_a_driver_that_does_not_start_is_reported_and_tried_again(reader, knob, monkeypatch):
    monkeypatch.setattr(nvml, "nvidia_present", lambda: True)
    knob("init_result", DRIVER_NOT_LOADED)
    broken = reader.inventory()
    assert (broken.gpus, broken.problems) == ((), ("nvmlInit: DriverNotLoaded",))
    knob("init_result", 0)
    assert len(reader.inventory().gpus) == 4


def test_a_missing_library_is_no_problem_where_there_is_no_nvidia_gpu(reader, knob, monkeypatch):
    monkeypatch.setattr(nvml, "nvidia_present", lambda: False)
    knob("init_result", DRIVER_NOT_LOADED)
    assert reader.inventory().problems == (NO_NVIDIA_DEVICE,)


# --- readings ------------------------------------------------------------------------------------------------------------


def test_a_whole_gpu_tells_memory_use_and_processes(reader):
    assert whole(reader) == SlotReading(
        "GPU-0", 501, 1, (ProcessReading(1000, "compute", 400, 50),)
    )


def test_an_instance_tells_memory_and_processes_but_no_use(reader):
    reader.inventory()
    assert reader.observe(["MIG-4"]) == (
        SlotReading("MIG-4", 501, None, (ProcessReading(1000, "compute", 400, None),)),
    )


def test_unknown_process_memory_is_none_and_not_zero(reader, knob):
    knob("process_memory_unknown", 1)
    assert whole(reader).processes == (ProcessReading(1000, "compute", None, 50),)


def test_illegal_samples_are_dropped_and_seen_work_is_never_rounded_to_zero(reader):
    # The ring held 0, 2147483632 and 1.
    assert whole(reader).utilisation_percent == 1


def test_the_next_window_begins_where_the_last_ended(reader, library):
    whole(reader)
    first = ctypes.c_ulonglong.in_dll(library, "samples_since").value
    reader.observe(["GPU-0"])
    assert ctypes.c_ulonglong.in_dll(library, "samples_since").value == first + 30


def test_late_process_samples_are_waited_for(reader, library):
    whole(reader)
    device = ctypes.c_ulonglong.in_dll(library, "samples_since").value
    process = ctypes.c_ulonglong.in_dll(library, "utilisation_since").value
    assert process <= device


def test_a_ring_without_new_samples_is_unknown(reader, knob):
    knob("samples_result", NOT_FOUND)
    reading = whole(reader)
    assert (reading.utilisation_percent, reading.problems) == (None, ())


@pytest.mark.parametrize("answer", [-1, NOT_FOUND])
def test_no_process_samples_mean_that_none_worked(reader, knob, answer):
    # -1: the library's success with nothing in it, which pynvml raises as an error named Success.
    knob("utilisation_result", answer)
    reading = whole(reader)
    assert reading.processes == (ProcessReading(1000, "compute", 400, 0),)
    assert reading.problems == ()


def test_an_unsupported_counter_is_unknown(reader, knob):
    knob("utilisation_result", NOT_SUPPORTED)
    reading = whole(reader)
    assert reading.processes == (ProcessReading(1000, "compute", 400, None),)
    assert reading.problems == ("nvmlDeviceGetProcessUtilization: NotSupported",)


def test_a_list_that_grows_between_two_calls_is_read_again(reader, knob):
    knob("utilisation_grows", 2)
    assert whole(reader).processes == (ProcessReading(1000, "compute", 400, 50),)


def test_a_list_that_grows_for_ever_is_unknown(reader, knob):
    knob("utilisation_grows", 1000)
    reading = whole(reader)
    assert reading.processes == (ProcessReading(1000, "compute", 400, None),)
    assert reading.problems == ("nvmlDeviceGetProcessUtilization: InsufficientSize",)


def test_an_illegal_process_sample_is_dropped(reader, knob):
    knob("utilisation_percent", 2147483632)
    assert whole(reader).processes == (ProcessReading(1000, "compute", 400, 0),)


def test_no_processes_are_an_empty_list(reader, knob):
    knob("process_count", 0)
    assert whole(reader).processes == ()


def test_processes_that_cannot_be_listed_are_unknown_and_the_rest_is_told(reader, knob):
    knob("processes_result", NO_PERMISSION)
    reading = whole(reader)
    assert (reading.processes, reading.memory_used_mib) == (None, 501)
    assert reading.problems == ("nvmlDeviceGetComputeRunningProcesses: NoPermission",)


def test_graphics_processes_are_told_apart(reader, knob):
    knob("graphics_pid", 77)
    assert [(process.pid, process.kind) for process in whole(reader).processes or ()] == [
        (77, "graphics"),
        (1000, "compute"),
    ]


def test_a_process_in_both_lists_computes(reader, knob):
    knob("graphics_pid", 1000)
    assert [process.kind for process in whole(reader).processes or ()] == ["compute"]


def test_memory_that_cannot_be_read_is_unknown(reader, knob):
    reader.inventory()
    knob("memory_result", LOST)
    (reading,) = reader.observe(["GPU-0"])
    assert reading.memory_used_mib is None
    assert "nvmlDeviceGetMemoryInfo: GpuIsLost" in reading.problems


def test_instances_are_looked_up_anew_each_time(reader, knob):
    reader.inventory()
    knob("instances_gone", 1)
    gone, fine = reader.observe(["MIG-1", "GPU-0"])
    assert gone == SlotReading("MIG-1", problems=("nvmlDeviceGetHandleByUUID: NotFound",))
    assert fine.memory_used_mib == 501
