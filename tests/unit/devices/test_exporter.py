"""A DCGM exporter's numbers are taken for what they are, and for nothing while they might be a constant."""

from __future__ import annotations

import contextlib
import http.server
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from jupyter_gpubroker.devices import exporter
from jupyter_gpubroker.devices.choice import Choice, open_reader
from jupyter_gpubroker.devices.exporter import FetchFailed, fetch, fields_of, parse, percent
from jupyter_gpubroker.devices.exporter_feed import ExportedReader, Feed
from jupyter_gpubroker.devices.reader import GpuFound, Inventory, SlotFound, SlotReading
from jupyter_gpubroker.devices.simulated import SimulatedReader
from jupyter_gpubroker.devices.sources import (
    SOURCES_MAX,
    Source,
    SourceRefused,
    add_source,
    check_url,
    read_sources,
    remove_source,
)

GPU = "GPU-0451a3f1-f345-8e4c-6592-e96c0feca949"
BUSY, QUIET = "MIG-1", "MIG-2"
INVENTORY = Inventory(
    "nvml",
    "535.1",
    (
        GpuFound(
            GPU,
            0,
            "",
            "A100",
            81920,
            mig_enabled=True,
            mig_pending=True,
            slots=(
                SlotFound(BUSY, "mig", 40192, "4g.40gb", 1, 0),
                SlotFound(QUIET, "mig", 40192, "3g.40gb", 2, 0),
            ),
        ),
    ),
)
URL = "http://exporter:9400/metrics"


def line(name: str, value: object, gi_id: int | None = 1, gpu: str = GPU, end: str = "") -> str:
    instance = "" if gi_id is None else f',GPU_I_PROFILE="4g.40gb",GPU_I_ID="{gi_id}"'
    return f'{name}{{gpu="0",UUID="{gpu}",device="nvidia0"{instance}}} {value}{end}\n'


def page(busy: float = 0.06868, quiet: float = 0.0, energy: int = 1000) -> str:
    # The driver's own counter is 0 on a busy slice (NVIDIA/dcgm-exporter#216).
    return (
        "# HELP DCGM_FI_PROF_GR_ENGINE_ACTIVE Ratio of time the graphics engine is active.\n"
        "# TYPE DCGM_FI_PROF_GR_ENGINE_ACTIVE gauge\n"
        + line("DCGM_FI_PROF_GR_ENGINE_ACTIVE", busy, 1)
        + line("DCGM_FI_PROF_GR_ENGINE_ACTIVE", quiet, 2)
        + line("DCGM_FI_PROF_SM_ACTIVE", busy / 2, 1)
        + line("DCGM_FI_PROF_SM_ACTIVE", quiet / 2, 2)
        + line("DCGM_FI_DEV_GPU_UTIL", 0, 1)
        + line("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", energy, None)
    )


# --- the text -------------------------------------------------------------------------------------------------------------


def test_each_sample_goes_to_the_slot_that_it_names():
    found = parse(page(), INVENTORY, 0)
    assert found.ratios == {
        BUSY: {exporter.ENGINE: 0.06868, exporter.SM: 0.03434},
        QUIET: {exporter.ENGINE: 0, exporter.SM: 0},
    }
    assert (found.shows_instances, found.dropped) == (True, 0)


def test_the_drivers_counter_is_never_taken_for_a_slices():
    assert parse(line("DCGM_FI_DEV_GPU_UTIL", 0), INVENTORY, 0).ratios == {}


@pytest.mark.parametrize("value", ["1.045", "-0.1", "NaN", "+Inf", "68"])
def test_what_is_no_ratio_is_dropped_and_counted(value):
    # NVIDIA/DCGM#152
    found = parse(line("DCGM_FI_PROF_SM_ACTIVE", value), INVENTORY, 0)
    assert (found.ratios, found.dropped) == ({}, 1)


@pytest.mark.parametrize("labels", ['{gpu="0"}', '{UUID="GPU-other",GPU_I_ID="1"}', ""])
def test_a_sample_without_a_device_of_ours_belongs_to_nobody(labels):
    # NVIDIA/dcgm-exporter#68
    assert parse(f"DCGM_FI_PROF_SM_ACTIVE{labels} 0.38\n", INVENTORY, 0).ratios == {}


def test_a_sample_that_says_it_is_old_is_none():
    def seen(now_s: float) -> bool:
        text = line("DCGM_FI_PROF_SM_ACTIVE", 0.5, end=" 1000000")
        return bool(parse(text, INVENTORY, now_s).ratios)

    assert (seen(1_010), seen(1_200)) == (True, False)


