"""How long the broker leaves a caller waiting while the driver hangs: the probe blocks, the broker must not.

    python tests/perf/hanging_driver.py [--seconds 10]

A real broker on simulated GPUs, of which one never answers from some moment on. Asks for its health again and again over the
socket, before and during that, and prints one JSON object: the longest and the 99th percentile of the answers in
milliseconds, and what the broker said of the devices meanwhile.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from jupyter_gpubroker.client import Places, routes
from jupyter_gpubroker.devices.simulated_faults import FAULTS
from tests.support.broker import RunningBroker, running_broker


def answers_ms(broker: RunningBroker, seconds: float) -> list[float]:
    found, ends_s = [], time.monotonic() + seconds
    while (began_s := time.monotonic()) < ends_s:
        broker.client.call(routes.HEALTH)
        found.append((time.monotonic() - began_s) * 1000)
        time.sleep(0.005)
    return found


def measure(seconds: float) -> dict[str, object]:
    with running_broker("2xH200") as broker:
        places = Places.find(broker.environ)
        before = answers_ms(broker, seconds / 2)
        sick = broker.client.call(routes.GPUS).gpus[0].uuid
        faults = places.simulated / FAULTS
        faults.write_text(json.dumps({"hanging": [sick]}))
        during = answers_ms(broker, seconds)
        problem = broker.client.call(routes.HEALTH).problem
        faults.unlink()
        return {
            "before_ms": _figures(before),
            "during_ms": _figures(during),
            "said": None if problem is None else problem.code,
        }


def _figures(answers: list[float]) -> dict[str, float]:
    return {
        "p50": round(statistics.median(answers), 1),
        "p99": round(statistics.quantiles(answers, n=100)[-1], 1),
        "longest": round(max(answers), 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    print(json.dumps(measure(parser.parse_args().seconds), indent=2))


if __name__ == "__main__":
    main()
