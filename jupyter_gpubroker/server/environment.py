"""The environment and command line a kernel is started with.

Pure functions over mappings and lists. A kernel without a lease sees no GPU; one that restarts with its lease sees exactly
its slots; one below a scheduler's allocation or `gpubroker run` keeps what it was given. What the user set is kept wherever
it does not show a GPU. The default provisioner's name is never exported: it would break kernels of other environments.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

# Alone in its folder: nothing else of ours becomes importable in the kernel's environment.
KERNEL_PATH = Path(__file__).parents[1] / "kernel"
EXTENSION_ARGUMENT = "--ext=gpubroker"

_OUR_MARKS = ("GPUBROKER_JOB", "GPUBROKER_INHERITED")
_SCHEDULER_MARKS = (
    "SLURM_JOB_ID",
    "PBS_JOBID",
    "LSB_JOBID",
    "FLUX_JOB_ID",
    "OAR_JOB_ID",
    "COBALT_JOBID",
    "_CONDOR_SLOT",
    "SGE_TASK_ID",
)
_IPYKERNEL_MODULES = frozenset({"ipykernel", "ipykernel_launcher"})
_IGNORE_PYTHONPATH = frozenset({"-E", "-I"})
_OF_ONE_KERNEL = ("GPUBROKER_LEASE", "GPUBROKER_SESSION", "GPUBROKER_SIMULATED_STATE")


@dataclass(frozen=True, slots=True)
class Carried:
    """The lease a kernel keeps over a requested restart; `visible_devices` is the value for CUDA_VISIBLE_DEVICES."""

    lease_id: str
    visible_devices: str


@dataclass(frozen=True, slots=True)
class Terms:
    """What the kernel is told. `hides_devices` is False where the broker only looks on: nothing else is changed then."""

    url: str
    session_id: str
    first_use: str
    simulated_state: Path | None = None
    hides_devices: bool = True
    carried: Carried | None = None


def is_inherited(environ: Mapping[str, str]) -> bool:
    """Was this process given its devices by a scheduler, `gpubroker run` or `gpubroker submit`?"""
    return any(environ.get(name) for name in (*_OUR_MARKS, *_SCHEDULER_MARKS))


def managed(environ: Mapping[str, str], terms: Terms) -> dict[str, str]:
    """The environment of a kernel whose devices the broker lends."""
    env = {name: value for name, value in environ.items() if name not in _OF_ONE_KERNEL}
    env["GPUBROKER_URL"] = terms.url
    env["GPUBROKER_SESSION"] = terms.session_id
    if terms.hides_devices:
        env.setdefault("GPUBROKER_FIRST_USE", terms.first_use)
    else:
        env["GPUBROKER_FIRST_USE"] = "none"
    if terms.simulated_state is not None:
        env["GPUBROKER_SIMULATED_STATE"] = str(terms.simulated_state)
    if terms.hides_devices:
        env.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
        # Without it, torch asks CUDA itself whether there is a device, which then stays the answer for good.
        env.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    if terms.carried is not None:
        env["CUDA_VISIBLE_DEVICES"] = terms.carried.visible_devices
        env["GPUBROKER_LEASE"] = terms.carried.lease_id
    elif terms.hides_devices:
        # The empty string hides all devices; an unset variable would show all.
        env["CUDA_VISIBLE_DEVICES"] = ""
    return env


def inherited(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a kernel that keeps the devices it was given."""
    env = {name: value for name, value in environ.items() if name not in _OF_ONE_KERNEL}
    env["GPUBROKER_INHERITED"] = "1"
    return env


def switched_off(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a kernel that nothing is done to; it can tell so, however it was switched off."""
    return {**environ, "GPUBROKER": "off"}


def ipykernel_python(argv: Sequence[str]) -> tuple[str, ...] | None:
    """The words that run the Python of an ipykernel which honours PYTHONPATH; None for any other command line."""
    for at, (flag, module) in enumerate(pairwise(argv)):
        if flag == "-m" and module in _IPYKERNEL_MODULES:
            python = tuple(argv[:at])
            return python if _IGNORE_PYTHONPATH.isdisjoint(python) else None
    return None


def with_magic(argv: Sequence[str], environ: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """The command line and environment by which an ipykernel loads `%gpu`, whatever is installed there.

    `--ext` adds to the user's own extensions. Elements of PYTHONPATH that are empty would mean the working folder: dropped.
    """
    path = [str(KERNEL_PATH), *filter(None, environ.get("PYTHONPATH", "").split(os.pathsep))]
    return [*argv, EXTENSION_ARGUMENT], {**environ, "PYTHONPATH": os.pathsep.join(path)}
