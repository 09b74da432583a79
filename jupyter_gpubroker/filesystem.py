"""Which file system a path lies on, and why some are no place for a database or a socket.

SQLite's write-ahead log needs shared memory and locks that work; network file systems promise both and keep neither, and
a second machine may mount the same files.
"""

from __future__ import annotations

import re
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")

_NETWORK = frozenset(
    "9p acfs afs beegfs ceph cifs coda fhgfs gfs gfs2 glusterfs gpfs lustre ncpfs nfs nfs4 ocfs2 orangefs panfs pvfs2 "
    "smb2 smb3 smbfs vboxsf virtiofs wekafs".split()
)
# What FUSE serves usually comes from a network (sshfs, s3fs, rclone, ...); these lie over a local folder.
_LOCAL_FUSE = frozenset(
    f"fuse.{name}" for name in ("bindfs", "encfs", "fuse-overlayfs", "gocryptfs", "securefs")
)
_OCTAL = re.compile(r"\\([0-7]{3})")


def network_file_system(path: Path, mounts: str | None = None) -> str | None:
    """The name of the network file system that `path` lies on, or None where it is local (or this is not Linux).

    `mounts` is the text of /proc/self/mountinfo; the innermost mount wins, and of two on one folder the later.
    """
    if mounts is None:
        if not MOUNTS.exists():
            return None
        mounts = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    resolved = path.resolve()
    innermost, kind = -1, ""
    for line in mounts.splitlines():
        mount_point, file_system = _parse(line)
        depth = len(mount_point.parts)
        if depth >= innermost and resolved.is_relative_to(mount_point):
            innermost, kind = depth, file_system
    return kind if _is_network(kind) else None


def _parse(line: str) -> tuple[Path, str]:
    """Mount point (field 5) and file system (the first field after the lone dash)."""
    fields = line.split(" ")
    file_system = fields[fields.index("-", 6) + 1]
    return Path(_OCTAL.sub(lambda match: chr(int(match[1], 8)), fields[4])), file_system


def _is_network(file_system: str) -> bool:
    if file_system.startswith("fuse."):
        return file_system not in _LOCAL_FUSE
    return file_system in _NETWORK
