"""The main story as the person at the notebook sees it, in a real browser.

GPUs, broker, kernels, jobs and JupyterLab are real processes (the GPU simulated); what is claimed is read from the page.
"""

from __future__ import annotations

import json
import sys

import pytest
from playwright.sync_api import expect

from jupyter_gpubroker.client import routes
from tests.ui.conftest import Look
from tests.ui.desk import SEEN_MS, Desk, contrast
from tests.ui.lab import Lab

# A browser, a Jupyter server and kernels need a while to start where many others are at work.
pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]

LIMITS = """
[policies.test]
idle = "500ms"
notice = "{notice}"
never_used = "20s"
host_busy = "10m"
keep = "10m"
keeps_max = 2
[queues.interactive]
policy = "test"
"""
WORK = """
import gpubroker
from gpubroker import simulated

@gpubroker.on_park
def move_to_host():
    weights.to_host()

@gpubroker.on_unpark
def move_to_device():
    weights.to_device()

weights = simulated.allocate(8_000)
weights.write(b"what was learned so far")
simulated.burn(0.5, memory_mib=1_000)
"""
STOP = """
import pdb
def look():
    results = [number ** 2 for number in range(1_000)]
    pdb.set_trace()
    simulated.burn(0.1)
    return len(results), weights.read().decode()
look()
"""
VISIBLE = "import os; print(os.getpid(), os.environ['CUDA_VISIBLE_DEVICES'])"
JOB = (sys.executable, "-c", "import os; print(os.environ['CUDA_VISIBLE_DEVICES'])")
LONG_JOB = (sys.executable, "-c", "import time; time.sleep(600)")


def test_the_quickstart_runs_cell_by_cell_as_it_says(lab: Lab, desk: Desk, look: Look) -> None:
    path = lab.work / "quickstart.ipynb"
    path.write_text(path.read_text().replace("20s", "5s"))  # nobody reads the notice here
    told = json.loads(path.read_bytes())
    notebook = desk.open("quickstart.ipynb")
    sources = [cell for cell in told["cells"] if cell["cell_type"] == "code"]
    for at, source in enumerate(sources):
        cell = notebook.cell(at)
        cell.start()
        if "by-hand" in source["metadata"].get("tags", ()):
            cell.asked()
            expect(cell.notice).to_contain_text("keep", timeout=SEEN_MS)
            look("notice")
            lab.until(routes.LEASES, lambda view: all(lease.job_id for lease in view.leases))
            cell.answer("p len(results)")
            cell.answer("c")
            assert "1000000" in cell.ended()
        cell.ended()
        expect(cell.errors).to_have_count(0)
    look("end")


def test_a_gpu_goes_to_the_job_during_lunch_at_a_breakpoint_and_comes_back(
    lab: Lab, desk: Desk, look: Look
) -> None:
    lab.apply(LIMITS.format(notice="3s"))
    lab.write("story.ipynb", ["%gpu request", WORK, STOP, "%gpu why"])
    notebook = desk.open("story.ipynb")
    assert "H200" in notebook.cell(0).run()
    notebook.cell(1).run()
    stopped = notebook.cell(2)
    stopped.start()
    stopped.asked()
    job = lab.submit(*JOB)

    expect(stopped.notice).to_contain_text("%gpu keep", timeout=SEEN_MS)
    expect(stopped.input).to_be_visible()
    look("notice")
    ended = lab.until(routes.JOB, lambda view: view.outcome is not None, job)
    assert (ended.outcome, ended.exit_status) == ("finished", 0)
    assert lab.lease("story.ipynb").state == "parked"
    expect(stopped.notice).to_contain_text("somebody who waited", timeout=SEEN_MS)
    look("gone")

    stopped.answer("p len(results)")
    stopped.asked()
    look("back")
    assert lab.lease("story.ipynb").state == "active"
    assert "1000" in stopped.text
    stopped.answer("c")
    assert "(1000, 'what was learned so far')" in stopped.ended()
    notebook.cell(3).run()
    look("why")


def test_who_says_keep_keeps_the_gpu(lab: Lab, desk: Desk, look: Look) -> None:
    lab.apply(LIMITS.format(notice="60s"))
    lab.write("keep.ipynb", ["%gpu request", WORK, STOP, "%gpu keep"])
    notebook = desk.open("keep.ipynb")
    notebook.cell(0).run()
    notebook.cell(1).run()
    stopped, keep = notebook.cell(2), notebook.cell(3)
    stopped.start()
    stopped.asked()
    lab.submit(*JOB)
    expect(stopped.notice).to_contain_text("%gpu keep", timeout=SEEN_MS)
    told = stopped.notice.inner_text()
    expect(stopped.notice).not_to_have_text(told, timeout=SEEN_MS)  # it counts down
    for theme in ("JupyterLab Dark", "JupyterLab Light"):
        desk.wear(theme)
        stopped.notice.scroll_into_view_if_needed()
        look(f"notice in {theme}")
        assert contrast(stopped.notice) >= 4.5
    stopped.answer("%gpu keep 1s")
    expect(stopped.notice.first).to_contain_text("stays yours", timeout=SEEN_MS)
    look("kept at the prompt")
    stopped.answer("c")
    stopped.ended()

    # The second is over, and the job still waits.
    lab.until(routes.LEASES, lambda view: view.leases[0].notice is not None)
    look("notice")
    assert "Kept for" in keep.run()
    expect(stopped.notice.last).to_contain_text("stays yours", timeout=SEEN_MS)
    look("kept")
    assert lab.lease("keep.ipynb").notice is None


