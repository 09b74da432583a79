"""How long the agent takes per tick to say whose the processes on the GPUs are: a thousand sessions on one node.

    python tests/perf/attribution.py [--sessions 1000] [--slots 64] [--ticks 30]

Real processes: each session is a process with a child, and the child is on a GPU. Timed are the attribution of all these
children, and the agent's whole look at them with the host's counters of the holders' trees. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from jupyter_gpubroker.agent.attribution import Attribution
from jupyter_gpubroker.agent.exempt import Exempt
from jupyter_gpubroker.agent.holdings import Holder, HolderIndex, Holdings, SlotHolding
from jupyter_gpubroker.agent.lookout import Lookout
from jupyter_gpubroker.agent.pids import Trust
from jupyter_gpubroker.agent.processes import ProcessTable
from jupyter_gpubroker.core.events import ProcessOwner
from jupyter_gpubroker.core.model import SlotId
from jupyter_gpubroker.devices.reader import ProcessReading, SlotReading

# Starts so many sessions, each with a child, says their numbers, and ends them with itself.
NURSERY = """
import os, signal, sys
sessions = []
for _ in range(int(sys.argv[1])):
    told, tells = os.pipe()
    if (session := os.fork()) == 0:
        os.setsid()
        if (child := os.fork()) == 0:
            signal.pause()
        os.write(tells, b"%d" % child)
        signal.pause()
    sessions.append((session, int(os.read(told, 20))))
    os.close(told); os.close(tells)
print(repr(sessions), flush=True)
sys.stdin.read()
for session, child in sessions:
    os.kill(child, 9); os.kill(session, 9)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--slots", type=int, default=64, help="slots that are leased")
    parser.add_argument("--ticks", type=int, default=30)
    arguments = parser.parse_args()
    with subprocess.Popen(
        [sys.executable, "-S", "-c", NURSERY, str(arguments.sessions)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as nursery:
        assert nursery.stdout is not None
        pairs: list[tuple[int, int]] = json.loads(
            nursery.stdout.readline().decode().translate(str.maketrans("()", "[]"))
        )
        try:
            result = measure(pairs, arguments.slots, arguments.ticks)
        finally:
            nursery.communicate()
    print(json.dumps(result, indent=2))


def measure(pairs: Sequence[tuple[int, int]], slots: int, ticks: int) -> dict[str, object]:
    table = ProcessTable()
    holders = tuple(_holder(table, str(number), pid) for number, (pid, _) in enumerate(pairs))
    # Every session's child is on a GPU; the first sessions hold the slots, the others share these.
    readings = [
        SlotReading(
            f"GPU-{slot}",
            0,
            0,
            tuple(ProcessReading(child, "compute", 400, 0) for _, child in pairs[slot::slots]),
        )
        for slot in range(slots)
    ]
    held = {SlotId(f"GPU-{slot}"): SlotHolding(1, str(slot)) for slot in range(slots)}
    index = HolderIndex(holders)
    attribution = Attribution(table)

    def attribute() -> None:
        for slot, reading in enumerate(readings):
            found = attribution.on_slot(
                reading.processes or (), index, frozenset({str(slot)}), Trust.LIKELY
            )
            assert all(process.holder_id is not None for process in found)

    lookout = Lookout(table, Exempt())
    holdings = Holdings(holders, held)
    return {
        "sessions": len(pairs),
        "attribution": _timed(attribute, ticks),
        "whole look": _timed(lambda: lookout.look(readings, holdings, False), ticks),
    }


def _holder(table: ProcessTable, name: str, pid: int) -> Holder:
    process = table.process(pid)
    assert process is not None
    return Holder(name, ProcessOwner.SESSION, os.getuid(), pid, process.start_ticks, name)


def _timed(work: Callable[[], object], ticks: int) -> dict[str, float]:
    """Milliseconds of processor time per tick, and of the first, in which every process is new."""
    times_ms = []
    for _ in range(ticks + 1):
        start_s = time.thread_time()
        work()
        times_ms.append((time.thread_time() - start_s) * 1000)
    first, *rest = times_ms
    return {
        "first_ms": round(first, 1),
        "p50_ms": round(statistics.median(rest), 1),
        "max_ms": round(max(rest), 1),
    }


if __name__ == "__main__":
    main()
