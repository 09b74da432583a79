"""What a look at the devices costs the core while nothing changes, with and without somebody who waits.

    python tests/perf/core_step.py [--leases 64] [--rounds 100]

Every GPU is held by a kernel, half of them at work. Prints one JSON object: microseconds of processor time for each lease and
look (the least of all rounds, and their median).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from jupyter_gpubroker.core.decide import advance
from jupyter_gpubroker.core.events import SlotObservation, SlotsObserved
from jupyter_gpubroker.core.model import MiB, Millis
from tests.support.core_world import NODE, SECOND, World, whole


def held(leases: int) -> World:
    world = World().devices(*[whole(number) for number in range(leases)])
    for number in range(leases):
        world.holds(f"k{number}")
        world.uses(f"k{number}", f"GPU-{number}", busy=number % 2 == 0)
    for _ in range(30):
        world.now = Millis(world.now + SECOND)
        world.look()
    return world


def look_us(world: World, rounds: int) -> list[float]:
    """For each round, what a lease costs."""
    looks = tuple(
        SlotObservation(slot.id, shown.busy, False, MiB(shown.memory_mib or 0), shown.processes)
        for slot, shown in zip(world.state.slots.values(), world.shown.values(), strict=True)
    )
    event = SlotsObserved(NODE, looks, frozenset())
    state, now, taken = world.state, world.now, []
    for _ in range(rounds):
        now = Millis(now + SECOND)
        began = time.process_time()
        _, state = advance(state, event, now)
        taken.append((time.process_time() - began) * 1e6 / len(looks))
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--leases", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args()
    figures: dict[str, float] = {}
    world = held(options.leases)
    for name in ("nobody_waits", "somebody_waits"):
        if name == "somebody_waits":
            world.session("rival")
            world.asks("rival")
        taken = look_us(world, options.rounds)
        figures[f"{name}_us_min"] = round(min(taken), 1)
        figures[f"{name}_us_p50"] = round(statistics.median(taken), 1)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
