"""Cells that are told from others by how they begin: our own commands, and `%%gpu cpu`, which asks to run without the GPU.

The first line of a `%%gpu cpu` cell is taken away before anything else reads it; the rest is a cell like any other. Where GPU
memory is not away, that line changes nothing.
"""

from __future__ import annotations

import re
from typing import Any, List

_OURS = re.compile(r"\s*(%gpu\b.*|#.*|import gpubroker|gpubroker\.\w+\([^()]*\))?\s*")
_CPU_ONLY = re.compile(r"%%gpu[ \t]+cpu[ \t]*")


def is_ours(source: str) -> bool:
    """Is the cell nothing but our own commands? They work while the memory is away."""
    return all(_OURS.fullmatch(line) for line in source.splitlines())


def is_cpu_only(source: str) -> bool:
    """Does its user say that the cell needs no GPU?"""
    return _CPU_ONLY.fullmatch(source.lstrip().partition("\n")[0]) is not None


def without_first_line(lines: List[str]) -> List[str]:
    """What IPython is to read of a `%%gpu cpu` cell; numbers of lines stay as they are."""
    source = "".join(lines)
    if not is_cpu_only(source):
        return lines
    at = next(at for at, line in enumerate(lines) if line.strip())
    rest = lines[at + 1 :]
    # The magic of a whole cell has to be its first line.
    return rest if rest and rest[0].startswith("%%") else [*lines[:at], "\n", *rest]


def install(shell: Any) -> None:
    """Understand `%%gpu cpu`. Installing twice changes nothing."""
    transformers = getattr(shell, "input_transformers_cleanup", None)  # since IPython 7
    if transformers is not None and without_first_line not in transformers:
        transformers.append(without_first_line)


def uninstall(shell: Any) -> None:
    if without_first_line in getattr(shell, "input_transformers_cleanup", ()):
        shell.input_transformers_cleanup.remove(without_first_line)
