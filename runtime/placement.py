"""Where a launch runs: in which mode, on which device, and for which architecture its text is written."""

from __future__ import annotations

import os

from tilewright.artifact import Target
from tilewright.diagnostics import (
    ArgumentKindError,
    DeviceError,
    LaunchError,
    TilewrightError,
)
from tilewright.runtime import driver
from tilewright.runtime.arguments.arrays import HOST, NOWHERE
from tilewright.runtime.arguments.specialise import Call
from tilewright.runtime.devices import current_device
from tilewright.runtime.environment import is_on
from tilewright.schedule.targets import find_target

MODES = ("gpu", "cpu", "check", "interpret")
HOST_TARGET = "sm_90a"


def check_memory(call: Call) -> None:
    """Rejects a launch on what only stands for arrays.

    Raises:
      ArgumentKindError: names the first.
    """
    for name, array in call.arrays:
        if array.device == NOWHERE:
            raise ArgumentKindError(f"argument {name} is a MockTensor, which has no memory: only warmup takes it")


def device_of(call: Call) -> int:
    """The device that all arrays lie on; without arrays, or where types stand for all of them, the present one, if there is one.

    Raises:
      DeviceError: when they lie on several.
    """
    places = {array.device: name for name, array in call.arrays if array.device != NOWHERE}
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


def choose_mode(call: Call) -> str:
    """Where to run: as TILEWRIGHT_MODE says, or where the arrays lie.

    Raises:
      LaunchError: for an unknown mode.
      DeviceError: when the arrays lie where the mode cannot reach them.
    """
    wanted = wanted_mode()
    device = device_of(call)
    if device == HOST and wanted == "gpu" and call.arrays:
        raise DeviceError("TILEWRIGHT_MODE=gpu needs arrays on a GPU; these lie on the CPU")
    if device != HOST and wanted in ("cpu", "check", "interpret"):
        raise DeviceError(f"TILEWRIGHT_MODE={wanted} needs arrays on the CPU; these lie on cuda:{device}: pass x.cpu()")
    if wanted:
        return wanted
    if device != HOST:
        return "gpu"
    from tilewright.runtime.cpu import has_compiler

    return "cpu" if has_compiler() else "interpret"


def target_of(mode: str, device: int) -> Target:
    """The architecture that the text is written for: $TILEWRIGHT_ARCH, or the device's."""
    named = os.environ.get("TILEWRIGHT_ARCH")
    if named or mode != "gpu":
        return find_target(named or HOST_TARGET)
    return device_target(device)


def device_target(device: int) -> Target:
    """The architecture that machine code for a device is made for."""
    from tilewright.runtime.driver import capability

    major, minor = capability(max(device, 0))
    try:
        return find_target(f"sm_{major}{minor}")
    except TilewrightError:
        return find_target("sm_80") if major == 8 else find_target(f"sm_{major}0")
