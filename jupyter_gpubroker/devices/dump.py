"""Everything that a machine's devices can tell, as one document: what `gpubroker probe --json` prints.

    {"driver_version": "...", "gpus": [{"uuid", "model", "state", "mig": [{"uuid", "profile", "signals"}], "signals": {...}}]}

`signals` says what was found by asking: ok, not_supported, no_permission or failed. The document holds no process, no user
and no host name, so it can be shown to others; `simulated_devices` replays it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from .reader import (
    Availability,
    Capability,
    GpuFound,
    GpuReading,
    GpuState,
    Inventory,
    Signal,
    SlotFound,
)

DUMP_MAX_BYTES = 1024 * 1024
GPUS_MAX = 64

# A reader's word, or `sick`: the driver asks for a reset, a restart or the like.
State = Literal[GpuState, "sick"]
Signals = dict[Signal, Availability]


class MigDump(msgspec.Struct, frozen=True):
    uuid: str
    profile: str | None
    memory_mib: int | None
    gi_id: int | None
    ci_id: int | None
    placement: int | None = None
    position: int | None = None
    signals: Signals = {}
    problems: tuple[str, ...] = ()


class GpuDump(msgspec.Struct, frozen=True):
    """A GPU without MIG is its own slot: its `signals` are those of both."""

    uuid: str
    model: str
    state: State
    index: int
    pci_bus_id: str
    memory_mib: int | None
    mig_enabled: bool = False
    mig_pending: bool = False
    mig: tuple[MigDump, ...] = ()
    signals: Signals = {}
    recovery_action: str | None = None
    problems: tuple[str, ...] = ()


class ProbeDump(msgspec.Struct, frozen=True):
    source: str
    driver_version: str | None
    gpus: tuple[GpuDump, ...]
    problems: tuple[str, ...] = ()


def dump_of(
    inventory: Inventory, capabilities: Iterable[Capability], health: Iterable[GpuReading]
) -> ProbeDump:
    signals: dict[str, Signals] = {}
    problems: dict[str, tuple[str, ...]] = {}
    for found in capabilities:
        device = found.slot_uuid or found.gpu_uuid
        signals.setdefault(device, {}).update(found.signals)
        problems[device] = (*problems.get(device, ()), *found.problems)
    actions = {reading.uuid: reading.recovery_action for reading in health}
    return ProbeDump(
        inventory.source,
        inventory.driver_version,
        tuple(_gpu(gpu, signals, problems, actions.get(gpu.uuid)) for gpu in inventory.gpus),
        inventory.problems,
    )


def read_dump(path: Path) -> ProbeDump:
    """Raises `OSError` and `msgspec.DecodeError`."""
    with path.open("rb") as file:
        found = msgspec.json.decode(file.read(DUMP_MAX_BYTES), type=ProbeDump)
    if not 1 <= len(found.gpus) <= GPUS_MAX:
        raise msgspec.ValidationError(f"it names {len(found.gpus)} GPUs, not 1 to {GPUS_MAX}")
    return found


def inventory_of(dump: ProbeDump) -> Inventory:
    """The devices of the document, as simulated ones."""
    gpus = tuple(_gpu_found(gpu) for gpu in dump.gpus)
    return Inventory("simulated", dump.driver_version, gpus)


def signals_of(dump: ProbeDump) -> dict[str, Signals]:
    """By the UUID of the GPU or instance."""
    of_gpus = {gpu.uuid: gpu.signals for gpu in dump.gpus}
    return of_gpus | {mig.uuid: mig.signals for gpu in dump.gpus for mig in gpu.mig}


def _gpu(
    gpu: GpuFound,
    signals: Mapping[str, Signals],
    problems: Mapping[str, tuple[str, ...]],
    action: str | None,
) -> GpuDump:
    instances = tuple(
        MigDump(
            slot.uuid,
            slot.profile,
            slot.memory_mib,
            slot.gi_id,
            slot.ci_id,
            slot.placement,
            slot.position,
            signals.get(slot.uuid, {}),
            problems.get(slot.uuid, ()),
        )
        for slot in gpu.slots
        if slot.kind == "mig"
    )
    return GpuDump(
        gpu.uuid,
        gpu.model,
        "sick" if gpu.state == "ok" and action not in (None, "none") else gpu.state,
        gpu.index,
        gpu.pci_bus_id,
        gpu.memory_mib,
        gpu.mig_enabled,
        gpu.mig_pending,
        instances,
        signals.get(gpu.uuid, {}),
        action,
        # The inventory's problems come with the GPU's capabilities, too.
        tuple(dict.fromkeys((*gpu.problems, *problems.get(gpu.uuid, ())))),
    )


def _gpu_found(gpu: GpuDump) -> GpuFound:
    whole = (SlotFound(gpu.uuid, "gpu", gpu.memory_mib),)
    instances = tuple(
        SlotFound(
            mig.uuid,
            "mig",
            mig.memory_mib,
            mig.profile,
            mig.gi_id,
            mig.ci_id,
            mig.placement,
            mig.position,
        )
        for mig in gpu.mig
    )
    slots = instances if gpu.mig_enabled else whole
    state: GpuState = "ok" if gpu.state == "sick" else gpu.state
    return GpuFound(
        gpu.uuid,
        gpu.index,
        gpu.pci_bus_id,
        gpu.model,
        gpu.memory_mib,
        gpu.mig_enabled,
        gpu.mig_pending,
        state,
        slots if state == "ok" else (),
        gpu.problems,
    )
