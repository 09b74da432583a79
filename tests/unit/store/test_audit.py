"""The audit chain: whoever changes, drops or swaps a row is found out, at that row."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from jupyter_gpubroker.core.model import Millis
from jupyter_gpubroker.store.audit import Head, first_broken, rfc3339, seal
from jupyter_gpubroker.store.records import AuditRow


def chain(length: int) -> tuple[list[AuditRow], Head]:
    rows: list[AuditRow] = []
    head = Head()
    for number in range(length):
        row = seal(
            head,
            broker_ms=Millis(number),
            wall_time="2026-11-30T12:00:00.000Z",
            event="SlotsObserved",
            cause_id="cause",
            entity_table="slots",
            entity_id="GPU-1",
            before="free",
            after="leased",
            reason_code="granted",
            reason_values="{}",
            changed='{"state":"leased"}',
        )
        rows.append(row)
        head = Head(row.sequence, row.hash)
    return rows, head


def test_an_untouched_chain_is_whole():
    assert first_broken(*chain(5)) is None
    assert first_broken([], Head()) is None


@pytest.mark.parametrize("field", [field.name for field in fields(AuditRow)])
def test_a_change_of_any_field_is_found_at_its_row(field):
    rows, head = chain(5)
    old = getattr(rows[2], field)
    change: dict[str, Any] = {field: old + 1 if isinstance(old, int) else old + "x"}
    rows[2] = replace(rows[2], **change)
    assert first_broken(rows, head) == 3


def test_a_dropped_row_is_found():
    rows, head = chain(5)
    assert first_broken(rows[:2] + rows[3:], head) == 3
    assert first_broken(rows[1:], head) == 1


def test_a_cut_tail_is_found_by_the_head():
    rows, head = chain(5)
    assert first_broken(rows[:4], head) == 5


def test_a_value_moved_to_the_next_field_is_found():
    rows, head = chain(3)
    rows[1] = replace(rows[1], before=rows[1].after, after=rows[1].before)
    assert first_broken(rows, head) == 2


def test_wall_time_is_rfc3339_in_utc():
    assert rfc3339(0) == "1970-01-01T00:00:00.000Z"
    assert rfc3339(1_795_000_000_123) == "2026-11-18T11:06:40.123Z"
