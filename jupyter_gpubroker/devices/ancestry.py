"""Whether one process descends from another, as /proc tells it."""

from __future__ import annotations

from pathlib import Path

_GENERATIONS_MAX = 64


def descends(pid: int, ancestor: int, proc: Path = Path("/proc")) -> bool:
    for _ in range(_GENERATIONS_MAX):
        try:
            text = (proc / str(pid) / "stat").read_text(errors="replace")
        except OSError:
            return False
        pid = int(text.rpartition(")")[2].split()[1])
        if pid == ancestor:
            return True
    return False
