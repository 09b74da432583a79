"""Refuses configuration keys of ours that do not exist: a misspelt key must not silently leave a default in force."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from traitlets.config import Configurable


def unknown_keys(config: Mapping[str, Any], classes: Iterable[type[Configurable]]) -> list[str]:
    """A sentence for each key of ours in `config` that nothing reads, naming the nearest that something does."""
    known = {cls.__name__: cls.class_trait_names(config=True) for cls in classes}
    sentences = []
    for section, keys in config.items():
        if section in known:
            sentences += [
                _sentence(f"{section}.{key}", [f"{section}.{name}" for name in known[section]])
                for key in keys
                if key not in known[section]
            ]
        elif section.lower().startswith("gpubroker"):
            sentences.append(_sentence(section, list(known)))
    return sentences


def _sentence(given: str, possible: list[str]) -> str:
    nearest = get_close_matches(given, possible, n=1, cutoff=0)
    return f"There is no configuration key c.{given}. Did you mean c.{nearest[0]}?"
