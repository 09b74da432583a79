"""Which reader a machine gets: NVIDIA's library, or simulated GPUs.

Simulated GPUs stand in only where there is no NVIDIA device at all. With any trace of one the real library is used, and
a driver that does not work is reported, never simulated over.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .reader import Reader

AUTO = "auto:"
_PCI_VENDOR_NVIDIA = "0x10de"
_PCI_CLASS_DISPLAY = "0x03"
_WSL_LIBRARY = "usr/lib/wsl/lib/libnvidia-ml.so.1"


@dataclass(frozen=True, slots=True)
class Choice:
    """`spec` None: NVIDIA's library; else the simulated GPUs to make in `folder`. `sources`: a file of further sources."""

    spec: str | None
    folder: Path | None = None
    sources: Path | None = None


def choose(setting: str | None, folder: Path, root: Path = Path("/")) -> Choice:
    """Read a `GPUBROKER_SIMULATE` value: nothing, `SPEC`, `@FILE` (what the probe wrote down), or either after `auto:`.

    Raises `SpecError` for a bad spec.
    """
    if not setting:
        return Choice(None)
    from .simulated_devices import check_spec

    spec = setting.removeprefix(AUTO)
    check_spec(spec)
    if setting.startswith(AUTO) and nvidia_present(root):
        return Choice(None)
    return Choice(spec, folder)


def open_reader(choice: Choice) -> Reader:
    reader = _open_devices(choice)
    if choice.sources is None:
        return reader
    from .exporter_feed import ExportedReader

    return ExportedReader(reader, choice.sources)


def _open_devices(choice: Choice) -> Reader:
    if choice.spec is None:
        from .nvml import NvmlReader

        return NvmlReader()
    from .simulated import SimulatedReader

    assert choice.folder is not None
    return SimulatedReader(choice.spec, choice.folder)


def nvidia_present(root: Path = Path("/")) -> bool:
    """Any trace of an NVIDIA GPU: its device files, its driver (also Windows' one below WSL), or the card on the PCI bus."""
    if (root / "proc/driver/nvidia").exists() or (root / "dev/nvidiactl").exists():
        return True
    if any((root / "dev").glob("nvidia[0-9]*")) or (root / _WSL_LIBRARY).exists():
        return True
    return any(_is_nvidia_gpu(device) for device in (root / "sys/bus/pci/devices").glob("*"))


def is_windows_below() -> bool:
    """Whether this is WSL, where the GPU belongs to Windows."""
    return Path("/dev/dxg").exists()


def _is_nvidia_gpu(device: Path) -> bool:
    try:
        vendor = (device / "vendor").read_text().strip()
        kind = (device / "class").read_text().strip()
    except OSError:
        return False
    return vendor == _PCI_VENDOR_NVIDIA and kind.startswith(_PCI_CLASS_DISPLAY)
