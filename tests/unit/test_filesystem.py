"""The database goes on a local disk only; which file system a path lies on is read from the mount table."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_gpubroker.filesystem import network_file_system

ROOT = "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw"


def mounted(kind: str, at: str = "/home", options: str = "rw shared:5 master:1") -> str:
    return f"{ROOT}\n90 22 0:44 / {at} rw {options} - {kind} server:/export rw,vers=4.2"


@pytest.mark.parametrize(
    "kind",
    ["nfs", "nfs4", "cifs", "smb3", "lustre", "beegfs", "ceph", "9p", "fuse.sshfs", "fuse.s3fs"],
)
def test_a_path_below_a_network_mount_is_known_by_its_kind(kind):
    assert network_file_system(Path("/home/ada/broker.db"), mounted(kind)) == kind


@pytest.mark.parametrize(
    "kind", ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "fuseblk", "fuse.gocryptfs"]
)
def test_local_file_systems_are_no_network_file_systems(kind):
    assert network_file_system(Path("/home/ada/broker.db"), mounted(kind)) is None


def test_a_path_beside_the_mount_is_not_below_it():
    assert network_file_system(Path("/home2/broker.db"), mounted("nfs")) is None
    assert network_file_system(Path("/var/broker.db"), mounted("nfs")) is None


def test_the_innermost_mount_decides():
    table = mounted("nfs") + "\n91 90 8:1 / /home/ada/local rw - xfs /dev/sda1 rw"
    assert network_file_system(Path("/home/ada/local/broker.db"), table) is None
    assert network_file_system(Path("/home/ada/broker.db"), table) == "nfs"


def test_of_two_mounts_on_one_folder_the_later_decides():
    table = mounted("autofs") + "\n91 90 0:50 / /home rw - nfs4 server:/home rw"
    assert network_file_system(Path("/home/broker.db"), table) == "nfs4"


def test_spaces_in_mount_points_and_missing_optional_fields_are_understood():
    table = mounted("nfs", at="/mnt/my\\040disk", options="")
    table = table.replace("rw  - nfs", "rw - nfs")
    assert network_file_system(Path("/mnt/my disk/broker.db"), table) == "nfs"


def test_a_link_is_followed_to_where_the_file_would_lie(tmp_path):
    (tmp_path / "link").symlink_to("/home/ada")
    assert network_file_system(tmp_path / "link" / "broker.db", mounted("nfs")) == "nfs"


def test_this_machines_own_mount_table_can_be_read(tmp_path):
    assert network_file_system(tmp_path) is None