def test_a_page_that_is_something_else_is_refused():
    with pytest.raises(FetchFailed, match="no Prometheus text"):
        parse("DCGM_FI_PROF_SM_ACTIVE{gpu=0 0.5", INVENTORY, 0)


def test_who_adds_an_exporter_learns_what_it_is_good_for():
    assert fields_of(page()) == (4, 1)
    assert fields_of(line("DCGM_FI_DEV_GPU_UTIL", 0)) == (0, 1)


def test_seen_work_is_never_rounded_to_zero():
    assert [percent(ratio) for ratio in (None, 0, 0.0001, 0.5, 1)] == [None, 0, 1, 50, 100]


# --- what is believed when ------------------------------------------------------------------------------------------------


class Exporter:
    """Answers what the test says, and the time that has passed."""

    def __init__(self) -> None:
        self.answer: str | FetchFailed = page()
        self.now_s = 0.0

    def get(self, url: str) -> str:
        assert url == URL
        if isinstance(self.answer, FetchFailed):
            raise self.answer
        return self.answer


@pytest.fixture
def endpoint() -> Exporter:
    return Exporter()


@pytest.fixture
def feed(endpoint: Exporter) -> Feed:
    made = Feed(Source("prometheus", URL), endpoint.get, lambda: endpoint.now_s)
    made.know(INVENTORY)
    return made


def filled(feed: Feed, slot: str = BUSY) -> SlotReading:
    return feed.fill_in(GPU, SlotReading(slot, missing={"engines": "not_supported"}))


def test_a_slices_activity_comes_from_the_exporter(feed, endpoint):
    feed.hear()
    endpoint.now_s = 2
    reading = filled(feed)
    assert (reading.engine_percent, reading.sm_percent, reading.dram_percent) == (7, 4, None)
    assert (reading.missing, reading.sample_age_ms) == ({}, 2000)
    assert filled(feed, QUIET).engine_percent == 0


def test_nothing_is_known_before_the_first_answer(feed):
    reading = filled(feed)
    assert (reading.engine_percent, reading.missing) == (None, {"engines": "first_sample"})


def test_an_exporter_that_does_not_answer_is_a_failure(feed, endpoint):
    endpoint.answer = FetchFailed("it answered 500")
    feed.hear()
    assert filled(feed).missing == {"engines": "failed"}
    assert filled(feed).problems == (f"{URL}: it answered 500",)


def test_values_that_were_dropped_are_a_problem_of_the_reading(feed, endpoint):
    endpoint.answer = page(busy=2.2)
    feed.hear()
    reading = filled(feed)
    assert (reading.engine_percent, reading.sm_percent) == (None, None)
    assert reading.problems == (f"{URL}: 2 values were no ratios",)


def test_an_answer_ages_when_no_other_follows(feed, endpoint):
    feed.hear()
    endpoint.answer = FetchFailed("it answered 500")
    for endpoint.now_s, why in ((10, None), (16, "stale")):
        feed.hear()
        assert filled(feed).missing.get("engines") == why


def test_zeros_are_not_believed_before_any_slice_was_seen_at_work(feed, endpoint):
    # NVIDIA/dcgm-exporter#3: an old version tells 0 for all of them.
    endpoint.answer = page(busy=0)
    feed.hear()
    assert filled(feed).missing == {"engines": "no_samples"}
    endpoint.answer = page(busy=0.5)
    feed.hear()
    endpoint.answer = page(busy=0)
    feed.hear()
    assert filled(feed).engine_percent == 0


def test_an_exporter_that_repeats_itself_is_not_believed(feed, endpoint):
    for endpoint.now_s in range(0, 100, 5):
        feed.hear()
    assert filled(feed).missing == {"engines": "stale"}
    endpoint.answer = page(energy=1001)
    feed.hear()
    assert filled(feed).missing == {}


def test_a_slot_that_the_exporter_does_not_tell_of_stays_as_it_was(feed, endpoint):
    endpoint.answer = line("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.5, 1)
    feed.hear()
    assert filled(feed, QUIET).missing == {"engines": "not_supported"}


# --- the endpoint ---------------------------------------------------------------------------------------------------------


class Handler(http.server.BaseHTTPRequestHandler):
    status = 200
    body = page().encode()
    headers_of: ClassVar[dict[str, str]] = {}

    def do_GET(self) -> None:
        self.send_response(self.status)
        for name, value in self.headers_of.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(self.body)

    def log_message(self, *arguments: object) -> None:
        """Quiet."""


@pytest.fixture
def serve() -> Iterator[Callable[..., str]]:
    servers = []

    def start(**answer: Any) -> str:
        server = http.server.HTTPServer(("127.0.0.1", 0), type("Answer", (Handler,), answer))
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}/metrics?x=1"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_the_page_is_fetched(serve):
    assert fetch(serve()) == page()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({"status": 404}, "it answered 404"),
        ({"status": 302, "headers_of": {"Location": URL}}, "it answered 302"),
        ({"body": b"x" * 2000}, "more than 1000 bytes"),
    ],
)
def test_what_is_no_page_of_an_exporter_is_refused(serve, monkeypatch, answer, why):
    monkeypatch.setattr(exporter, "BODY_MAX_BYTES", 1000)
    with pytest.raises(FetchFailed, match=why):
        fetch(serve(**answer))


