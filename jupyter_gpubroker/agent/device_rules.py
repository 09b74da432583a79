"""Which devices the processes of a cgroup may open, as the kernel enforces it: cgroup v1's device lists and v2's programs.

The check is made when a file is opened: who has a device open keeps it, who opens one after a change is judged by that. Both
need rights over cgroups (v2 also CAP_BPF and CAP_NET_ADMIN), which a user's own broker seldom has; see docs/threat-model.md.
Blocking; every method raises OSError where it may not.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple, Protocol

from ..processes import PROC


class Device(NamedTuple):
    """The number of a character device."""

    major: int
    minor: int


class Rules(Protocol):
    """One way of the kernel's to judge opens."""

    name: str

    def cgroup_of(self, pid: int) -> Path:
        """The folder of the cgroup that the process is in."""
        ...

    def apply(self, cgroup: Path, devices: Collection[Device], denied: Collection[Device]) -> None:
        """Of `devices`, deny these and allow the others; all else stays as it is."""
        ...


class DeviceLists:
    """cgroup v1: the devices controller, a hierarchy of its own."""

    name = "cgroup v1 device lists"

    def __init__(self, mount: Path, proc: Path = PROC) -> None:
        self._mount = mount
        self._proc = proc

    def cgroup_of(self, pid: int) -> Path:
        return self._mount / _path_in(self._proc, pid, "devices")

    def apply(self, cgroup: Path, devices: Collection[Device], denied: Collection[Device]) -> None:
        for device in devices:
            name = "devices.deny" if device in denied else "devices.allow"
            (cgroup / name).write_text(f"c {device.major}:{device.minor} rwm")


class DevicePrograms:
    """cgroup v2: a small program that the kernel runs at every open; it stays with the cgroup, also when we end."""

    name = "cgroup v2 device programs"

    def __init__(self, mount: Path, proc: Path = PROC) -> None:
        self._mount = mount
        self._proc = proc

    def cgroup_of(self, pid: int) -> Path:
        return self._mount / _path_in(self._proc, pid, "")

    def apply(
        self,
        cgroup: Path,
        devices: Collection[Device],  # noqa: ARG002 - what is not denied is allowed anyway
        denied: Collection[Device],
    ) -> None:
        """The new program is there before the old ones are gone: meanwhile both must allow."""
        folder = os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            before = _attached(folder)
            program = _load(denial(denied))
            try:
                _bpf(_ATTACH, struct.pack("<5I", folder, program, _DEVICE, _ALLOW_MULTI, 0))
            finally:
                os.close(program)
            for number in before:
                _detach(folder, number)
        finally:
            os.close(folder)


def available_rules(proc: Path = PROC) -> list[Rules]:
    """The ways that are mounted on this machine; whether we may use them shows when they are."""
    found: list[Rules] = []
    for line in (proc / "self/mounts").read_text().splitlines():
        _, mount, kind, options, *_ = line.split(" ")
        if kind == "cgroup" and "devices" in options.split(","):
            found.append(DeviceLists(Path(mount), proc))
        elif kind == "cgroup2":
            found.append(DevicePrograms(Path(mount), proc))
    return found


def _path_in(proc: Path, pid: int, controller: str) -> str:
    """Where the process is in the hierarchy of a controller, relative to its mount; "" names v2's."""
    for line in (proc / str(pid) / "cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return path.lstrip("/")
    raise FileNotFoundError(f"The kernel has no cgroup hierarchy {controller or 'v2'}.")


# --- bpf(2), as in the kernel's include/uapi/linux/bpf.h ------------------------------------------------------------------

_SYSCALL = {"x86_64": 321, "aarch64": 280}.get(platform.machine())
_LOAD, _ATTACH, _DETACH, _OPEN_BY_ID, _QUERY = 5, 8, 9, 13, 16
_CGROUP_DEVICE = 15  # BPF_PROG_TYPE_CGROUP_DEVICE
_DEVICE = 6  # BPF_CGROUP_DEVICE
_ALLOW_MULTI = 2  # a container's or systemd's own program counts as well
_ATTACHED_MAX = 64


def denial(denied: Collection[Device]) -> bytes:
    """A program that returns 0 for an open of these devices, and 1 for any other.

    It gets a pointer (register 1) to `struct bpf_cgroup_dev_ctx`: access type, major, minor, 32 bits each.
    """
    code = _instruction(0x61, 2, 1, 4) + _instruction(0x61, 3, 1, 8)  # r2 = major, r3 = minor
    for device in sorted(denied):
        code += _instruction(
            0x55, 2, offset=3, value=device.major
        )  # other major: on to the next device
        code += _instruction(0x55, 3, offset=2, value=device.minor)
        code += _instruction(0xB7, 0, value=0) + _instruction(0x95)  # return 0
    return code + _instruction(0xB7, 0, value=1) + _instruction(0x95)


def _instruction(
    code: int, target: int = 0, source: int = 0, offset: int = 0, value: int = 0
) -> bytes:
    return struct.pack("<BBhi", code, target | source << 4, offset, value)


def _load(code: bytes) -> int:
    """A descriptor of the program. Raises PermissionError without the rights."""
    instructions, licence = ctypes.create_string_buffer(code, len(code)), ctypes.c_char_p(b"BSD")
    address = ctypes.cast(licence, ctypes.c_void_p).value or 0
    attributes = struct.pack(
        "<IIQQIIQII16sII",
        *(_CGROUP_DEVICE, len(code) // 8, ctypes.addressof(instructions), address),
        *(0, 0, 0, 0, 0, b"gpubroker", 0, _DEVICE),
    )
    return _bpf(_LOAD, attributes)[0]


def _attached(folder: int) -> list[int]:
    """The ids of the programs that are attached to the cgroup itself."""
    numbers = (ctypes.c_uint32 * _ATTACHED_MAX)()
    attributes = struct.pack(
        "<4IQII", folder, _DEVICE, 0, 0, ctypes.addressof(numbers), _ATTACHED_MAX, 0
    )
    _, answer = _bpf(_QUERY, attributes)
    return list(numbers[: struct.unpack_from("<I", answer, 24)[0]])


def _detach(folder: int, number: int) -> None:
    program, _ = _bpf(_OPEN_BY_ID, struct.pack("<3I", number, 0, 0))
    try:
        _bpf(_DETACH, struct.pack("<5I", folder, program, _DEVICE, 0, 0))
    finally:
        os.close(program)


def _bpf(command: int, attributes: bytes) -> tuple[int, bytes]:
    """The call's result and the attributes as the kernel left them. Raises OSError."""
    if _SYSCALL is None:
        raise OSError(f"bpf(2) is not known on {platform.machine()}.")
    buffer = ctypes.create_string_buffer(attributes, len(attributes))
    result = ctypes.CDLL(None, use_errno=True).syscall(_SYSCALL, command, buffer, len(attributes))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result, buffer.raw
