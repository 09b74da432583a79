"""Where the database lies, who may open it, and that what it says is on the disk."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from jupyter_gpubroker import filesystem
from jupyter_gpubroker.store import Store, StoreRefused
from tests.unit.store.entities import a_slot
from tests.unit.store.stories import MARK, put


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_every_file_of_it_is_its_owners_alone_whatever_the_umask(tmp_path):
    path = tmp_path / "state" / "broker.db"
    before = os.umask(0)
    try:
        store = Store.open(path)
        store.commit([put(a_slot())], MARK)
        assert {mode(file) for file in path.parent.iterdir()} == {0o600}
        assert len(list(path.parent.iterdir())) == 4
        assert mode(path.parent) == 0o700
        store.close()
    finally:
        os.umask(before)


def test_a_database_that_others_could_read_is_closed_to_them(tmp_path):
    path = tmp_path / "broker.db"
    path.touch(0o644)
    Store.open(path).close()
    assert mode(path) == 0o600


def test_commits_are_on_the_disk_when_they_return(tmp_path):
    store = Store.open(tmp_path / "broker.db")
    pragmas = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
    found = [store._connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in pragmas]
    store._connection.rollback()
    assert found == ["wal", 2, 1, 5_000]
    store.close()


def test_of_two_brokers_the_second_is_told_that_the_first_is_there(tmp_path):
    path = tmp_path / "broker.db"
    first = Store.open(path)
    with pytest.raises(StoreRefused, match=r"Another broker has the database .* open\. Stop that"):
        Store.open(path)
    first.close()
    Store.open(path).close()


def test_a_second_process_is_refused_too(tmp_path):
    path = tmp_path / "broker.db"
    first = Store.open(path)
    code = (
        "import sys; from pathlib import Path; from jupyter_gpubroker.store import Store\n"
        "Store.open(Path(sys.argv[1]))"
    )
    second = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    assert second.returncode == 1
    assert "Another broker has the database" in second.stderr
    first.close()


def test_a_network_file_system_is_refused_with_a_place_to_go_and_nothing_is_made(
    tmp_path, monkeypatch
):
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"90 22 0:44 / {tmp_path} rw - nfs4 server:/home rw\n")
    monkeypatch.setattr(filesystem, "MOUNTS", mounts)
    with pytest.raises(StoreRefused, match=r"network file system \(nfs4\).*XDG_STATE_HOME"):
        Store.open(tmp_path / "state" / "broker.db")
    assert not (tmp_path / "state").exists()


def test_a_folder_that_cannot_be_made_is_refused_with_the_reason(tmp_path):
    (tmp_path / "state").touch()
    with pytest.raises(StoreRefused, match=r"cannot be opened: .*Make its folder writable"):
        Store.open(tmp_path / "state" / "broker.db")


def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "broker.db"
    path.write_bytes(b"a letter to nobody" * 100)
    with pytest.raises(StoreRefused, match=r"cannot be read: file is not a database"):
        Store.open(path)
    assert path.read_bytes() == b"a letter to nobody" * 100
    path.unlink()
    Store.open(path).close()  # the lock was given back


def test_a_path_with_odd_characters_is_just_a_path(tmp_path):
    path = tmp_path / "what? 50% #1 ü" / "broker.db"
    Store.open(path).close()
    assert path.stat().st_size > 0
