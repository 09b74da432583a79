"""As much of the CUDA driver's API as the checks need, through ctypes, so that no framework has to be installed."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any

# `spin` keeps its multiprocessors busy without touching memory, as a rank that waits for others does; `store` writes a word.
PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry spin(.param .u64 nanoseconds) {
    .reg .u64 %begun, %now, %wanted;
    .reg .pred %again;
    ld.param.u64 %wanted, [nanoseconds];
    mov.u64 %begun, %globaltimer;
LOOP:
    mov.u64 %now, %globaltimer;
    sub.u64 %now, %now, %begun;
    setp.lt.u64 %again, %now, %wanted;
    @%again bra LOOP;
    ret;
}
.visible .entry store(.param .u64 address) {
    .reg .u64 %address;
    .reg .u32 %value;
    ld.param.u64 %address, [address];
    mov.u32 %value, 1;
    st.global.u32 [%address], %value;
    ret;
}
"""
WORD = 0x5A17C0DE
_PIECE_BYTES = 1 << 20


class CudaError(Exception):
    """A call of the driver failed; `code` is its CUresult."""

    def __init__(self, call: str, code: int) -> None:
        super().__init__(f"{call}: {code}")
        self.code = code


class Cuda:
    """One device, one context. The library is loaded at the first call and initialised by `init` alone."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        self._module = c_void_p()
        self._blocks: list[tuple[int, int]] = []

    def init(self) -> int:
        """The number of devices that are visible. Raises CudaError."""
        self._call("cuInit", c_uint(0))
        count = c_int()
        self._call("cuDeviceGetCount", byref(count))
        return count.value

    def make_context(self) -> None:
        device, context = c_int(), c_void_p()
        self._call("cuDeviceGet", byref(device), c_int(0))
        self._call("cuDevicePrimaryCtxRetain", byref(context), device)
        self._call("cuCtxSetCurrent", context)
        self._call("cuModuleLoadData", byref(self._module), PTX)

    def fill(self, mib: int) -> None:
        """Allocate so much and write a word all over it."""
        address = c_uint64()
        self._call("cuMemAlloc_v2", byref(address), c_size_t(mib << 20))
        self._blocks.append((address.value, mib))
        self._call("cuMemsetD32_v2", address, c_uint(WORD), c_size_t(mib << 18))
        self.wait()

    def is_intact(self) -> bool:
        """Whether the first and last piece of every block are as they were written."""
        wanted = WORD.to_bytes(4, "little") * (_PIECE_BYTES // 4)
        room = ctypes.create_string_buffer(_PIECE_BYTES)
        for address, mib in self._blocks:
            for start in (address, address + (mib << 20) - _PIECE_BYTES):
                self._call("cuMemcpyDtoH_v2", room, c_uint64(start), c_size_t(_PIECE_BYTES))
                if room.raw != wanted:
                    return False
        return True

    def free(self) -> None:
        while self._blocks:
            self._call("cuMemFree_v2", c_uint64(self._blocks.pop()[0]))

    def spin(self, seconds: float, blocks: int, threads: int) -> None:
        """Launch, without waiting for the end."""
        self._launch("spin", c_uint64(int(seconds * 1e9)), blocks, threads)

    def store(self, address: int) -> None:
        self._launch("store", c_uint64(address), 1, 1)

    def wait(self) -> None:
        self._call("cuCtxSynchronize")

    def _launch(self, name: str, argument: Any, blocks: int, threads: int) -> None:
        function = c_void_p()
        self._call("cuModuleGetFunction", byref(function), self._module, name.encode())
        arguments = (c_void_p * 1)(ctypes.cast(byref(argument), c_void_p))
        sizes = [c_uint(size) for size in (blocks, 1, 1, threads, 1, 1, 0)]
        self._call("cuLaunchKernel", function, *sizes, c_void_p(), arguments, c_void_p())

    def _call(self, name: str, *arguments: Any) -> None:
        code = int(getattr(self._library, name)(*arguments))
        if code:
            raise CudaError(name, code)
