"""The units for systemd are accepted by it, and hide nothing from the broker by which it knows its callers."""

from __future__ import annotations

import configparser
import shutil
import subprocess
from pathlib import Path

import pytest

UNITS = Path(__file__).parents[2] / "examples" / "single_node" / "machine"
VERIFY = shutil.which("systemd-analyze")


def read(unit: str) -> configparser.SectionProxy:
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(UNITS / unit)
    return parser["Service"]


@pytest.mark.skipif(VERIFY is None, reason="there is no systemd-analyze here")
@pytest.mark.parametrize("unit", ["gpubroker.service", "gpubroker-runner.service"])
def test_systemd_accepts_the_unit(unit, tmp_path) -> None:
    assert VERIFY is not None
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    text = (UNITS / unit).read_text()
    command = read(unit)["ExecStart"].split()[0]
    (tmp_path / unit).write_text(
        text.replace(command, str(program)).replace("User=gpubroker", "User=root")
    )
    run = subprocess.run(
        [VERIFY, "verify", "--man=no", tmp_path / unit], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_the_broker_may_look_at_who_calls() -> None:
    """A user or pid namespace of its own, or a /proc that hides others, would make it refuse everybody."""
    service = read("gpubroker.service")
    wanted = {"PrivateUsers": "no", "ProtectProc": "default", "ProcSubset": "all"}
    assert {name: service[name] for name in wanted} == wanted
    assert "PrivatePIDs" not in service


def test_the_broker_is_no_root_and_gets_no_more_than_it_needs() -> None:
    service = read("gpubroker.service")
    assert (service["User"], service["CapabilityBoundingSet"]) == ("gpubroker", "")
    assert (service["NoNewPrivileges"], service["ProtectSystem"]) == ("yes", "strict")
    assert service["RuntimeDirectoryMode"] == "0755"
    assert service["StateDirectoryMode"] == "0700"
