"""From a notebook's release to the first line of the batch job that waited for its GPU. Aim: p50 at most 150 ms.

    python tests/perf/release_to_first_line.py [--rounds 40]

Everything is real but the GPU: broker, runner, spool, a Python job. The job's first line is the moment at which it wrote it, on
the clock that all processes share. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from jupyter_gpubroker.client import routes
from jupyter_gpubroker.wire.bodies import ReleaseBody
from tests.support.broker import Holder, RunningBroker, running_broker
from tests.support.command_line import ended_runner, job_in, submit

FIRST_LINE = "import time; print(time.monotonic())"
AIM_MS = 150


def measure(broker: RunningBroker, rounds: int) -> list[float]:
    """Milliseconds of each round."""
    taken_ms = []
    for _ in range(rounds):
        with Holder(broker) as holder:
            lease = holder.acquire()
            job_id = submit(broker, "--", sys.executable, "-c", FIRST_LINE)
            assert job_in(broker, job_id, "queued").place == 1
            released_s = time.monotonic()
            broker.client.call(routes.RELEASE, lease.id, ReleaseBody(kind="empty", done=True))
            assert job_in(broker, job_id, "ended").exit_status == 0
            first_line_s = float((broker.places.state / "jobs" / job_id / "stdout.log").read_text())
            taken_ms.append((first_line_s - released_s) * 1000)
    return taken_ms


def main() -> None:
    """Measure in folders of one's own and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    root = Path(tempfile.mkdtemp(prefix="gb-perf-", dir="/tmp"))
    for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        (root / name).mkdir(mode=0o700)
        os.environ[name] = str(root / name)
    try:
        with running_broker("1xH200") as broker, ended_runner(broker):
            taken_ms = measure(broker, rounds)
    finally:
        shutil.rmtree(root)
    print(
        json.dumps(
            {
                "figure": "release_to_first_line_ms",
                "rounds": rounds,
                "p50": round(statistics.median(taken_ms), 1),
                "p95": round(statistics.quantiles(taken_ms, n=20)[-1], 1),
                "least": round(min(taken_ms), 1),
                "most": round(max(taken_ms), 1),
                "aim_p50": AIM_MS,
            }
        )
    )


if __name__ == "__main__":
    main()
