"""The options of a launch: what they are called, what they may be, and what the environment says of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

from tilewright.absent import closest
from tilewright.artifact import Options
from tilewright.diagnostics import (
    LaunchError,
    OptionError,
    OutOfResources,
    UnknownArgumentError,
)
from tilewright.hardware import MOST_OF_THREAD, MOST_THREADS_OF_BLOCK, WARP_SIZE
from tilewright.language.constexpr import plain, unwrap
from tilewright.runtime.environment import is_on

F32_DEFAULT = "TRITON_F32_DEFAULT"
OPTION_NAMES = frozenset(field.name for field in fields(Options))
SWITCHES = tuple(field.name for field in fields(Options) if type(field.default) is bool)
# Options of Triton's that change nothing here: device libraries are CUDA's own and flush nothing to zero, and a warp has 32
# threads.
WITHOUT_EFFECT = frozenset(("extern_libs", "warp_size", "instrumentation_mode", "enable_reflect_ftz"))
ACCEPTED = OPTION_NAMES | WITHOUT_EFFECT | {"stream", "arch", "ir_override"}


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
    if os.environ.get(F32_DEFAULT):
        values.setdefault("default_dot_input_precision", _default_precision())
    if not is_on("TRITON_DEFAULT_FP_FUSION", default=True):
        values.setdefault("enable_fp_fusion", False)
    options = Options(**values)
    check_options(options)
    return options


def _default_precision() -> str:
    """What $TRITON_F32_DEFAULT says.

    Raises:
      OptionError: when it is none of the precisions that dots have.
    """
    from tilewright.ops.dots import PRECISIONS

    wanted = os.environ[F32_DEFAULT]
    if wanted not in PRECISIONS:
        raise OptionError(f"{F32_DEFAULT} is {wanted!r}; it must be one of {', '.join(PRECISIONS)}")
    return wanted


def check_unset(given: dict[str, Any]) -> None:
    """Takes Triton's options `arch`, `ir_override` and `warp_size` while they choose nothing.

    Raises:
      OptionError: for warps of other than 32 threads.
      LaunchError: for an architecture, which kernels here do not choose one by one, or for a file with another kernel.
    """
    threads = unwrap(given.get("warp_size"))
    if threads not in (None, WARP_SIZE):
        raise OptionError(f"warp_size must be {WARP_SIZE}, as CUDA's warps have it, not {threads!r}").of("warp_size")
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
        raise OptionError(f"num_warps must be a power of 2, not {options.num_warps!r}").of("num_warps")
    if type(options.num_stages) is not int or options.num_stages < 0:
        raise OptionError(f"num_stages must be an integer that is not negative, not {options.num_stages!r}").of(
            "num_stages"
        )
    if options.maxnreg is not None and (type(options.maxnreg) is not int or not 1 <= options.maxnreg <= MOST_OF_THREAD):
        raise OptionError(f"maxnreg must be None or an integer from 1 to {MOST_OF_THREAD}, not {options.maxnreg!r}").of(
            "maxnreg"
        )
    if type(options.num_ctas) is not int or options.num_ctas < 1:
        raise OptionError(f"num_ctas must be a positive integer, not {options.num_ctas!r}").of("num_ctas")
    for name in SWITCHES:
        if type(getattr(options, name)) is not bool:
            raise OptionError(f"{name} must be True or False, not {getattr(options, name)!r}").of(name)
    if options.num_warps * WARP_SIZE > MOST_THREADS_OF_BLOCK:
        raise OutOfResources(options.num_warps * WARP_SIZE, MOST_THREADS_OF_BLOCK, "threads").of("num_warps")


def unrecognised(
    name: str, known: Iterable[str], kernel: str = "", parameters: Sequence[str] = ()
) -> UnknownArgumentError:
    """Triton's error for a keyword that neither the kernel nor the options have, passed by a launch, config or heuristic."""
    meant = closest(name, (*known, *parameters))
    hint = f"; did you mean {meant}?" if meant else ""
    takes = f" {kernel} has the parameters {', '.join(parameters)}" if parameters else ""
    return UnknownArgumentError(
        f"Keyword argument {name} was specified but unrecognised{hint or ';' * bool(takes)}{takes}"
    ).of(name)
