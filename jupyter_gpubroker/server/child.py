"""A child process that answers one JSON line per request, for calls that may never return.

Started at the first call and kept, since starting it costs seconds; killed when a call overruns its deadline; started anew by
the next call. It ends by itself when this process is gone.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from ..patience import within

LINE_MAX_BYTES = 4 * 1024 * 1024
START_S = 15.0
_CLOSE_S = 1.0


class ChildFailed(Exception):
    """No answer: it could not be started, ended, overran its deadline, or the call raised there."""


class Child:
    """One call at a time; others wait their turn."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._argv = tuple(argv)
        self._turn = asyncio.Lock()
        self._number = 0
        self._process: asyncio.subprocess.Process | None = None

    async def call(self, method: str, *params: Any, deadline_s: float) -> Any:
        """The result. Raises ChildFailed."""
        async with self._turn:
            process, is_new = await self._running()
            try:
                return await within(
                    deadline_s + START_S * is_new, self._exchange(process, method, params)
                )
            except (
                asyncio.TimeoutError,
                OSError,
                ValueError,
                asyncio.IncompleteReadError,
            ) as error:
                await self._kill()
                raise ChildFailed(f"{method}: {type(error).__name__}") from error
            except asyncio.CancelledError:
                # Its answer would be taken for that of the next call.
                await self._kill()
                raise

    async def close(self) -> None:
        """Let it end, or make it."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        with suppress(asyncio.TimeoutError):
            await within(_CLOSE_S, self._process.wait())
        await self._kill()

    async def _running(self) -> tuple[asyncio.subprocess.Process, bool]:
        if self._process is not None and self._process.returncode is None:
            return self._process, False
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                cwd="/",
                limit=LINE_MAX_BYTES,
                start_new_session=True,  # Ctrl-C in the server's terminal is not for it
            )
        except OSError as error:
            raise ChildFailed(f"not started: {error}") from error
        return self._process, True

    async def _exchange(
        self, process: asyncio.subprocess.Process, method: str, params: Sequence[Any]
    ) -> Any:
        assert process.stdin is not None
        assert process.stdout is not None
        self._number += 1
        request = {"id": self._number, "method": method, "params": list(params)}
        process.stdin.write(json.dumps(request).encode() + b"\n")
        await process.stdin.drain()
        answer = json.loads(await process.stdout.readuntil(b"\n"))
        if answer["id"] != self._number:
            raise ValueError("an answer to another call")
        if "error" in answer:
            raise ChildFailed(f"{method}: {answer['error']}")
        return answer.get("result")

    async def _kill(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            process.kill()
        # One that hangs in the driver cannot be ended; nobody waits for it.
        with suppress(asyncio.TimeoutError):
            await within(_CLOSE_S, process.wait())
