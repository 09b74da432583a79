"""Durations and sizes as people write them, `1h30m` and `20G`, and back.

A number without a unit is refused rather than guessed at: ten seconds and ten minutes are both plausible.
"""

from __future__ import annotations

import re

from .errors import Refused
from .sentences import say

DURATION_MAX_MS = 366 * 24 * 3_600_000
MEMORY_MIB_MAX = 16_777_216
SLOTS_MAX = 1_024

_UNIT_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000}
_UNITS_WRITTEN = ("d", "h", "min", "s")
_UNIT_MIB = {"m": 1, "g": 1_024, "t": 1_024 * 1_024}
_DURATION = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{1,3})?[dhms])+")
_DURATION_PART = re.compile(r"([0-9.]+)([dhms])")
_MEMORY = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([mgt])(?:i?b)?")
_PROFILE = re.compile(r"[0-9]+(?:c\.[0-9]+)?g\.[0-9]+gb(?:\+[a-z.]+)?")


def duration_ms(text: str) -> int:
    """The milliseconds of `1h30m`, `90s`, `2h`: from one second to 366 days."""
    compact = text.replace(" ", "").lower()
    if re.fullmatch(r"[0-9.]+", compact):
        raise Refused(say("duration_without_unit", text=text), "bad_duration")
    parts = _DURATION_PART.findall(compact) if _DURATION.fullmatch(compact) else []
    units = [unit for _, unit in parts]
    total_ms = round(sum(float(number) * _UNIT_MS[unit] for number, unit in parts))
    if len(set(units)) < len(units) or not 1_000 <= total_ms <= DURATION_MAX_MS:
        raise Refused(say("bad_duration", text=text), "bad_duration")
    return total_ms


def memory_mib(text: str) -> int:
    """The MiB of `20G`, `20GB` or `20GiB`, which all mean 20 * 1024."""
    compact = text.replace(" ", "").lower()
    if re.fullmatch(r"[0-9.]+", compact):
        raise Refused(say("memory_without_unit", text=text), "bad_memory")
    match = _MEMORY.fullmatch(compact)
    mib = round(float(match.group(1)) * _UNIT_MIB[match.group(2)]) if match else 0
    if not 1 <= mib <= MEMORY_MIB_MAX:
        raise Refused(say("bad_memory", text=text), "bad_memory")
    return mib


def slot_count(text: str) -> int:
    """A whole number of GPUs."""
    if not re.fullmatch(r"[0-9]{1,4}", text) or not 1 <= int(text) <= SLOTS_MAX:
        raise Refused(say("bad_count", text=text, most=SLOTS_MAX), "bad_count")
    return int(text)


def slice_profile(text: str) -> str:
    """The name of a MIG slice such as `1g.18gb`; whether there is one only the broker knows."""
    profile = text.strip().lower()
    profile = profile[len("mig-") :] if profile.startswith("mig-") else profile
    if not _PROFILE.fullmatch(profile):
        raise Refused(say("bad_slice", text=text), "bad_slice")
    return profile


def duration_text(milliseconds: int) -> str:
    """Two units at most, to the nearest, as the broker writes them: `2 h 5 min`, `3 min`, `12 s`, `0.4 s`."""
    if milliseconds < 1_000:
        return f"{max(milliseconds, 0) / 1_000:.1g} s"
    step_s = 3_600 if milliseconds >= 86_400_000 else 60 if milliseconds >= 3_600_000 else 1
    seconds = (milliseconds + 500 * step_s) // (1_000 * step_s) * step_s
    numbers = (seconds // 86_400, seconds // 3_600 % 24, seconds // 60 % 60, seconds % 60)
    shown = [(number, unit) for number, unit in zip(numbers, _UNITS_WRITTEN)]
    while shown[0][0] == 0:
        shown.pop(0)
    return " ".join(f"{number} {unit}" for number, unit in shown[:2] if number)


def memory_text(mib: int) -> str:
    """`19.5 GiB`, `400 MiB`."""
    if mib < 1_024:
        return f"{mib} MiB"
    gib = f"{mib / 1_024:.1f}"
    return (gib[:-2] if gib.endswith(".0") else gib) + " GiB"
