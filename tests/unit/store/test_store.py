"""What is committed is there, all of it or nothing, with an audit row for each change; and never two leases on one slot."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_gpubroker.core.model import (
    Entity,
    GpuId,
    Hold,
    Lease,
    LeaseState,
    Millis,
    NodeId,
    SlotId,
    SlotState,
    State,
    Telemetry,
)
from jupyter_gpubroker.core.rules import GENTLE, Limits
from jupyter_gpubroker.store import ClockMark, Store, StoreFailed
from tests.support.database import kept, retold, rows
from tests.unit.store.entities import a_job, a_lease, a_slot, entities
from tests.unit.store.stories import MARK, WHY, drop, put


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "broker.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    opened = Store.open(path)
    yield opened
    opened.close()


def storable(entity: Entity) -> Entity:
    """Random leases hold nothing (what the database refuses has tests of its own), and there is one row of limits."""
    if isinstance(entity, Lease):
        return replace(entity, holds=())
    return replace(entity, id="limits") if isinstance(entity, Limits) else entity


def test_a_new_store_holds_what_a_new_state_holds(store):
    assert store.load_state() == State()
    assert (store.mark, store.incarnation, store.audit_broken_at()) == (None, 1, None)


def test_what_was_committed_is_there_for_the_next_broker(store, path):
    slot, lease = a_slot(state=SlotState.LEASED, epoch=1), a_lease("lease", ("GPU-1", 1))
    store.commit([put(slot, lease)], MARK)
    store.close()
    again = Store.open(path)
    state = again.load_state()
    assert (state.slots, state.leases) == ({slot.id: slot}, {lease.id: lease})
    assert (again.mark, again.incarnation) == (MARK, 2)
    again.close()


@given(
    batches=st.lists(st.lists(entities().map(storable), max_size=3), max_size=3),
    dropped=st.sets(st.integers(0, 9)),
)
@settings(max_examples=30)
def test_any_story_is_kept_as_told_and_the_audit_rows_alone_tell_it_again(
    tmp_path_factory, batches, dropped
):
    path = tmp_path_factory.mktemp("story") / "broker.db"
    store = Store.open(path)
    told: dict[tuple[str, str], Entity] = {}
    count = 0
    for batch in batches:
        changes = []
        for entity in batch:
            changes.append(put(entity))
            told[str(entity.TABLE), entity.id] = entity
            if count in dropped:
                changes.append(drop(entity))
                del told[str(entity.TABLE), entity.id]
            count += 1
        store.commit(changes, MARK)
    assert store.audit_broken_at() is None
    store.close()

    again = Store.open(path)
    assert kept(again.load_state()) == told
    assert retold(path) == told
    again.close()


def test_each_change_of_a_batch_has_its_audit_row_with_the_state_before_and_after(store):
    slot = a_slot()
    leased = replace(slot, state=SlotState.LEASED, epoch=1)
    store.commit([put(slot, event="InventoryReported"), put(leased, event="RequestMade")], MARK)
    store.commit([drop(leased)], MARK)
    told = [(row.event, row.before, row.after, row.changed) for row in store.history("GPU-1")]
    assert told[0][:3] == ("InventoryReported", None, "free")
    assert told[1] == ("RequestMade", "free", "leased", '{"state":"leased","epoch":1}')
    assert told[2] == ("Happened", "leased", None, None)


def test_an_audit_row_says_when_by_what_and_why(store):
    store.commit([put(a_slot())], MARK)
    (row,) = store.history("GPU-1")
    assert (row.sequence, row.broker_ms, row.wall_time) == (1, 60, "2026-11-18T11:06:40.000Z")
    assert (row.cause_id, row.entity_table) == ("cause-1", "slots")
    assert (row.reason_code, json.loads(row.reason_values)) == (WHY.code, {"by": "the test"})


def test_history_tells_of_one_id_only_oldest_first_across_tables(store):
    store.commit([put(a_slot()), put(a_lease("one")), put(a_lease("two"))], MARK)
    store.commit([put(a_lease("one", state=LeaseState.ACTIVE))], MARK)
    assert [row.after for row in store.history("one")] == ["granted", "active"]
    assert store.history("nobody") == []


def test_history_is_bounded_and_keeps_the_newest(store, monkeypatch):
    monkeypatch.setattr("jupyter_gpubroker.store.store.HISTORY_ROWS_MAX", 3)
    for epoch in range(5):
        store.commit([put(a_slot(epoch=epoch))], MARK)
    assert [row.sequence for row in store.history("GPU-1")] == [3, 4, 5]


def test_a_batch_that_changes_nothing_kept_writes_nothing(store, path):
    store.commit([put(a_slot())], MARK)
    wal = path.with_name("broker.db-wal")
    before = (path.read_bytes(), wal.read_bytes())
    unseen = Telemetry(NodeId("here"), Millis(5))
    store.commit([], MARK)
    store.commit([put(), put(unseen), drop(unseen), put(a_slot())], replace(MARK, wall_ms=1))
    assert (path.read_bytes(), wal.read_bytes()) == before
    assert store.mark == MARK


def test_the_last_number_given_outlives_the_request_or_job_that_had_it(store, path):
    job = a_job("job", number=41)
    store.commit([put(job)], MARK)
    store.commit([drop(job)], MARK)
    store.close()
    again = Store.open(path)
    assert again.load_state().number == 41
    again.close()


def test_shipped_rows_are_there_until_a_site_changes_them(store, path):
    mine = replace(GENTLE, idle_ms=1)
    store.commit([put(mine), put(Limits(ack_ms=7))], MARK)
    store.close()
    again = Store.open(path)
    assert again.load_state().policies == {**State().policies, "gentle": mine}
    assert again.load_state().limits == Limits(ack_ms=7)
    again.close()


def test_two_live_leases_on_one_slot_are_refused_by_the_database_with_all_of_their_batch(
    store, path
):
    store.commit([put(a_lease("one", ("GPU-1", 1)))], MARK)
    with pytest.raises(StoreFailed, match="UNIQUE"):
        store.commit([put(a_slot(), a_lease("two", ("GPU-1", 2)))], MARK)
    store.close()
    again = Store.open(path)
    assert set(again.load_state().leases) == {"one"}
    assert again.load_state().slots == {}
    assert again.audit_broken_at() is None
    again.close()


def test_an_epoch_of_a_slot_is_given_once_even_when_its_lease_is_over(store):
    over = a_lease("one", ("GPU-1", 1), state=LeaseState.CLEARED)
    store.commit([put(over)], MARK)
    with pytest.raises(StoreFailed, match="UNIQUE"):
        store.commit([put(a_lease("two", ("GPU-1", 1)))], MARK)


def test_a_slot_goes_from_one_lease_to_the_next_within_one_batch(store, path):
    one = a_lease("one", ("GPU-1", 1))
    store.commit([put(one)], MARK)
    cleared = replace(one, holds=(), state=LeaseState.CLEARED)
    store.commit([put(a_lease("two", ("GPU-1", 2))), put(cleared)], MARK)
    assert rows(path, "SELECT lease_id, epoch, live FROM lease_slots ORDER BY epoch") == [
        ("one", 1, 0),
        ("two", 2, 1),
    ]


def test_a_lease_that_parks_and_comes_back_has_a_row_for_each_epoch(store, path):
    lease = a_lease("one", ("GPU-1", 1), ("GPU-2", 7))
    parked = replace(lease, holds=(), state=LeaseState.PARKED)
    back = replace(lease, holds=(Hold(SlotId("GPU-1"), 2), Hold(SlotId("GPU-2"), 8)))
    for step in (lease, replace(lease, context_seen=True), parked, back):
        store.commit([put(step)], MARK)
    assert rows(path, "SELECT slot_id, epoch, live FROM lease_slots ORDER BY epoch") == [
        ("GPU-1", 1, 0),
        ("GPU-1", 2, 1),
        ("GPU-2", 7, 0),
        ("GPU-2", 8, 1),
    ]


def test_a_forgotten_lease_takes_its_slot_rows_along(store, path):
    lease = a_lease("one", ("GPU-1", 1))
    store.commit([put(lease)], MARK)
    store.commit([drop(lease)], MARK)
    assert rows(path, "SELECT * FROM lease_slots") == []


def test_a_full_disk_ends_the_store_and_leaves_nothing_of_the_batch(store, path):
    store.commit([put(a_slot())], MARK)
    (pages,) = rows(path, "PRAGMA page_count")[0]
    store._connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
    store._connection.rollback()
    many = [put(a_slot(id=SlotId(f"GPU-{n}"), gpu_id=GpuId("x" * 500))) for n in range(100)]
    with pytest.raises(StoreFailed, match="full"):
        store.commit(many, MARK)
    with pytest.raises(StoreFailed, match="must end"):
        store.commit([put(a_slot(epoch=9))], MARK)
    with pytest.raises(StoreFailed, match="must end"):
        store.history("GPU-1")
    store.close()
    again = Store.open(path)
    assert again.load_state().slots == {"GPU-1": a_slot()}
    assert again.audit_broken_at() is None
    again.close()


def test_a_store_that_a_newer_broker_took_over_writes_nothing_more(store, path):
    connection = sqlite3.connect(path)
    connection.execute("UPDATE meta SET incarnation = incarnation + 1")
    connection.commit()
    connection.close()
    with pytest.raises(StoreFailed, match="newer broker"):
        store.commit([put(a_slot())], MARK)
    assert rows(path, "SELECT count(*) FROM slots") == [(0,)]
    with pytest.raises(StoreFailed, match="must end"):
        store.keep_time(MARK)


def test_time_can_be_kept_alone(store, path):
    later = ClockMark(Millis(99), "boot-2", 8_000, 1_795_000_009_000)
    store.commit([put(a_slot())], MARK)
    store.keep_time(later)
    store.close()
    again = Store.open(path)
    assert (again.mark, again.audit_broken_at()) == (later, None)
    again.close()


def test_a_flipped_byte_in_the_audit_log_is_found(store, path):
    for epoch in range(4):
        store.commit([put(a_slot(epoch=epoch))], MARK)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE audit SET cause_id = 'cause-2' WHERE sequence = 3")
    connection.commit()
    connection.close()
    assert store.audit_broken_at() == 3
