"""Which GPUs and MIG instances there are.

The library counts GPUs that may not be opened, and lost ones; those are reported and offer nothing. So does a GPU whose MIG
mode changes at the next reset: what is lent of it would be gone then (NVIDIA/gpu-operator#603).
"""

from __future__ import annotations

import re

import pynvml

from ..reader import GpuFound, GpuState, SlotFound
from .calls import NOT_OFFERED, Calls, Handle, mib

_STATES: dict[str, GpuState] = {"NoPermission": "no_permission", "GpuIsLost": "lost"}
UNOPENED = "index:"
MIG_MODE_PENDING = "the MIG mode changes at the next reset"


def gpu_found(index: int) -> GpuFound:
    calls = Calls()
    state: GpuState
    handle = calls.ask(pynvml.nvmlDeviceGetHandleByIndex, index)
    uuid = None if handle is None else calls.ask(pynvml.nvmlDeviceGetUUID, handle)
    if handle is None or uuid is None:
        error = calls.problems[-1].partition(": ")[2]
        state = _STATES.get(error, "unavailable")
        problems = tuple(calls.problems)
        return GpuFound(f"{UNOPENED}{index}", index, "", "", None, state=state, problems=problems)
    pci = calls.ask(pynvml.nvmlDeviceGetPciInfo, handle)
    model = calls.ask(pynvml.nvmlDeviceGetName, handle)
    # Inside a container that has one instance the GPU's own memory is not to be asked (nvidia-container-toolkit#842).
    memory = calls.ask(pynvml.nvmlDeviceGetMemoryInfo, handle, expected=("NoPermission",))
    known = len(calls.problems)
    mode = calls.ask(pynvml.nvmlDeviceGetMigMode, handle, expected=NOT_OFFERED)
    # A GPU of which nobody knows whether it is split must not be lent as a whole.
    is_unclear = len(calls.problems) > known
    current, pending = mode or (0, 0)
    memory_mib = None if memory is None else mib(memory.total)
    slots = _instances(calls, handle) if current else (SlotFound(uuid, "gpu", memory_mib),)
    state = "ok"
    if calls.is_lost:
        state = "lost"
    elif is_unclear:
        state = "unavailable"
    elif current != pending:
        calls.problems.append(MIG_MODE_PENDING)
        state = "unavailable"
    return GpuFound(
        uuid=uuid,
        index=index,
        pci_bus_id="" if pci is None else _text(pci.busId),
        model=model or "",
        memory_mib=memory_mib,
        mig_enabled=bool(current),
        mig_pending=bool(pending),
        state=state,
        slots=slots if state == "ok" else (),
        problems=tuple(calls.problems),
    )


def _instances(calls: Calls, gpu: Handle) -> tuple[SlotFound, ...]:
    found: list[SlotFound] = []
    for position in range(calls.ask(pynvml.nvmlDeviceGetMaxMigDeviceCount, gpu) or 0):
        # Positions without an instance answer NOT_FOUND; instances may come after such holes (nvml.h).
        handle = calls.ask(
            pynvml.nvmlDeviceGetMigDeviceHandleByIndex, gpu, position, expected=("NotFound",)
        )
        uuid = None if handle is None else calls.ask(pynvml.nvmlDeviceGetUUID, handle)
        if handle is not None and uuid is not None:
            found.append(_instance(calls, gpu, handle, uuid, position))
    return tuple(found)


def _instance(calls: Calls, gpu: Handle, handle: Handle, uuid: str, position: int) -> SlotFound:
    memory = calls.ask(pynvml.nvmlDeviceGetMemoryInfo, handle)
    gi_id = calls.ask(pynvml.nvmlDeviceGetGpuInstanceId, handle)
    return SlotFound(
        uuid,
        "mig",
        None if memory is None else mib(memory.total),
        _profile(calls, handle),
        gi_id,
        calls.ask(pynvml.nvmlDeviceGetComputeInstanceId, handle),
        None if gi_id is None else _placement(gpu, gi_id),
        position,
    )


def _placement(gpu: Handle, gi_id: int) -> int | None:
    """Listing GPU instances needs a privilege that listing MIG devices does not (nvml.h); without it, unknown."""
    calls = Calls()
    instance = calls.ask(pynvml.nvmlDeviceGetGpuInstanceById, gpu, gi_id)
    info = None if instance is None else calls.ask(pynvml.nvmlGpuInstanceGetInfo, instance)
    return None if info is None else int(info.placement.start)


def _profile(calls: Calls, handle: Handle) -> str | None:
    """The name people use, such as 1g.18gb: the end of the device's name, else made as the vendor's tools make it."""
    name = calls.ask(pynvml.nvmlDeviceGetName, handle) or ""
    match = re.search(r"MIG (\S+)$", name)
    if match:
        return match[1]
    attributes = calls.ask(pynvml.nvmlDeviceGetAttributes, handle)
    if attributes is None:
        return None
    return f"{attributes.gpuInstanceSliceCount}g.{-(-attributes.memorySizeMB // 1024)}gb"


def _text(value: bytes | str) -> str:
    return value if isinstance(value, str) else value.decode()
