"""Judges the database that a dead process left behind."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

from jupyter_gpubroker.core.check import violations
from jupyter_gpubroker.store import Store
from tests.crash.children import digest
from tests.crash.nursery import Child
from tests.support.database import kept, retold, rows


def examine(path: Path, child: Child) -> str:
    """The digest of what the database holds, which is what the child acknowledged last or all of what it was committing.

    The state breaks no rule, no epoch was given twice, and the audit log is whole and tells the same story as the tables.
    """
    store = Store.open(path)
    state = store.load_state()
    found = digest(state)
    assert found in (child.committed, child.pending), (
        "an acknowledged change is lost, or half of one is there"
    )
    assert violations(state) == []
    assert store.audit_broken_at() is None
    assert retold(path) == kept(state)
    store.close()
    for slot_id, epochs in epochs_given(path).items():
        assert all(one < other for one, other in pairwise(epochs)), f"{slot_id}: {epochs}"
    return found


def epochs_given(path: Path) -> dict[str, list[int]]:
    """Each slot's epochs in the order in which they were given, from the audit log."""
    given: dict[str, list[int]] = {}
    query = "SELECT entity_id, changed FROM audit WHERE entity_table = 'slots' ORDER BY sequence"
    for slot_id, changed in rows(path, query):
        if changed is not None and "epoch" in (fields := json.loads(changed)):
            given.setdefault(slot_id, []).append(fields["epoch"])
    return given
