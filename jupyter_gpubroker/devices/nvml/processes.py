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
    listed: tuple[tuple[ProcessKind, Any], ...] = (
        *(("graphics", one) for one in graphics),
        *(("compute", one) for one in (*clients, *compute)),
    )
    shares = None if used is None else _shares(calls, used, {one.pid for _, one in listed})
    found = {one.pid: _reading(one, kind, shares) for kind, one in listed if one.pid}
    return tuple(found.values())


def _shares(calls: Calls, used: dict[int, int], pids: set[int]) -> dict[int, int] | None:
    """`used`, if its pids are those of the list.

    In a container newer drivers translate pids in the list alone: the same process was 324 there and 645400 here
    (Project-HAMi/HAMi-core#112), and would look as if it did nothing.
    """
    if used and pids and not used.keys() & pids:
        calls.lack("process_utilisation", "failed")
        calls.problems.append("the pids of the samples are none of those listed")
        return None
    return used


def _reading(process: Any, kind: ProcessKind, used: dict[int, int] | None) -> ProcessReading:
    # Unknown memory is None in pynvml (the driver's 2^64-1) and must not become 0.
    memory_mib = None if process.usedGpuMemory is None else mib(process.usedGpuMemory)
    percent = None if used is None else used.get(process.pid, 0)
    return ProcessReading(process.pid, kind, memory_mib, percent)
