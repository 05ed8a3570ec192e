"""What tuning and timing ask about the GPU in use."""

from __future__ import annotations

import functools
import sys

from tilewright.runtime.driver import bindings, checked, current_stream, in_context


def current_device() -> int:
    """The device that the caller's library uses now."""
    driver = bindings()
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        return int(torch.cuda.current_device())
    return int(checked(driver.cuCtxGetDevice())) if int(checked(driver.cuCtxGetCurrent())) else 0


def is_capturing(device: int) -> bool:
    """Whether the current stream's work goes into a CUDA graph."""
    driver = bindings()
    with in_context(device):
        status, state = driver.cuStreamIsCapturing(current_stream(device))
    return int(status) != 0 or int(state) != int(driver.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE)


@functools.cache
def device_name(device: int) -> str:
    """Name and number of multiprocessors of a device; parts of a divided GPU differ in the number."""
    driver = bindings()
    handle = checked(driver.cuDeviceGet(device))
    name = bytes(checked(driver.cuDeviceGetName(128, handle))).split(b"\0")[0].decode(errors="replace")
    attribute = driver.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
    return f"{name}, {int(checked(driver.cuDeviceGetAttribute(attribute, handle)))} multiprocessors"
