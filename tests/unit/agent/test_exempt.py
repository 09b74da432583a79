"""Whom the auditor leaves alone, and who only says that he is one of these."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_gpubroker.agent.exempt import Exempt, of_users
from jupyter_gpubroker.agent.processes import ProcessTable

SLEEP = Path(shutil.which("sleep") or "/bin/sleep").resolve()


@pytest.fixture
def impostor(tmp_path: Path) -> Iterator[int]:
    """A program of a user's own that is called as the display server is."""
    copy = tmp_path / "Xorg"
    shutil.copy(SLEEP, copy)
    if os.geteuid() == 0:
        os.chown(copy, 12345, 12345)
    with subprocess.Popen([copy, "infinity"]) as process:
        yield process.pid
        process.kill()


def test_a_program_counts_by_a_file_that_root_owns(impostor):
    assert ProcessTable().program(impostor) is None
    with subprocess.Popen([SLEEP, "infinity"]) as process:
        assert ProcessTable().program(process.pid) == SLEEP.name
        process.kill()


def test_a_program_whose_file_an_update_deleted_counts_as_before(proc, table, monkeypatch):
    proc.process(99)
    (proc.root / "99" / "exe").symlink_to(SLEEP)
    monkeypatch.setattr(Path, "readlink", lambda _: Path("/usr/bin/gnome-shell (deleted)"))
    assert table.program(99) == "gnome-shell"


@pytest.mark.parametrize(("uid", "name"), [(0, "Xorg"), (999, "Xorg"), (1000, None)])
def test_a_program_that_may_not_be_looked_at_counts_by_its_name_only_as_a_system_user(
    proc, table, monkeypatch, uid, name
):
    """Anybody may call a process of his own so, with prctl(2)."""

    def refuse(_: Path) -> Path:
        raise PermissionError

    proc.process(99, uid=uid, name="Xorg")
    (proc.root / "99" / "exe").symlink_to(SLEEP)
    monkeypatch.setattr(Path, "readlink", refuse)
    assert table.program(99) == name


def test_users_are_named_in_the_configuration_and_must_exist():
    me = pwd.getpwuid(os.getuid()).pw_name
    assert of_users([me]) == Exempt(uids=frozenset({os.getuid()}))
    with pytest.raises(ValueError, match="nobody-of-that-name"):
        of_users(["nobody-of-that-name"])
