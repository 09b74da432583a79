"""A stand-in for CUDA on simulated GPUs, for any process: kernels, their children, batch jobs.

It keeps CUDA's rules where they matter to whoever lends GPUs: `CUDA_VISIBLE_DEVICES` is read once, at the first use; a
process that saw no device then never gets one; a context (400 MiB) stays until the process ends or is checkpointed; forked
children cannot use it; calls block while the process is checkpointed; touching paused memory poisons the context.

The devices are a folder (`GPUBROKER_SIMULATED_STATE`, else `simulated` beside the socket of `GPUBROKER_URL`) that
`jupyter_gpubroker.devices.simulated` lays out and reads: there is one file per context, `SLOT/PID-STARTTICKS.json`.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import threading
import time
import weakref
from typing import Any, Dict, Iterator, List, Optional, Tuple

from . import simulated_files as files

CONTEXT_MIB = 400
COPY_MIB_PER_S = 20_000

_lock = (
    threading.RLock()
)  # guards all below; not held while waiting for another process' device work


class SimulatedCudaError(RuntimeError):
    """Any error of a simulated device."""


class NoDeviceError(SimulatedCudaError):
    """`CUDA_VISIBLE_DEVICES` showed no device at the first use. The process keeps that answer until it ends."""


class NoDriverError(NoDeviceError):
    """There are no simulated GPUs on this machine, or the process does not know where."""


class DeviceUnavailableError(SimulatedCudaError):
    """A device was given after the process had already seen none: only a restart helps."""


class OutOfMemoryError(SimulatedCudaError):
    """The slot has not enough free memory."""


class IllegalAccessError(SimulatedCudaError):
    """Paused memory was used. The context is unusable until the process ends."""


class BusyError(SimulatedCudaError):
    """Another thread's work runs on the device."""


# --- what users call -----------------------------------------------------------------------------------------------------


def burn(seconds: float, memory_mib: int = 0, device: int = 0) -> None:
    """Keep the device busy, with `memory_mib` of memory in use meanwhile. Can be interrupted within some 10 ms."""
    context = _process.context(device)
    with context.reserved(memory_mib), context.launched():
        end = time.monotonic() + seconds
        while True:
            left = end - time.monotonic()
            if left <= 0:
                return
            time.sleep(min(files.TICK_S, left))


def allocate(mib: int, device: int = 0) -> Buffer:
    """Device memory with contents. It is free again when the buffer is freed, moved to the host or collected."""
    if mib < 1:
        raise ValueError("a buffer has at least 1 MiB")
    return Buffer(mib, os.urandom(64), _process.context(device))


def initialize(device: int = 0, uvm: bool = False, nccl: bool = False) -> None:
    """Make a context; `uvm` and `nccl` mark it as one that uses managed memory or a communicator."""
    _process.context(device).mark(uvm, nccl)


def device_count() -> int:
    """How many devices the process sees. Like CUDA's own question it initialises: 0 is then the answer for good."""
    try:
        return len(_process.devices())
    except (NoDeviceError, DeviceUnavailableError):
        return 0


def is_initialized() -> bool:
    """Whether this process holds a context. Asking changes nothing."""
    return _process.pid == os.getpid() and bool(_process.contexts)


def is_poisoned() -> bool:
    """Whether only a restart can give this process a working device. Asking changes nothing."""
    return _process.poison is not None


def checksums() -> Dict[int, str]:
    """The SHA-256 of each living buffer's contents by address, wherever they are; launches nothing."""
    with _lock:
        return {
            buffer.address: hashlib.sha256(buffer._data).hexdigest() for buffer in _process.buffers
        }


def pause() -> int:
    """Move all buffers' contents to the host and give their memory back; addresses stay. Returns the MiB moved.

    The context stays. Nothing may run on the device until `resume`.
    """
    return sum([context.pause() for context in list(_process.contexts.values())])


def resume() -> int:
    """Bring back what `pause` moved, at the same addresses. Without enough free memory nothing changes."""
    return sum([context.resume() for context in list(_process.contexts.values())])


@contextlib.contextmanager
def withheld(error: Exception) -> Iterator[None]:
    """Until the end of the block, whatever uses a device from this thread raises `error` and touches nothing."""
    before, _withheld.error = _withheld.error, error
    try:
        yield
    finally:
        _withheld.error = before


