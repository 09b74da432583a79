"""What a device reader tells: an inventory and one reading per slot.

A reader only reports what it read. It never guesses, never turns an unknown number into 0 and never decides what a
reading means (`agent` does). Every record survives JSON, since readers live in the probe's process (`probe`). The two
readers are `nvml.NvmlReader` and `simulated.SimulatedReader`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

GpuState = Literal["ok", "lost", "no_permission", "unavailable"]
SlotKind = Literal["gpu", "mig"]
ProcessKind = Literal["compute", "graphics"]
Source = Literal["nvml", "simulated"]

NO_NVIDIA_DEVICE = "no_nvidia_device"


@dataclass(frozen=True, slots=True)
class SlotFound:
    """A whole GPU or one MIG instance. `gi_id` and `ci_id` are set for MIG only, and are reused by the driver."""

    uuid: str
    kind: SlotKind
    memory_mib: int | None
    profile: str | None = None
    gi_id: int | None = None
    ci_id: int | None = None


@dataclass(frozen=True, slots=True)
class GpuFound:
    """A physical GPU and what it offers: itself or its MIG instances, never both; nothing if it is not `ok`.

    `index` and `pci_bus_id` are for people: the order of devices may change with each boot. A GPU that
    may not be opened is known by `index:N`. `mig_pending` differs from `mig_enabled` until the GPU is reset.
    """

    uuid: str
    index: int
    pci_bus_id: str
    model: str
    memory_mib: int | None
    mig_enabled: bool = False
    mig_pending: bool = False
    state: GpuState = "ok"
    slots: tuple[SlotFound, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Inventory:
    """`problems` holds what went wrong before any GPU could be asked, such as a library that does not load."""

    source: Source
    driver_version: str | None
    gpus: tuple[GpuFound, ...]
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProcessReading:
    """A process that has a context on the slot. `utilisation_percent` is its own share of the window."""

    pid: int
    kind: ProcessKind
    memory_mib: int | None = None
    utilisation_percent: int | None = None


@dataclass(frozen=True, slots=True)
class SlotReading:
    """One slot now, and its use since the reading before. None is unknown; `problems` names the calls that failed."""

    uuid: str
    memory_used_mib: int | None = None
    utilisation_percent: int | None = None
    processes: tuple[ProcessReading, ...] | None = None
    problems: tuple[str, ...] = ()


class Reader(Protocol):
    """Blocking; called by one thread of the probe only."""

    def inventory(self) -> Inventory: ...

    def observe(self, slot_uuids: Sequence[str] | None = None) -> tuple[SlotReading, ...]:
        """Read the slots named, or all of the last inventory. A slot that vanished has its `problems`, not an error."""
        ...

    def close(self) -> None: ...
