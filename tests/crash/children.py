"""A broker's heart without its body: decisions of the real core committed by the real store, in processes made to be killed.

    python -m tests.crash.children

reads lines of JSON, `[NAME, PATH, SEED]`, and forks a child for each, so that starting one costs milliseconds. The child tells
of each batch what the state will be before it commits it (`pending DIGEST`) and after (`committed DIGEST`), or that the store
did not go on (`failed`). The server says `started PID` and, when the child is gone, `ended`.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import random
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NoReturn

from jupyter_gpubroker.core.decide import apply, step
from jupyter_gpubroker.core.decision import Decision
from jupyter_gpubroker.core.events import (
    Event,
    RequestMade,
    SessionOpened,
    SlotObservation,
    SlotsObserved,
)
from jupyter_gpubroker.core.model import (
    MiB,
    Millis,
    Owner,
    RequestId,
    Session,
    SessionId,
    SessionKind,
    SlotId,
    SlotSpec,
    State,
)
from jupyter_gpubroker.errors import Refused
from jupyter_gpubroker.store import ClockMark, Committed, Store, StoreFailed, StoreRefused
from jupyter_gpubroker.store.codec import CODECS
from tests.crash.town import GPUS, NODE, Town, inventory

BATCH_MAX = 4
PAUSES_MS = (0, 10, 1_000, 1_000, 20_000, 3_600_000)
START = ClockMark(Millis(1_000), "boot", 1, 1_795_000_000_000)

DrawEvent = Callable[[State], Event]

ADA = Owner("ada")
KERNEL = Session(SessionId("kernel"), ADA, 1000, SessionKind.KERNEL, "a.ipynb", 2, 1, "boot")
LOOK = SlotsObserved(
    NODE, tuple(SlotObservation(SlotId(gpu), False, False, MiB(5), ()) for gpu in GPUS), frozenset()
)
GRANT = (LOOK, RequestMade(ADA, RequestId("request"), KERNEL.id, SlotSpec()))


def digest(state: State) -> str:
    """One value for everything of a state that is kept."""
    sha = hashlib.sha256(str(state.number).encode())
    for codec in CODECS.values():
        entities = getattr(state, codec.table)
        rows = sorted(entities.items()) if isinstance(entities, dict) else entities
        sha.update(repr(rows).encode())
    return sha.hexdigest()


# --- what a child does ----------------------------------------------------------------------------------------------------


def prepare(path: Path, _seed: int) -> None:
    """Two free GPUs and a kernel that may ask for them."""
    store = Store.open(path)
    commit(store, store.load_state(), (inventory(), SessionOpened(KERNEL), LOOK), START)
    store.close()


def grant_once(path: Path, _seed: int) -> None:
    """Open, commit a request that is granted at once, close."""
    store = Store.open(path)
    commit(store, store.load_state(), GRANT, START)
    store.close()


def write_for_ever(path: Path, seed: int) -> None:
    """Decide and commit random events until killed."""
    store = Store.open(path)
    dice = random.Random(seed)  # noqa: S311
    town = Town(seed)
    state = store.load_state()
    mark = store.mark or START
    while True:
        now = Millis(mark.broker_ms + dice.choice(PAUSES_MS))
        mark = ClockMark(now, mark.boot_id, mark.boottime_ms + 1, mark.wall_ms + 1)
        state = commit(store, state, [town.next_event] * dice.randint(1, BATCH_MAX), mark)


CHILDREN: Mapping[str, Callable[[Path, int], None]] = {
    child.__name__: child for child in (prepare, grant_once, write_for_ever)
}


def commit(
    store: Store, state: State, events: Iterable[Event | DrawEvent], mark: ClockMark
) -> State:
    """Decide a batch and commit it, telling of it before and after."""
    batch = []
    for drawn in events:
        event = drawn(state) if callable(drawn) else drawn
        decision = decide(state, event, mark.broker_ms)
        state = apply(state, decision.changes)
        batch.append(Committed(type(event).__name__, "crash-test", mark.broker_ms, decision))
    tell("pending", digest(state))
    store.commit(batch, mark)
    tell("committed", digest(state))
    return state


def decide(state: State, event: Event, now: Millis) -> Decision:
    try:
        return step(state, event, now)
    except Refused:
        return Decision()


def tell(*words: str) -> None:
    """One line in one write, so that a kill never leaves half of it."""
    os.write(1, (" ".join(words) + "\n").encode())


# --- the server -----------------------------------------------------------------------------------------------------------


def serve(lines: Iterable[str]) -> None:
    allow_tracing()
    for line in lines:
        name, path, seed = json.loads(line)
        pid = os.fork()
        if pid == 0:
            become(name, Path(path), seed)
        tell("started", str(pid))
        os.waitpid(pid, 0)
        tell("ended")


def become(name: str, path: Path, seed: int) -> NoReturn:
    try:
        CHILDREN[name](path, seed)
    except (StoreFailed, StoreRefused):
        tell("failed")
    except BaseException:  # noqa: BLE001
        traceback.print_exc()
        tell("crashed")
    finally:
        os._exit(0)


def allow_tracing() -> None:
    """Let strace attach where the system allows it for a process' own children only (Yama)."""
    pr_set_ptracer, anybody = 0x59616D61, -1
    ctypes.CDLL(None).prctl(pr_set_ptracer, ctypes.c_ulong(anybody))


if __name__ == "__main__":
    serve(sys.stdin)