class Buffer:
    """`mib` MiB of device memory, which a few real bytes stand for. `location`: device, paused, host or freed."""

    _addresses = itertools.count(0x7F00_0000_0000, 0x1_0000_0000)

    def __init__(self, mib: int, data: bytes, context: Optional[_Context]) -> None:
        self.mib = mib
        self.address = next(self._addresses)
        self.location = "host"
        self._data = data
        self._context = context
        self._release = None  # type: Optional[weakref.finalize[Any, Any]]
        if context is not None:
            self.to_device()

    def read(self) -> bytes:
        self._touch()
        return self._data

    def write(self, data: bytes) -> None:
        if len(data) > self.mib << 20:
            raise ValueError(f"{len(data)} bytes do not fit into {self.mib} MiB")
        self._touch()
        self._data = bytes(data)

    def to_host(self) -> None:
        """Move the contents to the host and free the device memory."""
        if self.location != "host":
            self._touch()
            _copy(self.mib)
            self._leave("host")

    def to_device(self) -> None:
        if self.location == "host":
            self._context = self._context or _process.context(0)
            self._context.reserve(self.mib)
            self._arrive()
            with _lock:
                _process.buffers.add(self)

    def free(self) -> None:
        if self.location != "freed":
            self._leave("freed")

    def _arrive(self) -> None:
        """The device memory is this buffer's from now on, and is released when nobody refers to the buffer."""
        assert self._context is not None
        self.location = "device"
        self._release = weakref.finalize(self, self._context.release, self.mib)
        self._release.atexit = False

    def _leave(self, location: str, release: bool = True) -> None:
        """The contents are elsewhere now; `release` is False when the caller gives the memory back itself."""
        held = self._release
        self.location, self._release = location, None
        if location != "paused":
            with _lock:
                _process.buffers.discard(self)
        if held is not None and release:
            held()
        elif held is not None:
            held.detach()

    def _touch(self) -> None:
        """Wait as a device call does, and check that the memory is there."""
        if self.location == "freed":
            raise IllegalAccessError("this buffer was freed")
        if self._context is not None and self.location != "host":
            with self._context.launched():
                pass

    def __reduce__(self) -> Tuple[Any, ...]:
        """A copy is pickled as host memory, to be moved to whatever device its reader holds."""
        return (_from_host, (self.mib, self.read()))


def _from_host(mib: int, data: bytes) -> Buffer:
    return Buffer(mib, data, None)


# --- the process and its contexts ------------------------------------------------------------------------------------------


class _Process:
    """What CUDA keeps per process: the devices seen at the first use, the contexts made, and the reason it is lost."""

    def __init__(self) -> None:
        self.pid = None  # type: Optional[int]
        self.folder = ""
        self.gate = None  # type: Optional[files.Gate]
        self._making = threading.Lock()
        self.visible = []  # type: List[Tuple[str, int]]
        self.contexts = {}  # type: Dict[str, _Context]
        self.buffers = weakref.WeakSet()  # type: weakref.WeakSet[Buffer]
        self.poison = None  # type: Optional[SimulatedCudaError]

    def devices(self) -> List[Tuple[str, int]]:
        """Initialise at the first call; slots as (UUID, MiB)."""
        _withheld.check()
        with _lock:
            self.check()
            if self.pid is None:
                self._initialise()
            elif self.pid != os.getpid():
                raise SimulatedCudaError(
                    "CUDA was initialised before this process was forked, so it cannot be used here. "
                    "Start workers with the 'spawn' method."
                )
            return self.visible

    def context(self, device: int) -> _Context:
        with _lock:
            visible = self.devices()
            if not 0 <= device < len(visible):
                raise SimulatedCudaError(f"invalid device ordinal {device}: {len(visible)} visible")
            uuid, memory_mib = visible[device]
            assert self.gate is not None
        # A lock of its own: making a context waits while the process is suspended.
        with self._making:
            if uuid not in self.contexts:
                made = _Context(self.folder, uuid, memory_mib, self.gate)
                made.reserve(CONTEXT_MIB)
                self.contexts[uuid] = made
            return self.contexts[uuid]

    def _initialise(self) -> None:
        try:
            self.folder = files.state_folder()
            gpus = files.read_devices(self.folder)
        except files.NoState as error:
            raise NoDriverError(f"no simulated GPUs: {error}") from None
        self.pid = os.getpid()
        self.visible = files.visible(gpus, os.environ.get("CUDA_VISIBLE_DEVICES"))
        if not self.visible:
            self.poison = NoDeviceError(
                "no CUDA-capable device is detected (CUDA_VISIBLE_DEVICES shows none)"
            )
            raise self.poison
        self.gate = files.Gate(self.folder, files.own_name())

    def check(self) -> None:
        """Raise what this process is lost to, if it is."""
        if self.poison is None:
            return
        if isinstance(self.poison, NoDeviceError) and os.environ.get(
            "CUDA_VISIBLE_DEVICES", ""
        ) not in ("", "-1"):
            raise DeviceUnavailableError(
                "CUDA was initialised in this process while no device was visible, and it looks only once. "
                "Restart the kernel to use the device it has been given."
            )
        raise type(self.poison)(str(self.poison))