def test_the_debuggers_breakpoint_is_waiting_and_the_gpu_comes_back_before_it_goes_on(
    lab: Lab, desk: Desk, look: Look
) -> None:
    lab.apply(LIMITS.format(notice="1s"))
    lab.write(
        "debugger.ipynb",
        ["%gpu request", WORK, "total = 1\ntotal += 1\nprint(weights.read(), total)"],
    )
    notebook = desk.open("debugger.ipynb")
    notebook.cell(0).run()
    notebook.cell(1).run()
    notebook.debug()
    stopped = notebook.cell(2)
    stopped.break_at(2)
    stopped.start()
    expect(notebook.continue_button).to_be_enabled(timeout=SEEN_MS)
    session = lab.session("debugger.ipynb")
    lab.until(routes.SESSION, lambda view: view.activity == "debugger", session.id)
    lab.until(routes.LEASE, lambda view: view.verdict == "waiting_user", session.leases[0].id)
    look("stopped")

    job = lab.submit(*JOB)
    lab.until(routes.JOB, lambda view: view.outcome is not None, job)
    assert lab.lease("debugger.ipynb").state == "parked"
    look("gone")
    notebook.continue_button.click()
    assert "b'what was learned so far' 2" in stopped.ended()
    assert lab.lease("debugger.ipynb").state == "active"


def test_a_restart_from_the_menu_keeps_the_gpu(lab: Lab, desk: Desk, look: Look) -> None:
    without_widgets = "import sys; sys.modules['ipywidgets'] = None"
    lab.write("restart.ipynb", [without_widgets, "%gpu request", VISIBLE, VISIBLE, "%gpu"])
    notebook = desk.open("restart.ipynb")
    notebook.cell(0).run()
    notebook.cell(1).run()
    pid, device = notebook.cell(2).run().split()
    before = lab.lease("restart.ipynb")
    assert device == before.visible_devices
    notebook.restart()
    pid_after, device_after = notebook.cell(3).run().split()
    assert (pid_after != pid, device_after) == (True, device)
    assert lab.lease("restart.ipynb").id == before.id
    assert "H200" in notebook.cell(4).run()
    look("restarted")


def test_who_interrupts_the_wait_has_left_the_line(lab: Lab, desk: Desk, look: Look) -> None:
    job = lab.submit(*LONG_JOB)
    lab.until(routes.JOB, lambda view: view.state == "running", job)
    lab.write("wait.ipynb", ["%gpu request", "1 + 1"])
    notebook = desk.open("wait.ipynb")
    waiting = notebook.cell(0)
    waiting.start()
    expect(waiting.notice).to_contain_text("place 1 of 1", timeout=SEEN_MS)
    look("waiting")
    lab.until(routes.QUEUE, lambda view: len(view.waiting) == 1)
    notebook.interrupt()
    waiting.ended()
    assert not lab.broker.call(routes.QUEUE).waiting
    expect(waiting.notice).to_contain_text("Waited")
    assert "You left the line" in waiting.text
    look("left")
    assert notebook.cell(1).run() == "2"


def test_hostile_names_are_only_names(lab: Lab, desk: Desk, look: Look) -> None:
    script = "<img src=x onerror=window.hostile=1>"
    name = f"\"'`$(touch hostile)`{script}\n\u2028{{x}} %s\u202eשלום".ljust(190, "x") + ".ipynb"
    lab.apply(LIMITS.format(notice="60s"))
    lab.write(name, ["%gpu request", "%gpu queue", "%gpu", "%gpu why", VISIBLE])
    notebook = desk.open("onerror")
    assert "H200" in notebook.cell(0).run()
    lab.gpubroker("submit", "--name", f"{script}\x1b[2J", "--", *JOB)
    for at in range(1, 5):
        cell = notebook.cell(at)
        assert cell.run()
        expect(cell.errors).to_have_count(0)
    look("hostile")
    assert script in notebook.cell(1).text
    assert desk.page.evaluate("window.hostile") is None
    expect(desk.page.locator("img[src='x']")).to_have_count(0)
    assert lab.lease(name).state == "active"
    assert "\x1b" not in lab.gpubroker("queue") + lab.gpubroker("jobs") + lab.gpubroker("status")
    assert not (lab.work / "hostile").exists()
