"""Keeps each holder's processes off the devices that were not lent to it, by a cgroup of its own. Optional.

What a holder may open follows from the state alone, at each look: nothing without a lease, its slots from grant to give-back.
Its tree moves into a cgroup below the one it is in, so every limit it had stays. A device that is open stays open; whoever
has one without a lease is found by the auditor. Blocking.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from ..core.events import ProcessOwner
from ..core.model import SlotId
from ..processes import PROC
from .device_rules import Device, Rules, available_rules
from .holdings import Holder, Holdings
from .processes import ProcessTable
from .trees import Tree, Trees

PREFIX = "gpubroker-"
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")

_NO_DEVICE = Device(195, 253)  # of the NVIDIA driver's major, a minor that it does not give

_log = logging.getLogger(__name__)


class DeviceFence:
    """`nodes` are the device files of all slots; they may change."""

    def __init__(
        self,
        rules: Rules,
        table: ProcessTable,
        nodes: Mapping[SlotId, frozenset[Device]] = MappingProxyType({}),
    ) -> None:
        self._rules = rules
        self.nodes = nodes
        self._trees = Trees(table)
        self._applied: dict[str, tuple[Path, tuple[frozenset[Device], frozenset[Device]]]] = {}

    def sync(self, holdings: Holdings) -> None:
        """Let every holder open what is lent to it and nothing else. Raises OSError where the kernel refuses."""
        devices = frozenset[Device]().union(*self.nodes.values())
        holders = {holder.id: holder for holder in holdings.holders if holder.mark == holder.id}
        self._forget(holders)
        new = [holder for holder in holders.values() if holder.id not in self._applied]
        trees = self._trees.scan(new) if new else {}
        # A runner before its jobs, which are below it: nobody may what those above may not.
        for holder in sorted(holders.values(), key=lambda one: one.owned_by is ProcessOwner.JOB):
            wanted = (devices, devices - self._lent(holder, holdings))
            if holder.id in self._applied:
                cgroup, applied = self._applied[holder.id]
                if applied != wanted:
                    self._apply(holder, cgroup, *wanted)
            elif trees[holder].has_root:
                self._apply(holder, self._enclose(holder, trees[holder]), *wanted)

    def _lent(self, holder: Holder, holdings: Holdings) -> frozenset[Device]:
        return frozenset[Device]().union(
            *(
                self.nodes.get(slot_id, frozenset())
                for slot_id, held in holdings.slots.items()
                if holder.id in held.holder_ids and not held.is_leaving
            )
        )

    def _apply(
        self, holder: Holder, cgroup: Path, devices: frozenset[Device], denied: frozenset[Device]
    ) -> None:
        self._rules.apply(cgroup, devices, denied)
        self._applied[holder.id] = (cgroup, (devices, denied))

    def _enclose(self, holder: Holder, tree: Tree) -> Path:
        """The holder's cgroup, with its tree inside. A broker before us may have made it."""
        assert _ID.fullmatch(holder.id), "ids are checked where they come in"
        cgroup = self._rules.cgroup_of(holder.pid)
        if cgroup.name != PREFIX + holder.id:
            cgroup /= PREFIX + holder.id
            cgroup.mkdir(exist_ok=True)
        for process in tree.processes:
            _move(process.pid, cgroup)
        return cgroup

    def _forget(self, holders: Mapping[str, Holder]) -> None:
        """The cgroups of holders that are gone; one that somebody is still in stays, and keeps him fenced."""
        for holder_id in [one for one in self._applied if one not in holders]:
            cgroup, _ = self._applied.pop(holder_id)
            try:
                cgroup.rmdir()
            except OSError as error:
                _log.warning("fence_left cgroup=%s error=%s", cgroup, error)


def rules_that_work(proc: Path = PROC) -> Rules | None:
    """The way of this machine, found by trying on a cgroup that is made for it and taken away; None: we may not."""
    for rules in available_rules(proc):
        try:
            trial = rules.cgroup_of(os.getpid()) / f"{PREFIX}trial-{os.getpid()}"
            trial.mkdir()
            try:
                rules.apply(trial, (_NO_DEVICE,), (_NO_DEVICE,))
            finally:
                trial.rmdir()
        except OSError as error:
            _log.info("fence_refused rules=%r error=%s", rules.name, error)
        else:
            return rules
    return None


def _move(pid: int, cgroup: Path) -> None:
    with contextlib.suppress(ProcessLookupError):
        (cgroup / "cgroup.procs").write_text(str(pid))
