"""What every test stands on: folders of its own, a scrubbed environment, no skips where none are allowed.

No test may see the user's brokers, configuration or GPUs, and none may leave a process behind; the fixtures here see to both.
Tests that need something this machine may lack carry a mark (`browser`, `torch`, `hardware`) and skip with the reason.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest

NO_SKIPS = os.environ.get("GPUBROKER_TEST_NO_SKIPS") == "1"
SCRUBBED_PREFIXES = ("CUDA_", "GPUBROKER", "JUPYTER_", "NVIDIA_", "SLURM_", "XDG_")
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
LEFT_BEHIND_WAIT_S = 10.0

# A shell that starts the tests in the background has them ignore the interrupt, and all that they start: tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Shared, slow machines: no deadline per example. The same examples each time: a red run can be repeated.
hypothesis.settings.register_profile(
    "repeatable", deadline=None, derandomize=True, print_blob=True, max_examples=60
)
hypothesis.settings.register_profile("long", deadline=None, print_blob=True, max_examples=3_000)
hypothesis.settings.load_profile("repeatable")


@dataclass(frozen=True)
class Folders:
    """The folders of one test. Short enough that a socket's path below them stays within 107 bytes."""

    root: Path
    runtime: Path
    state: Path
    config: Path


@pytest.fixture(scope="session")
def run_root() -> Iterator[Path]:
    """The folder of this test run; at its end, whoever still lives with it in the environment was left behind."""
    root = Path(tempfile.mkdtemp(prefix="gb-", dir="/tmp"))
    yield root
    left_behind = wait_until_gone(root)
    for pid in left_behind:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    shutil.rmtree(root, ignore_errors=True)
    assert not left_behind, f"tests left processes behind: {left_behind}"


@pytest.fixture(autouse=True)
def folders(run_root: Path) -> Iterator[Folders]:
    """Folders of this test's own."""
    with set_apart(run_root) as made:
        yield made


@pytest.fixture(scope="module")
def module_folders(run_root: Path) -> Iterator[Folders]:
    """Folders for what the tests of a module share."""
    with set_apart(run_root) as made:
        yield made


@contextlib.contextmanager
def set_apart(run_root: Path) -> Iterator[Folders]:
    """New folders, and an environment that names them and nothing of the user's."""
    root = Path(tempfile.mkdtemp(dir=run_root))
    made = Folders(root, runtime=root / "run", state=root / "state", config=root / "config")
    for folder in (made.runtime, made.state, made.config):
        folder.mkdir(mode=0o700)
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(SCRUBBED_PREFIXES):
                patch.delenv(name)
        patch.setenv("XDG_RUNTIME_DIR", str(made.runtime))
        patch.setenv("XDG_STATE_HOME", str(made.state))
        patch.setenv("XDG_CONFIG_HOME", str(made.config))
        for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
            patch.setenv(name, str(root / name.lower()))
        yield made
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(scope="session")
def chromium() -> str:
    """The path of a Chromium; tests that ask for it carry the mark `browser`."""
    path = find_chromium()
    assert path is not None, "mark tests that need a browser with pytest.mark.browser"
    return path


def find_chromium() -> str | None:
    return next((path for name in CHROMIUM_NAMES if (path := shutil.which(name))), None)


def wait_until_gone(root: Path) -> dict[int, str]:
    """The processes that name `root` in their environment, after they had time to end: pid and command line."""
    deadline_s = time.monotonic() + LEFT_BEHIND_WAIT_S
    while (alive := processes_with(root)) and time.monotonic() < deadline_s:
        time.sleep(0.1)
    return alive


def processes_with(root: Path) -> dict[int, str]:
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if os.fsencode(root) in (process / "environ").read_bytes():
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ")
                found[int(process.name)] = command.decode(errors="replace").strip()
        except OSError:  # gone, or another user's
            continue
    return found


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what this machine cannot run, with the reason and what to do."""
    if item.get_closest_marker("browser") and find_chromium() is None:
        pytest.skip("no Chromium on the path: apt-get install chromium")
    if item.get_closest_marker("torch") and importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed: pip install 'jupyter_gpubroker[torch]'")
    if item.get_closest_marker("hardware") and not Path("/dev/nvidiactl").exists():
        pytest.skip("no NVIDIA GPU on this machine (/dev/nvidiactl is missing)")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Under GPUBROKER_TEST_NO_SKIPS=1 a skipped test is a failed one."""
    report = yield
    if NO_SKIPS and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skips are forbidden here: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for modules that skip themselves while they are collected."""
    report = yield
    if NO_SKIPS and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"skips are forbidden here: {report.longrepr}"
    return report
