"""From asking for a free GPU to holding it, over the socket. Also what each call costs the broker.

    python tests/perf/request_to_grant.py [--rounds 300]

A real broker on simulated GPUs; one client asks, acknowledges and gives back, again and again. Prints one JSON object: the
time from PUT to the answer that names the devices (median and 95th percentile), the broker's processor time for a round of
three committed calls, and the processor time until it listened.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[2]))

from jupyter_gpubroker.client import routes
from jupyter_gpubroker.wire.bodies import ReleaseBody
from jupyter_gpubroker.wire.views import LeaseView
from tests.support.broker import Holder, RunningBroker, running_broker

DONE = ReleaseBody(kind="empty", done=True)


def ask_until_granted(broker: RunningBroker, holder: Holder) -> tuple[LeaseView, float]:
    """The lease and how long it took. A slot just given back may have to be seen clear first; that is not measured."""
    while True:
        began_s = time.perf_counter()
        request = holder.ask()
        took_s = time.perf_counter() - began_s
        if request.lease is not None:
            return request.lease, took_s
        broker.client.call(routes.CANCEL_REQUEST, request.id)


def measure(rounds: int) -> dict[str, float | int]:
    with running_broker("2xH200", arguments=()) as broker, Holder(broker) as holder:
        process = psutil.Process(broker.process.pid)
        before = process.cpu_times()
        took_s = []
        for _ in range(rounds):
            lease, seconds = ask_until_granted(broker, holder)
            took_s.append(seconds)
            broker.client.call(routes.ACKNOWLEDGE, lease.id)
            broker.client.call(routes.RELEASE, lease.id, DONE)
        after = process.cpu_times()
        cpu_s = after.user + after.system - before.user - before.system
        return {
            "rounds": rounds,
            "request_to_grant_ms_p50": round(statistics.median(took_s) * 1e3, 2),
            "request_to_grant_ms_p95": round(statistics.quantiles(took_s, n=20)[-1] * 1e3, 2),
            "request_to_grant_ms_min": round(min(took_s) * 1e3, 2),
            "round_cpu_ms": round(cpu_s / rounds * 1e3, 2),
            "start_cpu_s": broker.start_cpu_s,
            "load_average": round(os.getloadavg()[0], 1),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=300)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="gb-", dir="/tmp") as folder:
        for name in ("XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
            place = Path(folder) / name[4:7].lower()
            place.mkdir(mode=0o700)
            os.environ[name] = str(place)
        print(json.dumps(measure(rounds)))


if __name__ == "__main__":
    main()
