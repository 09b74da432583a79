"""Checks on a real GPU what documentation alone cannot settle, and switches on the give-back kinds that were seen to work.

    python -m tests.hardware [--state FOLDER] [--only CHECK ...]

Takes at most 8 minutes. Writes `hardware-report.json` to the state folder, and there `park-verified.json` and
`checkpoint-verified.json` where these were seen to work with this driver and GPU; where they were seen to fail, the records
are removed. Without a free whole GPU it says why and ends with 0. Needs `libcuda`; parking also PyTorch and
torch-memory-saver, checkpointing cuda-bindings.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from jupyter_gpubroker.client import Places
from jupyter_gpubroker.devices.checkpoint_driver import DriverError
from jupyter_gpubroker.devices.nvml import NvmlReader
from jupyter_gpubroker.devices.reader import Reader

from .bench import Bench, Skipped, WorkerFailed, open_bench
from .checks import CHECKS, Check, Figures

TIME_S = 8 * 60.0
RECORDS = {"parking": "park-verified.json", "checkpointing": "checkpoint-verified.json"}


def run(
    reader: Reader, state: Path, checks: Mapping[str, Check] = CHECKS, only: Iterable[str] = ()
) -> Figures:
    """All checks, or those named. Raises Skipped if none can be made."""
    ends_s = time.monotonic() + TIME_S
    bench = open_bench(reader, lambda: ends_s - time.monotonic())
    chosen = {name: check for name, check in checks.items() if not only or name in only}
    found = {name: _one(check, bench) for name, check in chosen.items()}
    report = {
        "driver_version": bench.driver_version,
        "model": bench.model,
        "took_s": round(TIME_S - bench.left_s(), 1),
        "checks": found,
    }
    state.mkdir(mode=0o700, parents=True, exist_ok=True)
    (state / "hardware-report.json").write_text(json.dumps(report, indent=2))
    for name, record in RECORDS.items():
        _record(state / record, bench, found.get(name, {}))
    return report


def _one(check: Check, bench: Bench) -> Figures:
    began_s = time.monotonic()
    if bench.left_s() <= 0:
        return {"skipped": "the time for all checks was over"}
    try:
        figures = check(bench)
    except Skipped as error:
        figures = {"skipped": str(error)}
    except (DriverError, WorkerFailed, AssertionError, OSError) as error:
        figures = {"ok": False, "error": f"{type(error).__name__}: {error}"[:500]}
    return {**figures, "took_s": round(time.monotonic() - began_s, 1)}


def _record(path: Path, bench: Bench, figures: Figures) -> None:
    """Write the record of what was seen to work; take it back if it was seen to fail."""
    if figures.get("ok") is True:
        seen = {"verified": True, "driver_version": bench.driver_version, "models": [bench.model]}
        path.write_text(json.dumps(seen))
    elif figures.get("ok") is False:
        path.unlink(missing_ok=True)


def _line(name: str, figures: Figures) -> str:
    if "skipped" in figures:
        return f"skipped  {name}: {figures['skipped']}"
    word = "as expected" if figures["ok"] else "OTHERWISE"
    shown = {key: value for key, value in figures.items() if key not in ("ok", "dump")}
    return f"{word}  {name}: {json.dumps(shown)}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hardware", description=__doc__)
    parser.add_argument("--state", type=Path, help="where report and records go")
    parser.add_argument("--only", nargs="+", choices=sorted(CHECKS), default=())
    arguments = parser.parse_args()
    state = arguments.state or Places.find().state
    reader = NvmlReader()
    try:
        report = run(reader, state, only=arguments.only)
    except Skipped as error:
        print(f"skipped: {error}")
        return 0
    finally:
        reader.close()
    print(f"{report['model']}, driver {report['driver_version']}, {report['took_s']} s")
    for name, figures in report["checks"].items():
        print(_line(name, figures))
    print(f"The report is {state / 'hardware-report.json'}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
