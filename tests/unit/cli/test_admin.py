"""All of `gpubroker admin` is there, and asks for what it must know."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from jupyter_gpubroker.cli.admin import admin
from jupyter_gpubroker.cli.outcome import Exit
from jupyter_gpubroker.client import Places


def test_every_command_of_administration_is_there() -> None:
    assert set(admin.commands) == {
        "mode", "gpus", "policies", "leases", "audit", "sources", "simulation",
    }  # fmt: skip


@pytest.mark.parametrize(
    "command", [["gpus", "disable", "0"], ["gpus", "clear", "0"], ["leases", "revoke", "a"]]
)
def test_what_touches_others_needs_a_reason(command) -> None:
    result = CliRunner().invoke(admin, command)
    assert result.exit_code == 2
    assert "--why" in result.output


def test_what_a_broker_simulates_that_is_not_ones_own_is_not_set_here(folders, monkeypatch) -> None:
    monkeypatch.setenv("GPUBROKER_URL", f"unix://{folders.runtime}/of-the-machine.sock")
    result = CliRunner().invoke(admin, ["simulation", "2xH200"])
    assert result.exit_code == Exit.REFUSED
    assert "is not started by you" in result.stderr
    assert Places.find().remembered_simulation() == ""
