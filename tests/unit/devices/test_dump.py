"""What the probe writes down of a machine can be simulated elsewhere, and is refused if it is something else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from jupyter_gpubroker.devices.choice import Choice, choose
from jupyter_gpubroker.devices.dump import ProbeDump, dump_of
from jupyter_gpubroker.devices.reader import Reader
from jupyter_gpubroker.devices.simulated import SimulatedReader
from jupyter_gpubroker.devices.simulated_spec import SpecError


def dumped(reader: Reader) -> ProbeDump:
    inventory = reader.inventory()
    return dump_of(inventory, reader.capabilities(), reader.health())


@pytest.fixture
def dump(nvml: Any, nvml_world: Any, tmp_path: Path) -> Path:
    """Of the stub's machine, with a GPU that is about to fail."""
    nvml_world.gpu("GPU-0", action=1)
    path = tmp_path / "probe.json"
    path.write_bytes(msgspec.json.encode(dumped(nvml)))
    return path


def test_a_machine_is_written_down_as_people_look_for_it(dump):
    found = msgspec.json.decode(dump.read_bytes())
    assert [(gpu["uuid"], gpu["state"]) for gpu in found["gpus"]] == [
        ("GPU-0", "sick"),
        ("index:1", "no_permission"),
        ("GPU-2", "ok"),
        ("index:3", "lost"),
    ]
    assert found["gpus"][0]["signals"]["engines"] == "ok"
    assert found["gpus"][0]["recovery_action"] == "gpu_reset"
    assert [mig["uuid"] for mig in found["gpus"][2]["mig"]] == ["MIG-1", "MIG-4"]
    assert found["gpus"][2]["mig"][0]["signals"]["utilisation"] == "not_supported"
    assert found["gpus"][1]["problems"] == ["nvmlDeviceGetHandleByIndex: NoPermission"]


def test_a_simulation_of_a_machine_tells_the_same_as_the_machine(dump, state):
    original = msgspec.json.decode(dump.read_bytes(), type=ProbeDump)
    again = dumped(SimulatedReader(f"@{dump}", state))
    assert again.gpus == original.gpus
    assert again.driver_version == original.driver_version


def test_a_file_is_named_by_its_whole_path(dump, tmp_path, monkeypatch):
    # Brokers and probes have another working folder.
    assert choose(f"auto:@{dump}", tmp_path / "state", tmp_path) == Choice(
        f"@{dump}", tmp_path / "state"
    )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecError, match=f"Write the whole path of the file: @{dump}"):
        choose("@probe.json", tmp_path / "state")


@pytest.mark.parametrize(
    "content", [None, "", "{", "[]", '{"gpus": []}', '{"source": "nvml", "driver_version": null}']
)
def test_what_is_no_dump_is_refused_with_how_to_make_one(tmp_path, content):
    path = tmp_path / "other.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(SpecError, match=r"gpubroker probe --json > probe.json"):
        choose(f"@{path}", tmp_path / "state")
