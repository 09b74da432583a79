"""Entities come back from their rows as they went in, whatever they hold."""

from __future__ import annotations

from hypothesis import given

from jupyter_gpubroker.core.model import (
    Lease,
    Reason,
    Slot,
    SlotId,
    SlotKind,
    SlotState,
)
from jupyter_gpubroker.core.rules import Policy
from jupyter_gpubroker.store.codec import CODECS, ColumnKind
from tests.unit.store.entities import KEPT_TYPES, a_slot, entities

SLOT = CODECS[Slot]


@given(entities())
def test_any_entity_comes_back_equal_in_value_and_in_type(entity):
    codec = CODECS[type(entity)]
    back = codec.from_row(codec.to_row(entity))
    assert back == entity
    assert repr(back) == repr(entity)


@given(entities())
def test_rows_hold_plain_values_only(entity):
    row = CODECS[type(entity)].to_row(entity)
    assert {type(value) for value in row.values()} <= {str, int, bool, type(None)}


def test_every_kept_type_has_a_codec_and_no_other_has():
    assert set(CODECS) == set(KEPT_TYPES)


def test_scalars_have_columns_of_their_type_and_compounds_are_json():
    kinds = {column.name: (column.kind, column.nullable) for column in SLOT.columns}
    assert kinds["id"] == (ColumnKind.TEXT, False)
    assert kinds["kind"] == (ColumnKind.TEXT, False)
    assert kinds["epoch"] == (ColumnKind.INTEGER, False)
    assert kinds["baseline_mib"] == (ColumnKind.INTEGER, True)
    assert kinds["simulated"] == (ColumnKind.BOOLEAN, False)
    assert kinds["reason"] == (ColumnKind.JSON, True)
    leases = {column.name: column.kind for column in CODECS[Lease].columns}
    assert {leases[n] for n in ("holds", "spec", "notice", "order", "home")} == {ColumnKind.JSON}


def test_the_key_is_the_first_field():
    assert CODECS[Policy].columns[0].name == "name"
    assert SLOT.columns[0].name == "id"


def test_only_fields_that_differ_are_changed():
    before = a_slot()
    after = a_slot(state=SlotState.LEASED, reason=Reason.of("granted", place=1))
    assert SLOT.changed_fields(before, after) == {"state": after.state, "reason": after.reason}
    assert SLOT.changed_fields(before, before) == {}


def test_of_a_new_entity_all_fields_are_changed():
    slot = a_slot(id=SlotId("MIG-1"), kind=SlotKind.MIG)
    changed = SLOT.changed_fields(None, slot)
    assert changed.keys() == {column.name for column in SLOT.columns}
    assert changed["kind"] is SlotKind.MIG
