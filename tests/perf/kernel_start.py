"""What we add to the start of a kernel: from asking the Jupyter server to the end of its first cell. Aim: at most 50 ms.

    python tests/perf/kernel_start.py [--pairs 80]

Two real Jupyter servers on this machine, one with us and one without our extension, start kernels in turn, the order within a
pair drawn by lot. Our modules are compiled first, as they are where the package was installed. Prints one JSON object: the
medians, and the median of the paired differences with its 95 % interval (bootstrap).
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from websocket import WebSocketTimeoutException

sys.path.insert(0, str(Path(__file__).parents[2]))

import jupyter_gpubroker
from tests.integration.server.jupyter import JupyterServer, Kernel, running_server
from tests.support.broker import running_broker

AIM_MS = 50
RESAMPLES = 10_000
SEED = 1
WITHOUT_US = "--ServerApp.jpserver_extensions={'jupyter_gpubroker': False}"


def start_ms(server: JupyterServer) -> float:
    """Start a kernel and run a cell; then end it, which is not counted."""
    began_s = time.monotonic()
    answer = server.http.post("/api/kernels", json={"name": "python3"}).raise_for_status()
    kernel = Kernel(server, answer.json()["id"])
    with kernel.front_end() as page:
        page.run("pass")
        taken_ms = (time.monotonic() - began_s) * 1000
    kernel.delete()
    return taken_ms


def measure(
    ours: JupyterServer, plain: JupyterServer, pairs: int, lot: random.Random
) -> list[tuple[float, float]]:
    """Milliseconds with us and without, pair by pair. The first pair warms the caches and is left out.

    On a loaded machine a starting ipykernel may lose its first request, with us or without: that pair is drawn again.
    """
    taken: list[tuple[float, float]] = []
    while len(taken) < pairs + 1:
        servers = [ours, plain]
        lot.shuffle(servers)
        try:
            found = {server.url: start_ms(server) for server in servers}
        except WebSocketTimeoutException:
            print("a kernel lost its first request; the pair is drawn again", file=sys.stderr)
            continue
        taken.append((found[ours.url], found[plain.url]))
    return taken[1:]


def interval(values: Sequence[float], lot: random.Random) -> tuple[float, float]:
    """The 95 % bootstrap interval of the median."""
    medians = sorted(
        statistics.median(lot.choices(values, k=len(values))) for _ in range(RESAMPLES)
    )
    return medians[RESAMPLES // 40], medians[-RESAMPLES // 40]


def main() -> None:
    """Measure in folders of one's own and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=80)
    pairs = parser.parse_args().pairs
    compileall.compile_dir(jupyter_gpubroker.__path__[0], quiet=1)
    lot = random.Random(SEED)  # noqa: S311 - a lot that can be drawn again
    root = Path(tempfile.mkdtemp(prefix="gb-perf-", dir="/tmp"))
    for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "with", "without"):
        (root / name).mkdir(mode=0o700)
        os.environ[name] = str(root / name)
    try:
        with (
            running_broker("1xH200") as broker,
            running_server(broker, root / "with") as ours,
            running_server(broker, root / "without", WITHOUT_US) as plain,
        ):
            taken = measure(ours, plain, pairs, lot)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    added = [with_us - without for with_us, without in taken]
    low, high = interval(added, lot)
    figures = {
        "pairs": pairs,
        "with_us_ms_p50": round(statistics.median(t[0] for t in taken), 1),
        "without_ms_p50": round(statistics.median(t[1] for t in taken), 1),
        "added_ms_p50": round(statistics.median(added), 1),
        "added_ms_p50_95_percent": [round(low, 1), round(high, 1)],
        "aim_ms": AIM_MS,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
