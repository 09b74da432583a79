"""Who calls: the uid and pid at the other end of the Unix socket, as the kernel tells them.

A user's broker serves that user only. A peer from another user or pid namespace is refused, since there a uid may mean
somebody else (everybody in a container is uid 1000) and a pid another process. What the kernel does not tell is refused.
"""

from __future__ import annotations

import os
import pwd
import socket
import struct
from dataclasses import dataclass
from functools import lru_cache

from ..core.model import Owner

_CREDENTIALS = struct.Struct("3i")
_NAMESPACES = ("user", "pid")


class Unidentified(Exception):
    """The caller is not served; the message is a sentence for people."""


@dataclass(frozen=True, slots=True)
class Caller:
    owner: Owner
    uid: int
    pid: int


def identify(peer: socket.socket, served_uid: int) -> Caller:
    """The caller at the other end of `peer`. Raises Unidentified for everybody but `served_uid`, seen from here."""
    if peer.family != socket.AF_UNIX:
        raise Unidentified("The broker serves its Unix socket only.")
    pid, uid, _ = _CREDENTIALS.unpack(
        peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    )
    if uid != served_uid:
        raise Unidentified(
            f"This is the broker of {owner_name(served_uid)}; uid {uid} is not served. Use one of your own."
        )
    if not _is_in_our_namespaces(pid):
        raise Unidentified(
            "The caller runs in another user or pid namespace (a container), where uids and pids mean something else. "
            "Run the broker inside it, or start the caller outside."
        )
    return Caller(owner_name(uid), uid, pid)


@lru_cache(maxsize=1024)
def owner_name(uid: int) -> Owner:
    try:
        return Owner(pwd.getpwuid(uid).pw_name)
    except KeyError:
        return Owner(f"uid:{uid}")


def _is_in_our_namespaces(pid: int) -> bool:
    """False as well where it cannot be known: a pid that is 0 or gone from here, or a process that hides itself."""
    try:
        return all(
            os.stat(f"/proc/{pid}/ns/{kind}").st_ino == os.stat(f"/proc/self/ns/{kind}").st_ino
            for kind in _NAMESPACES
        )
    except OSError:
        return False
