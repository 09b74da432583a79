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
    Millis,
    Modes,
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
    Watch,
    Withdrawal,
)
from .rules import FaultRule, Limits, Policy, Queue

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
    FaultRule: "faults",
    Telemetry: "telemetry",
    Withdrawal: "withdrawals",
    Watch: "watches",
}
# Of these there is one, which is the field itself.
SINGLE_FIELDS: Mapping[type[Entity], str] = {Limits: "limits", Modes: "modes"}


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

_TAKEABLE = frozenset(
    {
        Verdict.IDLE,
        Verdict.WAITING_USER,
        Verdict.NEVER_USED,
        Verdict.HOST_BUSY,
        Verdict.SERVING,
    }
)
_HELD = frozenset({LeaseState.GRANTED, LeaseState.ACTIVE})


def _only(is_meant: bool) -> Hashable:
    return True if is_meant else None


def _live(entity: Entity) -> Hashable:
    return _only(not is_over(entity))


def _over(entity: Entity) -> Hashable:
    return _only(is_over(entity))


def _demand(request: Request) -> Hashable:
    if request.state is not RequestState.WAITING:
        return None
    is_job = request.job_id is not None
    return Demand(request.queue, request.spec, request.duration_ms, is_job)


def _waiting_owner(request: Request) -> Hashable:
    return request.owner if request.state is RequestState.WAITING else None


def _asking_session(request: Request) -> Hashable:
    is_asking = request.state is RequestState.WAITING and request.job_id is None
    return request.session_id if is_asking else None


def _quiet_lease(lease: Lease) -> Hashable:
    is_held = lease.state is LeaseState.ACTIVE and lease.job_id is None
    return _only(is_held and lease.verdict in _TAKEABLE)


def _preemptible_lease(lease: Lease) -> Hashable:
    is_meant = lease.preemptible and lease.job_id is not None and lease.state in _HELD
    return lease.queue if is_meant else None


def _residual_lease(lease: Lease) -> Hashable:
    is_off = lease.state in (LeaseState.PARKED, LeaseState.CLEARED)
    return _only(is_off and bool(lease.residue_mib))


def _loose_shape(slot: Slot) -> Hashable:
    is_loose = slot.state in (SlotState.FREE, SlotState.DRAINING)
    return shape_of(slot) if is_loose else None


def _usable_shape(slot: Slot) -> Hashable:
    return None if slot.state is SlotState.QUARANTINED else shape_of(slot)


def _place(request: Request) -> Place:
    return Place(request.in_line_since_ms, request.number, request.id)


def request_due_ms(request: Request) -> Millis | None:
    return request.expires_ms if request.state is RequestState.WAITING else None


def lease_due_ms(lease: Lease) -> Millis | None:
    """When something must happen to the lease; the end of one taken for a time is announced besides (`ending`)."""
    if lease.state is not LeaseState.ACTIVE:
        return lease.deadline_ms
    order_ms = None if lease.order is None else lease.order.due_ms
    notice_ms = None if lease.notice is None else lease.notice.due_ms
    return min((at for at in (order_ms, notice_ms) if at is not None), default=None)


def job_due_ms(job: Job) -> Millis | None:
    """When its time is over; that of a job being stopped depends on its lease (`stopping`)."""
    if job.state is not JobState.RUNNING or job.time_limit_ms is None:
        return None
    return Millis((job.started_ms or 0) + job.time_limit_ms - job.saved_ms)


