"""How long to wait before the next try: ever longer, bounded, and never two clients in step."""

from __future__ import annotations

import random
from collections.abc import Iterator

PAUSE_MIN_S = 0.1
PAUSE_MAX_S = 5.0


def pauses(least_s: float = PAUSE_MIN_S, most_s: float = PAUSE_MAX_S) -> Iterator[float]:
    """Seconds to sleep before each further try."""
    pause_s = least_s
    while True:
        yield random.uniform(pause_s / 2, pause_s)  # noqa: S311 - jitter, not a secret
        pause_s = min(2 * pause_s, most_s)
