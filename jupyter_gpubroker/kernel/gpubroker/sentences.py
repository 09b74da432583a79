"""What this package says to people, in the language of the user; and the choice between the broker's own two.

The sentences are in `english` and `spanish`. What the broker decides is said in the broker's words.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List

from .english import ENGLISH

NAMES_MAX = 10


def say(code: str, **values: Any) -> str:
    """The sentence of `code`."""
    return _sentences()[code].format(**values)


def say_of(lease: Dict[str, Any], code: str, **values: Any) -> str:
    """The sentence of `code`, in its form for one GPU or for several."""
    return say(code + "_many" if len(lease["models"]) > 1 else code, **values)


def is_known(code: str) -> bool:
    return code in ENGLISH


def of_view(view: Dict[str, Any], field: str = "sentence") -> str:
    """The broker's sentence: `field`, or its Spanish twin."""
    return str((is_spanish() and view.get(field + "_es")) or view.get(field, ""))


def names(found: List[str]) -> str:
    """Some of them, and how many more there are."""
    more = f" (+{len(found) - NAMES_MAX})" if len(found) > NAMES_MAX else ""
    return ", ".join(found[:NAMES_MAX]) + more


def is_spanish() -> bool:
    """Which of the two languages the environment asks for."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if os.environ.get(name):
            return os.environ[name].startswith("es")
    return False


def _sentences() -> Dict[str, str]:
    if not is_spanish():
        return ENGLISH
    from .spanish import SPANISH

    return SPANISH
