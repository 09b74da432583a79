"""The store's writer is killed with -9 at random moments, again and again on the same database.

After each death: what was acknowledged is there; the batch that was not is there fully or not at all; the state breaks no
rule; no epoch was given twice; the audit log is whole and tells the same story as the tables. GPUBROKER_CRASH_CYCLES and
GPUBROKER_CRASH_SEED make the run longer or repeat another one's.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from jupyter_gpubroker.core.check import violations
from jupyter_gpubroker.core.model import State
from jupyter_gpubroker.store import Store
from tests.crash.writer import digest
from tests.support.database import kept, retold, rows

CYCLES = int(os.environ.get("GPUBROKER_CRASH_CYCLES", "100"))
SEED = int(os.environ.get("GPUBROKER_CRASH_SEED", "20261130"))
CYCLES_PER_DATABASE = 10
BATCHES_MAX = 30


class Writers:
    """The server that forks writers, and the dice that say when each dies."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)  # noqa: S311
        self._server = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.writer"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def run_and_kill(self, path: Path, committed: str) -> tuple[str, str]:
        """What the writer acknowledged last (or `committed`, from before) and what it was about to commit."""
        self._say(f"{self._dice.getrandbits(32)} {path}")
        pid = int(self._hear()[1])
        pending = committed
        for _ in range(2 * self._dice.randint(0, BATCHES_MAX)):
            committed, pending = _advance(self._hear(), committed, pending)
        time.sleep(
            self._dice.expovariate(1 / 0.004)
        )  # anywhere within a transaction, or in opening
        os.kill(pid, signal.SIGKILL)
        while (words := self._hear()) != ["ended"]:
            committed, pending = _advance(words, committed, pending)
        return committed, pending

    def close(self) -> None:
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.close()
        self._server.wait()
        self._server.stdout.close()

    def _say(self, line: str) -> None:
        assert self._server.stdin is not None
        self._server.stdin.write(line + "\n")

    def _hear(self) -> list[str]:
        assert self._server.stdout is not None
        words = self._server.stdout.readline().split()
        assert words, "the server ended"
        return words


def _advance(words: list[str], committed: str, pending: str) -> tuple[str, str]:
    word, value = words
    return (value, pending) if word == "committed" else (committed, value)


@pytest.fixture
def writers() -> Iterator[Writers]:
    started = Writers(SEED)
    yield started
    started.close()


def epochs_given(path: Path) -> dict[str, list[int]]:
    """Each slot's epochs in the order in which they were given, from the audit log."""
    given: dict[str, list[int]] = {}
    query = "SELECT entity_id, changed FROM audit WHERE entity_table = 'slots' ORDER BY sequence"
    for slot_id, changed in rows(path, query):
        if changed is not None and "epoch" in (fields := json.loads(changed)):
            given.setdefault(slot_id, []).append(fields["epoch"])
    return given


def examine(path: Path, committed: str, pending: str) -> str:
    """Judge the database a dead writer left; the digest of what it holds."""
    store = Store.open(path)
    state = store.load_state()
    found = digest(state)
    assert found in (committed, pending), "an acknowledged change is lost, or half of one is there"
    assert violations(state) == []
    assert store.audit_broken_at() is None
    assert retold(path) == kept(state)
    store.close()
    for slot_id, epochs in epochs_given(path).items():
        assert all(one < other for one, other in pairwise(epochs)), f"{slot_id}: {epochs}"
    return found


@pytest.mark.timeout(60 + 2 * CYCLES)
def test_a_writer_killed_at_random_moments_loses_nothing_acknowledged_and_leaves_nothing_half(
    writers, tmp_path
):
    print(f"GPUBROKER_CRASH_SEED={SEED} GPUBROKER_CRASH_CYCLES={CYCLES}")
    grants = 0
    for cycle in range(CYCLES):
        path = tmp_path / f"broker-{cycle // CYCLES_PER_DATABASE}.db"
        if cycle % CYCLES_PER_DATABASE == 0:
            committed = digest(State())
        committed = examine(path, *writers.run_and_kill(path, committed))
        if cycle % CYCLES_PER_DATABASE == CYCLES_PER_DATABASE - 1:
            grants += sum(len(epochs) for epochs in epochs_given(path).values())
    print(f"{grants=}")
    assert grants >= CYCLES // 2, "the writers did too little for this test to mean anything"
