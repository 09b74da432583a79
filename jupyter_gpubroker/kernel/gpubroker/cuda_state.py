"""Has this process touched CUDA, and could it still be given a device?

CUDA reads CUDA_VISIBLE_DEVICES once. A process that initialised it while no device was visible is blind for good. Looking
changes nothing: no library is imported here, and none is initialised. Evidence, strongest first: what the libraries say of
themselves, the answer of a driver library that is already loaded, and open files.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from typing import Any, Iterator, List, NamedTuple, Optional, Tuple

UNTOUCHED = "untouched"  # a device given now will be seen
CONTEXT = "context"  # device memory is held until the process ends or is suspended
BLIND = "blind"  # only a restart helps
UNSURE = "unsure"  # the driver is loaded; whether it was asked for devices nobody can tell

SIMULATED = "gpubroker.simulated"
LIBRARIES = ("torch", "tensorflow", "jax", "cupy", "numba.cuda", SIMULATED)

_CUDA_SUCCESS = 0
_CUDA_ERROR_NO_DEVICE = 100


class CudaState(NamedTuple):
    """`by` is the library that says so, for sentences; `has_context` whether device memory is held."""

    kind: str
    by: str = "CUDA"
    has_context: bool = False


def look() -> CudaState:
    """The state of this process. Takes about a millisecond."""
    simulated = loaded(SIMULATED)
    if simulated is not None and simulated.is_poisoned():
        return CudaState(BLIND, SIMULATED, has_context=simulated.is_initialized())
    if simulated is not None and simulated.is_initialized():
        return CudaState(CONTEXT, SIMULATED, has_context=True)
    if torch_is_initialized():
        return CudaState(CONTEXT, "torch", has_context=True)
    return _driver_state()


def loaded(name: str) -> Optional[Any]:
    """A library that the process has fully imported already."""
    module = sys.modules.get(name)
    spec = getattr(module, "__spec__", None)
    return None if getattr(spec, "_initializing", False) else module


def loaded_libraries() -> List[str]:
    """The GPU libraries this process has imported."""
    return [name for name in LIBRARIES if name in sys.modules]


def torch_is_initialized() -> bool:
    torch = loaded("torch")
    try:
        return torch is not None and bool(torch.cuda.is_initialized())
    except (AttributeError, RuntimeError):
        return False


def uses_nccl() -> bool:
    """Does this process take part in a communicator between GPUs? The driver cannot suspend those."""
    distributed = loaded("torch.distributed")
    if distributed is None:
        return False
    try:
        return distributed.is_initialized() and "nccl" in str(distributed.get_backend())
    except (AttributeError, RuntimeError):
        return False


def _driver_state() -> CudaState:
    if not any("libcuda.so" in path for path in _mapped_files()):
        # CUDA opens this file, mere questions to the driver do not.
        hidden = any(path.startswith("/dev/nvidia-uvm") for path in _open_files())
        return CudaState(CONTEXT, _likely(), has_context=True) if hidden else CudaState(UNTOUCHED)
    code, count = _device_count()
    if code == _CUDA_SUCCESS and count > 0:
        return CudaState(CONTEXT, _likely(), has_context=True)
    if code in (_CUDA_SUCCESS, _CUDA_ERROR_NO_DEVICE):
        return CudaState(BLIND, _likely())
    return CudaState(UNSURE, _likely())


def _device_count() -> Tuple[int, int]:
    """The driver's answer, from the library that is loaded already; asking does not initialise it."""
    count = ctypes.c_int(0)
    try:
        library = ctypes.CDLL("libcuda.so.1", mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
        return int(library.cuDeviceGetCount(ctypes.byref(count))), count.value
    except (OSError, AttributeError):
        return -1, 0


def _likely() -> str:
    """The library that probably loaded the driver."""
    return next(iter(loaded_libraries()), "CUDA")


def _mapped_files() -> Iterator[str]:
    with contextlib.suppress(OSError), open(
        "/proc/self/maps", encoding="utf-8", errors="replace"
    ) as file:
        for line in file:
            yield line.rstrip("\n").rpartition(" ")[2]


def _open_files() -> Iterator[str]:
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                yield os.readlink("/proc/self/fd/" + name)
