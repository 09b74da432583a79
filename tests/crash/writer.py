"""A broker's heart without its body: decisions of the real core, committed by the real store, until it is killed.

    python -m tests.crash.writer

reads lines `SEED PATH` and forks a child for each, so that starting one costs milliseconds. The child tells of each batch
what the state will be before it commits it (`pending DIGEST`) and after (`committed DIGEST`); the server says `started PID`
and, when the child is gone, `ended`.
"""

from __future__ import annotations

import hashlib
import os
import random
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path

from jupyter_gpubroker.core.decide import apply, step
from jupyter_gpubroker.core.decision import Decision
from jupyter_gpubroker.core.events import Event
from jupyter_gpubroker.core.model import Millis, State
from jupyter_gpubroker.errors import Refused
from jupyter_gpubroker.store import ClockMark, Committed, Store
from jupyter_gpubroker.store.codec import CODECS
from tests.crash.town import Town

BATCH_MAX = 4
PAUSES_MS = (0, 10, 1_000, 1_000, 20_000, 3_600_000)
START = ClockMark(Millis(1), "boot", 1, 1_795_000_000_000)


def digest(state: State) -> str:
    """One value for everything of a state that is kept."""
    sha = hashlib.sha256(str(state.number).encode())
    for codec in CODECS.values():
        entities = getattr(state, codec.table)
        rows = sorted(entities.items()) if isinstance(entities, dict) else entities
        sha.update(repr(rows).encode())
    return sha.hexdigest()


def work(path: Path, seed: int) -> None:
    """Decide and commit until killed."""
    store = Store.open(path)
    dice = random.Random(seed)  # noqa: S311
    town = Town(seed)
    state = store.load_state()
    mark = store.mark or START
    while True:
        now = Millis(mark.broker_ms + dice.choice(PAUSES_MS))
        mark = ClockMark(now, mark.boot_id, mark.boottime_ms + 1, mark.wall_ms + 1)
        batch: list[Committed] = []
        for _ in range(dice.randint(1, BATCH_MAX)):
            event = town.next_event(state)
            decision = decide(state, event, now)
            state = apply(state, decision.changes)
            batch.append(Committed(type(event).__name__, "crash-test", now, decision))
        tell("pending", digest(state))
        store.commit(batch, mark)
        tell("committed", digest(state))


def decide(state: State, event: Event, now: Millis) -> Decision:
    try:
        return step(state, event, now)
    except Refused:
        return Decision()


def tell(*words: str) -> None:
    """One line in one write, so that a kill never leaves half of it."""
    os.write(1, (" ".join(words) + "\n").encode())


def serve(lines: Iterable[str]) -> None:
    for line in lines:
        seed, path = line.rstrip("\n").split(" ", 1)
        pid = os.fork()
        if pid == 0:
            try:
                work(Path(path), int(seed))
            except BaseException:  # noqa: BLE001
                traceback.print_exc()
            finally:
                os._exit(1)
        tell("started", str(pid))
        os.waitpid(pid, 0)
        tell("ended")


if __name__ == "__main__":
    serve(sys.stdin)
