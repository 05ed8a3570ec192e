"""The CUDA driver: devices, contexts, modules, streams. Loaded when the first GPU kernel is."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Collection, Iterator
from typing import Any

from tilewright.absent import absent
from tilewright.artifact import Artifact
from tilewright.diagnostics import OutOfResources, ToolchainError
from tilewright.runtime.building.nvrtc import Cubin
from tilewright.runtime.driver_library import (
    CAPABILITY_MAJOR,
    CAPABILITY_MINOR,
    MAX_DYNAMIC_SHARED_SIZE,
    MAX_THREADS_PER_BLOCK,
    MULTIPROCESSOR_COUNT,
    SHARED_MEMORY_OPTIN,
    Driver,
)

STATIC_SHARED_LIMIT = 48 * 1024
NOT_INITIALIZED = 3


def __getattr__(name: str) -> Any:
    """What programs know from Triton's module of this name and from the object that takes its place there."""
    if name == "driver":
        return sys.modules[__name__]
    if name in ("active", "default", "set_active", "reset_active"):
        from tilewright.runtime import active

        return active.ACTIVE if name in ("active", "default") else getattr(active, name)
    raise absent("triton.runtime.driver", name, ("active", "set_active", "reset_active"))


@functools.cache
def bindings() -> Driver:
    """The driver's library, initialised.

    Raises:
      ToolchainError: without driver or GPU.
    """
    try:
        driver = Driver()
        (status,) = driver.cuInit(0)
    except (OSError, AttributeError) as error:
        raise ToolchainError(
            f"no CUDA driver can be loaded ({error}); host arrays run on the CPU without one"
        ) from error
    if status != 0:
        raise ToolchainError(f"the CUDA driver does not start: {driver.error_name(status)}; is there a GPU?")
    return driver


def is_available() -> bool:
    """Whether a GPU can be used."""
    try:
        return bool(bindings())
    except ToolchainError:
        return False


def refusal(status: int, where: str = "") -> ToolchainError:
    """The error for a status of the driver."""
    hint = ""
    if status == NOT_INITIALIZED:
        hint = (
            "; a process that was forked from one that used CUDA cannot use it: start it with multiprocessing's spawn"
        )
    return ToolchainError(f"the CUDA driver reports {bindings().error_name(status)}{where}{hint}")


def checked(result: tuple[Any, ...]) -> Any:
    """The values of a driver call.

    Raises:
      ToolchainError: with the driver's name of the error.
    """
    status, *values = result
    if int(status) != 0:
        raise refusal(int(status))
    return values[0] if len(values) == 1 else tuple(values)


@functools.cache
def capability(device: int) -> tuple[int, int]:
    """Compute capability of a device."""
    driver = bindings()
    handle = checked(driver.cuDeviceGet(device))
    major = checked(driver.cuDeviceGetAttribute(CAPABILITY_MAJOR, handle))
    minor = checked(driver.cuDeviceGetAttribute(CAPABILITY_MINOR, handle))
    return int(major), int(minor)


@contextlib.contextmanager
def in_context(device: int) -> Iterator[None]:
    """Makes the device's primary context, the one that torch and CuPy use, current for a while."""
    driver = bindings()
    checked(driver.cuCtxPushCurrent(_context(device)))
    try:
        yield
    finally:
        checked(driver.cuCtxPopCurrent())


def set_current_if_none(device: int) -> None:
    """Gives a thread that has no context that of device 0 for good, as CUDA's runtime does; of other devices never.

    A launch on device 1 would otherwise change which device torch and CuPy take for the current one.
    """
    driver = bindings()
    if device == 0 and int(checked(driver.cuCtxGetCurrent())) == 0:
        checked(driver.cuCtxSetCurrent(_context(device)))


@functools.cache
def _context(device: int) -> Any:
    driver = bindings()
    return checked(driver.cuDevicePrimaryCtxRetain(checked(driver.cuDeviceGet(device))))


def torch_on_gpu() -> Any | None:
    """The module torch where it has used the GPU; None as well while another thread imports it."""
    torch = sys.modules.get("torch")
    is_initialized = getattr(getattr(torch, "cuda", None), "is_initialized", bool)
    return torch if is_initialized() else None


def stream_source(libraries: Collection[str] = ()) -> Callable[[int], int]:
    """A function from a device to the stream that the caller's library uses now, as quick as it can be had.

    `libraries` are those that the arrays of a launch come from; CuPy's stream goes before torch's if torch is not among them.
    """
    torch = torch_on_gpu()
    only_cupy = "cupy" in libraries and "torch" not in libraries and sys.modules.get("cupy") is not None
    if torch is not None and not only_cupy:  # and remains so
        source: Callable[[int], int] = torch._C._cuda_getCurrentRawStream
        return source
    return _stream_of_cupy if only_cupy else _first_stream


def current_stream(device: int, libraries: Collection[str] = ()) -> int:
    """The stream that the caller's library uses now: torch's, else CuPy's, else the default one; see `stream_source`."""
    return int(stream_source(libraries)(device))


def _first_stream(device: int) -> int:
    """The current stream where torch had not used the GPU yet."""
    source = stream_source()
    return int(source(device)) if source is not _first_stream else _stream_of_cupy(device)


def _stream_of_cupy(device: int) -> int:
    cupy = sys.modules.get("cupy")
    return int(cupy.cuda.get_current_stream(device).ptr) if cupy is not None else 0


def load(cubin: Cubin, artifact: Artifact, device: int) -> int:
    """Loads machine code onto a device; the `CUfunction` of its kernel.

    Raises:
      OutOfResources: when the device cannot give a block what it needs.
    """
    driver, shared_bytes = bindings(), artifact.shared_bytes
    with in_context(device):
        module = checked(driver.cuModuleLoadData(cubin.code))
        function = checked(driver.cuModuleGetFunction(module, artifact.kernel_name.encode()))
        limit = int(checked(driver.cuDeviceGetAttribute(SHARED_MEMORY_OPTIN, checked(driver.cuDeviceGet(device)))))
        total = shared_bytes + cubin.static_shared_bytes
        if total > limit:
            raise OutOfResources(total, limit, "shared memory")
        if shared_bytes > STATIC_SHARED_LIMIT - cubin.static_shared_bytes:
            checked(driver.cuFuncSetAttribute(function, MAX_DYNAMIC_SHARED_SIZE, shared_bytes))
        threads = int(checked(driver.cuFuncGetAttribute(MAX_THREADS_PER_BLOCK, function)))
    if artifact.num_threads > threads:
        raise OutOfResources(artifact.num_threads, threads, "threads")
    return int(function)


def resident_blocks(function: int, artifact: Artifact, device: int) -> int:
    """How many blocks of a kernel a device can hold at once."""
    driver = bindings()
    with in_context(device):
        count = int(checked(driver.cuDeviceGetAttribute(MULTIPROCESSOR_COUNT, checked(driver.cuDeviceGet(device)))))
        each = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, artifact.num_threads, artifact.shared_bytes)
        return count * max(int(checked(each)), 1)
