"""The script for real GPUs, without one: it skips with the reason, and its records say only what was seen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from jupyter_gpubroker.devices.checkpoint_cuda import Verified
from jupyter_gpubroker.devices.simulated import SimulatedReader
from jupyter_gpubroker.server.preload import is_verified
from tests.hardware.__main__ import run
from tests.hardware.bench import ROOT, Bench, Skipped, Worker, WorkerFailed
from tests.hardware.checks import CHECKS
from tests.support.nvml.world import build, has_compiler


@pytest.fixture
def reader(folders: Any) -> SimulatedReader:
    return SimulatedReader("1xA100:3g.40gb,1xL4", folders.runtime / "simulated")


def works(bench: Bench) -> dict[str, Any]:
    return {"ok": bench.memory_mib > 0}


def fails(bench: Bench) -> dict[str, Any]:
    raise WorkerFailed("cuInit: 999", 999)


def cannot(bench: Bench) -> dict[str, Any]:
    raise Skipped("PyTorch is not installed")


def test_what_was_seen_to_work_is_recorded_for_this_driver_and_gpu(reader, tmp_path):
    report = run(reader, tmp_path, {"parking": works, "checkpointing": works})
    assert report["model"] == "NVIDIA L4"  # the split GPU is not whole
    assert is_verified(tmp_path)
    record = json.loads((tmp_path / "checkpoint-verified.json").read_bytes())
    assert Verified(record["driver_version"], tuple(record["models"])) == Verified(
        "simulated", ("NVIDIA L4",)
    )
    assert json.loads((tmp_path / "hardware-report.json").read_bytes()) == report


def test_what_was_seen_to_fail_is_switched_off_and_what_was_not_tried_stays(reader, tmp_path):
    run(reader, tmp_path, {"parking": works, "checkpointing": works})
    report = run(reader, tmp_path, {"parking": cannot, "checkpointing": fails})
    assert is_verified(tmp_path)
    assert not (tmp_path / "checkpoint-verified.json").exists()
    assert report["checks"]["checkpointing"]["error"] == "WorkerFailed: cuInit: 999"
    assert report["checks"]["parking"]["skipped"] == "PyTorch is not installed"


def test_only_the_checks_that_are_named_are_made(reader, tmp_path):
    report = run(reader, tmp_path, {"parking": works, "late_grant": fails}, only=["parking"])
    assert list(report["checks"]) == ["parking"]


def test_gpus_in_use_are_left_alone(reader, tmp_path, folders):
    gpu = reader.inventory().gpus[1].uuid
    worker = subprocess.Popen(
        [sys.executable, "-c", "from gpubroker import simulated; simulated.initialize(); input()"],
        env={
            **os.environ,
            "CUDA_VISIBLE_DEVICES": gpu,
            "GPUBROKER_SIMULATED_STATE": str(folders.runtime / "simulated"),
        },
        stdin=subprocess.PIPE,
    )
    try:
        while not reader.observe([gpu])[0].processes:
            assert worker.poll() is None
        with pytest.raises(Skipped, match="in use"):
            run(reader, tmp_path, {"parking": works})
    finally:
        worker.kill()
        worker.communicate()


def test_the_signals_and_the_quiet_of_a_gpu_are_written_down(reader, tmp_path, monkeypatch):
    monkeypatch.setattr(Bench, "looks", lambda bench, _count: [bench.look(), bench.look()])
    chosen = {name: CHECKS[name] for name in ("signals", "quiet")}
    report = run(reader, tmp_path, chosen)
    assert report["checks"]["signals"]["dump"]["gpus"][1]["model"] == "NVIDIA L4"
    assert report["checks"]["quiet"]["ok"]
    assert report["checks"]["quiet"]["utilisation"] == [0, 0]


@pytest.fixture
def cuda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stub of the CUDA driver for the processes that the checks start; what they wait for has happened."""
    if not has_compiler():
        pytest.skip("needs gcc to build a stub of the CUDA driver")
    build(tmp_path, ROOT / "tests/support/cuda_stub.c", "libcuda.so.1")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    monkeypatch.setattr("tests.hardware.bench.time.sleep", lambda _seconds: None)


def test_a_process_is_given_a_gpu_late_and_its_memory_is_looked_at(cuda):
    worker = Worker("")
    try:
        worker.call("see", "GPU-0")
        assert worker.call("init") == 1
        worker.call("make_context")
        worker.call("fill", 8)
        assert worker.call("is_intact")
        worker.call("free")
        worker.call("spin", 0.1, 1, 1)
        worker.call("wait")
        worker.call("store", 16)
        assert worker.try_call("wait") == (None, 700)
    finally:
        worker.end()


@pytest.mark.parametrize("name", CHECKS)
def test_each_check_comes_to_an_end_without_an_error_of_its_own(cuda, reader, tmp_path, name):
    # The stub's processes are on no device of the reader's, so only some expectations hold.
    figures = run(reader, tmp_path, only=[name])["checks"][name]
    assert "error" not in figures
    if name == "late_grant":
        assert figures["ok"]
        assert figures["blind"] == {"before": (None, 100), "after": (None, 100)}


def test_a_worker_without_the_driver_says_so(monkeypatch):
    if Path("/dev/nvidiactl").exists():
        pytest.skip("this machine has a driver")
    worker = Worker("")
    try:
        with pytest.raises(WorkerFailed, match=r"libcuda\.so\.1"):
            worker.call("init")
        assert worker.try_call("init") == (None, -1)
    finally:
        worker.end()


def test_without_a_gpu_the_script_skips_with_the_reason(tmp_path):
    if Path("/dev/nvidiactl").exists():
        pytest.skip("this machine has a GPU")
    done = subprocess.run(
        [sys.executable, "-m", "tests.hardware", "--state", tmp_path],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "skipped: no NVIDIA GPU can be read on this machine (no_nvidia_device)\n"
    assert list(tmp_path.iterdir()) == []
