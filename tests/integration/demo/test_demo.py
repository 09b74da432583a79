"""`gpubroker demo`, played whole, and what it leaves behind when it is stopped in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections import defaultdict
from typing import Any

import pytest

from tests.conftest import Folders, processes_with
from tests.support.command_line import argv

STEPS = [
    "kernel_started_without_gpu",
    "lease_granted",
    "gpu_work_seen_active",
    "batch_job_queued",
    "stopped_at_breakpoint",
    "notice_shown",
    "lease_reclaimed",
    "batch_job_started",
    "batch_job_finished",
    "variables_alive",
    "lease_granted_again",
]
KEPT_STEPS = [*STEPS[:6], "lease_kept", "variables_alive"]
FIELDS = {"name", "at_s", "ok", "pid", "slot", "lease", "give_back", "detail"}


@pytest.fixture
def environ(folders: Folders) -> dict[str, str]:
    """What is started here is known by this test's folder in its environment."""
    return {
        **os.environ,
        "TMPDIR": str(folders.root),
        "GPUBROKER": "off",
        "GPUBROKER_SIMULATE": "7xL4",
    }


def test_the_whole_story_happens_in_ninety_seconds(
    environ: dict[str, str], folders: Folders
) -> None:
    before = sorted(folders.root.iterdir())
    played = subprocess.run(
        argv("demo", "--json"), env=environ, capture_output=True, text=True, check=False
    )
    told = json.loads(played.stdout)
    story = "\n".join(
        "{at_s:6} {ok} {give_back} {name}: {detail}".format(**step) for step in told["steps"]
    )
    assert (told["ok"], played.returncode) == (True, 0), story
    assert max(step["at_s"] for step in told["steps"]) <= 90
    stories = by_story(told["steps"])
    assert {
        give_back: [step["name"] for step in steps] for give_back, steps in stories.items()
    } == {
        "empty": STEPS,
        "parked": STEPS,
        "checkpointed": STEPS,
        "kept": KEPT_STEPS,
    }
    assert len({step["slot"] for step in told["steps"]} - {None}) == len(stories)
    for steps in stories.values():
        check_evidence({step["name"]: step for step in steps})
    assert sorted(folders.root.iterdir()) == before
    assert processes_with(folders.root) == {}


def by_story(steps: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    stories = defaultdict(list)
    for step in steps:
        assert step.keys() == FIELDS
        stories[step["give_back"]].append(step)
    return stories


def check_evidence(steps: dict[str, dict[str, Any]]) -> None:
    """One GPU, one notebook that lives through all of it, and in between another process on the same slot."""
    kernel = {
        steps[name]["pid"]
        for name in ("kernel_started_without_gpu", "notice_shown", "variables_alive")
    }
    assert len(kernel) == 1
    assert len({step["slot"] for step in steps.values()} - {None}) == 1
    times = [step["at_s"] for step in steps.values()]
    assert times == sorted(times)
    if "batch_job_started" in steps:
        assert steps["batch_job_started"]["pid"] not in kernel
        assert steps["batch_job_started"]["lease"] != steps["lease_granted"]["lease"]
        assert "recognised" in steps["batch_job_finished"]["detail"]


def test_stopped_in_the_middle_it_ends_everything_it_started(
    environ: dict[str, str], folders: Folders
) -> None:
    before = sorted(folders.root.iterdir())
    with subprocess.Popen(argv("demo"), env=environ, stdout=subprocess.PIPE, text=True) as playing:
        assert playing.stdout is not None
        assert any("yes  batch job queued" in line for line in playing.stdout)
        assert len(processes_with(folders.root)) >= 5
        playing.send_signal(signal.SIGINT)
        rest = playing.stdout.read()
    assert playing.returncode == 1
    assert "stopped by a signal" in rest
    assert processes_with(folders.root) == {}
    assert sorted(folders.root.iterdir()) == before
