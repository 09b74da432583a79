"""Adds up who has how much of the GPUs, moment by moment, and has it kept by the hour.

`core.usage` says what one has at a moment; that counts for the time since the moment before. What lasts less than `LOOK_S` is
counted by chance, which in the sum is right; a broker that is killed loses at most `KEEP_S`. Time that the machine or the
broker slept does not pass in broker time, so is nobody's.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence

from ..core.model import Millis, Owner, State
from ..core.usage import shares
from ..store import UsageRow
from .identity import owner_name

LOOK_S = 5.0
KEEP_S = 60.0
HOUR_S = 3_600


class Meter:
    """`look` at times, `take` what was added up since it was taken last."""

    def __init__(self) -> None:
        self._sums: dict[tuple[int, Owner], Counter[str]] = {}
        self._looked_ms: Millis | None = None

    def look(self, state: State, now: Millis, wall_s: float) -> None:
        before, self._looked_ms = self._looked_ms, now
        lasted_ms = 0 if before is None else now - before
        for owner, share in shares(state, now).items():
            key = int(wall_s // HOUR_S), _named(owner)
            sums = self._sums.setdefault(key, Counter())
            for name in UsageRow.AMOUNTS:
                sums[name] += getattr(share, name) * lasted_ms

    def take(self) -> Sequence[UsageRow]:
        sums, self._sums = self._sums, {}
        return [_row(hour, owner, amounts) for (hour, owner), amounts in sums.items()]


async def keep_metering(
    meter: Meter,
    state: Callable[[], State],
    now: Callable[[], Millis],
    keep: Callable[[Sequence[UsageRow]], Awaitable[None]],
) -> None:
    """Meter for ever."""
    looks = 0
    while True:
        meter.look(state(), now(), time.time())
        looks += 1
        if looks % int(KEEP_S / LOOK_S) == 0:
            await keep(meter.take())
        await asyncio.sleep(LOOK_S)


def _named(owner: Owner) -> Owner:
    """By login name, as other owners are."""
    uid = owner.removeprefix("uid:")
    return owner_name(int(uid)) if uid != owner and uid.isdigit() else owner


def _row(hour: int, owner: Owner, amounts: Mapping[str, int]) -> UsageRow:
    return UsageRow(hour, owner, **{name: amounts[name] for name in UsageRow.AMOUNTS})
