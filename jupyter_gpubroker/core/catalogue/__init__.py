"""The sentences of the product: for each reason code one in English and one in Spanish.

A sentence says what happened, why, and what to do, in that order. Names in braces are the values of the reason: what ends in
`_ms` is shown as a duration, in `_mib` as memory, words of the core (`WORDS`) in people's words. `explain` renders them. A test
holds every code that the package uses, with its values, against these tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from . import admin, asking, audit, devices, giving_back, holding, jobs, sessions, verdicts
from .words import WORDS

__all__ = ["SENTENCES", "WORDS"]

SENTENCES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        code: pair
        for topic in (admin, asking, audit, devices, giving_back, holding, jobs, sessions, verdicts)
        for code, pair in topic.SENTENCES.items()
    }
)
