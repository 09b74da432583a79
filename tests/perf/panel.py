"""What the JupyterLab panel costs and how fast it shows things, in a real Chromium before a real JupyterLab and broker.

    python tests/perf/panel.py [--rounds 20] [--seconds 20]

Aims: bundle 150 KiB compressed; first paint 300 ms after opening; a change is seen within 500 ms (p95); the idle panel takes
0.5 % of a core in the page; no task over 50 ms with 512 slots and 200 leases; JupyterLab starts no more than 100 ms later.
Prints one JSON object. Times in the page are its own clock's; both sides of a change are of this machine's.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import msgspec
from playwright.sync_api import Browser, Page, Route, expect, sync_playwright

sys.path.insert(0, str(Path(__file__).parents[2]))

from jupyter_gpubroker.client import routes
from jupyter_gpubroker.wire.bodies import ReleaseBody, RequestBody
from jupyter_gpubroker.wire.views import GpusView, GpuView, SessionsView, SlotView
from tests.conftest import find_chromium
from tests.support.broker import new_id
from tests.ui.conftest import ARGUMENTS, SIZE
from tests.ui.desk import Desk
from tests.ui.lab import Lab
from tests.ui.panel import Chip, Panel
from tests.unit.server.double import lease_view, session_view
from tools.panel import BUILT

GPUS, SLICES, LEASES = 64, 8, 200
STARTED = ".jp-DirListing-content"
# From the press of a button to the frame in which something is there.
PAINTED = """() => addEventListener('pointerdown', () => {
    const began = performance.now();
    const look = () => requestAnimationFrame(() => {
        if (document.querySelector('.gpb-Panel .gpb-Section')) {
            setTimeout(() => { window.painted = performance.now() - began; });
        } else { look(); }
    });
    look();
}, { capture: true, once: true })"""
# When the chip's words change, by the wall's clock.
CHANGED = """() => {
    const chip = document.querySelector('.gpb-ToolbarChip .gpb-Chip-button');
    window.changed = new Promise(done => new MutationObserver((_, observer) => {
        observer.disconnect();
        requestAnimationFrame(() => setTimeout(() => done(Date.now())));
    }).observe(chip, { subtree: true, characterData: true, childList: true }));
}"""
LONG_TASKS = """() => {
    window.tasks = [0];
    new PerformanceObserver(list => window.tasks.push(...list.getEntries().map(each => each.duration)))
        .observe({ type: 'longtask' });
}"""


def bundle_kib() -> float:
    scripts = (BUILT / "static").glob("*.js")
    return sum(len(gzip.compress(script.read_bytes())) for script in scripts) / 1024


def first_paint_ms(page: Page, panel: Panel, rounds: int) -> list[float]:
    taken = []
    for _ in range(rounds):
        page.evaluate(PAINTED)
        panel.open()
        taken.append(page.wait_for_function("window.painted").json_value())
        page.evaluate("delete window.painted")
        panel.close()
    return taken


def change_ms(page: Page, lab: Lab, chip: Chip, notebook: str, rounds: int) -> list[float]:
    """From the broker's answer, which comes once a change is committed, to the changed chip."""
    session_id = lab.session(notebook).id
    taken = []
    for _ in range(rounds):
        chip.shows("no GPU")
        page.evaluate(CHANGED)
        lab.broker.call(routes.PUT_REQUEST, new_id(), RequestBody(session_id))
        taken.append(since_ms(page))
        chip.shows("H200 · not used yet")
        page.evaluate(CHANGED)
        lab.broker.call(routes.RELEASE, lab.lease(notebook).id, ReleaseBody())
        taken.append(since_ms(page))
    return taken


def since_ms(page: Page) -> float:
    began_ms = time.time() * 1000
    return float(page.evaluate("window.changed")) - began_ms


def busy_share(page: Page, seconds: float) -> float:
    """The part of a core that the pages' processes take, by the processor time that the browser notes of them."""
    assert page.context.browser is not None
    client = page.context.browser.new_browser_cdp_session()

    def busy_s() -> float:
        processes = client.send("SystemInfo.getProcessInfo")["processInfo"]
        return sum(float(each["cpuTime"]) for each in processes if each["type"] == "renderer")

    before_s = busy_s()
    page.wait_for_timeout(seconds * 1000)
    return (busy_s() - before_s) / seconds


def idle_percent(page: Page, panel: Panel, seconds: float, rounds: int) -> float:
    """What the open panel takes, paired with the closed one: the median."""
    shares = []
    for _ in range(rounds):
        closed = busy_share(page, seconds)
        panel.open()
        page.wait_for_timeout(1_000)
        shares.append(busy_share(page, seconds) - closed)
        panel.close()
    return round(100 * statistics.median(shares), 2)


