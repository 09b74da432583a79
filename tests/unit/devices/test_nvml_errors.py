"""Errors of the library's table, at every call: nothing is raised, and what is not known is not made up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import pynvml  # noqa: TID251 - its table is what is tested
import pytest

from jupyter_gpubroker.devices.nvml import NvmlReader
from tests.support.nvml.world import SOURCE

NOT_FOUND = pynvml.NVML_ERROR_NOT_FOUND
# Those that somebody treats in a way of their own, and a few of the rest.
CODES = {
    name: getattr(pynvml, f"NVML_ERROR_{name}")
    for name in (
        "UNINITIALIZED", "INVALID_ARGUMENT", "NOT_SUPPORTED", "NO_PERMISSION", "NOT_FOUND", "INSUFFICIENT_SIZE",
        "DRIVER_NOT_LOADED", "TIMEOUT", "FUNCTION_NOT_FOUND", "GPU_IS_LOST", "LIB_RM_VERSION_MISMATCH",
        "ARGUMENT_VERSION_MISMATCH", "UNKNOWN",
    )
}  # fmt: skip
FUNCTIONS = sorted(set(re.findall(r"^int (nvml\w+)\(", SOURCE.read_text(), re.MULTILINE)))
# Answers in themselves: nobody used the device; it cannot be split.
MEANINGFUL = {
    ("nvmlDeviceGetProcessUtilization", NOT_FOUND),
    *(
        ("nvmlDeviceGetMigMode", code)
        for code in (
            pynvml.NVML_ERROR_NOT_SUPPORTED,
            pynvml.NVML_ERROR_FUNCTION_NOT_FOUND,
            pynvml.NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
            pynvml.NVML_ERROR_DEPRECATED,
        )
    ),
}


def everything(clock: Any) -> list[Any]:
    """All that a reader tells of the machine, as data."""
    reader = NvmlReader()
    inventory = reader.inventory()
    reader.observe()
    clock.pass_ms(1000)
    found = [inventory, reader.observe(["GPU-0", "MIG-1"]), reader.health(), reader.capabilities()]
    reader.close()
    return [msgspec.to_builtins(each) for each in found]


def numbers(value: Any, path: str = "") -> Iterator[tuple[str, int | None]]:
    """Every number by its place, None where there is none; devices by their ids."""
    if isinstance(value, dict):
        own = value.get("uuid") or value.get("pid") or value.get("slot_uuid") or ""
        for name, each in value.items():
            yield from numbers(each, f"{path}/{own}.{name}")
    elif isinstance(value, list | tuple):
        for each in value:
            yield from numbers(each, path)
    elif value is None or (isinstance(value, int) and not isinstance(value, bool)):
        yield path, value


@pytest.mark.parametrize("code", CODES.values(), ids=CODES)
def test_an_error_makes_numbers_unknown_and_never_another_number(nvml_world, clock, code):
    # XuehaiPan/nvitop#5, dask/distributed#8739: errors became 0, and busy devices looked idle.
    nvml_world.gpu("GPU-0", util=40)
    healthy = dict(numbers(everything(clock)))
    timeless = ("window_ms", "sample_age_ms", "power_idle_mw")
    for function in FUNCTIONS:
        nvml_world.fail(function, code)
        failing = dict(numbers(everything(clock)))
        nvml_world.fail(function, 0)
        if (function, code) in MEANINGFUL:
            continue
        wrong = {
            path: (healthy.get(path), value)
            for path, value in failing.items()
            if value is not None
            and not path.endswith(timeless)
            and value != healthy.get(path)
            and "index:" not in path
        }
        assert not wrong, f"{function} answers {code}"
