"""Waiting for something no longer than so long.

Not `asyncio.wait_for`: before Python 3.12 it swallows a cancellation that comes together with the result, and a task that
was asked to end goes on for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def within(deadline_s: float, awaited: Coroutine[Any, Any, T] | asyncio.Future[T]) -> T:
    """The result. What is not done by the deadline is cancelled, and asyncio.TimeoutError raised."""
    work = asyncio.ensure_future(awaited)
    try:
        await asyncio.wait((work,), timeout=deadline_s)
    finally:
        is_late = work.cancel()
    if is_late:
        await asyncio.wait((work,))
        raise asyncio.TimeoutError
    return work.result()