class _Context:
    """This process' context on one slot, and its file. The file is away while the process is checkpointed."""

    def __init__(self, folder: str, slot: str, slot_mib: int, gate: files.Gate) -> None:
        self.gate = gate
        self._folder = os.path.join(folder, slot)
        self._slot_mib = slot_mib
        self._launches = 0
        self._paused = False
        pid, ticks = files.own_identity()
        self._path = os.path.join(self._folder, f"{pid}-{ticks}.json")
        self._record = {
            "pid": pid,
            "start_ticks": ticks,
            "memory_mib": 0,
            "busy_ms": 0,
            "busy_since_ms": None,
            "created_ms": files.now_ms(),
            "uvm": False,
            "nccl": False,
        }  # type: Dict[str, Any]

    def reserve(self, mib: int) -> None:
        _withheld.check()
        with self.gate.passed(), _lock, files.slot_locked(self._folder):
            free_mib = self._slot_mib - files.used_mib(self._folder)
            if mib > free_mib:
                raise OutOfMemoryError(
                    f"CUDA out of memory: {mib} MiB wanted, {free_mib} of {self._slot_mib} MiB free"
                )
            self._change(memory_mib=self._record["memory_mib"] + mib)

    def release(self, mib: int) -> None:
        if self._record["pid"] == os.getpid():
            with self.gate.passed(), _lock, files.slot_locked(self._folder):
                self._change(memory_mib=self._record["memory_mib"] - mib)

    @contextlib.contextmanager
    def reserved(self, mib: int) -> Iterator[None]:
        if mib == 0:
            yield
            return
        self.reserve(mib)
        try:
            yield
        finally:
            self.release(mib)

    @contextlib.contextmanager
    def launched(self) -> Iterator[None]:
        """Work on the device: busy from here to the end of the block."""
        _withheld.check()
        with self.gate.passed():
            with _lock:
                _process.check()
                if self._paused:
                    _process.poison = IllegalAccessError(
                        "an illegal memory access was encountered (paused memory was used)"
                    )
                    raise _process.poison
                self._launches += 1
                if self._launches == 1:
                    self._change(busy_since_ms=files.now_ms())
            try:
                yield
            finally:
                with _lock:
                    self._launches -= 1
                    if self._launches == 0:
                        busy_ms = (
                            self._record["busy_ms"] + files.now_ms() - self._record["busy_since_ms"]
                        )
                        self._change(busy_ms=busy_ms, busy_since_ms=None)

    def mark(self, uvm: bool, nccl: bool) -> None:
        with self.gate.passed(), _lock:
            self._change(uvm=self._record["uvm"] or uvm, nccl=self._record["nccl"] or nccl)

    def pause(self) -> int:
        with self.gate.passed():
            with _lock:
                if self._launches:
                    raise BusyError("work runs on the device; wait for it to end before pausing")
                buffers = self._buffers("device")
            moved_mib = sum(buffer.mib for buffer in buffers)
            _copy(moved_mib)
            with _lock:
                for buffer in buffers:
                    buffer._leave("paused", release=False)
                self._paused = True
            self.release(moved_mib)
        return moved_mib

    def resume(self) -> int:
        with self.gate.passed():
            buffers = self._buffers("paused")
            moved_mib = sum(buffer.mib for buffer in buffers)
            self.reserve(moved_mib)
            _copy(moved_mib)
            with _lock:
                for buffer in buffers:
                    buffer._arrive()
                self._paused = False
        return moved_mib

    def _buffers(self, location: str) -> List[Buffer]:
        return [
            buffer
            for buffer in _process.buffers
            if buffer._context is self and buffer.location == location
        ]

    def _change(self, **values: Any) -> None:
        self._record.update(values)
        temporary = f"{self._path}.{threading.get_ident()}"
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump(self._record, file)
        os.replace(temporary, self._path)


class _Withheld(threading.local):
    """What a thread is told instead of getting to a device."""

    error: Optional[Exception] = None

    def check(self) -> None:
        if self.error is not None:
            raise self.error


def _copy(mib: int) -> None:
    """Take the time that moving this much between device and host takes."""
    time.sleep(mib / COPY_MIB_PER_S)


_process = _Process()
_withheld = _Withheld()
