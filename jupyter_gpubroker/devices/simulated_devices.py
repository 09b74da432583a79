"""The devices that are simulated and what can be known of them: from a spec (`simulated_spec`), or those of a real machine
as `gpubroker probe --json` wrote them down (`@probe.json`), so that somebody's hardware can be replayed without it.

UUIDs of a spec's devices follow from the folder and the position, so a restarted broker finds the same ones.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from .dump import ProbeDump, inventory_of, read_dump, signals_of
from .reader import GPU_SIGNALS, Availability, GpuFound, Inventory, Signal, SlotFound
from .simulated_spec import SimulatedGpu, SpecError, parse_spec

DRIVER_VERSION = "simulated"
FROM_FILE = "@"

Signals = Mapping[Signal, Availability]


@dataclass(frozen=True, slots=True)
class Devices:
    """`signals` by the UUID of the GPU or MIG instance; `recovery_actions` of GPUs whose driver asked for one."""

    inventory: Inventory
    signals: Mapping[str, Signals]
    recovery_actions: Mapping[str, str] = field(default_factory=dict)


def devices_of(spec: str, folder: Path) -> Devices:
    """Raises `SpecError` for a spec that describes no GPUs, or a file that is no dump of the probe."""
    if spec.startswith(FROM_FILE):
        found = _dump(spec)
        actions = {gpu.uuid: gpu.recovery_action for gpu in found.gpus if gpu.recovery_action}
        return Devices(inventory_of(found), signals_of(found), actions)
    specs = parse_spec(spec)
    gpus = tuple(_gpu(each, index, folder) for index, each in enumerate(specs))
    signals: dict[str, Signals] = {}
    for gpu, each in zip(gpus, specs, strict=True):
        signals[gpu.uuid] = _gpu_signals(each)
        signals.update((slot.uuid, _slot_signals(each)) for slot in gpu.slots if slot.kind == "mig")
    return Devices(Inventory("simulated", DRIVER_VERSION, gpus), signals)


def check_spec(spec: str) -> None:
    """Raises `SpecError` for a spec that describes no GPUs."""
    if spec.startswith(FROM_FILE):
        _dump(spec)
    else:
        parse_spec(spec)


def _dump(spec: str) -> ProbeDump:
    path = Path(spec.removeprefix(FROM_FILE))
    if not path.is_absolute():
        # Brokers and probes work in another folder than who names the file.
        raise SpecError(f"Write the whole path of the file: {FROM_FILE}{path.absolute()}")
    try:
        return read_dump(path)
    except (OSError, msgspec.DecodeError) as error:
        raise SpecError(
            f"{path} cannot be read as what `gpubroker probe --json` prints: {error}. "
            "Write one with: gpubroker probe --json > probe.json"
        ) from error


# --- a spec's devices --------------------------------------------------------------------------------------------------------


def _gpu(spec: SimulatedGpu, index: int, folder: Path) -> GpuFound:
    gpu_uuid = f"GPU-{_uuid(folder, str(index))}"
    return GpuFound(
        uuid=gpu_uuid,
        index=index,
        pci_bus_id=f"00000000:{index + 1:02X}:00.0",
        model=spec.model.name,
        memory_mib=spec.model.memory_mib,
        mig_enabled=bool(spec.profiles),
        mig_pending=bool(spec.profiles),
        slots=_instances(spec, index, folder)
        or (SlotFound(gpu_uuid, "gpu", spec.model.memory_mib),),
    )


def _instances(spec: SimulatedGpu, index: int, folder: Path) -> tuple[SlotFound, ...]:
    """Instances are numbered from 1, as the driver does for other than 7g."""
    profiles = spec.model.profiles or {}
    return tuple(
        SlotFound(
            uuid=f"MIG-{_uuid(folder, f'{index}/{number}/{name}')}",
            kind="mig",
            memory_mib=profiles[name].memory_mib,
            profile=name,
            gi_id=number,
            ci_id=0,
            position=number - 1,
        )
        for number, name in enumerate(spec.profiles, 1)
    )


def _uuid(folder: Path, position: str) -> uuid.UUID:
    return uuid.uuid5(uuid.NAMESPACE_URL, f"{folder.resolve().as_uri()}#{position}")


def _gpu_signals(spec: SimulatedGpu) -> dict[Signal, Availability]:
    """Those of the GPU, and of itself as a slot. Accounting is off until root switches it on."""
    signals = _all_ok(GPU_SIGNALS)
    signals["accounting"] = "not_supported"
    return signals if spec.profiles else signals | _slot_signals(spec)


def _slot_signals(spec: SimulatedGpu) -> dict[Signal, Availability]:
    """The driver's counters do not exist on MIG, the engines' own ones only on Hopper and newer (nvml.h)."""
    counters: Availability = "not_supported" if spec.profiles else "ok"
    return {
        "memory": "ok",
        "processes": "ok",
        "utilisation": counters,
        "process_utilisation": counters,
        "engines": "ok" if spec.model.has_engines else "not_supported",
    }


def _all_ok(signals: Iterable[Signal]) -> dict[Signal, Availability]:
    return dict.fromkeys(signals, "ok")
