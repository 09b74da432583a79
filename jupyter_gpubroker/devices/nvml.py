"""The reader of NVIDIA GPUs, and the only importer of pynvml; it runs in the probe's process.

A failing call costs one number, one slot or one GPU, never the whole reading. What pynvml and the driver do in the odd
cases is cited where it is handled. Utilisation counters do not exist on MIG: it is unknown there.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import Any

import pynvml

from .choice import nvidia_present
from .reader import (
    NO_NVIDIA_DEVICE,
    GpuFound,
    GpuState,
    Inventory,
    ProcessReading,
    SlotFound,
    SlotReading,
)

Handle = Any
Problems = list[str]

_FAILURES = (pynvml.NVMLError, pynvml.NVMLLibraryMismatchError)
_NOT_OFFERED = ("NotSupported", "FunctionNotFound", "LibraryMismatch")
_STATES: dict[str, GpuState] = {"NoPermission": "no_permission", "GpuIsLost": "lost"}
_RETRIES = 3
# Per-process samples may be late; asking further back than the last tick keeps a busy process from looking idle
# (XuehaiPan/nvitop#83). It stays busy for up to this long after its last work.
_PROCESS_WINDOW_US_MIN = 2_000_000
_VALUE_FIELDS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")


class NvmlReader:
    """Loads the library at the first inventory, and tries again at each until that works."""

    def __init__(self) -> None:
        self._is_open = False
        self._slots: dict[str, SlotFound] = {}
        self._last_us: dict[str, int] = {}

    def inventory(self) -> Inventory:
        problems: Problems = []
        if not self._open(problems):
            return Inventory("nvml", None, (), tuple(problems))
        driver_version = _ask(problems, pynvml.nvmlSystemGetDriverVersion)
        count = _ask(problems, pynvml.nvmlDeviceGetCount) or 0
        gpus = tuple(_gpu(index) for index in range(count))
        self._slots = {slot.uuid: slot for gpu in gpus for slot in gpu.slots}
        self._last_us = {
            slot: moment for slot, moment in self._last_us.items() if slot in self._slots
        }
        return Inventory("nvml", driver_version, gpus, tuple(problems))

    def observe(self, slot_uuids: Sequence[str] | None = None) -> tuple[SlotReading, ...]:
        wanted = tuple(self._slots) if slot_uuids is None else slot_uuids
        return tuple(self._observe(slot_uuid) for slot_uuid in wanted)

    def close(self) -> None:
        if self._is_open:
            self._is_open = False
            _ask([], pynvml.nvmlShutdown)

    def _open(self, problems: Problems) -> bool:
        if not self._is_open:
            _ask(problems, pynvml.nvmlInit)
            self._is_open = not problems
            if not self._is_open and not nvidia_present():
                problems[:] = [NO_NVIDIA_DEVICE]
        return self._is_open

    def _observe(self, slot_uuid: str) -> SlotReading:
        problems: Problems = []
        # Resolved anew each time: a MIG handle may belong to another instance after a re-partition (nvml.h).
        handle = _ask(problems, pynvml.nvmlDeviceGetHandleByUUID, slot_uuid)
        if handle is None:
            return SlotReading(slot_uuid, problems=tuple(problems))
        memory = _ask(problems, pynvml.nvmlDeviceGetMemoryInfo, handle)
        utilisation: int | None = None
        by_process: dict[int, int] | None = None
        if not slot_uuid.startswith("MIG-"):
            now_us = time.time_ns() // 1000
            since_us = self._last_us.get(slot_uuid, now_us - _PROCESS_WINDOW_US_MIN)
            utilisation, self._last_us[slot_uuid] = _device_utilisation(problems, handle, since_us)
            by_process = _process_utilisation(
                problems, handle, min(since_us, now_us - _PROCESS_WINDOW_US_MIN)
            )
        return SlotReading(
            slot_uuid,
            memory_used_mib=None if memory is None else _mib(memory.used),
            utilisation_percent=utilisation,
            processes=_processes(problems, handle, by_process),
            problems=tuple(problems),
        )


# --- inventory -------------------------------------------------------------------------------------------------------------


def _gpu(index: int) -> GpuFound:
    problems: Problems = []
    handle = _ask(problems, pynvml.nvmlDeviceGetHandleByIndex, index)
    uuid = None if handle is None else _ask(problems, pynvml.nvmlDeviceGetUUID, handle)
    if uuid is None:
        # The count includes GPUs that may not be opened, and lost ones (nvml.h).
        state = _STATES.get(problems[-1].partition(": ")[2], "unavailable")
        return GpuFound(
            f"index:{index}", index, "", "", None, state=state, problems=tuple(problems)
        )
    pci = _ask(problems, pynvml.nvmlDeviceGetPciInfo, handle)
    model = _ask(problems, pynvml.nvmlDeviceGetName, handle)
    memory = _ask(problems, pynvml.nvmlDeviceGetMemoryInfo, handle)
    current, pending = _ask(
        problems, pynvml.nvmlDeviceGetMigMode, handle, expected=_NOT_OFFERED
    ) or (0, 0)
    memory_mib = None if memory is None else _mib(memory.total)
    is_lost = any(problem.endswith(": GpuIsLost") for problem in problems)
    slots = _instances(problems, handle) if current else (SlotFound(uuid, "gpu", memory_mib),)
    return GpuFound(
        uuid=uuid,
        index=index,
        pci_bus_id="" if pci is None else _text(pci.busId),
        model=model or "",
        memory_mib=memory_mib,
        mig_enabled=bool(current),
        mig_pending=bool(pending),
        state="lost" if is_lost else "ok",
        slots=() if is_lost else slots,
        problems=tuple(problems),
    )


def _instances(problems: Problems, gpu: Handle) -> tuple[SlotFound, ...]:
    found: list[SlotFound] = []
    for position in range(_ask(problems, pynvml.nvmlDeviceGetMaxMigDeviceCount, gpu) or 0):
        # Positions without an instance answer NOT_FOUND; instances may come after such holes (nvml.h).
        handle = _ask(
            problems,
            pynvml.nvmlDeviceGetMigDeviceHandleByIndex,
            gpu,
            position,
            expected=("NotFound",),
        )
        uuid = None if handle is None else _ask(problems, pynvml.nvmlDeviceGetUUID, handle)
        if uuid is not None:
            found.append(_instance(problems, handle, uuid))
    return tuple(found)


def _instance(problems: Problems, handle: Handle, uuid: str) -> SlotFound:
    memory = _ask(problems, pynvml.nvmlDeviceGetMemoryInfo, handle)
    return SlotFound(
        uuid,
        "mig",
        None if memory is None else _mib(memory.total),
        _profile(problems, handle),
        _ask(problems, pynvml.nvmlDeviceGetGpuInstanceId, handle),
        _ask(problems, pynvml.nvmlDeviceGetComputeInstanceId, handle),
    )


def _profile(problems: Problems, handle: Handle) -> str | None:
    """The name people use, such as 1g.18gb: the end of the device's name, else made as the vendor's tools make it."""
    name = _ask(problems, pynvml.nvmlDeviceGetName, handle) or ""
    match = re.search(r"MIG (\S+)$", name)
    if match:
        return match[1]
    attributes = _ask(problems, pynvml.nvmlDeviceGetAttributes, handle)
    if attributes is None:
        return None
    return f"{attributes.gpuInstanceSliceCount}g.{-(-attributes.memorySizeMB // 1024)}gb"


# --- readings --------------------------------------------------------------------------------------------------------------


def _device_utilisation(
    problems: Problems, handle: Handle, since_us: int
) -> tuple[int | None, int]:
    """Mean of the driver's sample ring since then, and the time of the newest sample.

    The ring covers the whole window, where the momentary percentage would miss most of it.
    """
    answer = _ask(
        problems,
        pynvml.nvmlDeviceGetSamples,
        handle,
        pynvml.NVML_GPU_UTILIZATION_SAMPLES,
        since_us,
        expected=("NotFound",),
    )
    if answer is None:
        return None, since_us
    value_type, samples = answer
    field = _VALUE_FIELDS[value_type] if 0 <= value_type < len(_VALUE_FIELDS) else "uiVal"
    fresh = [sample for sample in samples if sample.timeStamp > since_us]
    # Impossible values have been seen, such as 2147483632 (NVIDIA/DCGM#83).
    values = [
        value
        for value in (getattr(sample.sampleValue, field) for sample in fresh)
        if 0 <= value <= 100
    ]
    newest_us = max((sample.timeStamp for sample in fresh), default=since_us)
    # Rounded up: work that was seen is never 0.
    return (int(-(-sum(values) // len(values))) if values else None), newest_us


def _process_utilisation(
    problems: Problems, handle: Handle, since_us: int
) -> dict[int, int] | None:
    """Highest sample by pid. Processes without any use have no sample, so a missing pid means 0; None: not known."""
    for _ in range(_RETRIES):
        try:
            samples = pynvml.nvmlDeviceGetProcessUtilization(handle, since_us)
        except _FAILURES as error:
            name = _error_name(error)
            if name == "InsufficientSize":
                continue  # the list grew between the wrapper's two calls
            if name in ("NotFound", "Success"):
                return {}  # nothing used the device; pynvml raises "Success" for an empty first answer
            problems.append(f"nvmlDeviceGetProcessUtilization: {name}")
            return None
        used: dict[int, int] = {}
        for sample in samples:
            if sample.pid and 0 <= sample.smUtil <= 100:
                used[sample.pid] = max(used.get(sample.pid, 0), sample.smUtil)
        return used
    problems.append("nvmlDeviceGetProcessUtilization: InsufficientSize")
    return None


def _processes(
    problems: Problems, handle: Handle, used: dict[int, int] | None
) -> tuple[ProcessReading, ...] | None:
    """All that have a context. MPS clients count as compute processes; their lists are not offered everywhere."""
    compute = _ask(problems, pynvml.nvmlDeviceGetComputeRunningProcesses, handle)
    if compute is None:
        return None
    clients = (
        _ask(
            problems, pynvml.nvmlDeviceGetMPSComputeRunningProcesses, handle, expected=_NOT_OFFERED
        )
        or []
    )
    graphics = (
        _ask(problems, pynvml.nvmlDeviceGetGraphicsRunningProcesses, handle, expected=_NOT_OFFERED)
        or []
    )
    found: dict[int, ProcessReading] = {}
    for kind, processes in (("graphics", graphics), ("compute", [*clients, *compute])):
        for process in processes:
            # Unknown memory is None in pynvml (the driver's 2^64-1) and must not become 0.
            memory_mib = None if process.usedGpuMemory is None else _mib(process.usedGpuMemory)
            percent = None if used is None else used.get(process.pid, 0)
            found[process.pid] = ProcessReading(process.pid, kind, memory_mib, percent)  # type: ignore[arg-type]
    return tuple(found.values())


def _ask(
    problems: Problems, call: Callable[..., Any], *arguments: Any, expected: Sequence[str] = ()
) -> Any:
    """The call's answer, or None with the call and its error noted unless it was expected."""
    try:
        return call(*arguments)
    except _FAILURES as error:
        name = _error_name(error)
        if name not in expected:
            problems.append(f"{call.__name__}: {name}")
        return None


def _error_name(error: Exception) -> str:
    """`NotSupported` for `NVMLError_NotSupported`; base class errors by their text ("Success", or "NVML Error with ...")."""
    if isinstance(error, pynvml.NVMLLibraryMismatchError):
        return "LibraryMismatch"
    name = type(error).__name__.removeprefix("NVMLError").removeprefix("_")
    if name:
        return name
    return "Success" if getattr(error, "value", None) == 0 else str(error)


def _mib(size_bytes: int) -> int:
    return -(-size_bytes // (1 << 20))


def _text(value: bytes | str) -> str:
    return value if isinstance(value, str) else value.decode()
