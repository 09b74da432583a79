"""From JupyterLab alone, without a word of code: ask for a GPU, watch it, keep it, give it back, and see who waits."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from jupyter_gpubroker.client import routes
from tests.ui.conftest import Look
from tests.ui.desk import SEEN_MS, Desk, Notebook
from tests.ui.lab import Lab
from tests.ui.panel import Chip, Output, Panel, Question, Toast, violations
from tests.ui.test_notebook_story import JOB, LONG_JOB, STOP, WORK

# A browser, a Jupyter server and kernels need a while to start where many others are at work.
pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

LIMITS = """
[policies.panel]
idle = "500ms"
notice = "90s"
never_used = "60s"
host_busy = "10m"
keep = "5m"
keeps_max = 2
[queues.interactive]
policy = "panel"
"""
CHATTER = """
import itertools, signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (print("saved"), sys.exit(3)))
for part in range(0, 101, 10):
    print(f"\\r{part} %", end="", file=sys.stderr)
for epoch in itertools.count():
    print("epoch", epoch)
    time.sleep(0.3)
""".strip()
# A person whose window is behind another, and whose browser may tell them something.
LOOK_ELSEWHERE = """() => {
    window.told = [];
    document.hasFocus = () => false;
    window.Notification = class {
        static permission = 'granted';
        constructor(text) { window.told.push(text); }
    };
}"""
LOOK_HERE = "() => { delete document.hasFocus; window.dispatchEvent(new Event('focus')); }"
LOCALE = "lab/user-settings/@jupyterlab/translation-extension/plugin.jupyterlab-settings"
COUNTDOWN = re.compile(r"returns in \d+:\d\d")
LIGHT, DARK = "JupyterLab Light", "JupyterLab Dark"


@pytest.fixture
def panel(desk: Desk, lab: Lab) -> Iterator[Panel]:
    lab.apply(LIMITS)
    panel = Panel(desk.page)
    yield panel
    if panel.node.is_visible():
        panel.close()


@pytest.fixture
def chip(desk: Desk) -> Chip:
    return Chip(desk.page)


def opened(lab: Lab, desk: Desk, panel: Panel, name: str, *cells: str) -> Notebook:
    """A notebook with these cells, its kernel ready, and the panel beside it."""
    lab.write(name, cells or ["1 + 1"])
    notebook = desk.open(name)
    panel.open()
    return notebook


def anew(lab: Lab, desk: Desk) -> None:
    """JupyterLab as it starts, with one notebook for the next test to close."""
    desk.page.goto(lab.url)
    lab.write("last.ipynb", ["1 + 1"])
    desk.open("last.ipynb")


def test_a_gpu_is_asked_for_watched_and_kept_by_clicks(
    lab: Lab, desk: Desk, panel: Panel, chip: Chip, look: Look
) -> None:
    notebook = opened(lab, desk, panel, "lunch.ipynb", WORK, STOP)
    chip.shows("no GPU")
    look("asking")
    panel.request()
    expect(panel.cards).to_contain_text("lunch.ipynb", timeout=SEEN_MS)
    expect(panel.cards).to_contain_text("H200")
    chip.shows("H200 · not used yet")

    notebook.cell(0).run()
    chip.shows(re.compile("H200 · (active|idle)"))
    stopped = notebook.cell(1)
    stopped.start()
    stopped.asked()
    chip.shows("H200 · waits for you")
    look("stopped")

    lab.submit(*JOB)
    toast = Toast(desk.page, "lunch.ipynb goes back at")
    toast.seen()
    chip.shows(COUNTDOWN)
    expect(panel.cards.first).to_contain_text("somebody waits for its GPU")
    expect(desk.page).to_have_title(re.compile("GPU goes back"), timeout=SEEN_MS)
    told = chip.button.inner_text()
    expect(chip.button).not_to_have_text(told, timeout=SEEN_MS)  # it counts down
    look("notice")
    toast.answer("Keep")
    toast.gone()
    chip.shows("H200 · waits for you")
    expect(desk.page).not_to_have_title(re.compile("GPU goes back"), timeout=SEEN_MS)
    expect(panel.cards.first).to_contain_text("kept for", timeout=SEEN_MS)
    look("kept")
    lease = lab.lease("lunch.ipynb")
    assert (lease.notice, lease.keeps_left) == (None, 1)
    stopped.answer("c")


def test_the_chip_asks_and_gives_back(
    lab: Lab, desk: Desk, panel: Panel, chip: Chip, look: Look
) -> None:
    opened(lab, desk, panel, "chip.ipynb")
    chip.choose("Request a GPU")
    chip.shows("H200 · not used yet")
    chip.button.click()
    look("menu")
    desk.page.keyboard.press("Escape")
    chip.choose("Release")
    chip.shows("no GPU")
    expect(panel.cards).to_have_count(0)
    lab.until(routes.LEASES, lambda view: not view.leases)


def test_a_place_in_line_is_seen_and_its_turn_comes(
    lab: Lab, desk: Desk, panel: Panel, chip: Chip, look: Look
) -> None:
    job = lab.submit(*LONG_JOB)
    lab.until(routes.JOB, lambda view: view.state == "running", job)
    opened(lab, desk, panel, "line.ipynb")
    expect(panel.section("Request")).to_contain_text("None is free now", timeout=SEEN_MS)
    panel.request()
    chip.shows(re.compile("1st in queue"))
    expect(panel.section("Queue")).to_contain_text("1st of 1", timeout=SEEN_MS)
    look("waiting")
    panel.button("Leave the queue").click()
    chip.shows("no GPU")
    lab.until(routes.QUEUE, lambda view: not view.waiting)

    panel.request()
    chip.shows(re.compile("1st in queue"))
    desk.page.evaluate(LOOK_ELSEWHERE)
    panel.section("Jobs").get_by_role("button", name="Cancel").click()
    Question(desk.page).answer("Stop it")
    Toast(desk.page, "line.ipynb has its GPU now").seen()
    assert desk.page.evaluate("window.told") == ["line.ipynb has its GPU now."]
    expect(desk.page).to_have_title(re.compile("Your GPU is there"))
    desk.page.evaluate(LOOK_HERE)
    expect(desk.page).not_to_have_title(re.compile("Your GPU is there"))
    chip.shows("H200 · not used yet")
    assert lab.until(routes.JOB, lambda view: view.outcome is not None, job).outcome == "cancelled"
    expect(panel.section("Jobs")).to_contain_text("cancelled", timeout=SEEN_MS)


def test_a_job_is_submitted_followed_and_stopped_by_clicks(
    lab: Lab, desk: Desk, panel: Panel, look: Look
) -> None:
    opened(lab, desk, panel, "batch.ipynb")
    (lab.work / "chatter.py").write_text(CHATTER)
    panel.submit("python3 'chatter.py'")
    job = panel.job("chatter")
    job.get_by_role("button", name="Output").click()
    output = Output(desk.page)
    expect(output.stdout).to_contain_text("epoch 3", timeout=SEEN_MS)
    expect(output.stderr).to_contain_text("100 %")
    assert "10 %" not in output.stderr.inner_text().split("100 %")[0], "a progress bar is one line"
    look("output")
    assert violations(desk.page) == []

    question = Question(desk.page)
    job.get_by_role("button", name="Cancel").click()
    question.asks("What it has not saved by then is lost")
    look("question")
    desk.page.keyboard.press("Enter")  # changes nothing
    expect(question.node).to_have_count(0)
    (running,) = [view for view in lab.broker.call(routes.JOBS).jobs if view.outcome is None]
    assert running.state == "running"
    job.get_by_role("button", name="Cancel").click()
    question.answer("Stop it")
    expect(output.node).to_contain_text("cancelled", timeout=SEEN_MS)
    expect(output.stdout).to_contain_text("saved", timeout=SEEN_MS)
    lab.until(routes.JOB, lambda view: view.outcome == "cancelled", running.id)
    desk.page.locator(".lm-TabBar-tab", has_text="Output of").locator(
        ".lm-TabBar-tabCloseIcon"
    ).click()


def test_a_notebook_is_run_as_a_batch_job(
    lab: Lab, desk: Desk, panel: Panel, chip: Chip, look: Look
) -> None:
    notebook = opened(lab, desk, panel, "train.ipynb", "print('loss', 2 ** -3)", "1 + 1")
    chip.choose("Run Notebook as Batch Job")
    look("form")
    assert violations(desk.page) == []
    assert panel.overflow() == []
    panel.button("Submit").click()
    job = panel.job("train.ipynb")
    expect(job).to_be_visible(timeout=SEEN_MS)
    lab.until(routes.JOBS, lambda view: all(each.outcome is not None for each in view.jobs))
    expect(job).to_contain_text("finished", timeout=SEEN_MS)
    job.get_by_role("button", name="Output").click()
    expect(Output(desk.page).stdout).to_contain_text("[1/2] print", timeout=SEEN_MS)
    expect(Output(desk.page).stdout).to_contain_text("loss 0.125")
    look("ran")
    (result,) = lab.work.glob("train 20*.ipynb")
    assert "loss 0.125" in result.read_text()
    assert "loss 0.125" in notebook.cell(0).run(), "one goes on working with the original"
    desk.page.locator(".lm-TabBar-tab", has_text="Output of").locator(
        ".lm-TabBar-tabCloseIcon"
    ).click()


def test_what_is_parked_is_brought_back_and_every_step_has_its_reason(
    lab: Lab, desk: Desk, panel: Panel, chip: Chip, look: Look
) -> None:
    notebook = opened(lab, desk, panel, "park.ipynb", WORK, "print(weights.read())")
    panel.request()
    chip.shows("H200 · not used yet")
    notebook.cell(0).run()
    panel.button("Park").click()
    chip.shows("H200 · parked")
    strip = desk.page.locator(".gpb-Strip:visible")
    expect(strip).to_contain_text("The next cell brings it back before it runs")
    look("parked")
    panel.button("Bring back").click()
    chip.shows(re.compile("H200 · (active|idle)"))
    expect(strip).to_have_count(0)
    assert "what was learned so far" in notebook.cell(1).run()
    panel.cards.get_by_role("button", name="Why?").click()
    expect(panel.node.locator(".gpb-Why")).to_contain_text(
        "What was parked is back on the GPU.", timeout=SEEN_MS
    )
    look("why")


def test_the_panel_goes_on_after_the_broker_was_killed(
    lab: Lab, desk: Desk, panel: Panel, chip: Chip
) -> None:
    opened(lab, desk, panel, "killed.ipynb")
    panel.request()
    chip.shows("H200 · not used yet")
    lease = lab.lease("killed.ipynb")
    before = lab.broker.call(routes.HEALTH)
    os.kill(before.pid, signal.SIGKILL)
    lab.apply(LIMITS)  # which starts a broker where there is none
    lab.until(routes.HEALTH, lambda view: view.ready and view.incarnation != before.incarnation)
    chip.shows("H200 · not used yet")
    assert lab.lease("killed.ipynb").id == lease.id
    panel.button("Release").click()
    chip.shows("no GPU")
    expect(panel.banner).to_have_count(0)


def test_two_pages_agree(lab: Lab, desk: Desk, panel: Panel, chip: Chip) -> None:
    opened(lab, desk, panel, "pages.ipynb")
    browser = desk.page.context.browser
    assert browser is not None
    other = browser.new_page()
    try:
        other.goto(lab.url)
        there = Panel(other)
        there.open()
        chip.choose("Request a GPU")
        expect(there.cards).to_contain_text("pages.ipynb", timeout=SEEN_MS)
        there.button("Release").click()
        chip.shows("no GPU")
        expect(there.cards).to_have_count(0, timeout=SEEN_MS)
    finally:
        other.close()


def test_more_notebooks_ask_no_more_often(lab: Lab, desk: Desk, panel: Panel, chip: Chip) -> None:
    """The window asks, not each chip in it; and what nobody looks at is not asked for."""
    names = [f"many{at}.ipynb" for at in range(4)]
    for name in names:
        lab.write(name, ["1 + 1"])
    for name in names:
        desk.open(name)
    expect(desk.page.locator(".gpb-ToolbarChip")).to_have_count(len(names))
    asked: list[str] = []
    desk.page.on("request", lambda request: asked.append(request.url.partition("?")[0]))
    chip.choose("Request a GPU")
    chip.shows("H200 · not used yet")
    chip.choose("Release")
    chip.shows("no GPU")
    of_ours = [url.rpartition("/gpubroker/v1/")[2] for url in asked if "/gpubroker/v1/" in url]
    lists = [what for what in of_ours if "/" not in what]
    assert set(lists) == {"sessions"}
    # After each of the two clicks once, and once for each hint: granted, applied, seen, given back, gone.
    assert len(lists) <= 2 * (1 + 5)
    anew(lab, desk)


def test_all_of_it_can_be_done_by_keyboard(
    lab: Lab, desk: Desk, panel: Panel, chip: Chip, look: Look
) -> None:
    lab.write("keys.ipynb", ["1 + 1"])
    desk.open("keys.ipynb")
    keyboard = desk.page.keyboard
    keyboard.press("Control+Shift+C")
    keyboard.type("Show GPUs")
    expect(desk.page.locator(".lm-CommandPalette-item.lm-mod-active")).to_contain_text("Show GPUs")
    keyboard.press("Enter")
    expect(panel.section("Request").locator("select").first).to_be_visible(timeout=SEEN_MS)
    panel.section("Request").get_by_role("button", name="Request").first.focus()
    for _ in range(3):  # what, until, the button
        keyboard.press("Tab")
    look("focus")
    keyboard.press("Enter")
    chip.shows("H200 · not used yet")
    panel.button("Release").focus()
    keyboard.press("Enter")
    chip.shows("no GPU")


def test_nobody_is_shut_out(lab: Lab, desk: Desk, panel: Panel, chip: Chip, look: Look) -> None:
    """By axe-core, in both themes, in the states that have most to show."""
    notebook = opened(lab, desk, panel, "axe.ipynb", WORK, STOP)
    expect(panel.section("Request").locator("form")).to_be_visible(timeout=SEEN_MS)
    found = violations(desk.page)
    panel.request()
    notebook.cell(0).run()
    notebook.cell(1).start()
    notebook.cell(1).asked()
    lab.submit(*LONG_JOB)
    chip.shows(COUNTDOWN)
    panel.button("Why?").first.click()
    for theme, name in ((DARK, "dark"), (LIGHT, "light")):
        desk.wear(theme)
        look(name)
        found += violations(desk.page)
    assert found == []


def test_the_panel_speaks_spanish_where_jupyterlab_does(
    lab: Lab, desk: Desk, panel: Panel, chip: Chip, look: Look
) -> None:
    settings = Path(lab.environment["JUPYTER_CONFIG_DIR"], LOCALE)
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(json.dumps({"locale": "es_ES"}))
    try:
        desk.page.goto(lab.url)
        lab.write("español.ipynb", ["1 + 1"])
        desk.open("español.ipynb")
        panel.open()
        chip.shows("sin GPU")
        panel.section("Pedir").locator("button[type='submit']").click()
        chip.shows("H200 · aún sin usar")
        expect(panel.cards).to_contain_text("Se devuelve al instante")
        panel.cards.get_by_role("button", name="¿Por qué?").click()
        expect(panel.node.locator(".gpb-Why")).to_contain_text("Se pidió una GPU.", timeout=SEEN_MS)
        look("spanish")
        assert panel.overflow() == []
    finally:
        settings.unlink()
        anew(lab, desk)


def test_hostile_names_of_notebooks_and_jobs_are_only_names(
    lab: Lab, desk: Desk, panel: Panel, chip: Chip, look: Look
) -> None:
    script = "<img src=x onerror=window.hostile=1>"
    name = f"\"'`{script}\u202eשלום 你好".ljust(150, "x") + ".ipynb"
    lab.write(name, ["1 + 1"])
    desk.open("onerror")
    panel.open()
    panel.request()
    chip.shows("H200 · not used yet")
    lab.gpubroker("submit", "--name", f"{script}\x1b[2J\u202e" + "y" * 100, "--", *JOB)
    expect(panel.section("Jobs")).to_contain_text(script, timeout=SEEN_MS)
    look("hostile")
    assert "\u202e" not in panel.node.inner_text()
    assert panel.overflow() == []
    assert desk.page.evaluate("window.hostile") is None
    expect(desk.page.locator("img[src='x']")).to_have_count(0)


def test_a_refusal_is_read_where_one_asked(lab: Lab, desk: Desk, panel: Panel, look: Look) -> None:
    opened(lab, desk, panel, "refused.ipynb")
    form = panel.section("Request")
    form.locator("select").first.select_option(label="By memory")
    form.locator("input[type='number']").fill("9999")
    panel.request()
    expect(panel.refusals).to_contain_text("No single GPU here has", timeout=SEEN_MS)
    look("refused")
