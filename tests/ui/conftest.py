"""One JupyterLab and one browser page for all tests here; each test opens notebooks of its own and leaves no kernel behind.

GPUBROKER_TEST_SCREENSHOTS names a folder to keep the pictures in. Those of failed tests are always kept, in test-results/ui.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, ViewportSize, sync_playwright

from tests.ui.desk import Desk
from tests.ui.lab import EXAMPLES, Lab

SCREENSHOTS = os.environ.get("GPUBROKER_TEST_SCREENSHOTS")
FAILURES = Path(__file__).parents[2] / "test-results" / "ui"
BRISK = (EXAMPLES / "policy.toml").read_text()
SIZE = ViewportSize(width=1280, height=900)
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
HAS_FAILED = pytest.StashKey[bool]()

Look = Callable[[str], None]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Who failed is photographed, and what the servers logged is shown."""
    report = yield
    if report.failed:
        item.stash[HAS_FAILED] = True
        lab = getattr(item, "funcargs", {}).get("lab")
        if isinstance(lab, Lab):
            report.sections += lab.logs()
    return report


@pytest.fixture(scope="session")
def jupyterlab(run_root: Path) -> Iterator[Lab]:
    # As a hub starts it: whatever works below this prefix works without one.
    prefix = "--ServerApp.base_url=/user/ada/"
    started = Lab(Path(tempfile.mkdtemp(dir=run_root)), BRISK, prefix)
    try:
        started.start()
        yield started
    finally:
        started.end()


@pytest.fixture(scope="module")
def page(jupyterlab: Lab, chromium: str) -> Iterator[Page]:
    """JupyterLab, opened. Its own event loop ends with the module: other tests have theirs."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        page = browser.new_page(viewport=SIZE)
        yield page
        browser.close()


@pytest.fixture
def lab(jupyterlab: Lab) -> Iterator[Lab]:
    """With short limits, whatever the test before made of them."""
    jupyterlab.apply(BRISK)
    yield jupyterlab
    jupyterlab.clear()


@pytest.fixture
def desk(lab: Lab, page: Page, request: pytest.FixtureRequest) -> Iterator[Desk]:
    """JupyterLab in the browser, nothing open."""
    if not page.url.startswith(lab.url.partition("?")[0]):
        page.goto(lab.url)
    desk = Desk(page)
    yield desk
    if request.node.stash.get(HAS_FAILED, False):
        FAILURES.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=FAILURES / f"{request.node.name}.png")
        page.goto(lab.url)
    else:
        desk.close()


@pytest.fixture
def look(page: Page, request: pytest.FixtureRequest) -> Look:
    """Take a picture of what is to be seen now, if pictures are wanted. Its name begins with what the module tests."""
    about = request.path.stem.removeprefix("test_")

    def take(name: str) -> None:
        if SCREENSHOTS is not None:
            page.screenshot(path=Path(SCREENSHOTS, f"{about}-{name}.png"))

    return take
