"""Which slot a name means, and whether an instance is still the one it was.

Tools name one MIG instance in many ways, which nobody joins (NVIDIA/dcgm-exporter#272, #92). The UUID of the MIG device is
the id here. It lives as long as the instance (nvml.h), but older drivers build it from the GPU and the instance's numbers,
which they use again: hence a generation of our own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from .reader import GpuFound, Inventory, SlotFound

_GPU_UUID = r"(?P<gpu>GPU-[0-9a-f-]+)"
_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        # Drivers before 470, and what programs make of it: MIG-GPU-UUID/GI/CI.
        rf"(?:MIG-)?{_GPU_UUID}/(?P<gi>\d+)/(?P<ci>\d+)",
        # Device plugins: nvidia0/gi7, 0-7 and 0_7 are index and GPU instance.
        r"nvidia(?P<index>\d+)/gi(?P<gi>\d+)",
        r"(?P<index>\d+)[-_](?P<gi>\d+)",
        # NVIDIA_VISIBLE_DEVICES: index and place among the GPU's MIG devices.
        r"(?P<index>\d+):(?P<position>\d+)",
        r"nvidia(?P<index>\d+)",
        r"(?P<index>\d+)",
    )
)
_PREFIX_MIN = len("GPU-12345678")


def canonical(name: str, inventory: Inventory) -> str | None:
    """The UUID of the one slot that the name means; None if it means none, or may mean several."""
    name = name.strip()
    slots = [(gpu, slot) for gpu in inventory.gpus for slot in gpu.slots]
    exact = [slot for _, slot in slots if slot.uuid.lower() == name.lower()]
    if exact:
        return _only(exact)
    if len(name) >= _PREFIX_MIN and "/" not in name:
        # An unambiguous beginning is legal wherever CUDA reads names.
        return _only([slot for _, slot in slots if slot.uuid.lower().startswith(name.lower())])
    for form in _FORMS:
        match = form.fullmatch(name)
        if match is not None:
            parts = match.groupdict()
            return _only([slot for gpu, slot in slots if _means(parts, gpu, slot)])
    return None


def by_labels(labels: Mapping[str, str], inventory: Inventory) -> tuple[str, ...]:
    """The slots that a DCGM exporter's sample is about: a GPU, or the compute instances of one GPU instance.

    Label names differ in case between exporters. A sample without the GPU's UUID belongs to nobody known.
    """
    lowered = {name.lower(): value for name, value in labels.items()}
    gpu_uuid, gi_id = lowered.get("uuid", "").lower(), lowered.get("gpu_i_id", "")
    return tuple(
        slot.uuid
        for gpu in inventory.gpus
        if gpu.uuid.lower() == gpu_uuid
        for slot in gpu.slots
        if (str(slot.gi_id) if slot.kind == "mig" else "") == gi_id
    )


def _means(parts: Mapping[str, str | None], gpu: GpuFound, slot: SlotFound) -> bool:
    """Whether all parts of a name fit; a name without an instance means a whole GPU."""
    found = {
        "gpu": gpu.uuid.lower(),
        "index": str(gpu.index),
        "gi": str(slot.gi_id),
        "ci": str(slot.ci_id),
        "position": str(slot.position),
    }
    is_whole = not parts.keys() & {"gi", "position"}
    return is_whole == (slot.kind == "gpu") and all(
        value is None or value.lower() == found[part] for part, value in parts.items()
    )


def _only(slots: Sequence[SlotFound]) -> str | None:
    return slots[0].uuid if len(slots) == 1 else None


@dataclass(slots=True)
class Generations:
    """Counts, per UUID, how often another instance took it. Lives beside the probe, so that it outlives its processes."""

    _known: dict[str, tuple[object, int]] = field(default_factory=dict)
    _present: frozenset[str] = frozenset()

    def mark(self, inventory: Inventory) -> Inventory:
        """The inventory with the generation of each instance. A GPU that is not `ok` tells nothing of its instances."""
        readable = [gpu for gpu in inventory.gpus if gpu.state == "ok"]
        gpus = tuple(
            replace(gpu, slots=tuple(self._marked(gpu, slot) for slot in gpu.slots))
            for gpu in inventory.gpus
        )
        silent = {gpu.uuid for gpu in inventory.gpus} - {gpu.uuid for gpu in readable}
        unseen = {
            uuid for uuid in self._present if self._gpu_of(uuid) in silent or not inventory.gpus
        }
        self._present = frozenset(slot.uuid for gpu in gpus for slot in gpu.slots) | unseen
        return replace(inventory, gpus=gpus)

    def _marked(self, gpu: GpuFound, slot: SlotFound) -> SlotFound:
        if slot.kind == "gpu":
            return slot
        identity = (gpu.uuid, slot.gi_id, slot.ci_id, slot.profile, slot.placement)
        old, generation = self._known.get(slot.uuid, (identity, 0))
        if old != identity or (slot.uuid in self._known and slot.uuid not in self._present):
            generation += 1
        self._known[slot.uuid] = (identity, generation)
        return replace(slot, generation=generation)

    def _gpu_of(self, uuid: str) -> object:
        identity, _ = self._known.get(uuid, ((None,), 0))
        assert isinstance(identity, tuple)
        return identity[0]
