"""Whose is this process? By ancestry, then by process group or session, then by the inherited mark.

Ancestry cannot be faked. The mark is an environment variable and can be, so it counts only where the process that carries it
has the uid of the session it names. A mark of an ancestor counts too: a container's monitor or `env -i` drops it on the way.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from ..core.events import ProcessOnSlot, ProcessOwner
from ..core.model import MiB
from ..devices.reader import ProcessReading
from .exempt import Exempt
from .holdings import Holder, HolderIndex, led_by
from .kinship import Kin, Kinship
from .pids import Lost, Pids, Trust
from .processes import Identity, ProcessTable

REMEMBERED_MAX = 10_000


class Attribution:
    """Remembers the processes it was asked about. `clock` in seconds, counting up."""

    def __init__(
        self,
        table: ProcessTable,
        clock: Callable[[], float] = time.monotonic,
        exempt: Exempt | None = None,
    ) -> None:
        self._table = table
        self._kinship = Kinship(table, clock)
        self._pids = Pids(table, self._kinship, clock)
        self._exempt = exempt or Exempt()
        self._ties = (_Remembered(self._by_descent), _Remembered(self._by_mark))

    def on_slot(
        self,
        readings: Iterable[ProcessReading],
        holders: HolderIndex,
        holder_ids: frozenset[str],
        trust: Trust,
    ) -> tuple[ProcessOnSlot, ...]:
        """The slot's compute processes with their owners; who is known to have ended is not there any more."""
        found: dict[int | Identity, ProcessOnSlot] = {}
        for reading in readings:
            if reading.kind != "compute":
                continue
            kin = self._pids.find(reading.pid, trust)
            if kin is Lost.ENDED:
                continue
            if kin is Lost.ANYBODY:
                found[reading.pid] = _unmapped(reading)
                continue
            seen = self._owned(kin, reading, holders, holder_ids)
            other = found.get(kin.identity)
            found[kin.identity] = seen if other is None else _joined(other, seen)
        return tuple(found.values())

    def sweep(self) -> None:
        """Forget processes that nobody asked about for a while."""
        self._pids.sweep()

    def _owner(self, kin: Kin, holders: HolderIndex, holder_ids: frozenset[str]) -> Holder | None:
        """The nearest holder it belongs to, but before all others one that holds this slot.

        Holders nest: a kernel started inside a batch job works on the job's slot.
        """
        nearest: Holder | None = None
        for tie in self._ties:
            for holder in tie.holders_of(kin, holders):
                if holder.id in holder_ids:
                    return holder
                nearest = nearest or holder
        return nearest

    def _by_descent(self, kin: Kin, holders: HolderIndex) -> Sequence[Holder]:
        """Of its ancestors, then of those whose group or session it or an ancestor is in."""
        found = [one for step in kin.line() for one in holders.by_identity.get(step.identity, ())]
        for step in kin.line():
            for leader in (step.group, step.session):
                for holder in holders.by_pid.get(leader, ()):
                    if holder not in found and led_by(
                        holder, step.start_ticks, self._table.process(leader)
                    ):
                        found.append(holder)
        return found

    def _by_mark(self, kin: Kin, holders: HolderIndex) -> Sequence[Holder]:
        return [
            holder
            for step in kin.line()
            for mark in step.marks(self._table)
            for holder in holders.by_mark.get(mark, ())
            if holder.uid == step.uid
        ]

    def _owned(
        self, kin: Kin, reading: ProcessReading, holders: HolderIndex, holder_ids: frozenset[str]
    ) -> ProcessOnSlot:
        holder = self._owner(kin, holders, holder_ids)
        return ProcessOnSlot(
            pid=kin.pid,
            owned_by=ProcessOwner.FOREIGN if holder is None else holder.owned_by,
            holder_id=None if holder is None else holder.id,
            uid=kin.uid,
            memory_mib=_memory(reading),
            start_ticks=kin.start_ticks,
            computes=_computes(reading),
            is_exempt=holder is None and self._exempt.is_exempt(kin, self._table),
        )


class _Remembered:
    """Whose a process is by one tie, worked out once as long as the holders are the same."""

    def __init__(self, find: Callable[[Kin, HolderIndex], Sequence[Holder]]) -> None:
        self._find = find
        self._holders: HolderIndex | None = None
        self._found: dict[Identity, Sequence[Holder]] = {}

    def holders_of(self, kin: Kin, holders: HolderIndex) -> Sequence[Holder]:
        if holders is not self._holders or len(self._found) >= REMEMBERED_MAX:
            self._holders, self._found = holders, {}
        found = self._found.get(kin.identity)
        if found is None:
            found = self._found[kin.identity] = self._find(kin, holders)
        return found


def _unmapped(reading: ProcessReading) -> ProcessOnSlot:
    return ProcessOnSlot(
        reading.pid,
        ProcessOwner.UNMAPPED,
        memory_mib=_memory(reading),
        computes=_computes(reading),
    )


def _joined(one: ProcessOnSlot, other: ProcessOnSlot) -> ProcessOnSlot:
    """The same process, told twice under two numbers: what either knows of it."""
    uses = (one.computes, other.computes)
    return replace(
        one,
        memory_mib=one.memory_mib if other.memory_mib is None else other.memory_mib,
        computes=True if True in uses else False if False in uses else None,
    )


def _memory(reading: ProcessReading) -> MiB | None:
    return None if reading.memory_mib is None else MiB(reading.memory_mib)


def _computes(reading: ProcessReading) -> bool | None:
    return None if reading.utilisation_percent is None else reading.utilisation_percent > 0
