"""The CUDA driver's library through ctypes: importing cuda-bindings takes longer than all else in a cached first launch.

A function is called with what goes in, in the driver's order, and returns (status, *what comes out). Numbers are those of
cuda.h, in versions of the functions that every driver since CUDA 12.0 has.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

API = 12000  # the version of the driver's interface whose functions are asked for
MULTIPROCESSOR_COUNT, L2_CACHE_SIZE, CAPABILITY_MAJOR, CAPABILITY_MINOR, SHARED_MEMORY_OPTIN = 16, 38, 75, 76, 97
# Attributes of a device, by the names under which programs ask for them.
PROPERTIES = {
    "max_shared_mem": SHARED_MEMORY_OPTIN, "max_num_regs": 12, "multiprocessor_count": MULTIPROCESSOR_COUNT, "warpSize": 10,
    "sm_clock_rate": 13, "mem_clock_rate": 36, "mem_bus_width": 37,
}  # fmt: skip
MAX_THREADS_PER_BLOCK, MAX_DYNAMIC_SHARED_SIZE = 0, 8  # attributes of functions
EVENT_DEFAULT = CAPTURE_NONE = INTERLEAVE_NONE = OUT_OF_BOUNDS_ZERO = 0
SWIZZLES = {0: 0, 32: 1, 64: 2, 128: 3}  # bytes to CUtensorMapSwizzle
L2_PROMOTIONS = {128: 2, 256: 3}  # bytes to CUtensorMapL2promotion
ELEMENTS = ("UINT8", "UINT16", "UINT32", "INT32", "UINT64", "INT64", "FLOAT16", "FLOAT32", "FLOAT64", "BFLOAT16")

# What a function takes: i int, u unsigned, z size, p handle, address or buffer; in capitals what comes out behind a pointer.
KINDS: dict[str, Any] = {
    "i": ctypes.c_int,
    "u": ctypes.c_uint,
    "z": ctypes.c_size_t,
    "p": ctypes.c_void_p,
    "f": ctypes.c_float,
}
FUNCTIONS = {
    "cuInit": "u", "cuDriverGetVersion": "I", "cuGetErrorName": "iP",
    "cuDeviceGet": "Ii", "cuDeviceGetCount": "I", "cuDeviceGetAttribute": "Iii", "cuDeviceGetName": "pii",
    "cuDevicePrimaryCtxRetain": "Pi", "cuCtxPushCurrent": "p", "cuCtxPopCurrent": "P", "cuCtxGetCurrent": "P",
    "cuCtxSetCurrent": "p", "cuCtxGetDevice": "I", "cuCtxSynchronize": "",
    "cuModuleLoadData": "Pp", "cuModuleGetFunction": "Ppp", "cuFuncGetAttribute": "Iip", "cuFuncSetAttribute": "pii",
    "cuOccupancyMaxActiveBlocksPerMultiprocessor": "Ipiz", "cuTensorMapEncodeTiled": "piuppppp" "iiii",
    "cuMemAlloc": "Pz", "cuMemFree": "p", "cuMemsetD32Async": "puzp", "cuMemcpyDtoH": "ppz", "cuMemcpyHtoD": "ppz",
    "cuEventCreate": "Pu", "cuEventRecord": "pp", "cuEventElapsedTime": "Fpp", "cuEventDestroy": "p",
    "cuStreamIsCapturing": "pI",
}  # fmt: skip


class Driver:
    """The library; its functions are attributes."""

    def __init__(self) -> None:
        """Loads it.

        Raises:
          OSError: when there is none.
        """
        self._library = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
        find = self._library.cuGetProcAddress
        find.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64)
        self._find = find

    def address(self, name: str) -> int:
        """Where a function lies.

        Raises:
          OSError: when the driver does not have it.
        """
        found = ctypes.c_void_p()
        status = self._find(name.encode(), ctypes.byref(found), API, 0)
        if status != 0 or not found.value:
            raise OSError(f"the CUDA driver has no {name}")
        return found.value

    def __getattr__(self, name: str) -> Callable[..., tuple[Any, ...]]:
        if name not in FUNCTIONS:
            raise AttributeError(name)
        kinds = FUNCTIONS[name]
        types = [ctypes.c_void_p if kind.isupper() else KINDS[kind] for kind in kinds]
        function = ctypes.CFUNCTYPE(ctypes.c_int, *types)(self.address(name))

        def call(*arguments: Any) -> tuple[Any, ...]:
            given, results = iter(arguments), [KINDS[kind.lower()]() for kind in kinds if kind.isupper()]
            places = iter(results)
            status = function(*(ctypes.byref(next(places)) if kind.isupper() else next(given) for kind in kinds))
            return status, *(result.value or 0 for result in results)

        setattr(self, name, call)  # found at once the next time
        return call

    def error_name(self, status: int) -> str:
        """The driver's name of a status, such as "CUDA_ERROR_OUT_OF_MEMORY"."""
        unknown, name = self.cuGetErrorName(status)
        return f"error {status}" if unknown or not name else ctypes.string_at(name).decode()
