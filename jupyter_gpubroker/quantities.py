"""Durations and sizes as people write them (`90s`, `10m`, `1h30m`, `20G`) and as they read them (`1 h 30 min`).

A bare number is refused rather than guessed at, since ten seconds and ten minutes are both plausible. Every error is one
sentence that says how to write it. One parser serves the command line and policy files. What people read has the form of the
broker's own sentences (`core.explain.duration`), which a test compares.
"""

from __future__ import annotations

import re

DURATION_MAX_MS = 366 * 24 * 3_600_000
MEMORY_MAX_MIB = 16_777_216
SLOTS_MAX = 1024

_UNIT_MS = {"d": 86_400_000, "h": 3_600_000, "min": 60_000, "m": 60_000, "s": 1_000, "ms": 1}
_UNIT_MIB = {"M": 1, "G": 1024, "T": 1024 * 1024}
_DURATION = re.compile(r"(?:[0-9]{1,9}(?:\.[0-9]{1,3})?(?:ms|min|[dhms]))+")
_DURATION_PART = re.compile(r"([0-9.]+)(ms|min|[dhms])")
_MEMORY = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)([MGT])(?:i?B)?", re.IGNORECASE)
_PROFILE = re.compile(r"[0-9]+(?:c\.[0-9]+)?g\.[0-9]+gb(?:\+[a-z.]+)?")

DURATION_HINT = "Write a number with its unit, for example 90s, 10m or 1h30m."
MEMORY_HINT = "Write a number with its unit, for example 20G or 512M."


class QuantityError(ValueError):
    """The text is not such a quantity; the message says how to write it."""


def duration_ms(text: str, least_ms: int = 0) -> int:
    """The milliseconds of `1h30m` and the like, between `least_ms` and 366 days."""
    compact = text.strip().replace(" ", "").lower()
    if compact.startswith("-"):
        raise QuantityError(
            f"{_quoted(text)} is negative, and no time runs backwards. {DURATION_HINT}"
        )
    if re.fullmatch(r"[0-9.]+", compact):
        raise QuantityError(
            f"{_quoted(text)} has no unit: seconds, minutes or hours? {DURATION_HINT}"
        )
    if not _DURATION.fullmatch(compact):
        raise QuantityError(f"{_quoted(text)} is not a duration. {DURATION_HINT}")
    parts = _DURATION_PART.findall(compact)
    units = [unit for _, unit in parts]
    if len(set(units)) < len(units):
        raise QuantityError(f"{_quoted(text)} names the same unit twice. {DURATION_HINT}")
    total_ms = round(sum(float(number) * _UNIT_MS[unit] for number, unit in parts))
    if not least_ms <= total_ms <= DURATION_MAX_MS:
        raise QuantityError(
            f"{_quoted(text)} is not between {say_duration(least_ms)} and 366 days. {DURATION_HINT}"
        )
    return total_ms


def memory_mib(text: str) -> int:
    """The MiB of `20G`, `20GB` or `20GiB`, which all mean 20 * 1024."""
    compact = text.strip().replace(" ", "")
    if compact.startswith("-"):
        raise QuantityError(f"{_quoted(text)} is negative. {MEMORY_HINT}")
    if re.fullmatch(r"[0-9.]+", compact):
        raise QuantityError(f"{_quoted(text)} has no unit: megabytes or gigabytes? {MEMORY_HINT}")
    match = _MEMORY.fullmatch(compact)
    if match is None:
        raise QuantityError(f"{_quoted(text)} is not a size. {MEMORY_HINT}")
    mib = round(float(match[1]) * _UNIT_MIB[match[2].upper()])
    if not 1 <= mib <= MEMORY_MAX_MIB:
        raise QuantityError(f"{_quoted(text)} is not between 1M and 16T. {MEMORY_HINT}")
    return mib


def slot_count(text: str) -> int:
    """A whole number of GPUs from 1 to 1024."""
    if not re.fullmatch(r"[0-9]{1,4}", text.strip()) or not 1 <= int(text) <= SLOTS_MAX:
        raise QuantityError(
            f"{_quoted(text)} is not a number of GPUs. Write a whole number from 1 to {SLOTS_MAX}."
        )
    return int(text)


def mig_profile(text: str) -> str:
    """The name of a MIG slice, such as `1g.18gb`. Whether one is offered only the broker knows."""
    profile = text.strip().lower().removeprefix("mig-")
    if not _PROFILE.fullmatch(profile):
        raise QuantityError(
            f"{_quoted(text)} is not the name of a slice. Write one such as 1g.18gb; "
            "'gpubroker gpus' lists those that are there."
        )
    return profile


def say_duration(milliseconds: int) -> str:
    """The two largest units of a duration, to the nearest, for people: `1 h 30 min`, `12 s`, `0.4 s`."""
    if milliseconds < 1_000:
        return f"{milliseconds / 1_000:.1f}".removesuffix(".0") + " s"
    step_s = 3_600 if milliseconds >= 86_400_000 else 60 if milliseconds >= 3_600_000 else 1
    seconds = (milliseconds + 500 * step_s) // (1_000 * step_s) * step_s
    days, hours, minutes = seconds // 86_400, seconds // 3_600 % 24, seconds // 60 % 60
    units = [(days, "d"), (hours, "h"), (minutes, "min"), (seconds % 60, "s")]
    first = next(position for position, (number, _) in enumerate(units) if number)
    return " ".join(f"{number} {unit}" for number, unit in units[first : first + 2] if number)


def say_memory(mib: int) -> str:
    """A size for people: `19.5 GiB`, `400 MiB`."""
    return f"{mib} MiB" if mib < 1024 else f"{mib / 1024:.1f}".removesuffix(".0") + " GiB"


def _quoted(text: str) -> str:
    """What was written, on one line and not longer than a line."""
    return repr(text if len(text) <= 40 else text[:40] + "...")
