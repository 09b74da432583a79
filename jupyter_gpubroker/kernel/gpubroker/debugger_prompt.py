"""`%gpu` at the prompts of pdb, ipdb and `%debug`, where no other magic works.

A line that begins with `%` is a syntax error there, so nothing else is taken from anybody. It runs in no cell and needs no name
in the code that was stopped. `%gpu cpu EXPRESSION` is Python there, kept off the GPU, so that it need not wait for one that is
away.
"""

from __future__ import annotations

import cmd
import functools
import pdb  # noqa: T100 - whose prompt it is
import re
import sys
from typing import Any, Callable

from .errors import GPUBrokerError, Interrupted
from .sentences import say
from .telling import tell

_COMMAND = re.compile(r"\s*%gpu(?:\s|$)")


def is_command(answer: Any) -> bool:
    """Is this for us, whatever runs? It works while GPU memory is away."""
    return isinstance(answer, str) and _COMMAND.match(answer) is not None


def is_open() -> bool:
    """Does a debugger ask in this thread? Looked for from the code that asks outwards."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code is cmd.Cmd.cmdloop.__code__:
            return isinstance(frame.f_locals.get("self"), pdb.Pdb)
        frame = frame.f_back
    return False


def install(act: Callable[[str], None]) -> None:
    """Let `act` do what follows `%gpu` at a debugger's prompt. Installing twice changes nothing."""
    original = pdb.Pdb.default
    if getattr(original, "_of_gpubroker", None) is not None:
        return

    @functools.wraps(original)
    def default(self: Any, line: str) -> Any:
        if not is_command(line):
            return original(self, line)
        words = line.strip()[len("%gpu") :].strip()
        verb, _, expression = words.partition(" ")
        if verb == "cpu" and expression:
            from .cpu_only import cpu_only

            with cpu_only(say("gpu_away")):
                return original(self, expression)
        try:
            act(words)
        except (GPUBrokerError, Interrupted) as error:
            tell(str(error))
        return None

    vars(default)["_of_gpubroker"] = original
    pdb.Pdb.default = default  # type: ignore[method-assign]


def uninstall() -> None:
    original = getattr(pdb.Pdb.default, "_of_gpubroker", None)
    if original is not None:
        pdb.Pdb.default = original  # type: ignore[method-assign]
