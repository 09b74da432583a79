"""The checks, in the order in which they run: the harmless ones first. Each returns its figures, or raises `Skipped`.

What is expected, and where it was only read so far, stands with each; an expectation that fails is a finding of the report, not
an error of the script.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from jupyter_gpubroker.devices.checkpoint import Checkpointer, Outcome
from jupyter_gpubroker.devices.checkpoint_cuda import CudaCheckpointDriver
from jupyter_gpubroker.devices.checkpoint_driver import DriverError, Subject
from jupyter_gpubroker.devices.dump import dump_of
from jupyter_gpubroker.server import preload

from .bench import ROOT, Bench, Skipped, Worker

Figures = dict[str, Any]
Check = Callable[[Bench], Figures]

SIZES_MIB = (1 << 10, 20 << 10, 60 << 10)
LOCK_MS = 5_000
_NO_DEVICE = 100
# What a suspended process may still be listed with.
LEFT_MIB_MAX = 16


def signals(bench: Bench) -> Figures:
    """Which signals this machine gives."""
    found = dump_of(bench.inventory, bench.reader.capabilities(), bench.reader.health())
    return {"ok": True, "dump": msgspec.to_builtins(found)}


def quiet(bench: Bench) -> Figures:
    """What counters say of a GPU on which nobody is: anything but 0 would be taken for work."""
    found = bench.looks(8)
    figures = _use(found)
    figures["power_mw"] = bench.condition().power_mw
    figures["ok"] = not any(map(any, (figures["utilisation"], figures["engine"], figures["sm"])))
    return figures


def sample_ages(bench: Bench) -> Figures:
    """How old samples are while a GPU works, and how long a process looks busy after its last work."""
    with bench.worker() as worker:
        _start(worker)
        worker.call("spin", 12.0, 64, 256)
        busy = bench.looks(8)
        worker.call("wait")
        ended_s = time.monotonic()
        while _percent_of(bench, worker.pid) and time.monotonic() - ended_s < 15:
            time.sleep(0.25)
        figures = _use(busy)
        figures["busy_after_end_s"] = round(time.monotonic() - ended_s, 2)
    figures["ages_ms"] = [one.sample_age_ms for one in busy]
    figures["missing"] = sorted(
        {f"{signal}: {why}" for one in busy for signal, why in one.missing.items()}
    )
    figures["ok"] = all(one.utilisation_percent for one in busy)
    return figures


def spinning(bench: Bench) -> Figures:
    """One thread that waits, as a rank in a collective does: a full duty cycle, quiet engines, little power."""
    before_mw = bench.condition().power_mw
    with bench.worker() as worker:
        _start(worker)
        worker.call("spin", 8.0, 1, 1)
        figures = _use(bench.looks(5))
        figures["power_mw_before"] = before_mw
        figures["power_mw"] = bench.condition().power_mw
        worker.call("wait")
    figures["ok"] = bool(figures["utilisation"]) and max(figures["utilisation"]) >= 90
    return figures


def late_grant(bench: Bench) -> Figures:
    """A process that has not touched CUDA can be given a GPU; one that initialised it while blind cannot."""
    with bench.worker("") as untouched:
        untouched.call("see", bench.slot)
        count, code = untouched.try_call("init")
    with bench.worker("") as blind:
        first = blind.try_call("init")
        blind.call("see", bench.slot)
        second = blind.try_call("init")
    return {
        "untouched": {"devices": count, "code": code},
        "blind": {"before": first, "after": second},
        "ok": count == 1 and first[1] == _NO_DEVICE and second[0] != 1,
    }


def marks_of_cuda(bench: Bench) -> Figures:
    """Which device files a process has open: before, after cuInit, and with a context."""
    with bench.worker() as worker:
        found = {"start": _device_files(worker.pid)}
        worker.call("init")
        found["initialised"] = _device_files(worker.pid)
        listed_before = bench.memory_mib_of(worker.pid) is not None
        worker.call("make_context")
        found["context"] = _device_files(worker.pid)
        listed_after = bench.memory_mib_of(worker.pid) is not None
    return {
        "files": found,
        "listed": {"initialised": listed_before, "context": listed_after},
        "ok": not listed_before and listed_after,
    }


def left_behind(bench: Bench) -> Figures:
    """What a process holds after it has freed everything: the context, which only its end gives back."""
    before_mib = bench.used_mib()
    with bench.worker() as worker:
        _start(worker)
        context_mib = bench.memory_mib_of(worker.pid)
        worker.call("fill", 2048)
        worker.call("free")
        freed_mib = bench.memory_mib_of(worker.pid)
    after_mib = _settled(bench, before_mib)
    return {
        "context_mib": context_mib,
        "after_free_mib": freed_mib,
        "device_before_mib": before_mib,
        "device_after_end_mib": after_mib,
        "ok": bool(freed_mib) and after_mib <= before_mib + LEFT_MIB_MAX,
    }


def checkpointing(bench: Bench) -> Figures:
    """Suspend and resume a process of each size; its memory must come back as it was."""
    driver = _BelievedDriver(None, reader=bench.reader)
    try:
        driver.state(os.getpid())
    except DriverError as error:
        if error.code == "bindings_missing":
            needed = "cuda-bindings is not installed: pip install 'jupyter_gpubroker[checkpoint]'"
            raise Skipped(needed) from error
    rounds = {
        f"{mib >> 10} GiB": _checkpoint_round(bench, Checkpointer(driver), mib)
        for mib in _fitting(bench)
    }
    return {"rounds": rounds, "ok": bool(rounds) and all(one["ok"] for one in rounds.values())}


def parking(bench: Bench) -> Figures:
    """The same with PyTorch and torch-memory-saver, inside of the process."""
    added = preload._prepare((sys.executable,), os.environ)
    if added.refusal is not None:
        raise Skipped(f"parking is not prepared here: {added.refusal}")
    rounds = {
        f"{mib >> 10} GiB": _park_round(bench, added.environment, mib) for mib in _fitting(bench)
    }
    return {"rounds": rounds, "ok": bool(rounds) and all(one["ok"] for one in rounds.values())}


def application_error(bench: Bench) -> Figures:
    """A program's own bad access is reported as an error of its own, and the GPU stays well."""
    bench.condition()  # what was reported before is not ours
    with bench.worker() as worker:
        _start(worker)
        worker.call("store", 16)
        _, code = worker.try_call("wait")
    time.sleep(1)
    after = bench.condition()
    return {
        "code": code,
        "xids": [xid.code for xid in after.xids],
        "recovery_action": after.recovery_action,
        "ok": code != 0 and bool(after.xids) and after.recovery_action in (None, "none"),
    }


