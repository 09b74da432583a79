"""The store's writer is killed with -9 at random moments, again and again on the same database.

GPUBROKER_CRASH_CYCLES makes the run longer; GPUBROKER_CRASH_SEED repeats what another run wrote and when it killed.
"""

from __future__ import annotations

import os
import random
import signal
import time

import pytest

from jupyter_gpubroker.core.model import State
from tests.crash.children import digest
from tests.crash.examination import epochs_given, examine

CYCLES = int(os.environ.get("GPUBROKER_CRASH_CYCLES", "50"))
SEED = int(os.environ.get("GPUBROKER_CRASH_SEED", "20261130"))
CYCLES_PER_DATABASE = 10
BATCHES_MAX = 30


@pytest.mark.timeout(60 + 2 * CYCLES)
def test_a_writer_killed_at_random_moments_loses_nothing_acknowledged_and_leaves_nothing_half(
    nursery, tmp_path
):
    print(f"GPUBROKER_CRASH_SEED={SEED} GPUBROKER_CRASH_CYCLES={CYCLES}")
    dice = random.Random(SEED)  # noqa: S311
    held, grants = "", 0
    for cycle in range(CYCLES):
        path = tmp_path / f"broker-{cycle // CYCLES_PER_DATABASE}.db"
        if not path.exists():
            held = digest(State())
        child = nursery.start("write_for_ever", path, dice.getrandbits(32), held)
        for _ in range(2 * dice.randint(0, BATCHES_MAX)):
            assert child.hear(), "the writer ended by itself"
        time.sleep(dice.expovariate(1 / 0.004))  # anywhere within a transaction, or in opening
        os.kill(child.pid, signal.SIGKILL)
        child.hear_out()
        held = examine(path, child)
        if (cycle + 1) % CYCLES_PER_DATABASE == 0:
            grants += sum(len(epochs) for epochs in epochs_given(path).values())
    assert grants >= CYCLES // 2, "the writers did too little for this test to mean anything"
