"""What a device reader tells: an inventory, one reading per slot, the condition of each GPU, and what can be known at all.

A reader only reports what it read. It never guesses, never turns an unknown number into 0 and never decides what a
reading means (`agent` does): where a number is None, `missing` says why. Every record survives JSON, since readers live in
the probe's process (`probe`). `nvml.NvmlReader` and `simulated.SimulatedReader` read devices; one contract suite holds them to
the same answers (tests/unit/devices/test_reader_contract.py). `exporter_feed.ExportedReader` fills either in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

GpuState = Literal["ok", "lost", "no_permission", "unavailable"]
SlotKind = Literal["gpu", "mig"]
ProcessKind = Literal["compute", "graphics"]
Source = Literal["nvml", "simulated"]

# What may be known of a device: of slots, and of GPUs.
Signal = Literal[
    "memory", "processes", "utilisation", "process_utilisation", "engines",
    "power", "temperature", "ecc", "faults", "recovery_action", "accounting",
]  # fmt: skip
# Why a number is None. `no_samples`: the device has measured nothing new; `first_sample`: a difference needs two.
Missing = Literal["not_supported", "no_permission", "failed", "no_samples", "first_sample", "stale"]
Availability = Literal["ok", "not_supported", "no_permission", "failed"]

SLOT_SIGNALS: tuple[Signal, ...] = (
    "memory", "processes", "utilisation", "process_utilisation", "engines",
)  # fmt: skip
GPU_SIGNALS: tuple[Signal, ...] = (
    "power", "temperature", "ecc", "faults", "recovery_action", "accounting",
)  # fmt: skip

NO_NVIDIA_DEVICE = "no_nvidia_device"
# Problems that end so say that the devices are no longer those of the last inventory, or the library must be opened anew.
CHANGED = (
    ": NotFound", ": GpuIsLost", ": InvalidArgument", ": Uninitialized", ": DriverNotLoaded", ": LibRmVersionMismatch",
    "GetHandleByUUID: Unknown",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SlotFound:
    """A whole GPU or one MIG instance. `gi_id` and `ci_id` are set for MIG only, and are reused by the driver.

    `position` counts the GPU's MIG devices with holes, as `GPU:POSITION` names do; `placement` is the first memory slice
    of the instance where that may be asked. `generation` grows when an instance has
    vanished and come back, or is another one under the same UUID (`mig.Generations`).
    """

    uuid: str
    kind: SlotKind
    memory_mib: int | None
    profile: str | None = None
    gi_id: int | None = None
    ci_id: int | None = None
    placement: int | None = None
    position: int | None = None
    generation: int = 0


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
    """One slot now, and its use since the reading before. None is unknown; `problems` names the calls that failed.

    utilisation_percent: part of the window in which any kernel ran, by the driver's counter; does not exist on MIG.
    engine_percent, sm_percent, dram_percent: the same by the engines' own counters (GPM, or an exporter's), the activity of
        the multiprocessors and of the memory's bandwidth. Of a MIG instance, its GPU instance's.
    window_ms:           the time that these figures cover, the newest sample being `sample_age_ms` old.
    All percentages are means, rounded up: work that was seen is never 0.
    """

    uuid: str
    memory_used_mib: int | None = None
    utilisation_percent: int | None = None
    processes: tuple[ProcessReading, ...] | None = None
    problems: tuple[str, ...] = ()
    engine_percent: int | None = None
    sm_percent: int | None = None
    dram_percent: int | None = None
    window_ms: int | None = None
    sample_age_ms: int | None = None
    missing: Mapping[Signal, Missing] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Xid:
    """An error that the driver reported, by its code in NVIDIA's catalogue. `gi_id`: of that MIG instance alone."""

    code: int
    gi_id: int | None = None


@dataclass(frozen=True, slots=True)
class GpuReading:
    """The condition of a physical GPU. None is unknown.

    power_mw:        of the whole board; `power_idle_mw` is the least seen while no process had a context on it.
    xids:            since the reading before; what happened while no probe ran is only in `recovery_action`.
    ecc_uncorrected: errors since the driver was loaded.
    recovery_action: what the driver asks for: `none`, `gpu_reset`, `node_reboot`, ... (`nvml.condition`).
    """

    uuid: str
    state: GpuState = "ok"
    power_mw: int | None = None
    power_idle_mw: int | None = None
    temperature_c: int | None = None
    ecc_uncorrected: int | None = None
    recovery_action: str | None = None
    xids: tuple[Xid, ...] = ()
    missing: Mapping[Signal, Missing] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Capability:
    """What was found by asking: which signals a GPU (`slot_uuid` None) or slot gives, and the error where it does not."""

    gpu_uuid: str
    signals: Mapping[Signal, Availability]
    slot_uuid: str | None = None
    problems: tuple[str, ...] = ()


def available(
    signals: Sequence[Signal], missing: Mapping[Signal, Missing]
) -> dict[Signal, Availability]:
    """What a reading without these numbers says of the device.

    One that has no number just now, as at the first of two samples, is there all the same.
    """
    lasting: Mapping[Missing, Availability] = {
        "not_supported": "not_supported",
        "no_permission": "no_permission",
        "failed": "failed",
    }
    return {
        signal: lasting.get(missing[signal], "ok") if signal in missing else "ok"
        for signal in signals
    }


class Reader(Protocol):
    """Blocking; called by one thread of the probe only."""

    def inventory(self) -> Inventory: ...

    def observe(self, slot_uuids: Sequence[str] | None = None) -> tuple[SlotReading, ...]:
        """Read the slots named, or all of the last inventory. A slot that vanished has its `problems`, not an error."""
        ...

    def health(self) -> tuple[GpuReading, ...]:
        """The condition of every GPU of the last inventory."""
        ...

    def capabilities(self) -> tuple[Capability, ...]:
        """Ask every GPU and slot of the last inventory for everything once."""
        ...

    def close(self) -> None: ...
