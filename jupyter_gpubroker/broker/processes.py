"""Which process a pid is, for good: (pid, start ticks, boot id) never names another one. Linux only."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_START_TICKS_FIELD = 22


@cache
def boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()


def start_ticks(pid: int) -> int | None:
    """When the process started, in clock ticks since boot; None when there is none, or only its zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    # The command name, field 2, is in parentheses and may itself contain any character.
    fields = text[text.rindex(")") + 2 :].split()
    return None if fields[0] in "ZX" else int(fields[_START_TICKS_FIELD - 3])


def uid_of(pid: int) -> int | None:
    try:
        return Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return None
