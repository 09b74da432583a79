"""Whom the auditor leaves alone: display servers, the driver's own services, and users on the admin's list.

They may be on a device without a lease, which keeps it from being handed on all the same. A program counts by its file only
where root owns that, so nobody becomes exempt by calling a program of his own so.
"""

from __future__ import annotations

import pwd
from collections.abc import Iterable
from dataclasses import dataclass, field

from .kinship import Kin
from .processes import ProcessTable

PROGRAMS = frozenset(
    {
        "Xorg", "Xwayland", "gnome-shell", "kwin_wayland", "kwin_x11", "mutter", "plasmashell", "sddm-greeter",
        "sway", "weston",
        "dcgm-exporter", "nv-hostengine", "nvidia-cuda-mps", "nvidia-cuda-mps-control", "nvidia-cuda-mps-server",
        "nvidia-persiste", "nvidia-persistenced", "nvidia-smi", "nvtop",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Exempt:
    programs: frozenset[str] = PROGRAMS
    uids: frozenset[int] = field(default_factory=frozenset)

    def is_exempt(self, kin: Kin, table: ProcessTable) -> bool:
        if kin.uid in self.uids:
            return True
        return table.program(kin.pid) in self.programs


def of_users(names: Iterable[str]) -> Exempt:
    """The usual programs, and these users. Raises ValueError for a name nobody has."""
    try:
        return Exempt(uids=frozenset(pwd.getpwnam(name).pw_uid for name in names))
    except KeyError as error:
        raise ValueError(f"There is no user {error.args[0]} here to be left alone.") from error