def test_a_page_that_trickles_is_given_up(serve, monkeypatch):
    monkeypatch.setattr(exporter, "FETCH_S", -1.0)
    with pytest.raises(FetchFailed, match="it took more than"):
        fetch(serve())


def test_nobody_who_listens_is_told():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(FetchFailed, match="ConnectionRefusedError"):
            fetch(f"http://127.0.0.1:{taken.getsockname()[1]}/metrics")


# --- the reader -----------------------------------------------------------------------------------------------------------


def test_the_slices_of_an_a100_are_read_by_way_of_an_exporter(state, tmp_path, endpoint):
    sources = tmp_path / "sources.json"
    made: list[Feed] = []

    def make(source: Source) -> Feed:
        feed = Feed(source, endpoint.get, lambda: endpoint.now_s)
        feed.start = lambda: None  # type: ignore[method-assign] # heard when the test says so
        made.append(feed)
        return feed

    reader = ExportedReader(SimulatedReader("1xA100:3g.40gb+4g.40gb", state), sources, make)
    (gpu,) = reader.inventory().gpus
    first = gpu.slots[0].uuid
    assert reader.observe([first])[0].missing["engines"] == "not_supported"

    add_source(sources, Source("prometheus", URL))
    reader.inventory()
    endpoint.answer = page().replace(GPU, gpu.uuid)
    assert reader.observe([first])[0].missing["engines"] == "first_sample"
    engines = {one.slot_uuid: one.signals.get("engines") for one in reader.capabilities()}
    assert engines[first] == "ok"
    assert reader.observe([first])[0].engine_percent == 7
    assert reader.health()[0].uuid == gpu.uuid

    remove_source(sources, URL)
    reader.inventory()
    assert reader.observe([first])[0].missing["engines"] == "not_supported"
    reader.close()


def test_numbers_that_the_driver_has_are_not_replaced(state, tmp_path, serve):
    sources = tmp_path / "sources.json"
    add_source(sources, Source("prometheus", serve()))
    reader = open_reader(Choice("1xH200", state, sources))
    reader.inventory()
    assert reader.observe()[0].engine_percent == 0
    reader.close()


def test_a_spoilt_list_of_sources_is_a_problem_and_costs_no_devices(state, tmp_path):
    sources = tmp_path / "sources.json"
    sources.write_text("{")
    reader = open_reader(Choice("1xL4", state, sources))
    inventory = reader.inventory()
    assert len(inventory.gpus) == 1
    assert "Remove it, then add the sources anew." in inventory.problems[0]
    reader.close()


# --- the list -------------------------------------------------------------------------------------------------------------


def test_sources_are_kept_once_and_removed(tmp_path: Path):
    path = tmp_path / "state" / "sources.json"
    source = Source("prometheus", URL)
    assert read_sources(path) == ()
    for _ in range(2):
        add_source(path, source)
    assert read_sources(path) == (source,)
    assert (remove_source(path, URL), remove_source(path, URL)) == (True, False)
    assert read_sources(path) == ()


def test_there_are_not_endless_sources(tmp_path: Path):
    path = tmp_path / "sources.json"
    for number in range(SOURCES_MAX):
        add_source(path, Source("prometheus", f"{URL}{number}"))
    with pytest.raises(SourceRefused, match="Remove one first"):
        add_source(path, Source("prometheus", URL))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "exporter:9400",
        "ftp://host/x",
        "http://",
        "http://u:p@host/",
        "http://h:x/",
        "http://h/\n",
    ],
)
def test_what_is_no_address_is_refused(url: str):
    with pytest.raises(SourceRefused, match="Write it as http://HOST:PORT/metrics"):
        check_url(url)


def test_names_are_compared_whatever_their_case():
    lowered = replace(INVENTORY, gpus=(replace(INVENTORY.gpus[0], uuid=GPU.upper()),))
    assert BUSY in parse(page(), lowered, 0).ratios
