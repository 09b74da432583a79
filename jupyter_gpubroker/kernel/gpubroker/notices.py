"""Puts the broker's notice before the user: a display with a countdown, and one line before the next cell.

`look` is called by the link thread with each view. Nothing is printed from there: a print would land in whatever cell runs.
"""

from __future__ import annotations

import time
from typing import Callable, Iterable, List, Optional, Tuple

from .board import Board
from .broker import Broker, View
from .quantities import duration_text
from .sentences import of_view, say, say_of

LINES_MAX = 5

Number = Tuple[str, int]


class Notices:
    """The notice that runs, and what is to be said before the next cell. `rests_at` tells where its reader can act."""

    def __init__(self, broker: Broker, rests_at: Callable[[], str]) -> None:
        self._broker = broker
        self._rests_at = rests_at
        self._number: Optional[Number] = None
        self._lease: Optional[View] = None
        self._board = Board(is_quiet=True)
        self._due = 0.0
        self._lines: List[str] = []
        self._warned: List[str] = []

    def look(self, lease: Optional[View]) -> None:
        """Show, tick, or close the notice of the newest view."""
        notice = lease["notice"] if lease else None
        number = (lease["id"], notice["number"]) if lease and notice else None
        if self._number is not None and number != self._number:
            self._close(lease)
        if lease is None or notice is None:
            return
        if lease is not self._lease:
            self._lease, self._due = lease, time.monotonic() + notice["due_in_ms"] / 1000
        is_new, self._number = number != self._number, number
        text = self._text(notice, lease)
        if is_new:
            self._board = Board(is_quiet=True)
            self.say_before_next_cell(f"{of_view(notice['reason'])} {say('keep_in_cell')}")
        if self._board.show(text) and is_new:
            self._broker.notice_shown(lease["id"], notice["number"])

    def warn(self, warnings: Iterable[View]) -> None:
        """Tell before the next cell, once, what this kernel's processes do that they may not."""
        sentences = [of_view(warning) for warning in warnings]
        for sentence in sentences:
            if sentence not in self._warned:
                self.say_before_next_cell(sentence)
        self._warned = sentences

    def gone(self, kind: str) -> None:
        """The GPU went to somebody who waited, by `kind`."""
        self.say_before_next_cell(say("gone_back" if kind == "empty" else "gone_parked"))

    def returned(self) -> None:
        """The memory is back: what was said of its absence is over."""
        self._lines = []
        self._board.update(say("notice_returned"))

    def say_before_next_cell(self, line: str) -> None:
        self._lines = [*self._lines, line][-LINES_MAX:]

    def take_lines(self) -> List[str]:
        """What is to be said now, once."""
        lines, self._lines = self._lines, []
        return lines

    def _text(self, notice: View, lease: View) -> str:
        left_ms = max(int((self._due - time.monotonic()) * 1000), 0)
        kinds = lease["give_backs"]
        due = (
            say_of(lease, "notice_due", left=duration_text(left_ms), kind=say("kind_" + kinds[0]))
            if kinds
            else say("notice_due_unsure", left=duration_text(left_ms))
        )
        how = say("keep_in_cell" if self._rests_at() == "cell" else "keep_at_" + self._rests_at())
        return "\n".join([due, of_view(notice["reason"]), how])

    def _close(self, lease: Optional[View]) -> None:
        """The notice is over; say how it ended."""
        self._number, self._lines = None, []
        if lease is not None and lease["state"] == "active":
            kept_ms = lease["kept_for_ms"]
            self._board.show(
                say("notice_over")
                if kept_ms is None
                else say("notice_kept", time=duration_text(kept_ms))
            )
        else:
            self._board.show(say("notice_past"))
