"""All of `gpubroker admin` is there, and asks for what it must know."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from jupyter_gpubroker.cli.admin import admin


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
