"""How far a broker reaches: one user, or everybody on this machine. Whom it serves, where it lies, how it begins.

The machine's broker is a service with a system user of its own: its socket is open to all, and the kernel says who calls.
Its folders are those that systemd made for it (RUNTIME_DIRECTORY, STATE_DIRECTORY, CONFIGURATION_DIRECTORY), else the usual.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ..client.places import MACHINE_SOCKET, Places
from ..core.model import Mode
from .identity import Served
from .options import Unfit

USER = "user"
MACHINE = "machine"
ADMINS = "gpubroker"


@dataclass(frozen=True, slots=True)
class Scope:
    """`first_mode` holds in a new database. `ends_unused`: whether the process ends when nobody needs it."""

    name: str
    places: Places
    served: Served
    first_mode: Mode
    ends_unused: bool

    @property
    def is_open_to_all(self) -> bool:
        return self.served.uid is None


def scope_of(name: str, admins: str) -> Scope:
    """The scope of that name. Raises Unfit where it cannot be served from here."""
    if name == USER:
        return Scope(USER, Places.find(), Served(os.getuid()), Mode.ENFORCE, True)
    if os.getuid() == 0:
        raise Unfit(
            "The machine's broker needs no root and refuses it. Run it as a system user of its own, such as gpubroker; "
            "examples/single_node has the unit for systemd."
        )
    return Scope(MACHINE, _machine_places(), Served(None, admins), Mode.OBSERVE, False)


def _machine_places() -> Places:
    def folder(name: str, usual: Path) -> Path:
        return Path(os.environ.get(name, "").partition(":")[0] or usual)

    return Places(
        runtime=folder("RUNTIME_DIRECTORY", MACHINE_SOCKET.parent),
        state=folder("STATE_DIRECTORY", Path("/var/lib/gpubroker")),
        config=folder("CONFIGURATION_DIRECTORY", Path("/etc/gpubroker")),
    )
