"""One grant, from opening the store to closing it, is struck at every single write, sync and truncation.

strace injects the blow: the process is killed in place of the call, or the call fails as on a broken or a full disk.
"""

from __future__ import annotations

import shutil
from collections import Counter

import pytest

from jupyter_gpubroker.core.model import State
from tests.crash.children import digest
from tests.crash.examination import examine
from tests.crash.nursery import has_struck, struck

# The fewest strikes that mean that the whole grant was gone through.
STRIKES_MIN = {"pwrite64": 20, "fdatasync,fsync": 3, "ftruncate": 1}


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace: apt-get install strace")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("syscalls", STRIKES_MIN)
@pytest.mark.parametrize("fault", ["signal=SIGKILL", "error=EIO", "error=ENOSPC"])
def test_a_grant_struck_at_any_call_happened_fully_or_not_at_all(
    nursery, tmp_path, syscalls, fault
):
    prepared = tmp_path / "prepared.db"
    child = nursery.start("prepare", prepared, 0, digest(State()))
    child.hear_out()
    before = examine(prepared, child)

    outcomes: Counter[str] = Counter()
    for number in range(1, 1_000):
        path = tmp_path / f"struck-{number}.db"
        shutil.copy(prepared, path)
        with struck(nursery, syscalls, number, fault, tmp_path / "strace.log"):
            child = nursery.start("grant_once", path, 0, before)
            child.hear_out()
        if not has_struck(tmp_path / "strace.log"):
            break
        assert "crashed" not in child.said
        after = examine(path, child)
        outcomes["nothing" if after == before else "granted"] += 1
    assert child.said == ["pending", "committed"], "unstruck it is granted"
    assert outcomes.total() >= STRIKES_MIN[syscalls]
    print(f"{syscalls} {fault}: {dict(outcomes)}")
