"""What a launch's surroundings decide: its options, its grid, the mode, the device and the target."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import Any

from tilewright.artifact import Options, Target
from tilewright.diagnostics import (
    ArgumentKindError,
    CooperativeGridError,
    DeviceError,
    GridError,
    LaunchError,
    OptionError,
    OutOfResources,
    TilewrightError,
    UnknownArgumentError,
)
from tilewright.hardware import MOST_OF_THREAD, MOST_THREADS_OF_BLOCK, WARP_SIZE
from tilewright.language.constexpr import plain, unwrap
from tilewright.language.hints import shown as in_words
from tilewright.runtime import driver
from tilewright.runtime.arguments.arrays import HOST, NOWHERE
from tilewright.runtime.arguments.specialise import Call
from tilewright.runtime.devices import current_device
from tilewright.runtime.environment import is_on
from tilewright.schedule.targets import find_target

MODES = ("gpu", "cpu", "check", "interpret")
OPTION_NAMES = frozenset(field.name for field in fields(Options))
SWITCHES = tuple(field.name for field in fields(Options) if type(field.default) is bool)
# Options of Triton's that change nothing here: device libraries are CUDA's own and flush nothing to zero, and a warp has 32
# threads.
WITHOUT_EFFECT = frozenset(("extern_libs", "warp_size", "instrumentation_mode", "enable_reflect_ftz"))
ACCEPTED = OPTION_NAMES | WITHOUT_EFFECT | {"stream", "arch", "ir_override"}
HOST_TARGET = "sm_90a"
MOST_PROGRAMS = (2**31 - 1, 65535, 65535)  # along each axis


def make_options(given: dict[str, Any], debug: bool | None = None) -> Options:
    """Options of a launch.

    Raises:
      OptionError: for values that no kernel can have.
    """
    unknown = sorted(set(given) - OPTION_NAMES)
    if unknown:
        raise unrecognised(unknown[0], OPTION_NAMES)
    values = {name: plain(getattr(value, "value", value)) for name, value in given.items()}
    if debug:
        values.setdefault("debug", True)
    if is_on("TRITON_DEBUG"):
        values["debug"] = True  # as in Triton, also where a launch says debug=False
    if os.environ.get("TRITON_F32_DEFAULT"):
        values.setdefault("default_dot_input_precision", os.environ["TRITON_F32_DEFAULT"])
    if not is_on("TRITON_DEFAULT_FP_FUSION", default=True):
        values.setdefault("enable_fp_fusion", False)
    options = Options(**values)
    check_options(options)
    return options


def check_unset(given: dict[str, Any]) -> None:
    """Takes Triton's options `arch`, `ir_override` and `warp_size` while they choose nothing.

    Raises:
      OptionError: for warps of other than 32 threads.
      LaunchError: for an architecture, which kernels here do not choose one by one, or for a file with another kernel.
    """
    threads = unwrap(given.get("warp_size"))
    if threads not in (None, WARP_SIZE):
        raise OptionError(f"warp_size must be {WARP_SIZE}, as CUDA's warps have it, not {threads!r}")
    arch, file = unwrap(given.get("arch")), unwrap(given.get("ir_override"))
    if arch is not None:
        raise LaunchError(
            f"a launch cannot choose its architecture (arch={arch!r}): TILEWRIGHT_ARCH does, for all kernels"
        )
    if file is not None:
        raise LaunchError(
            f"ir_override={file!r} would have Triton run a file of its intermediate forms in place of the kernel; there are "
            "none here: change the kernel's Python"
        )


def check_options(options: Options) -> None:
    """Rejects values that no kernel can have.

    Raises:
      OptionError: for such a value.
      OutOfResources: for more warps than a block can have.
    """
    if type(options.num_warps) is not int or options.num_warps < 1 or options.num_warps & (options.num_warps - 1):
        raise OptionError(f"num_warps must be a power of 2, not {options.num_warps!r}")
    if type(options.num_stages) is not int or options.num_stages < 0:
        raise OptionError(f"num_stages must be an integer that is not negative, not {options.num_stages!r}")
    if options.maxnreg is not None and (type(options.maxnreg) is not int or not 1 <= options.maxnreg <= MOST_OF_THREAD):
        raise OptionError(f"maxnreg must be None or an integer from 1 to {MOST_OF_THREAD}, not {options.maxnreg!r}")
    if type(options.num_ctas) is not int or options.num_ctas < 1:
        raise OptionError(f"num_ctas must be a positive integer, not {options.num_ctas!r}")
    for name in SWITCHES:
        if type(getattr(options, name)) is not bool:
            raise OptionError(f"{name} must be True or False, not {getattr(options, name)!r}")
    if options.num_warps * WARP_SIZE > MOST_THREADS_OF_BLOCK:
        raise OutOfResources(options.num_warps * WARP_SIZE, MOST_THREADS_OF_BLOCK, "threads")


def unrecognised(
    name: str, known: Iterable[str], kernel: str = "", parameters: Sequence[str] = ()
) -> UnknownArgumentError:
    """Triton's error for a keyword that neither the kernel nor the options have, passed by a launch, config or heuristic."""
    import difflib

    spelled = {one.lower(): one for one in (*known, *parameters)}
    close = difflib.get_close_matches(name.lower(), list(spelled), n=1)
    hint = f"; did you mean {spelled[close[0]]}?" if close else ""
    takes = f" {kernel} has the parameters {', '.join(parameters)}" if parameters else ""
    return UnknownArgumentError(
        f"Keyword argument {name} was specified but unrecognised{hint or ';' * bool(takes)}{takes}"
    )


