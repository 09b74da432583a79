"""Asks the probe: the only way in which the rest of the program reads GPUs."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import msgspec

from .child import JsonLinesChild
from .choice import Choice
from .mig import Generations
from .reader import Capability, GpuReading, Inventory, SlotReading

INVENTORY_S = 15.0
OBSERVE_S = 5.0


def probe_argv(choice: Choice) -> list[str]:
    argv = [sys.executable, "-m", "jupyter_gpubroker.devices.probe"]
    if choice.spec is not None:
        argv += ["--simulate", choice.spec, "--folder", str(choice.folder)]
    if choice.sources is not None:
        argv += ["--sources", str(choice.sources)]
    return argv


class ProbeClient:
    """Calls raise `child.ChildUnavailable` when the devices cannot be read now."""

    def __init__(self, argv: Sequence[str], observe_s: float = OBSERVE_S) -> None:
        self._child = JsonLinesChild(argv, start_s=INVENTORY_S)
        self._observe_s = observe_s
        self._generations = Generations()

    @property
    def pid(self) -> int | None:
        return self._child.pid

    async def inventory(self) -> Inventory:
        result = await self._child.call("inventory", deadline_s=INVENTORY_S)
        return self._generations.mark(msgspec.json.decode(result, type=Inventory))

    async def observe(self, slot_uuids: Sequence[str] | None = None) -> tuple[SlotReading, ...]:
        """The slots named, or all; a restarted probe knows its slots only after `inventory`."""
        result = await self._child.call("observe", slot_uuids, deadline_s=self._observe_s)
        return msgspec.json.decode(result, type=tuple[SlotReading, ...])

    async def health(self) -> tuple[GpuReading, ...]:
        """The condition of every GPU, and the errors reported since the last call."""
        result = await self._child.call("health", deadline_s=self._observe_s)
        return msgspec.json.decode(result, type=tuple[GpuReading, ...])

    async def capabilities(self) -> tuple[Capability, ...]:
        result = await self._child.call("capabilities", deadline_s=INVENTORY_S)
        return msgspec.json.decode(result, type=tuple[Capability, ...])

    async def close(self) -> None:
        await self._child.close()