def crowd() -> dict[str, bytes]:
    """Many GPUs, all in slices, and many leases of one person, by the list that tells of them."""
    slots = [f"{gpu}-{at}" for gpu in range(GPUS) for at in range(SLICES)]
    leases = {slot: new_id() for slot in slots[:LEASES]}

    def slot_view(slot: str) -> SlotView:
        state = "leased" if slot in leases else "free"
        return SlotView(
            id=slot, kind="mig", profile="1g.18gb", memory_mib=18_000, state=state, epoch=1,
            taken=slot in leases, lease_id=leases.get(slot), memory_used_mib=time.time_ns() % 9_000,
            utilisation_percent=time.time_ns() % 100, reason=None,
        )  # fmt: skip

    gpus = GpusView(
        tuple(
            GpuView(
                uuid=f"GPU-{gpu}", index=gpu % 8, node=f"node{gpu // 8}", model="NVIDIA H200",
                memory_mib=144_000, mig_enabled=True, simulated=True, state="ok",
                slots=tuple(slot_view(f"{gpu}-{at}") for at in range(SLICES)),
            )
            for gpu in range(GPUS)
        )
    )  # fmt: skip
    sessions = SessionsView(
        tuple(
            session_view(new_id(), new_id(), lease_view(lease, slots=(slot,), memory_mib=18_000))
            for slot, lease in leases.items()
        )
    )
    return {"gpus": msgspec.json.encode(gpus), "sessions": msgspec.json.encode(sessions)}


def longest_task_ms(page: Page, panel: Panel, seconds: float) -> dict[str, float]:
    """With a crowd on the screen: while it is drawn first, and in the seconds after, numbers changing all the time."""

    def answer(route: Route) -> None:
        name = route.request.url.partition("?")[0].rpartition("/")[2]
        route.fulfill(body=crowd()[name], content_type="application/json")

    for name in ("gpus", "sessions"):
        page.route(f"**/gpubroker/v1/{name}?*", answer)
    page.evaluate(LONG_TASKS)
    panel.open()
    expect(panel.section("My GPUs")).to_contain_text(str(LEASES))
    expect(panel.node.locator(".gpb-Gpu")).to_have_count(GPUS)
    first = max(page.evaluate("window.tasks"))
    page.evaluate("window.tasks = [0]")
    page.wait_for_timeout(seconds * 1000)
    return {"first": first, "then": max(page.evaluate("window.tasks"))}


def start_ms(browser: Browser, lab: Lab, rounds: int) -> list[float]:
    """How much later JupyterLab is there with the panel than with it disabled, pair by pair; the first is left out."""
    settings = Path(lab.environment["JUPYTER_CONFIG_DIR"], "labconfig", "page_config.json")
    settings.parent.mkdir(exist_ok=True)

    def taken_ms(is_disabled: bool) -> float:
        disabled = {"disabledExtensions": {"jupyter_gpubroker": is_disabled}}
        settings.write_text(json.dumps(disabled))
        page = browser.new_page(viewport=SIZE)
        began_s = time.monotonic()
        page.goto(lab.url)
        page.wait_for_selector(STARTED, state="attached")
        taken = (time.monotonic() - began_s) * 1000
        page.close()
        return taken

    pairs = [(taken_ms(False), taken_ms(True)) for _ in range(rounds + 1)]
    return [ours - plain for ours, plain in pairs[1:]]


def quantile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def measure(browser: Browser, lab: Lab, rounds: int, seconds: float) -> dict[str, Any]:
    page = browser.new_page(viewport=SIZE)
    page.goto(lab.url)
    lab.write("speed.ipynb", ["1 + 1"])
    Desk(page).open("speed.ipynb")
    panel, chip = Panel(page), Chip(page)
    paints = first_paint_ms(page, panel, rounds)
    changes = change_ms(page, lab, chip, "speed.ipynb", rounds)
    return {
        "bundle_compressed_kib": round(bundle_kib(), 1),
        "first_paint_ms": {"p50": statistics.median(paints), "p95": quantile(paints, 0.95)},
        "change_to_visible_ms": {"p50": statistics.median(changes), "p95": quantile(changes, 0.95)},
        "idle_panel_percent_of_a_core": idle_percent(page, panel, seconds, 3),
        "longest_task_ms_512_slots_200_leases": longest_task_ms(page, panel, seconds),
        "jupyterlab_start_later_ms": statistics.median(start_ms(browser, lab, rounds // 3)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=20)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gb-", dir="/tmp") as root, sync_playwright() as tools:
        lab = Lab(Path(root), "")
        try:
            lab.start()
            browser = tools.chromium.launch(executable_path=find_chromium(), args=ARGUMENTS)
            print(json.dumps(measure(browser, lab, arguments.rounds, arguments.seconds), indent=1))
            browser.close()
        finally:
            lab.end()


if __name__ == "__main__":
    main()
