"""The child's side of one JSON line per request and answer, over standard input and output.

For calls that may never return (NVML, checkpointing): the parent (`child`) can kill this process, and nothing else is
lost. Ends when the parent closes the pipe or is gone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

LINE_MAX_BYTES = 4 * 1024 * 1024


class Request(msgspec.Struct, frozen=True):
    id: int
    method: str
    params: tuple[Any, ...] = ()


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """`error` is set when the method raised; its text is for logs."""

    id: int
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: str | None = None


def serve(methods: Mapping[str, Callable[..., Any]]) -> None:
    """Answer requests until standard input ends. What libraries print goes to standard error."""
    with os.fdopen(os.dup(1), "wb", buffering=0) as answers:
        os.dup2(2, 1)
        for line in sys.stdin.buffer:
            answers.write(msgspec.json.encode(_answer(methods, line)) + b"\n")


def _answer(methods: Mapping[str, Callable[..., Any]], line: bytes) -> Answer:
    request = msgspec.json.decode(line, type=Request)
    try:
        result = methods[request.method](*request.params)
        return Answer(request.id, msgspec.Raw(msgspec.json.encode(result)))
    except Exception as error:  # noqa: BLE001 - the parent decides what a failed call means
        return Answer(request.id, error=f"{type(error).__name__}: {error}"[:1000])
