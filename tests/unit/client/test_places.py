"""Where things are found, and which places are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_gpubroker.client import places as places_module
from jupyter_gpubroker.client.errors import PlaceRefused
from jupyter_gpubroker.client.places import Places, check_length, is_off


def test_folders_follow_the_environment(folders) -> None:
    places = Places.find()
    assert places.socket == folders.runtime / "gpubroker" / "broker.sock"
    assert places.database == folders.state / "gpubroker" / "broker.db"
    assert places.policy == folders.config / "gpubroker" / "policy.toml"


def test_without_a_runtime_folder_the_temporary_one_is_used(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr("os.getuid", lambda: 4711)
    assert Places.find({"HOME": "/h"}).runtime == tmp_path / "gpubroker-4711"
    # As after `sudo -E`: it is there, but somebody else's.
    assert Places.find({"XDG_RUNTIME_DIR": str(tmp_path)}).runtime == tmp_path / "gpubroker-4711"


def test_a_relative_folder_is_ignored() -> None:
    assert Places.find({"HOME": "/h", "XDG_STATE_HOME": "x"}).state == Path(
        "/h/.local/state/gpubroker"
    )


def test_the_configured_broker_comes_first_then_the_machines_then_ones_own(
    tmp_path: Path, monkeypatch
) -> None:
    machine = tmp_path / "broker.sock"
    monkeypatch.setattr(places_module, "MACHINE_SOCKET", machine)
    own = Places.find()
    assert own.url == own.user_url
    assert own.may_start
    machine.touch()
    found = Places.find()
    assert found.url == f"unix://{machine}"
    assert not found.may_start
    configured = Places.find({"GPUBROKER_URL": "unix:///x/broker.sock"})
    assert configured.url == "unix:///x/broker.sock"
    assert Places.find({"GPUBROKER_URL": "unix:///x"}, url="unix:///y").url == "unix:///y"


def test_folders_are_made_closed_to_others(folders) -> None:
    places = Places.find()
    places.prepare()
    places.prepare()
    assert places.runtime.stat().st_mode & 0o777 == 0o700
    assert places.state.stat().st_mode & 0o777 == 0o700


def test_a_folder_open_to_others_is_refused(folders) -> None:
    places = Places.find()
    places.runtime.mkdir(mode=0o700)
    places.runtime.chmod(0o755)
    with pytest.raises(PlaceRefused, match="chmod 700"):
        places.prepare()


def test_a_link_in_place_of_the_folder_is_refused(folders, tmp_path: Path) -> None:
    places = Places.find()
    places.runtime.symlink_to(tmp_path, target_is_directory=True)
    with pytest.raises(PlaceRefused, match="not a folder of yours"):
        places.prepare()


def test_a_folder_that_cannot_be_made_is_refused_with_the_reason(folders) -> None:
    (folders.root / "file").touch()
    with pytest.raises(PlaceRefused, match="File exists"):
        Places.find(
            {"XDG_RUNTIME_DIR": str(folders.runtime), "XDG_STATE_HOME": str(folders.root / "file")}
        ).prepare()


def test_a_check_length_fits_what_linux_allows() -> None:
    check_length(Path("/" + "x" * 106))
    with pytest.raises(PlaceRefused, match="108 bytes"):
        check_length(Path("/" + "x" * 107))
    with pytest.raises(PlaceRefused, match="XDG_RUNTIME_DIR"):
        check_length(Path("/" + "ñ" * 60))


def test_a_socket_on_a_network_file_system_is_refused(folders, monkeypatch) -> None:
    monkeypatch.setattr(places_module, "network_file_system", lambda _: "nfs4")
    with pytest.raises(PlaceRefused, match=r"network file system \(nfs4\)"):
        Places.find().prepare()


def test_off_is_one_word_or_one_file(folders) -> None:
    assert not is_off()
    assert is_off({"GPUBROKER": "OFF"})
    marker = Places.find().off_marker
    marker.parent.mkdir()
    marker.touch()
    assert is_off()