CHECKS: Mapping[str, Check] = {
    "signals": signals,
    "quiet": quiet,
    "sample_ages": sample_ages,
    "spinning": spinning,
    "late_grant": late_grant,
    "marks_of_cuda": marks_of_cuda,
    "left_behind": left_behind,
    "parking": parking,
    "checkpointing": checkpointing,
    "application_error": application_error,
}


# --- checkpointing and parking -----------------------------------------------------------------------------------------------


class _BelievedDriver(CudaCheckpointDriver):
    """The product's own driver, which otherwise waits for the record that this check writes."""

    def subject(self, pid: int) -> Subject:
        return replace(super().subject(pid), is_verified=True)


def _checkpoint_round(bench: Bench, checkpointer: Checkpointer, mib: int) -> Figures:
    with bench.worker() as worker:
        _start(worker)
        worker.call("fill", mib)
        before_mib = bench.used_mib()
        away = checkpointer.suspend(worker.pid, bench.slot, LOCK_MS)
        if not away.ok:
            return {"ok": False, "suspend": _told(away)}
        freed_mib = before_mib - bench.used_mib()
        back = checkpointer.resume(worker.pid, bench.slot, away.memory_mib)
        is_intact = back.ok and worker.call("is_intact")
        # Killing a restored process has hung whole machines (NVIDIA/cuda-checkpoint#53): it is suspended before its end.
        end = checkpointer.suspend(worker.pid, bench.slot, LOCK_MS)
        return {
            "suspend": _told(away),
            "resume": _told(back),
            "freed_mib": freed_mib,
            "is_intact": is_intact,
            "ok": bool(is_intact) and freed_mib >= mib and end.ok,
        }


