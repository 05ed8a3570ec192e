"""Runs kernels in Python, program by program, with NumPy semantics: the third way to run, and the oracle of the others.

Independent of the frontend and of everything after it: the kernel's own function is executed.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..artifact import Options
    from ..kernel_function import KernelFunction
    from .memory import Buffer


def run(
    function: KernelFunction,
    grid: tuple[int, int, int],
    values: dict[str, Any],
    buffers: list[Buffer],
    options: Options,
) -> None:
    """Runs every program of a grid; `values` are the arguments as tiles, `buffers` the memory that pointers may reach.

    Raises:
      KernelFaultError: on an access out of bounds or a failed assertion.
    """
    from ..language.builtin import active
    from .builtins import Program, call_builtin, program
    from .memory import Memory

    memory = Memory(buffers, function.path)
    python = _python(function)
    installed = active.set(call_builtin)
    running = program.set(Program(memory, grid, options.debug))
    try:
        for z, y, x in itertools.product(range(grid[2]), range(grid[1]), range(grid[0])):
            memory.program = (x, y, z)
            python(**values)
    finally:
        active.reset(installed)
        program.reset(running)


def call_inside(function: KernelFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A jit function called from a kernel that runs in the interpreter."""
    import inspect

    from ..language.constexpr import constexpr

    bound = inspect.signature(function.fn).bind(*args, **kwargs)
    bound.apply_defaults()
    for parameter in function.params:
        value = bound.arguments.get(parameter.name)
        if parameter.is_constexpr and not isinstance(value, constexpr):
            bound.arguments[parameter.name] = constexpr(value)
    return _python(function)(*bound.args, **bound.kwargs)


def _python(function: KernelFunction) -> Any:
    from . import support
    from .rewrite import python_function

    known = getattr(function, "_interpreted", None)
    if known is None or known[0] != function.raw_src:
        known = (function.raw_src, python_function(function, support))
        function._interpreted = known  # type: ignore[attr-defined]
    return known[1]
