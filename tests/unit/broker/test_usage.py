"""GPU time may be asked for over any span."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from jupyter_gpubroker.broker.api.usage import get_usage

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize("hours", ["0", "20000000", "999999999"])
async def test_a_span_beyond_all_time_is_all_time(hours: str) -> None:
    asked: list[int] = []

    def usage(since_hour: int) -> list[Any]:
        asked.append(since_hour)
        return []

    archive = SimpleNamespace(usage=usage, takings=lambda _since: [])
    call: Any = SimpleNamespace(
        query={"hours": hours},
        broker=SimpleNamespace(archive=archive),
        caller=SimpleNamespace(is_admin=True),
    )
    view = await get_usage(call)
    assert asked[0] >= 0
    assert view.hours >= 1
