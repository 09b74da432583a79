"""The device files of slots, as the NVIDIA driver names them in /proc: what a fence must deny and allow.

A GPU is /dev/nvidiaN; N is the driver's minor number and not NVML's index. A MIG instance is the GPU's file and two
capability files, one of its GPU instance and one of its compute instance (NVIDIA's MIG guide, device nodes).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ..core.model import SlotId
from ..devices.reader import GpuFound, Inventory
from ..processes import PROC
from .device_rules import Device

GPU_MAJOR = 195
_MINOR = re.compile(r"^Device Minor:\s*(\d+)$", re.MULTILINE)


def device_nodes(inventory: Inventory, proc: Path = PROC) -> Mapping[SlotId, frozenset[Device]]:
    """By slot, what its holder must be able to open. Raises OSError or ValueError where the driver does not tell."""
    caps_major = _caps_major(proc)
    minors = _caps_minors(proc)
    nodes: dict[SlotId, frozenset[Device]] = {}
    for gpu in inventory.gpus:
        if not gpu.slots:
            continue
        number = _minor(gpu, proc)
        whole = Device(GPU_MAJOR, number)
        for slot in gpu.slots:
            names = (
                ()
                if slot.gi_id is None
                else (
                    f"gpu{number}/gi{slot.gi_id}/access",
                    f"gpu{number}/gi{slot.gi_id}/ci{slot.ci_id}/access",
                )
            )
            caps = {Device(caps_major, minors[name]) for name in names}
            nodes[SlotId(slot.uuid)] = frozenset({whole, *caps})
    return nodes


def _minor(gpu: GpuFound, proc: Path) -> int:
    """NVML writes the PCI domain with eight digits, /proc with four."""
    address = gpu.pci_bus_id.lower()[-12:]
    text = (proc / "driver/nvidia/gpus" / address / "information").read_text()
    found = _MINOR.search(text)
    if found is None:
        raise ValueError(f"The driver does not say which file GPU {gpu.pci_bus_id} has.")
    return int(found[1])


def _caps_major(proc: Path) -> int:
    for line in (proc / "devices").read_text().splitlines():
        number, _, name = line.strip().partition(" ")
        if name == "nvidia-caps":
            return int(number)
    return -1


def _caps_minors(proc: Path) -> Mapping[str, int]:
    try:
        lines = (proc / "driver/nvidia-caps/mig-minors").read_text().splitlines()
    except FileNotFoundError:
        return {}
    return {name: int(minor) for name, _, minor in (line.partition(" ") for line in lines)}
