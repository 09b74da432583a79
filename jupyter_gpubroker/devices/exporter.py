"""What a DCGM exporter tells of the engines, where the driver's library is blind: slices of an A100, and older GPUs.

Only the profiling fields are read. `DCGM_FI_DEV_GPU_UTIL` is 0 for every MIG instance by design
(NVIDIA/dcgm-exporter#216), so a busy slice would look idle. Values outside of their range are dropped and counted
(NVIDIA/DCGM#152), and samples that name no device of ours belong to nobody (NVIDIA/dcgm-exporter#68).
"""

from __future__ import annotations

import http.client
import math
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from .mig import by_labels
from .reader import Inventory

if TYPE_CHECKING:
    from prometheus_client.samples import Sample

CONNECT_S = 2.0
FETCH_S = 5.0
BODY_MAX_BYTES = 8 * 1024 * 1024
STALE_S = 90.0  # three times the exporter's default interval
_CHUNK_BYTES = 64 * 1024

ENGINE, SM, DRAM = (
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_DRAM_ACTIVE",
)  # fmt: skip
ACTIVITY = (ENGINE, SM, DRAM)
# A counter that stands still while everything else is told says that the exporter repeats itself.
ENERGY = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
MISLEADING = "DCGM_FI_DEV_GPU_UTIL"


class FetchFailed(Exception):
    """The endpoint did not answer as an exporter does; the message says how."""


@dataclass(frozen=True, slots=True)
class Scrape:
    """One answer of an exporter.

    ratios: by slot and field, 0 to 1.
    energy: by GPU UUID, in lower case.
    dropped: values that were no ratios; `shows_instances`: some MIG instance was seen at work.
    """

    ratios: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    energy: Mapping[str, float] = field(default_factory=dict)
    dropped: int = 0
    shows_instances: bool = False


def parse(text: str, inventory: Inventory, now_s: float) -> Scrape:
    """`now_s` is the wall clock, for samples that carry a time. Raises `FetchFailed` if this is no exposition."""
    ratios: dict[str, dict[str, float]] = {}
    energy: dict[str, float] = {}
    dropped, shows_instances = 0, False
    for sample in _samples(text, (*ACTIVITY, ENERGY)):
        if sample.timestamp is not None and now_s - float(sample.timestamp) > STALE_S:
            continue
        labels = {name.lower(): value for name, value in sample.labels.items()}
        if sample.name == ENERGY:
            energy[labels.get("uuid", "").lower()] = sample.value
        elif not 0 <= sample.value <= 1:
            dropped += 1
        else:
            shows_instances |= "gpu_i_id" in labels and sample.value > 0
            for slot_uuid in by_labels(labels, inventory):
                ratios.setdefault(slot_uuid, {})[sample.name] = sample.value
    return Scrape(ratios, energy, dropped, shows_instances)


def fields_of(text: str) -> tuple[int, int]:
    """How many samples tell activity, and how many only what is misleading: for who adds an exporter."""
    found = [sample.name for sample in _samples(text, (*ACTIVITY, MISLEADING))]
    misleading = found.count(MISLEADING)
    return len(found) - misleading, misleading


def percent(ratio: float | None) -> int | None:
    """Rounded up: work that was seen is never 0."""
    return None if ratio is None else math.ceil(100 * ratio)


def fetch(url: str) -> str:
    """The body, by a deadline for all of it. Raises `FetchFailed`. Redirects are not followed."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = kind(parts.hostname, parts.port, timeout=CONNECT_S)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request("GET", target, headers={"Accept": "text/plain; version=0.0.4"})
        response = connection.getresponse()
        if response.status != http.client.OK:
            raise FetchFailed(f"it answered {response.status}")
        return b"".join(_within(FETCH_S, response)).decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        raise FetchFailed(f"{type(error).__name__}: {error}"[:200]) from error
    finally:
        connection.close()


def _within(deadline_s: float, response: http.client.HTTPResponse) -> Iterator[bytes]:
    ends_s = time.monotonic() + deadline_s
    size_bytes = 0
    while chunk := response.read1(_CHUNK_BYTES):
        size_bytes += len(chunk)
        if size_bytes > BODY_MAX_BYTES:
            raise FetchFailed(f"it sent more than {BODY_MAX_BYTES} bytes")
        if time.monotonic() > ends_s:
            raise FetchFailed(f"it took more than {deadline_s:g} s")
        yield chunk


def _samples(text: str, names: Iterable[str]) -> Iterator[Sample]:
    """Of these metrics alone: an exporter tells hundreds."""
    from prometheus_client.parser import text_string_to_metric_families

    beginnings = tuple(f"{name}{end}" for name in names for end in "{ ")
    wanted = "\n".join(line for line in text.splitlines() if line.startswith(beginnings))
    try:
        families = list(text_string_to_metric_families(wanted + "\n"))
    except ValueError as error:
        raise FetchFailed(f"it is no Prometheus text: {error}"[:200]) from error
    for family in families:
        yield from family.samples
