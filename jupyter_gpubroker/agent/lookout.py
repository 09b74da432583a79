"""Turns readings of devices into observations: whose the processes are, who works, who was left behind.

Blocking, as everything about /proc; called in `offload`'s thread, one call at a time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..core.events import ProcessOnSlot, SlotObservation
from ..core.model import MiB, SlotId
from ..devices.reader import SlotReading
from ..processes import Process
from .attribution import Attribution
from .exempt import Exempt
from .fence import Fence
from .holdings import Holder, HolderIndex, Holdings
from .host_activity import HostActivity, HostSample
from .pids import Trust
from .processes import ProcessTable
from .trees import Trees
from .usage import Use, use_of

LEFT_BEHIND_MAX = 16

_log = logging.getLogger(__name__)


class Lookout:
    """Remembers processes and their use of the host between looks."""

    def __init__(self, table: ProcessTable, exempt: Exempt) -> None:
        self._table = table
        self._trees = Trees(table)
        self._attribution = Attribution(table, exempt=exempt)
        self._host = HostActivity(table, self._trees, time.monotonic)
        self._fence = Fence()
        self._index = HolderIndex()

    def look(
        self, readings: Sequence[SlotReading], holdings: Holdings, is_simulated: bool
    ) -> tuple[SlotObservation, ...]:
        """One observation for each reading, but none of a slot whose holding is older than what was seen. Raises OSError."""
        with self._table.one_look():
            return self._look(readings, holdings, is_simulated)

    def _look(
        self, readings: Sequence[SlotReading], holdings: Holdings, is_simulated: bool
    ) -> tuple[SlotObservation, ...]:
        trust = self._trust(is_simulated)
        if holdings.holders != self._index.holders:
            self._index = HolderIndex(holdings.holders)
        left_behind = self._left_behind(holdings)
        observations = []
        for reading in readings:
            slot_id = SlotId(reading.uuid)
            held = holdings.slots.get(slot_id)
            if held is None:
                observations.append(self._one(reading, trust))
            elif self._fence.admits(slot_id, held.epoch):
                seen = self._one(reading, trust, held.holder_ids)
                left = left_behind.get(held.worker_id, ()) if held.is_deserted else ()
                observations.append(replace(seen, left_behind=left))
            else:
                _log.error("stale_epoch slot=%s epoch=%d", slot_id, held.epoch)
        self._attribution.sweep()
        return self._with_hosts(observations, holdings)

    def _one(
        self,
        reading: SlotReading,
        trust: Trust,
        holder_ids: frozenset[str] = frozenset(),
    ) -> SlotObservation:
        listed = reading.processes
        processes = (
            None
            if listed is None
            else self._attribution.on_slot(listed, self._index, holder_ids, trust)
        )
        return observation(reading, processes, use_of(reading, processes, holder_ids))

    def _with_hosts(
        self, observations: Sequence[SlotObservation], holdings: Holdings
    ) -> tuple[SlotObservation, ...]:
        """What the holders' trees do beside the devices."""
        worker_ids = {held.worker_id for held in holdings.slots.values()}
        workers = [holder for holder in holdings.holders if holder.id in worker_ids]
        workers_of = {slot_id: held.worker_id for slot_id, held in holdings.slots.items()}
        busy = {workers_of.get(seen.slot_id) for seen in observations if seen.busy}
        quiet = {workers_of.get(seen.slot_id) for seen in observations} - busy
        samples = self._host.sample(workers, [one for one in quiet if one is not None])
        return tuple(
            _with_host(seen, samples.get(workers_of.get(seen.slot_id, ""))) for seen in observations
        )

    def _left_behind(self, holdings: Holdings) -> Mapping[str, tuple[ProcessOnSlot, ...]]:
        """By the id of a holder that is gone: who is left of it, or of its incarnation before a restart.

        What a holder that lives has started is its own business, also what it started before it was restarted, and also where
        one that is gone had started the holder.
        """
        gone = {held.worker_id for held in holdings.slots.values() if held.is_deserted}
        left: dict[str, tuple[ProcessOnSlot, ...]] = {}
        for holder, tree in self._trees.scan(holdings.holders).items() if gone else ():
            if holder.id in gone and not tree.has_root:
                found = [_left(process, holder) for process in tree.processes]
                left[holder.id] = (*left.get(holder.id, ()), *found)[:LEFT_BEHIND_MAX]
        return left

    def _trust(self, is_simulated: bool) -> Trust:
        if is_simulated:
            return Trust.EXACT
        return Trust.LIKELY if self._table.is_initial_namespace() else Trust.TO_BE_PROVEN


def observation(
    reading: SlotReading, processes: tuple[ProcessOnSlot, ...] | None, use: Use
) -> SlotObservation:
    """What the device alone tells."""
    memory = reading.memory_used_mib
    return SlotObservation(
        slot_id=SlotId(reading.uuid),
        busy=use.busy,
        host_busy=None,
        memory_used_mib=None if memory is None else MiB(memory),
        processes=processes,
        utilisation_percent=reading.utilisation_percent,
        window_ms=use.window_ms,
        source=use.source,
        sm_percent=reading.sm_percent,
        dram_percent=reading.dram_percent,
    )


def without_owners(reading: SlotReading) -> SlotObservation:
    """What is known where nobody can say whose the processes are, nor who is left."""
    return replace(observation(reading, None, Use(None)), left_behind=None)


def _with_host(seen: SlotObservation, sample: HostSample | None) -> SlotObservation:
    return seen if sample is None else replace(seen, host_busy=sample.is_busy, host=sample.use)


def _left(process: Process, holder: Holder) -> ProcessOnSlot:
    return ProcessOnSlot(
        process.pid, holder.owned_by, holder.id, holder.uid, start_ticks=process.start_ticks
    )
