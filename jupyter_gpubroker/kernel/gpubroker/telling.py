"""Prints text for people, broken between words: JupyterLab breaks a line that is too long wherever it ends."""

from __future__ import annotations

import re
import textwrap

WIDTH = 88

_CODE = re.compile("`[^`]*`")
_GLUE = "\x00"  # holds the words of a command together


def tell(*sentences: str) -> None:
    """Print them, one after the other."""
    print(wrapped(" ".join(sentences)))


def wrapped(text: str) -> str:
    """The same with no line longer than `WIDTH`, if words allow; what is indented stays so."""
    return "\n".join(map(_wrapped, text.split("\n")))


def _wrapped(line: str) -> str:
    if len(line) <= WIDTH:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    lines = textwrap.wrap(
        _CODE.sub(lambda code: code[0].replace(" ", _GLUE), line),
        WIDTH,
        subsequent_indent=indent + "  " if indent else "",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines).replace(_GLUE, " ")
