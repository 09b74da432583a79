"""Any entity that the model allows, for property tests; and single ones to tell stories with."""

from __future__ import annotations

import types
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from jupyter_gpubroker.core.model import (
    ENTITY_TYPES,
    GpuId,
    Hold,
    Job,
    JobId,
    Lease,
    LeaseId,
    MiB,
    NodeId,
    Owner,
    SessionId,
    Slot,
    SlotId,
    SlotKind,
    SlotSpec,
)

KEPT_TYPES = [entity_type for entity_type in ENTITY_TYPES if entity_type.TABLE is not None]


def entities() -> st.SearchStrategy[Any]:
    return st.one_of([values_of(entity_type) for entity_type in KEPT_TYPES])


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a type hint as the model uses them; integers are those of 64 bits."""
    while (supertype := getattr(hint, "__supertype__", None)) is not None:
        hint = supertype
    if hint is int:
        return st.integers(-(2**63), 2**63 - 1)
    if get_origin(hint) in (Union, types.UnionType):
        return st.one_of([values_of(member) for member in get_args(hint)])
    if get_origin(hint) is tuple:
        return _tuples(get_args(hint))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(hint)
    if isinstance(hint, type) and is_dataclass(hint):
        hints = get_type_hints(hint)
        return st.builds(hint, **{f.name: values_of(hints[f.name]) for f in fields(hint)})
    return st.from_type(hint)


def _tuples(members: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    if members[-1] is Ellipsis:
        return st.lists(values_of(members[0]), max_size=3).map(tuple)
    return st.tuples(*map(values_of, members))


def a_slot(**changes: Any) -> Slot:
    slot = Slot(SlotId("GPU-1"), GpuId("GPU-1"), NodeId("here"), SlotKind.GPU, "H200", MiB(143_771))
    return replace(slot, **changes)


def a_lease(lease_id: str, *holds: tuple[str, int], **changes: Any) -> Lease:
    """A granted lease on slots, each given with its epoch."""
    lease = Lease(
        LeaseId(lease_id),
        Owner("ada"),
        SessionId("session"),
        "interactive",
        tuple(Hold(SlotId(slot_id), epoch) for slot_id, epoch in holds),
        SlotSpec(),
    )
    return replace(lease, **changes)


def a_job(job_id: str, number: int) -> Job:
    spec = SlotSpec()
    return Job(JobId(job_id), number, Owner("ada"), "train", SessionId("runner"), spec, "batch")
