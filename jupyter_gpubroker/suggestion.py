"""Which known word somebody may have meant who wrote an unknown one."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most like `word`; None where none is."""
    return next(iter(difflib.get_close_matches(word, list(known), 1)), None)
