"""The parent's side of a child process that answers JSON lines (`jsonlines`) and may hang at any call.

Every call has a deadline. A child that overruns it is killed with SIGKILL and, if the kernel cannot end it (D state),
left alone: nobody waits for it, and no new one is started until it is gone. Failures are followed by growing pauses.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from ..patience import within
from .jsonlines import LINE_MAX_BYTES, Answer, Request

Problem = Literal["not_started", "overran", "stuck", "ended", "pausing"]

_PAUSE_S_MIN, _PAUSE_S_MAX = 0.5, 30.0
_END_WAIT_S = 1.0
_KILL_WAIT_S = 0.2


class ChildUnavailable(Exception):
    """No answer, and why. `stuck`: a killed child has not gone yet. `pausing`: too soon after a failure."""

    def __init__(self, problem: Problem, detail: str = "") -> None:
        super().__init__(f"{problem}: {detail}" if detail else problem)
        self.problem: Problem = problem
        self.detail = detail


class ChildError(Exception):
    """The child answered that the call raised."""


class JsonLinesChild:
    """Starts its process at the first call, and again after failures. One call at a time; others wait their turn.

    `start_s` is the deadline of the first call of a process, which includes its start.
    """

    def __init__(self, argv: Sequence[str], start_s: float = 15.0) -> None:
        self._argv = tuple(argv)
        self._start_s = start_s
        self._turn = asyncio.Lock()
        self._ids = itertools.count(1)
        self._process: asyncio.subprocess.Process | None = None
        self._leaving: asyncio.subprocess.Process | None = None
        self._failures = 0
        self._not_before_s = 0.0

    @property
    def pid(self) -> int | None:
        """The process that answers now."""
        return None if self._process is None else self._process.pid

    async def call(self, method: str, *params: Any, deadline_s: float) -> msgspec.Raw:
        """The raw result. Raises `ChildUnavailable`, or `ChildError` if the method failed."""
        async with self._turn:
            if self._process is None:
                await self._start()
                deadline_s = max(deadline_s, self._start_s)
            try:
                answer = await within(deadline_s, self._exchange(method, params))
            except asyncio.TimeoutError:
                await self._kill()
                raise self._failed("overran", f"{method} took more than {deadline_s:g} s") from None
            except (EOFError, OSError, msgspec.DecodeError, asyncio.LimitOverrunError) as error:
                await self._kill()
                raise self._failed("ended", f"{method}: {type(error).__name__}") from error
        self._failures = 0
        if answer.error is not None:
            raise ChildError(answer.error)
        return answer.result

    async def close(self) -> None:
        """End the process: it may finish a call for a moment, then it is killed."""
        process, self._process = self._process, None
        if process is None or process.stdin is None:
            return
        process.stdin.close()
        with contextlib.suppress(asyncio.TimeoutError):
            await within(_END_WAIT_S, process.wait())
            return
        self._process = process
        await self._kill()

    async def _start(self) -> None:
        if self._leaving is not None and self._leaving.returncode is None:
            raise ChildUnavailable(
                "stuck", f"process {self._leaving.pid} was killed and has not gone yet"
            )
        self._leaving = None
        if asyncio.get_running_loop().time() < self._not_before_s:
            raise ChildUnavailable("pausing", f"after {self._failures} failures in a row")
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self._argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                cwd="/",
                limit=LINE_MAX_BYTES,
                start_new_session=True,  # Ctrl-C in a terminal is for the parent
            )
        except OSError as error:
            raise self._failed("not_started", str(error)) from error

    async def _exchange(self, method: str, params: Sequence[Any]) -> Answer:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        request = Request(next(self._ids), method, tuple(params))
        process.stdin.write(msgspec.json.encode(request) + b"\n")
        await process.stdin.drain()
        while True:
            answer = msgspec.json.decode(await process.stdout.readuntil(b"\n"), type=Answer)
            # Answers to calls whose caller was cancelled meanwhile come first.
            if answer.id == request.id:
                return answer

    async def _kill(self) -> None:
        process, self._process = self._process, None
        assert process is not None
        self._leaving = process
        with contextlib.suppress(ProcessLookupError):
            self._send_kill(process)
        with contextlib.suppress(asyncio.TimeoutError):
            await within(_KILL_WAIT_S, process.wait())

    def _send_kill(self, process: asyncio.subprocess.Process) -> None:
        process.kill()

    def _failed(self, problem: Problem, detail: str) -> ChildUnavailable:
        pause_s = min(_PAUSE_S_MAX, _PAUSE_S_MIN * 2**self._failures)
        self._failures = min(self._failures + 1, 16)
        self._not_before_s = asyncio.get_running_loop().time() + pause_s * random.uniform(0.8, 1.2)  # noqa: S311
        return ChildUnavailable(problem, detail)
