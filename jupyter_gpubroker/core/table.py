"""Maps of entities with the indices that decisions look things up by, so that a step costs what it changes, not what there is.

The broker remembers ended leases, requests, sessions and jobs for a while (`limits.keep_history_ms`), far more than live
ones; and most of what lives is of no concern to most events. `INDICES` says which entities are found by what. A table that is
part of a `State` is never changed: `Draft` and `apply` change copies, which share the indices until they differ.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from .model import (
    Entity,
    Gpu,
    Job,
    JobState,
    Lease,
    LeaseState,
    Request,
    RequestState,
    Session,
    SessionState,
    Slot,
    SlotKind,
    SlotSpec,
    SlotState,
    Telemetry,
    Verdict,
)
from .rules import Policy, Queue

K = TypeVar("K", bound=str)
E = TypeVar("E", bound=Entity)

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


class Demand(NamedTuple):
    """Waiting requests that want the same: what serves one serves the other, if its holder is there to take it."""

    queue: str
    spec: SlotSpec
    duration_ms: int | None
    is_job: bool


class Shape(NamedTuple):
    """Slots of one node that are as good as each other."""

    node_id: str
    kind: SlotKind
    model: str
    memory_mib: int
    profile: str | None


class Place(NamedTuple):
    """A place in line among requests of one demand; smaller is earlier."""

    since_ms: int
    number: int
    request_id: str


def shape_of(slot: Slot) -> Shape:
    return Shape(slot.node_id, slot.kind, slot.model, slot.memory_mib, slot.profile)


# --- which entities are found by what --------------------------------------------------------------------------------------


def _live(entity: Entity) -> Hashable:
    return None if is_over(entity) else True


def _timed_request(request: Request) -> Hashable:
    waits = request.state is RequestState.WAITING
    return True if waits and request.expires_ms is not None else None


def _demand(request: Request) -> Hashable:
    if request.state is not RequestState.WAITING:
        return None
    return Demand(request.queue, request.spec, request.duration_ms, request.job_id is not None)


def _waiting_owner(request: Request) -> Hashable:
    return request.owner if request.state is RequestState.WAITING else None


def _timed_lease(lease: Lease) -> Hashable:
    times = (lease.deadline_ms, lease.order, lease.notice, lease.ends_ms)
    is_timed = not is_over(lease) and any(each is not None for each in times)
    return True if is_timed else None


_TAKEABLE = frozenset({Verdict.IDLE, Verdict.WAITING_USER, Verdict.NEVER_USED, Verdict.HOST_BUSY})


def _quiet_lease(lease: Lease) -> Hashable:
    is_held = lease.state is LeaseState.ACTIVE and lease.job_id is None
    return True if is_held and lease.verdict in _TAKEABLE else None


def _preemptible_lease(lease: Lease) -> Hashable:
    is_held = lease.state in (LeaseState.GRANTED, LeaseState.ACTIVE)
    return lease.queue if is_held and lease.preemptible and lease.job_id is not None else None


def _leaving_lease(lease: Lease) -> Hashable:
    return True if lease.is_leaving else None


def _residual_lease(lease: Lease) -> Hashable:
    is_off = lease.state in (LeaseState.PARKED, LeaseState.CLEARED)
    return True if is_off and lease.residue_mib else None


def _holder(lease: Lease) -> Hashable:
    return lease.session_id


def _timed_session(session: Session) -> Hashable:
    return True if session.state is SessionState.RESTARTING else None


def _timed_job(job: Job) -> Hashable:
    is_limited = job.state is JobState.RUNNING and job.time_limit_ms is not None
    return True if is_limited or job.state is JobState.STOPPING else None


def _stopping_job(job: Job) -> Hashable:
    return True if job.state is JobState.STOPPING else None


def _loose_shape(slot: Slot) -> Hashable:
    is_loose = slot.state in (SlotState.FREE, SlotState.DRAINING)
    return shape_of(slot) if is_loose else None


def _usable_shape(slot: Slot) -> Hashable:
    return None if slot.state is SlotState.QUARANTINED else shape_of(slot)


def _place(request: Request) -> Place:
    return Place(request.since_ms, request.number, request.id)


class Index:
    """Ids in groups by a key. The copy of a table shares its groups until it changes them."""

    __slots__ = ("_key", "_own", "groups")

    def __init__(self, key: Callable[[Any], Hashable], groups: dict[Any, Any]) -> None:
        self._key = key
        self._own: set[Any] | None = None
        self.groups: dict[Any, Any] = groups

    def shared(self) -> Index:
        self._own = None  # what was its own is shared from now on
        return type(self)(self._key, self.groups)

    def change(self, old: Entity | None, new: Entity | None) -> None:
        before = None if old is None else self._key(old)
        after = None if new is None else self._key(new)
        if before == after and self._stays(old, new):
            return
        if before is not None:
            group = self._group(before)
            self._take(group, old)
            if not group:
                del self.groups[before]
        if after is not None:
            self._add(self._group(after), new)

    def _group(self, key: Any) -> Any:
        """The group, this index's own."""
        if self._own is None:
            self.groups, self._own = self.groups.copy(), set()
        group = self.groups.get(key)
        if group is None or key not in self._own:
            group = self.groups[key] = self._copied(group)
            self._own.add(key)
        return group

    @staticmethod
    def _copied(group: Any) -> Any:
        return {} if group is None else group.copy()

    @staticmethod
    def _stays(_old: Any, _new: Any) -> bool:
        """Whether the group that it was and is in stays as it is."""
        return True

    @staticmethod
    def _add(group: Any, entity: Any) -> None:
        group[entity.id] = None

    @staticmethod
    def _take(group: Any, entity: Any) -> None:
        del group[entity.id]


