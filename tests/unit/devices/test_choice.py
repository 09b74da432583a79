"""Simulated GPUs never stand in for a broken driver."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_gpubroker.devices.choice import Choice, choose, nvidia_present
from jupyter_gpubroker.devices.simulated_spec import SpecError


def touch(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_without_a_setting_the_real_library_is_used(tmp_path):
    assert choose(None, tmp_path) == Choice(None)
    assert choose("", tmp_path) == Choice(None)


def test_auto_simulates_where_there_is_no_trace_of_nvidia(tmp_path):
    assert choose("auto:1xL4", tmp_path / "state", root=tmp_path) == Choice(
        "1xL4", tmp_path / "state"
    )


@pytest.mark.parametrize(
    "trace",
    [
        "dev/nvidia0",
        "dev/nvidiactl",
        "proc/driver/nvidia/version",
        "usr/lib/wsl/lib/libnvidia-ml.so.1",
    ],
)
def test_auto_uses_the_real_library_with_any_trace_of_nvidia(tmp_path, trace):
    touch(tmp_path / trace)
    assert choose("auto:1xL4", tmp_path / "state", root=tmp_path) == Choice(None)


@pytest.mark.parametrize(
    ("vendor", "kind", "is_gpu"),
    [
        ("0x10de", "0x030200", True),  # 3D controller
        ("0x10de", "0x030000", True),  # VGA
        ("0x10de", "0x040300", False),  # the sound device of a graphics card
        ("0x10de", "0x068000", False),  # NVSwitch
        ("0x8086", "0x030000", False),
    ],
)
def test_a_card_without_driver_is_found_on_the_pci_bus(tmp_path, vendor, kind, is_gpu):
    device = tmp_path / "sys/bus/pci/devices/0000:01:00.0"
    touch(device / "vendor", vendor + "\n")
    touch(device / "class", kind + "\n")
    assert nvidia_present(tmp_path) is is_gpu


def test_an_explicit_description_simulates_even_beside_real_gpus(tmp_path):
    touch(tmp_path / "dev/nvidia0")
    assert choose("1xL4", tmp_path / "state", root=tmp_path).spec == "1xL4"


def test_a_bad_description_is_refused_before_anything_starts(tmp_path):
    with pytest.raises(SpecError):
        choose("auto:1xNothing", tmp_path)