class Index:
    """Ids in groups by a key; None is in no group. The copy of a table shares its groups until it changes them."""

    __slots__ = ("_key", "_own", "groups", "memo")

    def __init__(self, key: Callable[[Any], Hashable]) -> None:
        self._key = key
        self._own: set[Any] | None = None
        self.groups: dict[Any, Any] = {}
        self.memo: dict[Any, Any] = {}  # what others worked out from these groups

    def shared(self) -> Index:
        self._own = None  # what was its own is shared from now on
        copy = Index.__new__(type(self))
        copy._key, copy._own, copy.groups, copy.memo = self._key, None, self.groups, self.memo
        return copy

    def empty(self) -> Index:
        copy = self.shared()
        copy.groups, copy.memo = {}, {}
        return copy

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
        self._own_groups()
        group = self.groups.get(key)
        if group is None or key not in self._own_groups():
            group = self.groups[key] = self._copied(group)
            self._own_groups().add(key)
        return group

    def _own_groups(self) -> set[Any]:
        if self._own is None:
            self.groups, self._own = self.groups.copy(), set()
        self.memo = {}
        return self._own

    def _copied(self, group: Any) -> Any:
        return {} if group is None else group.copy()

    def _stays(self, _old: Any, _new: Any) -> bool:
        """Whether the group that it was and is in stays as it is."""
        return True

    def _add(self, group: Any, entity: Any) -> None:
        group[entity.id] = None

    def _take(self, group: Any, entity: Any) -> None:
        del group[entity.id]


class Sorted(Index):
    """Groups in the order of what stands for each entity in them: a tuple that ends with its id."""

    __slots__ = ("_member",)

    def __init__(
        self, key: Callable[[Any], Hashable], member: Callable[[Any], tuple[Any, ...]]
    ) -> None:
        super().__init__(key)
        self._member = member

    def shared(self) -> Index:
        copy = super().shared()
        assert isinstance(copy, Sorted)
        copy._member = self._member
        return copy

    def _copied(self, group: Any) -> Any:
        return [] if group is None else group.copy()

    def _stays(self, old: Any, new: Any) -> bool:
        if old is None or new is None or self._key(new) is None:
            return True
        return self._member(old) == self._member(new)

    def _add(self, group: Any, entity: Any) -> None:
        insort(group, self._member(entity))

    def _take(self, group: Any, entity: Any) -> None:
        del group[bisect_left(group, self._member(entity))]


class Tally(Index):
    """Only how many there are."""

    __slots__ = ()

    def change(self, old: Entity | None, new: Entity | None) -> None:
        before = None if old is None else self._key(old)
        after = None if new is None else self._key(new)
        if before == after:
            return
        self._own_groups()
        if before is not None:
            self.groups[before] -= 1
            if not self.groups[before]:
                del self.groups[before]
        if after is not None:
            self.groups[after] = self.groups.get(after, 0) + 1


def _due(due_ms: Callable[[Any], Millis | None]) -> Index:
    return Sorted(
        lambda entity: _only(due_ms(entity) is not None), lambda entity: (due_ms(entity), entity.id)
    )


def _ended(since: str) -> Index:
    return Sorted(_over, lambda entity: (getattr(entity, since) or 0, entity.id))


INDICES: Mapping[type[Entity], Mapping[str, Index]] = {
    Gpu: {"faulty": Index(lambda gpu: _only(gpu.fault is not None))},
    Slot: {
        "loose": Index(_loose_shape),
        "usable": Tally(_usable_shape),
        "quarantined": Index(lambda slot: _only(slot.state is SlotState.QUARANTINED)),
    },
    Session: {
        "live": Index(_live),
        "over": _ended("since_ms"),
        "restarting": Index(lambda one: _only(one.state is SessionState.RESTARTING)),
    },
    Request: {
        "live": Index(_live),
        "over": _ended("ended_ms"),
        "due": _due(request_due_ms),
        "lines": Sorted(_demand, _place),
        "waiting": Tally(_waiting_owner),
        "by_session": Index(_asking_session),
    },
    Lease: {
        "live": Index(_live),
        "over": _ended("since_ms"),
        "due": _due(lease_due_ms),
        "ending": Index(lambda one: _only(one.ends_ms is not None and not is_over(one))),
        "noticed": Index(lambda one: _only(one.notice is not None)),
        "quiet": Index(_quiet_lease),
        "preemptible": Index(_preemptible_lease),
        "leaving": Index(lambda one: _only(one.is_leaving)),
        "residual": Index(_residual_lease),
        "by_session": Index(lambda one: one.session_id),
    },
    Job: {
        "live": Index(_live),
        "over": _ended("since_ms"),
        "due": _due(job_due_ms),
        "stopping": Index(lambda one: _only(one.state is JobState.STOPPING)),
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
        self.indices = {name: kind.empty() for name, kind in kinds.items()}
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
