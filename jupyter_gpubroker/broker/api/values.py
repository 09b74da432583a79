"""From wire bodies to values of the core."""

from __future__ import annotations

from ...core.model import MiB, Reason, SlotSpec
from ...wire.bodies import ReasonBody, SpecBody


def spec_of(body: SpecBody) -> SlotSpec:
    memory = None if body.memory_mib_min is None else MiB(body.memory_mib_min)
    return SlotSpec(body.count, body.model, memory, body.profile)


def reason_of(body: ReasonBody) -> Reason:
    return Reason(body.code, tuple(sorted(body.values.items())))
