"""The node agent: reads the devices through the probe, attributes processes, and emits core events.

It emits `InventoryReported` first, then `SlotsObserved` at every tick and whenever `inspect` asks, `GpusObserved` when
there is news of their condition, and `NodeUnobserved` when the devices cannot be read. What was not read is None in the events;
what it means is the core's business.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial

from ..core.events import (
    GpusObserved,
    InventoryReported,
    NodeUnobserved,
    SlotObservation,
    SlotSeen,
    SlotsObserved,
)
from ..core.model import Gpu, GpuId, MiB, NodeId, Reason, SlotId, SlotKind
from ..devices.child import ChildError, ChildUnavailable
from ..devices.probe_client import ProbeClient
from ..devices.reader import CHANGED, NO_NVIDIA_DEVICE, Inventory, SlotReading
from .condition import Condition, power_above_idle_mw
from .exempt import Exempt
from .fencing import Fencing
from .holdings import Holdings
from .lookout import Lookout, without_owners
from .offload import Hanging, Offload
from .processes import ProcessTable
from .stopping import stop

AgentEvent = InventoryReported | GpusObserved | SlotsObserved | NodeUnobserved

INTERVAL_S = 1.0
INVENTORY_EVERY_S = 60.0
DRIVER_RETRY_S = 5.0
PROC_DEADLINE_S = 2.0
STOPS_KEPT_MAX = 256

_log = logging.getLogger(__name__)


class Agent:
    """Runs in the broker's event loop. `holdings` is asked at each observation for who holds what just then."""

    def __init__(
        self,
        node_id: NodeId,
        probe: ProbeClient,
        *,
        holdings: Callable[[], Holdings],
        emit: Callable[[AgentEvent], None],
        interval_s: float = INTERVAL_S,
        table: ProcessTable | None = None,
        exempt: Exempt | None = None,
        fencing: Fencing | None = None,
    ) -> None:
        self._node_id = node_id
        self._probe = probe
        self._holdings = holdings
        self._emit = emit
        self._interval_s = interval_s
        self._lookout = Lookout(table or ProcessTable(), exempt or Exempt())
        self._offload = Offload()
        self._stopping = Offload()
        self._stops: dict[tuple[int, int], tuple[bool, str]] = {}
        self._fencing = fencing
        self._condition = Condition()
        self._power_mw: dict[SlotId, int] = {}
        self._turn = asyncio.Lock()
        self._inventory: Inventory | None = None
        self._inventory_pid: int | None = None
        self._next_inventory_s = 0.0
        self._slot_ids: frozenset[SlotId] = frozenset()
        self._problem: Reason | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Observe from now on; the first inventory comes as soon as the probe is up."""
        assert self._task is None
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self._probe.close()

    async def inspect(self, slot_ids: Iterable[SlotId]) -> None:
        """Observe these slots now, as after a release; emits before it returns."""
        await self._observe(frozenset(slot_ids))

    async def admit(self) -> None:
        """Open the fence for what was just granted."""
        if self._fencing is not None:
            await self._fencing.keep(self._holdings())

    async def stop(self, pid: int, start_ticks: int, *, force: bool) -> None:
        """End a process that the auditor found; harmless when it is gone. Asked for again until it is; told when it is news."""
        try:
            done = await self._stopping.call(
                partial(stop, pid, start_ticks, force=force), deadline_s=PROC_DEADLINE_S
            )
            outcome = done.value
        except (Hanging, OSError) as error:
            outcome = f"{type(error).__name__}: {error}"
        if self._stops.get((pid, start_ticks)) != (force, outcome):
            _log.warning("process_stopped pid=%d force=%s outcome=%s", pid, force, outcome)
        self._stops[pid, start_ticks] = (force, outcome)
        if len(self._stops) > STOPS_KEPT_MAX:
            del self._stops[next(iter(self._stops))]

    async def _run(self) -> None:
        while True:
            await self._observe(None)
            await asyncio.sleep(self._interval_s)

    async def _observe(self, only: frozenset[SlotId] | None) -> None:
        async with self._turn:
            try:
                await self._take_inventory_if_due()
                if only is None:
                    await self._look_at_gpus()
                await self._look_at_slots(self._slot_ids if only is None else self._slot_ids & only)
            except ChildUnavailable as error:
                # A pause follows a failure that has been told.
                if error.problem != "pausing" or self._problem is None:
                    self._unobserved(
                        Reason.of("probe_unavailable", problem=error.problem), error.detail
                    )
            except ChildError as error:
                self._unobserved(Reason.of("probe_unavailable", problem="failed"), str(error))

    async def _look_at_gpus(self) -> None:
        if self._inventory is None or not self._inventory.gpus:
            return
        readings = await self._probe.health()
        self._power_mw = power_above_idle_mw(readings, self._inventory)
        news = self._condition.news(readings, self._inventory)
        if news:
            self._emit(GpusObserved(self._node_id, news))

    async def _look_at_slots(self, wanted: frozenset[SlotId]) -> None:
        if not wanted:
            return
        # Before the reading: who lets go during it may have been seen before that.
        leaving = self._holdings().leaving
        readings = await self._probe.observe(sorted(wanted))
        problems = [problem for reading in readings for problem in reading.problems]
        if any(problem.endswith(CHANGED) for problem in problems):
            self._next_inventory_s = 0.0
        observations = await self._attribute(readings)
        await self.admit()
        self._problem = None
        is_fenced = self._fencing is not None and self._fencing.stands
        self._emit(SlotsObserved(self._node_id, observations, leaving, is_fenced))

    # --- inventory ----------------------------------------------------------------------------------------------------

    async def _take_inventory_if_due(self) -> None:
        """A new probe process knows no devices yet; an old one may know others than there are now."""
        now_s = time.monotonic()
        is_same_probe = self._probe.pid is not None and self._probe.pid == self._inventory_pid
        if is_same_probe and now_s < self._next_inventory_s:
            return
        inventory = await self._probe.inventory()
        self._inventory_pid = self._probe.pid
        self._next_inventory_s = now_s + INVENTORY_EVERY_S
        if inventory == self._inventory:
            return
        broken = [problem for problem in inventory.problems if problem != NO_NVIDIA_DEVICE]
        if broken and not inventory.gpus:
            self._inventory, self._slot_ids = None, frozenset()
            self._next_inventory_s = now_s + DRIVER_RETRY_S
            self._unobserved(Reason.of("driver_unavailable", error=broken[0]), " ".join(broken))
            return
        self._inventory = inventory
        report = inventory_reported(self._node_id, inventory)
        self._slot_ids = frozenset(slot.id for slot in report.slots)
        if self._fencing is not None:
            await self._fencing.know(inventory)
        self._emit(report)

    def _unobserved(self, reason: Reason, detail: str) -> None:
        """Told when it begins and when its reason changes, not at every tick."""
        if reason != self._problem:
            self._problem = reason
            _log.warning("devices_unobserved reason=%s detail=%s", reason, detail)
            self._emit(NodeUnobserved(self._node_id, reason))

    # --- attribution --------------------------------------------------------------------------------------------------

    async def _attribute(self, readings: Sequence[SlotReading]) -> tuple[SlotObservation, ...]:
        observations = await self._owned(readings)
        return tuple(
            replace(seen, power_above_idle_mw=self._power_mw.get(seen.slot_id))
            for seen in observations
        )

    async def _owned(self, readings: Sequence[SlotReading]) -> tuple[SlotObservation, ...]:
        assert self._inventory is not None
        is_simulated = self._inventory.source == "simulated"
        try:
            return await self._offload.call(
                self._lookout.look,
                readings,
                self._holdings(),
                is_simulated,
                deadline_s=PROC_DEADLINE_S,
            )
        except Hanging:
            _log.warning("proc_hanging")
        except OSError as error:
            _log.warning("proc_unreadable error=%s", error)
        return tuple(map(without_owners, readings))


def inventory_reported(node_id: NodeId, inventory: Inventory) -> InventoryReported:
    """The core's event. A slot whose memory cannot be read has 0 MiB: it satisfies no demand for memory."""
    is_simulated = inventory.source == "simulated"
    gpus = tuple(
        Gpu(
            id=GpuId(found.uuid),
            node_id=node_id,
            index=found.index,
            pci_bus_id=found.pci_bus_id,
            model=found.model,
            memory_mib=MiB(found.memory_mib or 0),
            mig_enabled=found.mig_enabled,
            simulated=is_simulated,
            state=found.state,
        )
        for found in inventory.gpus
    )
    slots = tuple(
        SlotSeen(
            id=SlotId(slot.uuid),
            gpu_id=GpuId(found.uuid),
            kind=SlotKind(slot.kind),
            model=found.model,
            memory_mib=MiB(slot.memory_mib or 0),
            profile=slot.profile,
            index=found.index,
            simulated=is_simulated,
            generation=slot.generation,
        )
        for found in inventory.gpus
        for slot in found.slots
    )
    return InventoryReported(node_id, gpus, slots)
