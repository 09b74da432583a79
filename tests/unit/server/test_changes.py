"""Events for the browser: one per change, valid by our schema, and without names."""

from __future__ import annotations

import json
from typing import Any

from jupyter_events import EventLogger

from jupyter_gpubroker.server.changes import LEASE_SCHEMA, LEASE_SCHEMA_ID, LeaseChanges
from jupyter_gpubroker.wire.views import NoticeView, ReasonView, SessionsView
from tests.unit.server.double import lease_view, session_view

NOTICE = NoticeView(
    2, 30_000, ReasonView("idle", {"name": "alice"}, "alice idles", ""), shown=False
)


def views(**fields: Any) -> SessionsView:
    return SessionsView((session_view("s", "k", lease_view("lease", **fields)),))


def emitted(*seen: SessionsView) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    changes = LeaseChanges(events.append)
    for view in seen:
        changes.seen(view)
    return events


def test_each_change_is_told_once() -> None:
    events = emitted(
        SessionsView(()),
        views(),
        views(),
        views(notice=NOTICE),
        views(notice=NOTICE),
        SessionsView(()),
    )
    assert [event["state"] for event in events] == ["active", "active", "ended"]
    assert (events[1]["notice"], events[1]["notice_due_in_ms"]) == (2, 30_000)


def test_numbers_that_run_are_no_change() -> None:
    assert len(emitted(views(held_for_ms=1), views(held_for_ms=2, memory_used_mib=7))) == 1


def test_events_fit_the_schema_and_name_nobody() -> None:
    logger = EventLogger()
    logger.register_event_schema(LEASE_SCHEMA)
    events = emitted(views(), views(notice=NOTICE), SessionsView(()))
    for event in events:
        recorded = logger.emit(schema_id=LEASE_SCHEMA_ID, data=event)
        assert recorded is None or recorded["kernel_id"] == "k"
        logger.schemas.validate_event(LEASE_SCHEMA_ID, event)
    assert "alice" not in json.dumps(events)
