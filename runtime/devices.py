"""What tuning and timing ask about the GPU in use."""

from __future__ import annotations

import ctypes
import functools

from tilewright.runtime.driver import bindings, checked, current_stream, in_context, torch_on_gpu
from tilewright.runtime.driver_library import CAPTURE_NONE, MULTIPROCESSOR_COUNT


def current_device() -> int:
    """The device that the caller's library uses now."""
    driver = bindings()
    torch = torch_on_gpu()
    if torch is not None:
        return int(torch.cuda.current_device())
    return int(checked(driver.cuCtxGetDevice())) if int(checked(driver.cuCtxGetCurrent())) else 0


def is_capturing(device: int) -> bool:
    """Whether the current stream's work goes into a CUDA graph."""
    driver = bindings()
    with in_context(device):
        status, state = driver.cuStreamIsCapturing(current_stream(device))
    return int(status) != 0 or int(state) != CAPTURE_NONE


def devices_differ() -> bool:
    """Whether this process sees GPUs of several kinds; False before it has used one."""
    return bool(bindings.cache_info().currsize) and _kinds() > 1


@functools.cache
def _kinds() -> int:
    return len({device_name(number) for number in range(int(checked(bindings().cuDeviceGetCount())))})


@functools.cache
def device_name(device: int) -> str:
    """Name and number of multiprocessors of a device; parts of a divided GPU differ in the number."""
    driver = bindings()
    handle = checked(driver.cuDeviceGet(device))
    name = ctypes.create_string_buffer(128)
    checked(driver.cuDeviceGetName(name, len(name), handle))
    return f"{name.value.decode(errors='replace')}, {multiprocessors(device)} multiprocessors"


@functools.cache
def multiprocessors(device: int) -> int:
    """How many a device has."""
    driver = bindings()
    return int(checked(driver.cuDeviceGetAttribute(MULTIPROCESSOR_COUNT, checked(driver.cuDeviceGet(device)))))