def grid_sizes(grid: Any, bound: dict[str, Any]) -> tuple[int, int, int]:
    """The numbers of programs along the three axes.

    Raises:
      GridError: when the grid is not one to three non-negative integers.
    """
    shown = called(grid, bound) if callable(grid) else grid
    sizes = tuple(shown) if isinstance(shown, (tuple, list)) else (shown,)
    try:
        numbers = [int(size.__index__()) for size in sizes]
    except (AttributeError, TypeError):  # of arrays only those of one number are indices
        raise GridError(
            f"the grid must be integers, got {in_words(shown)}; divide with triton.cdiv, which gives an integer"
        ) from None
    if not 1 <= len(numbers) <= 3 or any(number < 0 for number in numbers):
        raise GridError(f"the grid must be one to three non-negative integers, got {shown!r}")
    for axis, (number, limit) in enumerate(zip(numbers, MOST_PROGRAMS, strict=False)):
        if number > limit:
            raise GridError(f"the grid's axis {axis} has {number} programs; the hardware takes {limit}")
    x, y, z = (*numbers, *(1,) * (3 - len(numbers)))
    return x, y, z


def called(grid: Callable[..., Any], bound: dict[str, Any]) -> Any:
    """What a grid that is a function gives for the launch's arguments.

    Raises:
      GridError: when it does not take them.
    """
    try:
        return grid(bound)
    except TypeError as error:
        if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
            raise  # from inside of it
        raise GridError(f"the grid is a function of the dict of all arguments, as lambda meta: (…,): {error}") from None


def check_can_wait(options: Options, sizes: tuple[int, int, int]) -> None:
    """Rejects, where programs run one after another, a launch whose programs may wait for each other.

    Raises:
      CooperativeGridError: for a cooperative grid of several programs.
    """
    x, y, z = sizes
    if options.launch_cooperative_grid and x * y * z > 1:
        raise CooperativeGridError(
            f"a cooperative grid of {x * y * z} programs needs a GPU: on the host programs run one after another, and one that "
            "waits for another would wait for ever; launch one program, or without launch_cooperative_grid if none waits"
        )


def check_memory(call: Call) -> None:
    """Rejects a launch on what only stands for arrays.

    Raises:
      ArgumentKindError: names the first.
    """
    for name, array in call.arrays:
        if array.device == NOWHERE:
            raise ArgumentKindError(f"argument {name} is a MockTensor, which has no memory: only warmup takes it")


def device_of(call: Call) -> int:
    """The device that all arrays lie on; `HOST` without arrays, the present one where types stand for all of them.

    Raises:
      DeviceError: when they lie on several.
    """
    places = {array.device: name for name, array in call.arrays if array.device != NOWHERE}
    if call.arrays and not places and wanted_mode() in ("", "gpu") and driver.is_available():
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
