"""The environment of a process that was lent slots: batch jobs, and commands of `gpubroker run`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from ..client.places import simulated_beside
from ..wire.views import LeaseView

# What ties a process to the notebook, job or command it was started from; its own mark takes their place.
MARKS = frozenset(
    {
        "GPUBROKER_SESSION",
        "GPUBROKER_JOB",
        "GPUBROKER_LEASE",
        "GPUBROKER_FIRST_USE",
        "GPUBROKER_SIMULATED_STATE",
    }
)

Mark = Literal["GPUBROKER_SESSION", "GPUBROKER_JOB"]


def lent_environment(
    base: Mapping[str, str], url: str, lease: LeaseView, mark: Mark, holder_id: str
) -> dict[str, str]:
    """`base` with the lease's devices and the mark of who holds them.

    GPUBROKER_INHERITED tells kernels started below to leave the devices alone.
    """
    environment = {name: value for name, value in base.items() if name not in MARKS}
    environment |= {
        "CUDA_VISIBLE_DEVICES": lease.visible_devices,
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "GPUBROKER_URL": url,
        "GPUBROKER_INHERITED": "1",
        mark: holder_id,
    }
    if lease.simulated:
        environment["GPUBROKER_SIMULATED_STATE"] = str(simulated_beside(url))
    return environment
