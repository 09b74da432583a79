"""Decides a verdict again from the numbers that were kept of it, without a broker: what `gpubroker why ID --replay` does."""

from __future__ import annotations

from collections.abc import Mapping

from ..core.verdicts import replay


def decided_again(values: Mapping[str, object]) -> tuple[str, str]:
    """The verdict and the rule that gives it. Raises ValueError where the numbers are of another version."""
    ruling = replay(values)
    return ruling.verdict.value, ruling.rule
