"""Who calls: the uid, pid and groups at the other end of the Unix socket, as the kernel tells them.

A user's broker serves that user only, a machine's everybody on it. A peer from another user or pid namespace is refused,
since there a uid may mean somebody else (everybody in a container is uid 1000) and a pid another process. What the kernel
does not tell is refused. Everything read here is open to every user, so that the broker needs no privilege for it.
"""

from __future__ import annotations

import errno
import grp
import os
import pwd
import select
import socket
import struct
from dataclasses import dataclass
from functools import lru_cache

from ..core.model import Owner
from ..processes import read_file

_CREDENTIALS = struct.Struct("3i")
_SO_PEERGROUPS = 59
_SO_PEERPIDFD = 77
_GROUPS_BYTES = 1024  # what Python reads at most: 256 groups


class Unidentified(Exception):
    """The caller is not served; the message is a sentence for people."""


@dataclass(frozen=True, slots=True)
class Caller:
    owner: Owner
    uid: int
    pid: int
    groups: tuple[str, ...] = ()
    is_admin: bool = True


@dataclass(frozen=True, slots=True)
class Served:
    """Whom a broker serves: the user `uid`, who administers it too; or, without one, everybody on this machine.

    There, only who is in the group `admins` administers. Root is no admin by itself.
    """

    uid: int | None
    admins: str = ""

    def identify(self, peer: socket.socket) -> Caller:
        """The caller at the other end of `peer`. Raises Unidentified for everybody who is not served."""
        if peer.family != socket.AF_UNIX:
            raise Unidentified("The broker serves its Unix socket only.")
        pid, uid, gid = _CREDENTIALS.unpack(
            peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        )
        if self.uid is not None and uid != self.uid:
            raise Unidentified(
                f"This is the broker of {owner_name(self.uid)}; uid {uid} is not served. Use one of your own."
            )
        if not _is_one_of_us(peer, pid, uid):
            raise Unidentified(
                "The caller runs in another user or pid namespace (a container), where uids and pids mean something else. "
                "Run the broker inside it, or start the caller outside."
            )
        groups = _groups(peer, gid)
        is_admin = self.uid is not None or self.admins in groups
        return Caller(owner_name(uid), uid, pid, groups, is_admin)


def owner_name(uid: int) -> Owner:
    try:
        return Owner(_found_user(uid))
    except KeyError:
        return Owner(f"uid:{uid}")


def _group_name(gid: int) -> str:
    try:
        return _found_group(gid)
    except KeyError:
        return f"gid:{gid}"


# Names that were found are kept. Others are not: a directory service may not have answered for a while.


@lru_cache(maxsize=1024)
def _found_user(uid: int) -> str:
    return pwd.getpwuid(uid).pw_name


@lru_cache(maxsize=1024)
def _found_group(gid: int) -> str:
    return grp.getgrgid(gid).gr_name


def _groups(peer: socket.socket, gid: int) -> tuple[str, ...]:
    """The groups that the caller's process had when it connected: those of its login, as for files."""
    try:
        packed = peer.getsockopt(socket.SOL_SOCKET, _SO_PEERGROUPS, _GROUPS_BYTES)
    except OSError:  # more than fit, or an old kernel
        packed = b""
    gids = {gid, *struct.unpack(f"{len(packed) // 4}I", packed)}
    return tuple(sorted(map(_group_name, gids)))


def _is_one_of_us(peer: socket.socket, pid: int, uid: int) -> bool:
    """Whether pid and uid mean the same there as here. False as well where it cannot be known."""
    try:
        status = _fields(read_file(f"/proc/{pid}/status"))
        uid_map = read_file(f"/proc/{pid}/uid_map")
        is_same = uid_map == read_file("/proc/self/uid_map")
    except OSError:  # a pid that is 0 or gone from here
        return False
    # A pid of a namespace below ours has one for each namespace on the way.
    is_here = len(status.get("NSpid", "").split()) == 1
    return is_same and is_here and str(uid) in status["Uid"].split() and not _is_gone(peer)


def _is_gone(peer: socket.socket) -> bool:
    """Whether the process that connected has ended, so that its pid may be another's. Unknown before Linux 6.5."""
    try:
        (pidfd,) = struct.unpack("i", peer.getsockopt(socket.SOL_SOCKET, _SO_PEERPIDFD, 4))
    except OSError as error:
        return error.errno != errno.ENOPROTOOPT
    try:
        end = select.poll()
        end.register(pidfd, select.POLLIN)
        return bool(end.poll(0))
    finally:
        os.close(pidfd)


def _fields(status: bytes) -> dict[str, str]:
    pairs = (line.partition(":") for line in status.decode(errors="replace").splitlines())
    return {name: value for name, _, value in pairs}