class Line(Index):
    """Groups of requests in the order of their places."""

    __slots__ = ()

    @staticmethod
    def _copied(group: Any) -> Any:
        return [] if group is None else group.copy()

    @staticmethod
    def _stays(old: Any, new: Any) -> bool:
        return old is None or new is None or _place(old) == _place(new)

    @staticmethod
    def _add(group: Any, entity: Any) -> None:
        insort(group, _place(entity))

    @staticmethod
    def _take(group: Any, entity: Any) -> None:
        del group[bisect_left(group, _place(entity))]


class Tally(Index):
    """Only how many there are."""

    __slots__ = ()

    def change(self, old: Entity | None, new: Entity | None) -> None:
        before = None if old is None else self._key(old)
        after = None if new is None else self._key(new)
        if before == after:
            return
        if self._own is None:
            self.groups, self._own = self.groups.copy(), set()
        if before is not None:
            self.groups[before] -= 1
            if not self.groups[before]:
                del self.groups[before]
        if after is not None:
            self.groups[after] = self.groups.get(after, 0) + 1


INDICES: Mapping[type[Entity], Mapping[str, tuple[type[Index], Callable[[Any], Hashable]]]] = {
    Slot: {"loose": (Index, _loose_shape), "usable": (Tally, _usable_shape)},
    Session: {"live": (Index, _live), "timed": (Index, _timed_session)},
    Request: {
        "live": (Index, _live),
        "timed": (Index, _timed_request),
        "lines": (Line, _demand),
        "waiting": (Tally, _waiting_owner),
    },
    Lease: {
        "live": (Index, _live),
        "timed": (Index, _timed_lease),
        "quiet": (Index, _quiet_lease),
        "preemptible": (Index, _preemptible_lease),
        "leaving": (Index, _leaving_lease),
        "residual": (Index, _residual_lease),
        "by_session": (Index, _holder),
    },
    Job: {
        "live": (Index, _live),
        "timed": (Index, _timed_job),
        "stopping": (Index, _stopping_job),
    },
}


class Table(dict[K, E], Generic[K, E]):
    """A map by id whose indices follow every `put` and `drop`."""

    __slots__ = ("indices",)

    def __init__(self, entity_type: type[Entity], entities: Mapping[K, E]) -> None:
        super().__init__(entities)
        self.indices: dict[str, Index]
        if isinstance(entities, Table):
            self.indices = {name: index.shared() for name, index in entities.indices.items()}
            return
        kinds = INDICES.get(entity_type, {})
        self.indices = {name: kind(key, {}) for name, (kind, key) in kinds.items()}
        for entity in entities.values():
            for index in self.indices.values():
                index.change(None, entity)

    def put(self, entity: Any) -> None:
        old = self.get(entity.id)
        self[entity.id] = entity
        for index in self.indices.values():
            index.change(old, entity)

    def drop(self, key: K) -> None:
        old = self.pop(key)
        for index in self.indices.values():
            index.change(old, None)


def indexed(entity_type: type[Entity], entities: Mapping[K, E]) -> Table[K, E]:
    """The table itself, or one made of a plain map (a state as the store loads it, or as a test writes it)."""
    return entities if isinstance(entities, Table) else Table(entity_type, entities)


def live(entities: Mapping[K, E]) -> list[E]:
    """Those that are not over."""
    if isinstance(entities, Table):
        return [entities[key] for key in entities.indices["live"].groups.get(True, ())]
    return [entity for entity in entities.values() if not is_over(entity)]


def found(
    entity_type: type[Entity], entities: Mapping[K, E], index: str, key: Hashable = True
) -> list[E]:
    """Those that the index finds by the key."""
    table = indexed(entity_type, entities)
    return [table[one] for one in table.indices[index].groups.get(key, ())]


def groups(entity_type: type[Entity], entities: Mapping[K, E], index: str) -> Mapping[Any, Any]:
    """All groups of the index: ids, places in line or a count for each key."""
    return indexed(entity_type, entities).indices[index].groups
