"""Questions about what happened are answered beside the writer, with bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_gpubroker.core.decision import Decision, Put
from jupyter_gpubroker.core.model import Entity, Millis, Reason
from jupyter_gpubroker.store import Archive, Committed, Sought, Store, StoreRefused, UsageRow
from tests.unit.store.entities import a_lease, a_slot
from tests.unit.store.stories import MARK


def said(entity: Entity, code: str, event: str = "Ticked") -> Committed:
    assert entity.TABLE is not None
    decision = Decision((Put(entity),), (), ((entity.TABLE, entity.id, Reason.of(code)),))
    return Committed(event, "", Millis(1), decision)


@pytest.fixture
def store(tmp_path: Path):
    store = Store.open(tmp_path / "broker.db")
    yield store
    store.close()


@pytest.fixture
def archive(tmp_path: Path, store: Store) -> Archive:
    return Archive(tmp_path / "broker.db")


def test_the_newest_rows_come_oldest_first_and_one_can_ask_on(store, archive) -> None:
    store.commit([said(a_slot(epoch=epoch), "floor_measured") for epoch in range(1, 6)], MARK)
    newest, looked_to = archive.audit(Sought(limit=2))
    assert ([row.sequence for row in newest], looked_to) == ([4, 5], 5)
    assert archive.audit(Sought(after=looked_to)) == ([], 5)
    store.commit([said(a_slot(epoch=6), "floor_measured")], MARK)
    more, looked_to = archive.audit(Sought(after=looked_to))
    assert ([row.sequence for row in more], looked_to) == ([6], 6)


def test_who_asks_for_no_rows_gets_one_at_a_time(store, archive) -> None:
    store.commit([said(a_slot(epoch=epoch), "floor_measured") for epoch in range(1, 3)], MARK)
    rows, looked_to = archive.audit(Sought(after=0, limit=0))
    assert ([row.sequence for row in rows], looked_to) == ([1], 1)
    assert archive.audit(Sought(after=2, limit=0)) == ([], 2)


def test_rows_are_found_by_what_one_looks_for(store, archive) -> None:
    store.commit(
        [said(a_slot(), "device_reported"), said(a_lease("a"), "revoked", "LeaseRevoked")], MARK
    )
    for sought in (
        Sought(table="leases"),
        Sought(event="LeaseRevoked"),
        Sought(code="revoked"),
        Sought(entity_id="a"),
    ):
        (row,) = archive.audit(sought)[0]
        assert row.entity_id == "a"
    assert archive.audit(Sought(code="revoked", entity_id="b"))[0] == []


def test_what_was_taken_or_would_have_been_is_found_by_an_index(store, archive) -> None:
    codes = ["taken", "verdict", "only_observed"]
    store.commit([said(a_lease(code), code) for code in codes], MARK)
    assert [row.entity_id for row in archive.takings("1970")] == ["taken", "only_observed"]
    assert archive.takings("9999") == []


def test_gpu_time_adds_up_by_owner(store, archive) -> None:
    store.add_usage([UsageRow(7, "ada", held=3, idle=1), UsageRow(7, "bob", held=1)])
    store.add_usage([UsageRow(7, "ada", held=2), UsageRow(8, "ada", wanted=5)])
    assert list(archive.usage(7)) == [
        UsageRow(7, "ada", held=5, idle=1, wanted=5),
        UsageRow(7, "bob", held=1),
    ]
    assert [row.owner for row in archive.usage(8)] == ["ada"]


def test_a_database_that_is_not_there_is_told(tmp_path) -> None:
    with pytest.raises(StoreRefused):
        Archive(tmp_path / "nothing.db").usage(0)
