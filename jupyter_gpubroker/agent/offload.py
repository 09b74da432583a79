"""Runs a blocking call in a thread that nobody waits for at exit.

Reading /proc can hang on a process in D state. The event loop's own executor would then keep the whole program from
ending (it joins its threads), so the call runs in a daemon thread, one at a time, with a deadline.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from ..patience import within

T = TypeVar("T")


class Hanging(Exception):
    """The call, or one before it, has not come back."""


class Offload:
    def __init__(self) -> None:
        self._is_hanging = False

    async def call(self, function: Callable[..., T], *arguments: Any, deadline_s: float) -> T:
        """The function's result or exception. Raises `Hanging` at the deadline, and until that call came back."""
        if self._is_hanging:
            raise Hanging
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def work() -> None:
            try:
                deliver: Callable[[], None] = _setter(answer, result=function(*arguments))
            except Exception as error:  # noqa: BLE001 - handed to the caller
                deliver = _setter(answer, error=error)
            self._is_hanging = False
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(deliver)

        threading.Thread(target=work, name="gpubroker-proc", daemon=True).start()
        try:
            return await within(deadline_s, answer)
        except asyncio.TimeoutError:
            self._is_hanging = True
            raise Hanging from None


def _setter(
    answer: asyncio.Future[Any], result: Any = None, error: Exception | None = None
) -> Callable[[], None]:
    def deliver() -> None:
        if answer.done():
            return
        if error is None:
            answer.set_result(result)
        else:
            answer.set_exception(error)

    return deliver