_PARK = """
import json, sys, time
import torch
from gpubroker.torch_parking import TorchParker
tensor = torch.full((int(sys.argv[1]) << 18,), 0x5A17C0D, dtype=torch.int32, device="cuda")
torch.cuda.synchronize()
parker = TorchParker()
refusal = parker.refusal()
found = {"refusal": refusal and refusal.code}
if refusal is None:
    begun = time.monotonic(); found["residue_mib"] = parker.park(); found["park_s"] = round(time.monotonic() - begun, 3)
    begun = time.monotonic(); parker.unpark(); found["unpark_s"] = round(time.monotonic() - begun, 3)
    found["is_intact"] = bool((tensor == 0x5A17C0D).all())
print(json.dumps(found))
"""


def _park_round(bench: Bench, additions: Mapping[str, str], mib: int) -> Figures:
    environment = {**os.environ, **additions, "CUDA_VISIBLE_DEVICES": bench.slot}
    environment["PYTHONPATH"] = str(ROOT / "jupyter_gpubroker" / "kernel")
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PARK, str(mib)],
            env=environment, capture_output=True, text=True, timeout=max(5, min(120, bench.left_s())), check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"ok": False, "error": "it took too long"}
    if done.returncode != 0:
        return {"ok": False, "error": done.stderr[-500:]}
    found: Figures = json.loads(done.stdout.splitlines()[-1])
    return {**found, "ok": found.get("is_intact") is True}


def _fitting(bench: Bench) -> Iterable[int]:
    """The sizes that GPU and host have room for, largest last, while there is time."""
    host_mib = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    room_mib = min(bench.memory_mib * 9 // 10, host_mib * 8 // 10)
    for mib in SIZES_MIB:
        if mib <= room_mib and bench.left_s() > 45:
            yield mib


def _told(outcome: Outcome) -> Figures:
    return {
        "ok": outcome.ok,
        "took_ms": outcome.took_ms,
        "memory_mib": outcome.memory_mib,
        "refusals": [refusal.code for refusal in outcome.refusals],
    }


# --- readings ----------------------------------------------------------------------------------------------------------------


def _start(worker: Worker) -> None:
    worker.call("init")
    worker.call("make_context")


def _use(readings: Iterable[Any]) -> Figures:
    """What is known of each reading."""
    fields = {
        "utilisation": "utilisation_percent",
        "engine": "engine_percent",
        "sm": "sm_percent",
        "dram": "dram_percent",
    }
    readings = list(readings)
    return {
        name: [value for one in readings if (value := getattr(one, field)) is not None]
        for name, field in fields.items()
    }


def _percent_of(bench: Bench, pid: int) -> int:
    for process in bench.look().processes or ():
        if process.pid == pid:
            return process.utilisation_percent or 0
    return 0


def _device_files(pid: int) -> list[str]:
    found = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found.add(str(entry.readlink()))
    return sorted(name for name in found if name.startswith("/dev/nvidia"))


def _settled(bench: Bench, wanted_mib: int, within_s: float = 10.0) -> int:
    """The memory in use once it has come down, or after some time."""
    ends_s = time.monotonic() + within_s
    while (used_mib := bench.used_mib()) > wanted_mib and time.monotonic() < ends_s:
        time.sleep(0.1)
    return used_mib
