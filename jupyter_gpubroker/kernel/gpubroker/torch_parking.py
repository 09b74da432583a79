"""Parks PyTorch's device memory by torch-memory-saver: physical memory goes, addresses and tensors stay.

The library has to be preloaded when the process starts (the provisioner does it). Contents came back wrong in a report of its
users (issue 71), so every block is summed on the device before and after. A launch on a paused address ends the context for
good: where other threads use the GPU, or memory for the copy is short, this is refused.
"""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from . import cuda_state
from .errors import Reason, reason
from .parkers import Parker, ParkFailed

HOST_MARGIN = 1.1
CHUNK_WORDS = 8 * 1024 * 1024  # of 8 bytes: what summing needs at a time

_MIB = 1024 * 1024
_LIBRARY_FOLDERS = tuple(
    f"{os.sep}{name}{os.sep}" for name in ("torch", "cupy", "jax", "tensorflow")
)


class Block(NamedTuple):
    """Device memory in use by tensors; PyTorch aligns blocks to 512 bytes."""

    device: int
    address: int
    size: int


class TorchParker(Parker):
    """For the whole process: all that PyTorch's caching allocator holds."""

    def __init__(self) -> None:
        self._sums: Dict[Block, Tuple[int, ...]] = {}

    def applies(self) -> bool:
        return cuda_state.torch_is_initialized()

    def refusal(self) -> Optional[Reason]:
        why_not = _preload_refusal(os.environ)
        if why_not is not None:
            return why_not
        if _busy_threads():
            return reason("threads_use_gpu", thread=_busy_threads()[0])
        wanted_mib = int(_torch().cuda.memory_reserved() * HOST_MARGIN) // _MIB
        free_mib = host_memory_free_mib()
        if wanted_mib > free_mib:
            return reason("host_memory_short", wanted_mib=wanted_mib, free_mib=free_mib)
        return None

    def park(self) -> int:
        torch = _torch()
        try:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
            self._sums = _sums(torch, _blocks(torch))
            torch.cuda.empty_cache()
            torch.cuda.synchronize()
            _saver().pause()
        except RuntimeError as error:  # out of memory while summing, or a broken context
            raise ParkFailed(reason("park_failed", error=str(error)[:200])) from None
        free, total = torch.cuda.mem_get_info()
        return int(total - free) // _MIB

    def unpark(self) -> None:
        torch = _torch()
        try:
            _saver().resume()
            torch.cuda.synchronize()
            after = _sums(torch, self._sums)
        except RuntimeError as error:
            raise ParkFailed(reason("unpark_failed", error=str(error)[:200])) from None
        if after != self._sums:
            raise ParkFailed(reason("contents_changed"), is_back=True)


def host_memory_free_mib() -> int:
    """What this process may still use of host memory: the machine's, or its control group's where that is less."""
    limits = [_available_mib()]
    for folder in _control_groups():
        limit, used = _number(folder + "/memory.max"), _number(folder + "/memory.current")
        if limit is not None and used is not None:
            limits.append(max(limit - used, 0) // _MIB)
    return min(limits)


def _preload_refusal(environ: Any) -> Optional[Reason]:
    """Why the library cannot work in a process started like this one."""
    settings = environ.get("PYTORCH_CUDA_ALLOC_CONF", "") + environ.get("PYTORCH_ALLOC_CONF", "")
    if "expandable_segments:True" in settings:
        return reason("park_expandable_segments")
    wanted = ("TMS_INIT_ENABLE", "TMS_INIT_ENABLE_CPU_BACKUP")
    if "torch_memory_saver" not in environ.get("LD_PRELOAD", "") or any(
        environ.get(name) != "1" for name in wanted
    ):
        return reason("park_not_preloaded")
    return None


def _busy_threads() -> List[str]:
    """Threads other than the main one that are inside of a GPU library: they could launch while memory is away."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    ours = (threading.main_thread().ident, threading.get_ident())
    return [
        names.get(ident, "a thread")
        for ident, frame in sys._current_frames().items()
        if ident not in ours and _is_inside(frame)
    ]


def _is_inside(frame: Any) -> bool:
    while frame is not None:
        if any(folder in frame.f_code.co_filename for folder in _LIBRARY_FOLDERS):
            return True
        frame = frame.f_back
    return False


def _torch() -> Any:
    return sys.modules["torch"]


def _saver() -> Any:
    from torch_memory_saver import torch_memory_saver

    return torch_memory_saver


def _blocks(torch: Any) -> List[Block]:
    found = []
    for segment in torch.cuda.memory_snapshot():
        address = segment["address"]
        for block in segment["blocks"]:
            if block["state"] == "active_allocated":
                found.append(Block(segment["device"], address, block["size"]))
            address += block["size"]
    return found


def _sums(torch: Any, blocks: Any) -> Dict[Block, Tuple[int, ...]]:
    return {block: tuple(_block_sums(torch, block)) for block in blocks}


def _block_sums(torch: Any, block: Block) -> List[int]:
    """For each chunk the sum of its words weighted by their places, modulo 2**64: a changed or moved word changes it."""
    return weighted_sums(torch, torch.as_tensor(_Raw(block), device=f"cuda:{block.device}"))


def weighted_sums(torch: Any, words: Any) -> List[int]:
    """Chunk by chunk, so that no more than a chunk is needed beside them. `words` are 64-bit integers."""
    found = []
    for start in range(0, words.numel(), CHUNK_WORDS):
        chunk = words[start : start + CHUNK_WORDS]
        places = torch.arange(1, chunk.numel() + 1, device=chunk.device, dtype=torch.int64)
        found.append(int((chunk * places).sum().item()))
    return found


class _Raw:
    """A block as an array of words, for torch.as_tensor."""

    def __init__(self, block: Block) -> None:
        self.__cuda_array_interface__ = {
            "shape": (block.size // 8,),
            "typestr": "<i8",
            "data": (block.address, False),
            "version": 2,
        }


def _available_mib() -> int:
    with open("/proc/meminfo", encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) // 1024
    return 0


def _control_groups() -> List[str]:
    """The folders of this process' control group (version 2) and those above it."""
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            paths = [line.strip()[len("0::") :] for line in file if line.startswith("0::")]
    except OSError:
        return []
    parts = paths[0].strip("/").split("/") if paths else []
    return ["/sys/fs/cgroup/" + "/".join(parts[:depth]) for depth in range(len(parts), -1, -1)]


def _number(path: str) -> Optional[int]:
    try:
        with open(path, encoding="ascii") as file:
            text = file.read().strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
