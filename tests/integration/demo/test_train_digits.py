"""The example that the demo submits: it learns, and being stopped costs it nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

SCRIPT = Path(__file__).parents[3] / "examples" / "single_node" / "train_digits.py"


def train(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), "--epoch-seconds", "0", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def accuracies(output: str) -> list[str]:
    return [line.partition(": ")[2] for line in output.splitlines() if line.startswith("epoch ")]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> list[str]:
    """The accuracies of a run that nobody stopped."""
    folder = tmp_path_factory.mktemp("whole")
    result = train(folder)
    assert result.returncode == 0, result.stderr
    assert list(folder.iterdir()) == []
    return accuracies(result.stdout)


def test_it_learns_to_read_nine_digits_of_ten(whole):
    assert float(whole[-1].partition("%")[0]) >= 90


def test_it_says_so_by_its_status_when_it_learned_too_little(tmp_path):
    assert train(tmp_path, "--epochs", "1").returncode == 1


def test_stopped_and_started_again_it_learns_what_it_would_have_learned(tmp_path, whole):
    checkpoint = tmp_path / "digits-checkpoint.npz"
    command = [sys.executable, str(SCRIPT), "--epoch-seconds", "0.3"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        before = [next(process.stdout) for _ in range(4)]
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
    assert process.returncode == 128 + signal.SIGTERM
    assert "stopped" in rest
    stopped_after = len(accuracies("".join(before) + rest))
    with np.load(checkpoint) as state:
        assert int(state["epoch"]) == stopped_after
    resumed = train(tmp_path)
    assert resumed.returncode == 0
    assert f"resumed from digits-checkpoint.npz after epoch {stopped_after}" in resumed.stdout
    assert accuracies("".join(before) + rest) + accuracies(resumed.stdout) == whole
    assert not checkpoint.exists()
