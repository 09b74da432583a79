"""What a GPU's errors mean: the table of Xid codes and recovery actions, and when a sick GPU is well again.

Pure: no clock, no driver. Xid codes that a program causes by itself (bad addresses, exceptions in its kernels) are its
holder's business and never the GPU's sickness; codes that need a reset take the GPU out of the pool, and it comes back
after a probation without new errors, since nobody is there to bring it back by hand (k8s-device-plugin#234, #1014).

Sources: NVIDIA's catalogue of Xid errors (docs.nvidia.com/deploy/xid-errors); the list of the Kubernetes device plugin,
where the two disagree the catalogue counts (k8s-device-plugin#1340, #1974: 94 restarts the application, 109 resets).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from types import MappingProxyType
from typing import Literal

from .reader import GpuReading, Xid


class Severity(IntEnum):
    """What it takes to go on, mildest first. From `DRAIN` on the GPU is not to be lent."""

    NOTE = 0  # nothing: for the log
    APPLICATION = 1  # the program's own error: its holder is told
    RESTART_APPLICATION = 2  # the program's memory was hit: its holder should restart it
    DRAIN = 3  # the GPU must become empty, then it recovers by itself
    RESET = 4  # the GPU must be reset
    REBOOT = 5  # the machine must be restarted


Subject = Literal["program", "memory", "gpu", "link", "driver", "power"]


@dataclass(frozen=True, slots=True)
class Fault:
    """A row of the table: how bad it is, and what it concerns, for the sentence."""

    severity: Severity
    subject: Subject


def _faults(severity: Severity, subject: Subject, *codes: int) -> dict[int, Fault]:
    return dict.fromkeys(codes, Fault(severity, subject))


XID_DOUBLE_BIT = 48
XID_UNKNOWN = 999  # what the library reports for codes it does not know (nvml.h)

XIDS: Mapping[int, Fault] = MappingProxyType(
    {
        # An exception in a kernel, a page fault, a stopped channel, an invalid operation, a corrupt push buffer stream, a video
        # decoder's exception: what the program asked for.
        **_faults(Severity.APPLICATION, "program", 13, 31, 32, 43, 45, 68, 69),
        # A contained memory error: only the programs that used the page are gone (A100 and newer).
        **_faults(Severity.RESTART_APPLICATION, "memory", 94),
        # Rows remapped or pages retired: takes effect at the next reset, until then all goes on.
        **_faults(Severity.NOTE, "memory", 63, 92),
        # Double-bit errors, failed remapping and uncontained memory errors.
        **_faults(Severity.RESET, "memory", XID_DOUBLE_BIT, 64, 95, 140, 160, 161),
        # Context switch time-out, preemptive clean-up, copy engine and microcontroller halts.
        **_faults(Severity.RESET, "gpu", 8, 46, 61, 62, 109, 110, 119, 120, 136, 143),
        # NVLink, and the link between the chips of a superchip.
        **_faults(Severity.RESET, "link", 74, 121, 149),
        **_faults(Severity.RESET, "driver", 38, 44, 154),
        **_faults(Severity.REBOOT, "power", 54),
        # Off the bus: neither answers nor resets.
        **_faults(Severity.REBOOT, "gpu", 79),
    }
)
# Not in the table: written down, and the recovery action decides.
OTHER_XID = Fault(Severity.NOTE, "driver")

# Field 230, NVML_FI_DEV_GET_GPU_RECOVERY_ACTION (nvml.h).
ACTION_NAMES: Mapping[int, str] = MappingProxyType(
    {
        0: "none",
        1: "gpu_reset",
        2: "node_reboot",
        3: "drain_p2p",
        4: "drain_and_reset",
        5: "recover_imex_domain",
        6: "bus_reset",
        7: "system_reboot",
    }
)
RECOVERY_ACTIONS: Mapping[str, Severity] = MappingProxyType(
    {
        "none": Severity.NOTE,
        "drain_p2p": Severity.DRAIN,
        "recover_imex_domain": Severity.DRAIN,
        "gpu_reset": Severity.RESET,
        "drain_and_reset": Severity.RESET,
        "bus_reset": Severity.RESET,
        "node_reboot": Severity.REBOOT,
        "system_reboot": Severity.REBOOT,
    }
)

PROBATION_MS = 10 * 60_000
Condition = Literal["ok", "sick", "probation"]


@dataclass(frozen=True, slots=True)
class GpuHealth:
    """What is known of one GPU. `cause` names what made it sick: `xid:79`, `action:gpu_reset` or `lost`."""

    condition: Condition = "ok"
    since_ms: int = 0
    cause: str = ""
    severity: Severity = Severity.NOTE


def fault_of(xid: Xid) -> Fault:
    return XIDS.get(xid.code, OTHER_XID)


def seen(health: GpuHealth, reading: GpuReading, now_ms: int) -> GpuHealth:
    """The GPU's health after a reading.

    A sick GPU goes on probation when its error is over: the driver asks for nothing, it answers, and no new error came.
    It is ok again after `PROBATION_MS` of that. Where the driver does not tell a recovery action, the absence of new
    errors has to do.
    """
    worst = _worst(reading)
    if worst is not None:
        cause, severity = worst
        is_new = health.condition != "sick" or health.cause != cause
        return GpuHealth("sick", now_ms if is_new else health.since_ms, cause, severity)
    if health.condition == "sick":
        return replace(health, condition="probation", since_ms=now_ms)
    if health.condition == "probation" and now_ms - health.since_ms >= PROBATION_MS:
        return GpuHealth("ok", now_ms)
    return health


def told_to_holders(reading: GpuReading) -> Sequence[Xid]:
    """The errors of this reading that the holder's program caused or must answer."""
    return [
        xid
        for xid in reading.xids
        if fault_of(xid).severity in (Severity.APPLICATION, Severity.RESTART_APPLICATION)
    ]


def _worst(reading: GpuReading) -> tuple[str, Severity] | None:
    """The gravest reason not to lend the GPU now, and its name."""
    causes = [(f"xid:{xid.code}", fault_of(xid).severity) for xid in reading.xids]
    if reading.recovery_action is not None:
        # An action that the table does not know is one that the driver cannot do without.
        severity = RECOVERY_ACTIONS.get(reading.recovery_action, Severity.RESET)
        causes.append((f"action:{reading.recovery_action}", severity))
    if reading.state == "lost":
        causes.append(("lost", Severity.REBOOT))
    grave = [cause for cause in causes if cause[1] >= Severity.DRAIN]
    return max(grave, key=lambda cause: cause[1], default=None)
