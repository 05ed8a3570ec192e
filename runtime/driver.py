"""The CUDA driver: devices, modules, streams, launches. Loaded when the first GPU kernel is."""

from __future__ import annotations

import ctypes
import functools
import sys
from dataclasses import dataclass
from typing import Any

from tilewright.diagnostics import OutOfResources, ToolchainError
from tilewright.language.dtypes import Element, PointerType
from tilewright.runtime.nvrtc import INSTALL, Cubin

STATIC_SHARED_LIMIT = 48 * 1024


@functools.cache
def bindings() -> Any:
    """The driver module of cuda-bindings, initialised.

    Raises:
      ToolchainError: without driver or GPU.
    """
    try:
        from cuda.bindings import driver
    except ImportError as error:
        raise ToolchainError(f"running on a GPU needs cuda-bindings; {INSTALL}") from error
    try:
        (status,) = driver.cuInit(0)
    except Exception as error:  # cuda-bindings raises its own kind when the library is missing
        raise ToolchainError(
            f"no CUDA driver can be loaded ({error}); host arrays run on the CPU without one"
        ) from error
    if int(status) != 0:
        raise ToolchainError(f"the CUDA driver does not start: {status.name}; is there a GPU?")
    return driver


def is_available() -> bool:
    """Whether a GPU can be used."""
    try:
        return bool(bindings())
    except ToolchainError:
        return False


def checked(result: tuple[Any, ...]) -> Any:
    """The values of a driver call.

    Raises:
      ToolchainError: with the driver's name of the error.
    """
    status, *values = result
    if int(status) != 0:
        raise ToolchainError(f"the CUDA driver reports {status.name}")
    return values[0] if len(values) == 1 else tuple(values)


@functools.cache
def capability(device: int) -> tuple[int, int]:
    """Compute capability of a device."""
    driver = bindings()
    handle = checked(driver.cuDeviceGet(device))
    attribute = driver.CUdevice_attribute
    major = checked(driver.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, handle))
    minor = checked(driver.cuDeviceGetAttribute(attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, handle))
    return int(major), int(minor)


def make_current(device: int) -> None:
    """Makes the device's primary context current, the one that torch and CuPy use."""
    driver = bindings()
    current = checked(driver.cuCtxGetCurrent())
    if int(current) == 0 or int(checked(driver.cuCtxGetDevice())) != device:
        checked(driver.cuCtxSetCurrent(_context(device)))


@functools.cache
def _context(device: int) -> Any:
    driver = bindings()
    return checked(driver.cuDevicePrimaryCtxRetain(checked(driver.cuDeviceGet(device))))


def current_stream(device: int) -> int:
    """The stream that the caller's library uses now: torch's, else CuPy's, else the default one."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return int(torch._C._cuda_getCurrentRawStream(device))
    cupy = sys.modules.get("cupy")
    return int(cupy.cuda.get_current_stream().ptr) if cupy is not None else 0


def _holder(element: Element) -> Any:
    if isinstance(element, PointerType):
        return ctypes.c_uint64
    holders: dict[str, Any] = {
        "i1": ctypes.c_bool, "i8": ctypes.c_int8, "i16": ctypes.c_int16, "i32": ctypes.c_int32, "i64": ctypes.c_int64,
        "u8": ctypes.c_uint8, "u16": ctypes.c_uint16, "u32": ctypes.c_uint32, "u64": ctypes.c_uint64,
        "fp32": ctypes.c_float, "fp64": ctypes.c_double,
    }  # fmt: skip
    return holders.get(element.name, ctypes.c_float)


@dataclass(slots=True)
class Loaded:
    """A kernel on a device, ready to launch."""

    function: Any
    num_threads: int
    shared_bytes: int
    holders: tuple[Any, ...]

    def launch(self, grid: tuple[int, int, int], values: tuple[Any, ...], stream: int) -> None:
        """Starts the kernel on a stream; returns at once."""
        driver = bindings()
        arguments = (values, self.holders)
        checked(
            driver.cuLaunchKernel(self.function, *grid, self.num_threads, 1, 1, self.shared_bytes, stream, arguments, 0)
        )


def load(
    cubin: Cubin, name: str, elements: tuple[Element, ...], num_threads: int, shared_bytes: int, device: int
) -> Loaded:
    """Loads machine code onto a device.

    Raises:
      OutOfResources: when the device cannot give a block what it needs.
    """
    driver = bindings()
    make_current(device)
    module = checked(driver.cuModuleLoadData(cubin.code))
    function = checked(driver.cuModuleGetFunction(module, name.encode()))
    attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
    limit = int(checked(driver.cuDeviceGetAttribute(attribute, checked(driver.cuDeviceGet(device)))))
    total = shared_bytes + cubin.static_shared_bytes
    if total > limit:
        raise OutOfResources(total, limit, "shared memory")
    if shared_bytes > STATIC_SHARED_LIMIT - cubin.static_shared_bytes:
        which = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        checked(driver.cuFuncSetAttribute(function, which, shared_bytes))
    most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK
    threads = int(checked(driver.cuFuncGetAttribute(most, function)))
    if num_threads > threads:
        raise OutOfResources(num_threads, threads, "threads")
    return Loaded(function, num_threads, shared_bytes, tuple(_holder(element) for element in elements))
