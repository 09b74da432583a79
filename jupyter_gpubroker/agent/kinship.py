"""What ties a process to others: its ancestors, group, session, uid and the marks it and they were started with.

Looked up once in a process' life, when it is first asked about, and remembered: a process whose parent has ended by the next
look is still known as that parent's child. Blocking, as `processes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..processes import Process
from .processes import Identity, ProcessTable

_ANCESTORS_MAX = 64
_FORGET_AFTER_S = 60.0


class Kin:
    """A process with its parent as it was when first seen. `uid` None: it may not be read."""

    __slots__ = ("_marks", "group", "parent", "pid", "session", "start_ticks", "uid", "used_s")

    def __init__(self, process: Process, parent: Kin | None, uid: int | None) -> None:
        self.pid = process.pid
        self.start_ticks = process.start_ticks
        self.group = process.group
        self.session = process.session
        self.parent = parent
        self.uid = uid
        self.used_s = 0.0
        self._marks: tuple[str, ...] | None = None

    @property
    def identity(self) -> Identity:
        return self.pid, self.start_ticks

    def line(self) -> Iterator[Kin]:
        """The process itself, then its ancestors, the nearest first."""
        step: Kin | None = self
        while step is not None:
            yield step
            step = step.parent

    def marks(self, table: ProcessTable) -> tuple[str, ...]:
        """The marks it was started with; read when first wanted, since most are known by descent alone."""
        if self._marks is None:
            self._marks = table.marks(self.pid)
        return self._marks


class Kinship:
    """`clock` in seconds, counting up."""

    def __init__(self, table: ProcessTable, clock: Callable[[], float]) -> None:
        self._table = table
        self._clock = clock
        self._known: dict[Identity, Kin] = {}
        self._next_sweep_s = 0.0

    def of(self, process: Process) -> Kin:
        kin = self._find(process, _ANCESTORS_MAX)
        kin.used_s = self._clock()
        return kin

    def knows(self, identity: Identity) -> bool:
        return identity in self._known

    def knew(self, pid: int) -> bool:
        """Whether a process with this pid was asked about lately, or a child of it."""
        return any(known == pid for known, _ in self._known)

    def sweep(self) -> None:
        """Forget whom nobody asked about for a while; children remember their parents themselves."""
        now_s = self._clock()
        if now_s < self._next_sweep_s:
            return
        self._next_sweep_s = now_s + _FORGET_AFTER_S
        self._known = {
            identity: kin
            for identity, kin in self._known.items()
            if now_s - kin.used_s < _FORGET_AFTER_S
        }

    def _find(self, process: Process, generations: int) -> Kin:
        identity = (process.pid, process.start_ticks)
        known = self._known.get(identity)
        if known is None:
            parent = self._table.process(process.parent) if process.parent and generations else None
            kin = None if parent is None else self._find(parent, generations - 1)
            known = self._known[identity] = Kin(process, kin, self._table.uid(process.pid))
        return known
