"""Counts starts of the user's broker that came to no good end, so that one that crashes each time is not started for ever.

A file beside the socket holds the number; its time is that of the last start. Starters add to it, a broker that ends well
takes it away, and after a while it counts no more.
"""

from __future__ import annotations

import time
from pathlib import Path

PAUSE_S_MAX = 30.0
_FREE = 3
_FORGET_S = 60.0


class Starts:
    """Only for who holds the start lock."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def in_vain(self) -> int:
        """How many there were lately."""
        try:
            number = int(self._path.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return 0
        return number if 0 <= self._age_s() < _FORGET_S else 0

    @property
    def pause_s(self) -> float:
        """How long to wait before the next: nothing at first, then twice as long each time."""
        number = self.in_vain
        pause_s = min(2.0 ** (number - _FREE + 1), PAUSE_S_MAX) if number >= _FREE else 0.0
        return max(0.0, pause_s - self._age_s()) if pause_s else 0.0

    def add(self) -> None:
        """One more begins now."""
        self._path.write_text(str(self.in_vain + 1), encoding="ascii")

    def _age_s(self) -> float:
        return time.time() - self._path.stat().st_mtime
