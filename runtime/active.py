"""`triton.runtime.driver.active`: what programs ask about the GPU in use, or about the host where there is none.

On a host without a GPU the backend is "cpu": libraries take its name for the place of tensors and ask `torch.cuda` for more
if it is "cuda". Kernels run there as the text for some target; limits and capability are those of that target.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from tilewright.absent import absent
from tilewright.diagnostics import LaunchError
from tilewright.hardware import REGISTER_FILE, WARP_SIZE
from tilewright.language.targets import GPUTarget
from tilewright.runtime import driver
from tilewright.runtime.devices import current_device
from tilewright.runtime.driver_library import PROPERTIES
from tilewright.runtime.placement import ON_HOST

CACHE_BYTES = 256 << 20  # more than any GPU's L2 holds


class DeviceUtilities:
    """`driver.active.utils`."""

    def get_device_properties(self, device: int) -> dict[str, int]:
        """Limits and sizes of a device: bytes of shared memory, registers, multiprocessors, lanes, kHz and bits of its bus."""
        if not driver.is_available():
            room = ON_HOST.target().max_dynamic_shared_bytes
            known = {"max_shared_mem": room, "max_num_regs": REGISTER_FILE, "warpSize": WARP_SIZE}
            return dict.fromkeys(PROPERTIES, 0) | known | {"multiprocessor_count": os.cpu_count() or 1}
        library = driver.bindings()
        handle = driver.checked(library.cuDeviceGet(int(device or 0)))
        return {
            name: int(driver.checked(library.cuDeviceGetAttribute(number, handle)))
            for name, number in PROPERTIES.items()
        }

    def __getattr__(self, name: str) -> Any:
        if name.endswith("_tma_descriptor"):
            raise AttributeError(
                f"driver.active.utils has no {name!r}, which Triton has taken out: pass a "
                "triton.tools.tensor_descriptor.TensorDescriptor to the kernel"
            )
        raise absent("triton.runtime.driver.active.utils", name, dir(self))


class ActiveDriver:
    """`driver.active`, with the methods of Triton's that programs use."""

    def __init__(self) -> None:
        """Asks nothing yet."""
        self.utils = DeviceUtilities()

    def __getattr__(self, name: str) -> Any:
        raise absent("triton.runtime.driver.active", name, dir(self))

    def get_current_target(self) -> GPUTarget:
        """The current device's target, or the host's where there is no GPU."""
        if not driver.is_available():
            return GPUTarget("cpu", ON_HOST.target().capability, 32)
        major, minor = driver.capability(current_device())
        return GPUTarget("cuda", 10 * major + minor, 32)

    def get_current_device(self) -> int:
        """The current device's number."""
        return current_device() if driver.is_available() else 0

    def set_current_device(self, device: int) -> None:
        """Makes torch use a device from now on."""
        import torch

        torch.cuda.set_device(device)

    def get_current_stream(self, device: int | None = None) -> int:
        """The stream that launches on a device go to."""
        if not driver.is_available():
            return 0
        return driver.current_stream(current_device() if device is None else device)

    def get_active_torch_device(self) -> Any:
        """Where torch's tensors should lie for kernels to run on the GPU, or on the host where there is none."""
        import torch

        return torch.device("cuda", current_device()) if driver.is_available() else torch.device("cpu")

    def get_device_interface(self) -> Any:
        """`torch.cuda`, or `torch.cpu` where there is no GPU."""
        import torch

        return torch.cuda if driver.is_available() else torch.cpu

    def get_benchmarker(self) -> Callable[..., Any]:
        """`triton.testing.do_bench`."""
        from tilewright.runtime.measuring.testing import do_bench

        return do_bench

    def get_empty_cache_for_benchmark(self) -> Any:
        """A tensor to overwrite, so that the next kernel finds nothing of its own in L2."""
        import torch

        return torch.empty(CACHE_BYTES // 4, dtype=torch.int32, device=self.get_active_torch_device())

    def clear_cache(self, cache: Any) -> None:
        """Overwrites such a tensor."""
        cache.zero_()


ACTIVE = ActiveDriver()


def set_active(driver: Any) -> None:
    """Takes the driver that is active anyway; arrays decide where a kernel runs.

    Raises:
      LaunchError: for another one.
    """
    if driver is not ACTIVE:
        raise LaunchError(
            f"tilewright has one driver, not {type(driver).__name__}: arrays decide where a kernel runs, or TILEWRIGHT_MODE"
        )


def reset_active() -> None:
    """Makes the driver active that is active anyway."""
