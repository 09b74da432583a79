"""What a durable commit costs: ours against plain sqlite3, in one run.

    python -m tests.perf.store_commits

A transaction lends one slot; ours writes a request, a lease and a slot with an audit row for each, sqlite3 the least that does.
Prints transactions per second and CPU milliseconds of each, one by one and grouped: medians of rounds that alternate, so that
other load meets all alike.
"""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from jupyter_gpubroker.core.decision import Decision, Put
from jupyter_gpubroker.core.model import (
    GpuId,
    Hold,
    Lease,
    LeaseId,
    MiB,
    Millis,
    NodeId,
    Owner,
    Reason,
    Request,
    RequestId,
    RequestState,
    SessionId,
    Slot,
    SlotId,
    SlotKind,
    SlotSpec,
    SlotState,
)
from jupyter_gpubroker.store import ClockMark, Committed, Store

ROUNDS = 5
ROUND_S = 1.0
BATCH_SIZES = (1, 32)
MARK = ClockMark(Millis(1), "boot", 1, 1_795_000_000_000)
WHY = Reason.of("granted", place=1)
OWNER, SESSION, SPEC = Owner("ada"), SessionId("kernel"), SlotSpec()
Commit = Callable[[list[Committed]], None]


def grants() -> Iterator[Committed]:
    """Each lends a slot of its own, as a decision of the core would."""
    for number in count(1):
        slot_id, lease_id = SlotId(f"GPU-{number:032x}"), LeaseId(f"{number:032x}")
        request = Request(
            RequestId(lease_id), number, OWNER, SESSION, SPEC, "interactive",
            state=RequestState.GRANTED, lease_id=lease_id,
        )  # fmt: skip
        lease = Lease(lease_id, OWNER, SESSION, "interactive", (Hold(slot_id, 1),), SPEC)
        slot = Slot(
            slot_id, GpuId(slot_id), NodeId("here"), SlotKind.GPU, "H200", MiB(143_771),
            state=SlotState.LEASED, epoch=1, lease_id=lease_id,
        )  # fmt: skip
        changes = (Put(request), Put(lease), Put(slot))
        reasons = (
            ("requests", request.id, WHY),
            ("leases", lease.id, WHY),
            ("slots", slot.id, WHY),
        )
        decision = Decision(changes, reasons=reasons)
        yield Committed("RequestMade", lease_id, Millis(number), decision)


def ours(folder: Path) -> Commit:
    store = Store.open(folder / "ours.db")
    return lambda batch: store.commit(batch, MARK)


def plain(folder: Path) -> Commit:
    """The least that lends a slot: one row inserted, one updated, no audit, no types."""
    connection = sqlite3.connect(folder / "plain.db", isolation_level=None)
    for statement in (
        "PRAGMA journal_mode = WAL",
        "PRAGMA synchronous = FULL",
        "CREATE TABLE slots (id INTEGER PRIMARY KEY, lease TEXT)",
        "CREATE TABLE leases (id TEXT PRIMARY KEY, slot INTEGER, owner TEXT, state TEXT)",
    ):
        connection.execute(statement)
    connection.executemany("INSERT INTO slots VALUES (?, NULL)", [(n,) for n in range(512)])
    numbers = count()

    def commit(batch: list[Committed]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        for committed in batch:
            lease_id, slot = committed.cause_id, next(numbers) % 512
            connection.execute(
                "INSERT INTO leases VALUES (?, ?, 'ada', 'granted')", (lease_id, slot)
            )
            connection.execute("UPDATE slots SET lease = ? WHERE id = ?", (lease_id, slot))
        connection.execute("COMMIT")

    return commit


@dataclass(frozen=True)
class Rate:
    commits_per_s: float
    cpu_ms: float  # per transaction


def measure(commit: Commit, story: Iterator[Committed], batch_size: int) -> Rate:
    commits, wall_s, cpu_s = 0, 0.0, 0.0
    while wall_s < ROUND_S:
        batch = [next(story) for _ in range(batch_size)]
        wall_from, cpu_from = time.perf_counter(), time.process_time()
        commit(batch)
        wall_s += time.perf_counter() - wall_from
        cpu_s += time.process_time() - cpu_from
        commits += 1
    return Rate(commits / wall_s, 1_000 * cpu_s / (commits * batch_size))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        writers = {"ours": ours(Path(folder)), "plain": plain(Path(folder))}
        stories = {name: grants() for name in writers}
        rates: dict[tuple[str, int], list[Rate]] = defaultdict(list)
        for _ in range(ROUNDS):
            for name, commit in writers.items():
                for size in BATCH_SIZES:
                    rates[name, size].append(measure(commit, stories[name], size))
        per_s = {key: report(*key, some) for key, some in rates.items()}
    print(f"ours / plain, one by one: {per_s['ours', 1] / per_s['plain', 1]:.2f}")
    print(f"ours grouped / plain one by one: {per_s['ours', 32] / per_s['plain', 1]:.2f}")


def report(name: str, size: int, rates: list[Rate]) -> float:
    """Print the medians; the transactions per second."""
    per_s = size * statistics.median(rate.commits_per_s for rate in rates)
    cpu_ms = statistics.median(rate.cpu_ms for rate in rates)
    print(f"{name:>5}, {size:>2} per commit: {per_s:6.0f} transactions/s, {cpu_ms:.3f} CPU ms each")
    return per_s


if __name__ == "__main__":
    main()
