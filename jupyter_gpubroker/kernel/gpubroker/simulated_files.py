"""The files of simulated GPUs as a process with a context sees them; `simulated` is what users call.

There is one folder for all devices, described in `jupyter_gpubroker.devices.simulated_state`: `devices.json` says what
there is, a folder per slot holds a file per context, and `processes` holds what keeps the checkpoint driver and a
process' device calls apart.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import threading
import time
from typing import Any, Dict, Iterator, List, Optional, Tuple

TICK_S = 0.01

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class NoState(Exception):
    """There are no simulated GPUs here, or nobody says where; the message says which."""


class Gate:
    """Keeps the checkpoint driver out while a device call runs, and device calls out while the process is suspended.

    A record lock does it: it is not inherited by forked children and ends with the process.
    """

    def __init__(self, folder: str, name: str) -> None:
        os.makedirs(os.path.join(folder, "processes"), mode=0o700, exist_ok=True)
        path = os.path.join(folder, "processes", name)
        self._fd = os.open(path + ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        self._state_path = path + ".state"
        self._inside = 0
        self._lock = threading.RLock()  # a buffer's finalizer may run while it is held

    @contextlib.contextmanager
    def passed(self) -> Iterator[None]:
        while not self._enter():
            time.sleep(TICK_S)
        try:
            yield
        finally:
            self._leave()

    def _enter(self) -> bool:
        with self._lock:
            if self._inside == 0:
                try:
                    fcntl.lockf(self._fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except OSError:
                    return False
                if os.path.exists(self._state_path):
                    fcntl.lockf(self._fd, fcntl.LOCK_UN)
                    return False
            self._inside += 1
            return True

    def _leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                fcntl.lockf(self._fd, fcntl.LOCK_UN)


def state_folder() -> str:
    folder = os.environ.get("GPUBROKER_SIMULATED_STATE")
    if folder:
        return folder
    url = os.environ.get("GPUBROKER_URL", "")
    if url.startswith("unix://"):
        return os.path.join(os.path.dirname(url[len("unix://") :]), "simulated")
    raise NoState("neither GPUBROKER_SIMULATED_STATE nor a GPUBROKER_URL with a socket is set")


def read_devices(folder: str) -> List[Dict[str, Any]]:
    path = os.path.join(folder, "devices.json")
    try:
        with open(path, encoding="utf-8") as file:
            return list(json.load(file)["gpus"])
    except OSError as error:
        raise NoState(f"{path} cannot be read ({error.strerror})") from None


def visible(gpus: List[Dict[str, Any]], variable: Optional[str]) -> List[Tuple[str, int]]:
    """Slots as CUDA enumerates them: up to the first entry that names none, and never more than one MIG instance."""
    whole = [gpu["slots"][0] for gpu in gpus if not gpu["mig_enabled"]]
    if variable is None:
        first_mig = [slot for gpu in gpus if gpu["mig_enabled"] for slot in gpu["slots"]][:1]
        return [(slot["uuid"], slot["memory_mib"]) for slot in whole or first_mig]
    chosen = []  # type: List[Dict[str, Any]]
    for entry in variable.split(","):
        slot = named(gpus, entry.strip())
        if slot is None or slot in chosen:
            break
        if chosen and "mig" in (slot["kind"], chosen[0]["kind"]):
            break
        chosen.append(slot)
    return [(slot["uuid"], slot["memory_mib"]) for slot in chosen]


def named(gpus: List[Dict[str, Any]], entry: str) -> Optional[Dict[str, Any]]:
    """The slot of an index, a UUID or a prefix of exactly one UUID. A GPU split by MIG stands for its first instance."""
    if entry.isdigit():
        matches = [gpu["slots"] for gpu in gpus if gpu["index"] == int(entry)]
    elif entry.startswith(("GPU-", "MIG-")):
        matches = [gpu["slots"] for gpu in gpus if gpu["uuid"].startswith(entry)]
        matches += [
            [slot]
            for gpu in gpus
            for slot in gpu["slots"]
            if slot["kind"] == "mig" and slot["uuid"].startswith(entry)
        ]
    else:
        matches = []
    if len(matches) != 1 or not matches[0]:
        return None
    return matches[0][0]  # type: ignore[no-any-return]


@contextlib.contextmanager
def slot_locked(folder: str) -> Iterator[None]:
    fd = os.open(os.path.join(folder, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def used_mib(folder: str) -> int:
    """Memory of all contexts of living processes on the slot."""
    used_mib = 0
    for name in os.listdir(folder):
        if not name.endswith(".json"):
            continue
        with contextlib.suppress(FileNotFoundError), open(
            os.path.join(folder, name), encoding="utf-8"
        ) as file:
            record = json.load(file)
            if start_ticks(record["pid"]) == record["start_ticks"]:
                used_mib += record["memory_mib"]
    return used_mib


def start_ticks(pid: int) -> Optional[int]:
    """When a process started (field 22 of its stat), or None if it is gone or a zombie, which holds no device any more."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def own_identity() -> Tuple[int, int]:
    pid = os.getpid()
    ticks = start_ticks(pid)
    assert ticks is not None
    return pid, ticks


def own_name() -> str:
    pid, ticks = own_identity()
    return f"{pid}-{ticks}"


def now_ms() -> int:
    return int(time.clock_gettime(_CLOCK) * 1000)
