"""Tells the browser, over the server's own event stream, that something about a lease has changed.

Changes only, never samples, and nothing that names a person or a notebook: every subscriber of the server hears them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..wire.views import LeaseView, SessionsView

LEASE_SCHEMA = Path(__file__).parent / "events" / "lease.yaml"
LEASE_SCHEMA_ID = "https://jupyter-gpubroker.org/events/lease/v1"

Emit = Callable[[dict[str, Any]], None]


class LeaseChanges:
    """Compares what the broker says with what it said before."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._last: dict[str, dict[str, Any]] = {}

    def seen(self, sessions: SessionsView) -> None:
        """Emit one event per lease that is new, different or gone."""
        now = {
            lease.id: _facts(session.kernel_id, lease)
            for session in sessions.sessions
            for lease in session.leases
        }
        last, self._last = self._last, now
        for lease_id, facts in now.items():
            if facts != last.get(lease_id):
                self._emit(facts | _countdown(sessions, lease_id))
        for lease_id in last.keys() - now.keys():
            self._emit(last[lease_id] | {"state": "ended", "notice": None})


def _facts(kernel_id: str | None, lease: LeaseView) -> dict[str, Any]:
    return {
        "kernel_id": kernel_id,
        "lease_id": lease.id,
        "state": lease.state,
        "verdict": lease.verdict,
        "notice": lease.notice.number if lease.notice else None,
    }


def _countdown(sessions: SessionsView, lease_id: str) -> dict[str, int | None]:
    for session in sessions.sessions:
        for lease in session.leases:
            if lease.id == lease_id and lease.notice:
                return {"notice_due_in_ms": lease.notice.due_in_ms}
    return {"notice_due_in_ms": None}
