"""Maps of entities that know which of them are not over yet.

The broker remembers ended leases, requests, sessions and jobs for a while (`limits.keep_history_ms`), far more than live
ones. Decisions look at the live ones alone, so a long memory costs them nothing. A table that is part of a `State` is
never changed; `Draft` and `apply` change copies of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from .model import (
    Entity,
    Gpu,
    Job,
    JobState,
    Lease,
    LeaseState,
    Policy,
    Queue,
    Request,
    RequestState,
    Session,
    SessionState,
    Slot,
    Telemetry,
)

K = TypeVar("K")
E = TypeVar("E")

STATE_FIELDS: Mapping[type[Entity], str] = {
    Gpu: "gpus",
    Slot: "slots",
    Session: "sessions",
    Request: "requests",
    Lease: "leases",
    Job: "jobs",
    Policy: "policies",
    Queue: "queues",
    Telemetry: "telemetry",
}


def is_over(entity: object) -> bool:
    """Whether nothing will ever happen to it again. A lease is not over while a residue of it is noted."""
    if isinstance(entity, Lease):
        return entity.state is LeaseState.CLEARED and not entity.residue_mib
    if isinstance(entity, Request):
        return entity.state is not RequestState.WAITING
    if isinstance(entity, Session):
        return entity.state is SessionState.ENDED
    return isinstance(entity, Job) and entity.state is JobState.ENDED


class Table(dict[K, E]):
    """A map by id; `live` holds those that are not over."""

    __slots__ = ("live",)

    def __init__(self, entities: Mapping[K, E]) -> None:
        super().__init__(entities)
        self.live = _live(entities).copy()

    def put(self, entity: Any) -> None:
        self[entity.id] = entity
        if is_over(entity):
            self.live.pop(entity.id, None)
        else:
            self.live[entity.id] = entity

    def drop(self, key: K) -> None:
        del self[key]
        self.live.pop(key, None)


def live(entities: Mapping[K, E]) -> list[E]:
    """Those that are not over."""
    return [*_live(entities).values()]


def _live(entities: Mapping[K, E]) -> dict[K, E]:
    if isinstance(entities, Table):
        return entities.live
    return {key: entity for key, entity in entities.items() if not is_over(entity)}
