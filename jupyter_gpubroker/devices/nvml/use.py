"""How much of the time a whole GPU was used, by the driver's own samples; neither counter exists on MIG (nvml.h).

The sample ring covers the whole window since the reading before, where the momentary percentage would miss most of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps

import pynvml

from .calls import FAILURES, Calls, Handle, error_name

_RETRIES = 3
# Per-process samples may be late; asking further back than the last tick keeps a busy process from looking idle
# (XuehaiPan/nvitop#83). It stays busy for up to this long after its last work.
WINDOW_US_MIN = 2_000_000
# A sample speaks of at most so long before it (nvml.h: 1/6 s to 1 s).
PERIOD_US_MAX = 1_000_000
# A figure is repeated for so long when a second look comes before the driver has sampled again.
HOLD_US = 2_000_000
_VALUE_FIELDS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")


@dataclass(frozen=True, slots=True)
class Use:
    """The mean of a window that ended with the sample at `newest_us`; `percent` None if none was legal."""

    percent: int | None
    window_us: int
    newest_us: int


def device_use(calls: Calls, handle: Handle, last: Use | None, now_us: int) -> Use | None:
    """The ring since the last reading. `now_us` is the wall clock, which is what the driver stamps its samples with."""
    # A clock that was set back would hide all samples until it caught up.
    since_us = now_us - WINDOW_US_MIN if last is None else min(last.newest_us, now_us)
    answer, error = calls.ask_for(
        "utilisation", _samples, handle, pynvml.NVML_GPU_UTILIZATION_SAMPLES, since_us
    )
    if error:
        return None
    value_type, samples = answer
    field = _VALUE_FIELDS[value_type] if 0 <= value_type < len(_VALUE_FIELDS) else "uiVal"
    fresh = [sample for sample in samples if sample.timeStamp > since_us]
    if not fresh:
        if last is not None and now_us - last.newest_us <= HOLD_US:
            return last
        calls.lack("utilisation", "no_samples")
        return None if last is None else Use(None, 0, last.newest_us)
    values = [
        value
        for value in (getattr(sample.sampleValue, field) for sample in fresh)
        if is_percent(value)
    ]
    if not values:
        calls.lack("utilisation", "no_samples")
    newest_us = max(sample.timeStamp for sample in fresh)
    # The ring forgets: after a long pause it begins later than asked for.
    begun_us = max(since_us, min(sample.timeStamp for sample in fresh) - PERIOD_US_MAX)
    return Use(
        # Rounded up: work that was seen is never 0.
        -(-sum(values) // len(values)) if values else None,
        newest_us - begun_us,
        newest_us,
    )


def process_use(calls: Calls, handle: Handle, since_us: int) -> dict[int, int] | None:
    """Highest sample by pid. Processes without any use have no sample, so a missing pid means 0; None: not known."""
    answer, error = calls.ask_for("process_utilisation", _process_samples, handle, since_us)
    if error:
        return None
    used: dict[int, int] = {}
    for sample in answer or ():
        if sample.pid and is_percent(sample.smUtil):
            used[sample.pid] = max(used.get(sample.pid, 0), sample.smUtil)
    return used


def is_percent(value: float) -> bool:
    """Impossible values have been seen, such as 2147483632 (NVIDIA/DCGM#83)."""
    return 0 <= value <= 100


# The name that problems and refusals tell is the library's.
@wraps(pynvml.nvmlDeviceGetSamples)
def _samples(handle: Handle, kind: int, since_us: int) -> tuple[int, list[pynvml.c_nvmlSample_t]]:
    try:
        answer: tuple[int, list[pynvml.c_nvmlSample_t]] = pynvml.nvmlDeviceGetSamples(
            handle, kind, since_us
        )
    except FAILURES as error:
        if error_name(error) == "NotFound":
            return 0, []  # nothing new
        raise
    return answer


@wraps(pynvml.nvmlDeviceGetProcessUtilization)
def _process_samples(
    handle: Handle, since_us: int
) -> list[pynvml.c_nvmlProcessUtilizationSample_t]:
    for attempt in range(1, _RETRIES + 1):
        try:
            samples: list[pynvml.c_nvmlProcessUtilizationSample_t] = (
                pynvml.nvmlDeviceGetProcessUtilization(handle, since_us)
            )
        except FAILURES as error:
            name = error_name(error)
            if name in ("NotFound", "Success"):
                break  # nothing used the device; pynvml raises "Success" for an empty first answer
            if name != "InsufficientSize" or attempt == _RETRIES:
                raise
            # else the list grew between the wrapper's two calls
        else:
            return samples
    return []
