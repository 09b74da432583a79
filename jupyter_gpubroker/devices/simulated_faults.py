"""What is wrong with simulated devices: the file `faults.json` in their folder, read at every reading.

For tests and dry runs: write the file (atomically) and the devices fail as real ones do; remove it and they are well.
"""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec

from .reader import GpuState, Missing, Signal, Xid

FAULTS = "faults.json"
_FILE_MAX_BYTES = 64 * 1024


class ReportedXid(msgspec.Struct, frozen=True):
    """`number` counts up over all reports, so that each is told once."""

    number: int
    gpu: str
    code: int
    gi_id: int | None = None


class Faults(msgspec.Struct, frozen=True):
    """Devices by UUID. `gone`: instances that are not there any more; `hanging`: devices whose reading never returns."""

    signals: dict[str, dict[Signal, Missing]] = {}
    states: dict[str, GpuState] = {}
    recovery_actions: dict[str, str] = {}
    gone: tuple[str, ...] = ()
    hanging: tuple[str, ...] = ()
    xids: tuple[ReportedXid, ...] = ()

    def wait_if_hanging(self, device: str) -> None:
        """For ever, as a call to a sick GPU's driver does."""
        if device in self.hanging:
            threading.Event().wait()

    def reported_to(self, gpu: str, after: int) -> tuple[Xid, ...]:
        return tuple(
            Xid(xid.code, xid.gi_id) for xid in self.xids if xid.gpu == gpu and xid.number > after
        )

    @property
    def last_number(self) -> int:
        return max((xid.number for xid in self.xids), default=0)


NO_FAULTS = Faults()


def read_faults(folder: Path) -> Faults:
    """Of a folder of simulated devices. A file that is none of ours says nothing."""
    try:
        with (folder / FAULTS).open("rb") as file:
            return msgspec.json.decode(file.read(_FILE_MAX_BYTES), type=Faults)
    except (OSError, msgspec.DecodeError):
        return NO_FAULTS
