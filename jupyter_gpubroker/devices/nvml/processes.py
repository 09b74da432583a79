"""The processes that have a context on a slot."""

from __future__ import annotations

from typing import Any

import pynvml

from ..reader import ProcessKind, ProcessReading
from .calls import Calls, Handle, mib

# Drivers before 510 have the second version only. The binding's unversioned names do not fall back.
_COMPUTE = (
    pynvml.nvmlDeviceGetComputeRunningProcesses_v3,
    pynvml.nvmlDeviceGetComputeRunningProcesses_v2,
)
_GRAPHICS = (
    pynvml.nvmlDeviceGetGraphicsRunningProcesses_v3,
    pynvml.nvmlDeviceGetGraphicsRunningProcesses_v2,
)
_MPS = (
    pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v3,
    pynvml.nvmlDeviceGetMPSComputeRunningProcesses_v2,
)


def processes(
    calls: Calls, handle: Handle, used: dict[int, int] | None
) -> tuple[ProcessReading, ...] | None:
    """All of them, None if that is not known. `used`: each one's percentage, where the device tells.

    MPS clients count as compute processes; their list and the graphics one are not offered everywhere.
    """
    graphics = calls.first_of("processes", _GRAPHICS, handle) or ()
    clients = calls.first_of("processes", _MPS, handle) or ()
    compute = calls.first_of("processes", _COMPUTE, handle)
    if compute is None:
        return None
    found: dict[int, ProcessReading] = {}
    for kind, listed in (("graphics", graphics), ("compute", (*clients, *compute))):
        found.update((one.pid, _reading(one, kind, used)) for one in listed if one.pid)  # type: ignore[arg-type]
    return tuple(found.values())


def _reading(process: Any, kind: ProcessKind, used: dict[int, int] | None) -> ProcessReading:
    # Unknown memory is None in pynvml (the driver's 2^64-1) and must not become 0.
    memory_mib = None if process.usedGpuMemory is None else mib(process.usedGpuMemory)
    percent = None if used is None else used.get(process.pid, 0)
    return ProcessReading(process.pid, kind, memory_mib, percent)
