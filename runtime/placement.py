"""Where a launch runs: in which mode, on which device, and for which architecture its text is written."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tilewright.artifact import Target
from tilewright.diagnostics import (
    ArgumentKindError,
    DeviceError,
    LaunchError,
    TilewrightError,
)
from tilewright.frozen import frozen
from tilewright.runtime import driver
from tilewright.runtime.arguments.arrays import HOST, NOWHERE, Array
from tilewright.runtime.devices import current_device
from tilewright.runtime.environment import is_on
from tilewright.schedule.targets import find_target

MODES = ("gpu", "cpu", "check", "interpret")
HOST_TARGET = "sm_90a"
Arrays = Sequence[tuple[str, Array]]  # by the names of the arguments that they are, or are part of


@frozen
class Placement:
    """Where a launch runs: in which of `MODES`, on which device, which is `HOST` in all modes but "gpu"."""

    mode: str
    device: int

    @property
    def backend(self) -> str:
        """The mode as tools of Triton's know it."""
        return "cuda" if self.mode == "gpu" else "cpu"

    def target(self) -> Target:
        """The architecture that the text is written for: $TILEWRIGHT_ARCH, or the device's."""
        named = os.environ.get("TILEWRIGHT_ARCH")
        if named or self.mode != "gpu":
            return find_target(named or HOST_TARGET)
        return device_target(self.device)


ON_HOST = Placement("cpu", HOST)


def check_memory(arrays: Arrays) -> None:
    """Rejects a launch on what only stands for arrays.

    Raises:
      ArgumentKindError: names the first.
    """
    for name, array in arrays:
        if array.device == NOWHERE:
            raise ArgumentKindError(f"argument {name} is a MockTensor, which has no memory: only warmup takes it")


def device_of(arrays: Arrays) -> int:
    """The device that all arrays lie on; without arrays, or where types stand for all of them, the present one, if there is one.

    Raises:
      DeviceError: when they lie on several.
    """
    places = {array.device: name for name, array in arrays if array.device != NOWHERE}
    if not places and wanted_mode() in ("", "gpu") and driver.is_available():
        return current_device()
    if len(places) > 1:
        listed = ", ".join(
            f"{name} on {'the CPU' if device == HOST else f'cuda:{device}'}" for device, name in places.items()
        )
        raise DeviceError(f"all arrays must lie on one device: {listed}; move them, as with x.to('cuda')")
    return next(iter(places), HOST)


def wanted_mode() -> str:
    """The mode that the environment asks for; empty when it does not.

    Raises:
      LaunchError: for an unknown one.
    """
    wanted = os.environ.get("TILEWRIGHT_MODE", "")
    if is_on("TRITON_INTERPRET") and not wanted:
        wanted = "interpret"
    if wanted and wanted not in MODES:
        raise LaunchError(f"TILEWRIGHT_MODE is {wanted!r}; it must be one of {', '.join(MODES)}")
    return wanted


def placement_of(arrays: Arrays) -> Placement:
    """Where a launch on some arrays runs: as TILEWRIGHT_MODE says, or where they lie.

    Raises:
      LaunchError: for an unknown mode.
      DeviceError: when the arrays lie where the mode cannot reach them.
    """
    wanted = wanted_mode()
    device = device_of(arrays)
    if device == HOST and wanted == "gpu" and arrays:
        raise DeviceError("TILEWRIGHT_MODE=gpu needs arrays on a GPU; these lie on the CPU")
    if device != HOST and wanted in ("cpu", "check", "interpret"):
        raise DeviceError(f"TILEWRIGHT_MODE={wanted} needs arrays on the CPU; these lie on cuda:{device}: pass x.cpu()")
    if wanted:
        return Placement(wanted, device)
    if device != HOST:
        return Placement("gpu", device)
    from tilewright.runtime.cpu import has_compiler

    return ON_HOST if has_compiler() else Placement("interpret", HOST)


def placement_here() -> Placement:
    """Where that runs which is compiled without arguments: on the current GPU, or else on the host.

    Raises:
      LaunchError: in the interpreter.
    """
    mode = wanted_mode() or ("gpu" if driver.is_available() else "cpu")
    if mode == "interpret":
        raise LaunchError("nothing is compiled with TILEWRIGHT_MODE=interpret")
    return Placement(mode, current_device() if mode == "gpu" else HOST)


def device_target(device: int) -> Target:
    """The architecture that machine code for a device is made for."""
    from tilewright.runtime.driver import capability

    major, minor = capability(max(device, 0))
    try:
        return find_target(f"sm_{major}{minor}")
    except TilewrightError:
        return find_target("sm_80") if major == 8 else find_target(f"sm_{major}0")
