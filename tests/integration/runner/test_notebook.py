"""A notebook as a batch job: run in place, its output on the job's own, and nothing that was done is lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

KERNEL = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
ENDLESS = "import signal\nprint('asleep', flush=True)\nsignal.pause()"


def notebook(folder: Path, *cells: str, metadata: Any = KERNEL) -> Path:
    path = folder / "train.ipynb"
    content = [
        {"cell_type": "code", "id": f"c{at}", "metadata": {}, "outputs": [], "source": cell}
        | {"execution_count": None}
        for at, cell in enumerate(cells)
    ]
    document = {"cells": content, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(document))
    return path


def start(path: Path) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "jupyter_gpubroker.runner.notebook", path.name]
    pipe = subprocess.PIPE
    return subprocess.Popen(argv, cwd=path.parent, stdout=pipe, stderr=pipe, text=True)


def shown(path: Path) -> list[Any]:
    """The outputs of each cell."""
    return [cell["outputs"] for cell in json.loads(path.read_text())["cells"]]


def test_its_cells_run_in_its_folder_and_their_output_is_in_both(tmp_path: Path) -> None:
    path = notebook(tmp_path, "import os\nprint('loss 0.1')", "os.path.exists('train.ipynb')")
    stdout, stderr = (run := start(path)).communicate()
    assert (run.returncode, stderr) == (0, "")
    assert stdout == "[1/2] import os\nloss 0.1\n[2/2] os.path.exists('train.ipynb')\nTrue\n"
    printed, result = shown(path)
    assert "".join(printed[0]["text"]) == "loss 0.1\n"
    assert result[0]["data"]["text/plain"] == ["True"]
    assert [file.name for file in tmp_path.iterdir()] == ["train.ipynb"]


def test_one_that_names_no_kernel_runs_in_the_usual_one(tmp_path: Path) -> None:
    run = start(notebook(tmp_path, "print('loss 0.1')", metadata={}))
    stdout, stderr = run.communicate()
    assert (run.returncode, stderr) == (0, "")
    assert "loss 0.1" in stdout


def test_an_error_ends_it_and_stands_in_the_notebook(tmp_path: Path) -> None:
    path = notebook(tmp_path, "print('kept')", "1 / 0", "print('never')")
    stdout, stderr = (run := start(path)).communicate()
    assert run.returncode == 1
    assert "never" not in stdout
    assert "ZeroDivisionError: division by zero" in stderr
    assert "\x1b" not in stderr
    kept, failed, never = shown(path)
    assert (bool(kept), failed[0]["ename"], never) == (True, "ZeroDivisionError", [])


def test_what_was_done_is_kept_when_it_is_stopped(tmp_path: Path) -> None:
    path = notebook(tmp_path, "print('kept')", ENDLESS)
    run = start(path)
    assert run.stdout is not None
    while "asleep" not in run.stdout.readline():
        assert run.poll() is None
    os.kill(run.pid, signal.SIGTERM)
    _, stderr = run.communicate()
    assert run.returncode == 2
    assert "The kernel ended before the notebook did." in stderr
    kept, stopped = shown(path)
    assert "".join(kept[0]["text"]) == "kept\n"
    assert "".join(stopped[0]["text"]) == "asleep\n"


@pytest.mark.parametrize("content", [None, "no notebook"])
def test_a_file_that_is_no_notebook_is_refused_in_words(
    tmp_path: Path, content: str | None
) -> None:
    path = tmp_path / "train.ipynb"
    if content is not None:
        path.write_text(content)
    _, stderr = (run := start(path)).communicate()
    assert run.returncode == 127
    assert stderr.startswith("train.ipynb cannot be run")
