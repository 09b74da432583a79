"""Keeps the newest answers of exporters, so that a reading never waits for one; and a reader that fills in from them.

Each exporter is asked by a thread of its own: one that hangs costs its own numbers. Nothing it says is believed while it
might be a constant: not before it has shown some MIG instance at work (old versions tell 0 for all of them,
NVIDIA/dcgm-exporter#3), and not while the energy counter of a GPU stands still.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from .exporter import DRAM, ENGINE, SM, STALE_S, FetchFailed, Scrape, fetch, parse, percent
from .reader import (
    Capability,
    GpuReading,
    Inventory,
    Missing,
    Reader,
    SlotReading,
)
from .sources import Source, SourceRefused, read_sources

EVERY_S = 5.0
FRESH_S = 15.0


@dataclass(slots=True)
class _Heard:
    """What one exporter has said."""

    scrape: Scrape = field(default_factory=Scrape)
    at_s: float | None = None
    shows_instances: bool = False
    energy: dict[str, tuple[float, float]] = field(default_factory=dict)
    problem: str = ""


class Feed:
    """One exporter. `hear` is called by its thread, everything else by the reader's; `clock` counts up in seconds."""

    def __init__(
        self,
        source: Source,
        get: Callable[[str], str] = fetch,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.source = source
        self._get = get
        self._clock = clock
        self._heard = _Heard()
        self._inventory: Inventory | None = None
        self._stopped = threading.Event()

    def start(self) -> None:
        threading.Thread(target=self._run, name="gpubroker-exporter", daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()

    def know(self, inventory: Inventory) -> None:
        self._inventory = inventory

    def hear(self) -> None:
        """Ask the exporter once."""
        if self._inventory is None:
            return
        old = self._heard
        try:
            scrape = parse(self._get(self.source.url), self._inventory, time.time())
        except FetchFailed as error:
            self._heard = replace(old, problem=str(error))
            return
        now_s = self._clock()
        energy = {
            gpu: old.energy[gpu] if old.energy.get(gpu, (None,))[0] == value else (value, now_s)
            for gpu, value in scrape.energy.items()
        }
        shows = old.shows_instances or scrape.shows_instances
        # Replaced as a whole: the reader's thread sees the old answer or the new one.
        self._heard = _Heard(scrape, now_s, shows, energy)

    def fill_in(self, gpu_uuid: str, reading: SlotReading) -> SlotReading:
        """The reading with the exporter's numbers, or with the reason why they are missing."""
        heard, now_s = self._heard, self._clock()
        ratios = heard.scrape.ratios.get(reading.uuid, {})
        reading = replace(reading, problems=(*reading.problems, *self._problems(heard)))
        why = self._why_missing(heard, gpu_uuid, reading.uuid, ratios, now_s)
        if why is not None:
            return replace(reading, missing={**reading.missing, "engines": why})
        assert heard.at_s is not None
        missing = dict(reading.missing)
        missing.pop("engines", None)
        return replace(
            reading,
            engine_percent=percent(ratios.get(ENGINE)),
            sm_percent=percent(ratios.get(SM)),
            dram_percent=percent(ratios.get(DRAM)),
            sample_age_ms=int((now_s - heard.at_s) * 1000),
            missing=missing,
        )

    def _why_missing(
        self,
        heard: _Heard,
        gpu_uuid: str,
        slot_uuid: str,
        ratios: Mapping[str, float],
        now_s: float,
    ) -> Missing | None:
        if heard.at_s is None:
            return "failed" if heard.problem else "first_sample"
        if now_s - heard.at_s > FRESH_S:
            return "stale"
        if ENGINE not in ratios and SM not in ratios:
            return "not_supported"
        moved = heard.energy.get(gpu_uuid.lower())
        if moved is not None and now_s - moved[1] > STALE_S:
            return "stale"
        if slot_uuid.startswith("MIG-") and not heard.shows_instances:
            return "no_samples"
        return None

    def _problems(self, heard: _Heard) -> tuple[str, ...]:
        dropped = heard.scrape.dropped
        said = (heard.problem, f"{dropped} values were no ratios" if dropped else "")
        return tuple(f"{self.source.url}: {problem}" for problem in said if problem)

    def _run(self) -> None:
        while not self._stopped.is_set():
            self.hear()
            self._stopped.wait(EVERY_S)


class ExportedReader:
    """Another reader, filled in where its devices' engines are silent. Reads the list of exporters at each inventory."""

    def __init__(
        self, reader: Reader, sources: Path, make: Callable[[Source], Feed] = Feed
    ) -> None:
        self._reader = reader
        self._sources = sources
        self._make = make
        self._feeds: dict[Source, Feed] = {}
        self._gpu_of: dict[str, str] = {}

    def inventory(self) -> Inventory:
        inventory = self._reader.inventory()
        self._gpu_of = {slot.uuid: gpu.uuid for gpu in inventory.gpus for slot in gpu.slots}
        try:
            wanted = read_sources(self._sources)
        except SourceRefused as error:
            inventory = replace(inventory, problems=(*inventory.problems, str(error)))
            wanted = ()
        for source in self._feeds.keys() - set(wanted):
            self._feeds.pop(source).stop()
        for source in wanted:
            feed = self._feeds.get(source)
            if feed is None:
                feed = self._feeds[source] = self._make(source)
                feed.know(inventory)
                feed.start()
            feed.know(inventory)
        return inventory

    def observe(self, slot_uuids: Sequence[str] | None = None) -> tuple[SlotReading, ...]:
        return tuple(map(self._filled_in, self._reader.observe(slot_uuids)))

    def health(self) -> tuple[GpuReading, ...]:
        return self._reader.health()

    def capabilities(self) -> tuple[Capability, ...]:
        """What an exporter tells counts as told, also before it has shown that it means it."""
        for feed in self._feeds.values():
            feed.hear()
        told = {
            reading.uuid
            for reading in self.observe()
            if reading.missing.get("engines", "no_samples") == "no_samples"
        }
        return tuple(
            replace(found, signals={**found.signals, "engines": "ok"})
            if found.slot_uuid in told
            else found
            for found in self._reader.capabilities()
        )

    def close(self) -> None:
        for feed in self._feeds.values():
            feed.stop()
        self._reader.close()

    def _filled_in(self, reading: SlotReading) -> SlotReading:
        """By the first exporter that tells; else the reason of the one that came nearest."""
        gpu_uuid = self._gpu_of.get(reading.uuid)
        is_blind = reading.missing.get("engines") in ("not_supported", "no_permission")
        if gpu_uuid is None or not is_blind:
            return reading
        for feed in self._feeds.values():
            filled = feed.fill_in(gpu_uuid, reading)
            if filled.missing.get("engines") != "not_supported":
                return filled
        return reading
