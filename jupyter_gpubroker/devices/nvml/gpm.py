"""What the engines did between two samples, by the GPU performance monitor: Hopper and newer, and per GPU instance.

The only counter of a MIG instance that NVML has. Two samples are differenced; they must lie 100 ms apart (nvml.h).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import pynvml

from .calls import FAILURES, Calls, Handle
from .use import HOLD_US, is_percent

APART_US_MIN = 100_000
_METRICS = (
    pynvml.NVML_GPM_METRIC_GRAPHICS_UTIL,
    pynvml.NVML_GPM_METRIC_SM_UTIL,
    pynvml.NVML_GPM_METRIC_DRAM_BW_UTIL,
)


@dataclass(frozen=True, slots=True)
class Engines:
    """Percentages, rounded up; None where the monitor's value was none."""

    engine: int | None
    sm: int | None
    dram: int | None
    window_us: int
    newest_us: int


@dataclass(slots=True)
class _Kept:
    """The sample before and room for the next one, of one slot."""

    gi_id: int | None
    before: Any
    room: Any
    taken_us: int
    last: Engines | None = None


@dataclass(slots=True)
class Monitor:
    """Samples by slot. `now_us` counts up, whatever the wall clock does."""

    _kept: dict[str, _Kept] = field(default_factory=dict)
    # 477 metrics wide whatever is asked (nvml.h), so made once.
    _query: Any = field(default_factory=pynvml.c_nvmlGpmMetricsGet_t)

    def read(
        self, calls: Calls, slot_uuid: str, gpu: Handle, gi_id: int | None, now_us: int
    ) -> Engines | None:
        """The activity since the reading before. `gpu` is the physical GPU, `gi_id` the instance of a MIG slot."""
        if not self._is_offered(calls, gpu):
            return None
        kept = self._kept.get(slot_uuid)
        if kept is not None and kept.gi_id != gi_id:
            self.forget(slot_uuid)
            kept = None
        if kept is None:
            self._begin(calls, slot_uuid, gpu, gi_id, now_us)
            return None
        window_us = now_us - kept.taken_us
        if window_us < APART_US_MIN:
            return self._again(calls, kept, now_us)
        if not _sample(calls, gpu, gi_id, kept.room):
            return None
        answer, error = calls.ask_for("engines", self._difference, kept.before, kept.room)
        kept.before, kept.room, kept.taken_us = kept.room, kept.before, now_us
        if error:
            return None
        engine, sm, dram = (_percent(calls, metric) for metric in answer)
        if engine is None and sm is None:
            calls.lack("engines", "failed")
        kept.last = Engines(engine, sm, dram, window_us, now_us)
        return kept.last

    def forget(self, slot_uuid: str) -> None:
        kept = self._kept.pop(slot_uuid, None)
        if kept is not None:
            _free(kept.before)
            _free(kept.room)

    def keep_only(self, slot_uuids: set[str]) -> None:
        for slot_uuid in self._kept.keys() - slot_uuids:
            self.forget(slot_uuid)

    @staticmethod
    def _is_offered(calls: Calls, gpu: Handle) -> bool:
        support, error = calls.ask_for("engines", pynvml.nvmlGpmQueryDeviceSupport, gpu)
        if error:
            return False
        if not support.isSupportedDevice:
            calls.lack("engines", "not_supported")
        return bool(support.isSupportedDevice)

    def _begin(
        self, calls: Calls, slot_uuid: str, gpu: Handle, gi_id: int | None, now_us: int
    ) -> None:
        first, second = calls.ask(pynvml.nvmlGpmSampleAlloc), calls.ask(pynvml.nvmlGpmSampleAlloc)
        if first is None or second is None or not _sample(calls, gpu, gi_id, first):
            for sample in (first, second):
                if sample is not None:
                    _free(sample)
            calls.missing.setdefault("engines", "failed")
            return
        self._kept[slot_uuid] = _Kept(gi_id, first, second, now_us)
        calls.lack("engines", "first_sample")

    @staticmethod
    def _again(calls: Calls, kept: _Kept, now_us: int) -> Engines | None:
        if kept.last is None or now_us - kept.last.newest_us > HOLD_US:
            calls.lack("engines", "first_sample")
            return None
        return kept.last

    @wraps(pynvml.nvmlGpmMetricsGet)
    def _difference(self, before: Any, after: Any) -> list[Any]:
        query = self._query
        query.version = pynvml.NVML_GPM_METRICS_GET_VERSION
        query.numMetrics = len(_METRICS)
        query.sample1, query.sample2 = before, after
        for position, metric in enumerate(_METRICS):
            query.metrics[position].metricId = metric
        pynvml.nvmlGpmMetricsGet(query)
        return [query.metrics[position] for position in range(len(_METRICS))]


def _sample(calls: Calls, gpu: Handle, gi_id: int | None, room: Any) -> bool:
    if gi_id is None:
        return not calls.ask_for("engines", pynvml.nvmlGpmSampleGet, gpu, room)[1]
    return not calls.ask_for("engines", pynvml.nvmlGpmMigSampleGet, gpu, gi_id, room)[1]


def _percent(calls: Calls, metric: Any) -> int | None:
    if metric.nvmlReturn != pynvml.NVML_SUCCESS:
        return None
    value = float(metric.value)
    # More than 100 has been seen of instances (NVIDIA/DCGM#152): no measure of anything.
    if math.isnan(value) or not is_percent(value):
        calls.problems.append(f"nvmlGpmMetricsGet: {value:g} is no percentage")
        return None
    return math.ceil(value)


def _free(sample: Any) -> None:
    try:
        pynvml.nvmlGpmSampleFree(sample)
    except FAILURES:
        return  # a session that has ended has freed it
