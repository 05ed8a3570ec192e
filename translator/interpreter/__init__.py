"""Runs kernels in Python, program by program, with NumPy semantics: the third way to run, and the oracle of the others.

Independent of the frontend and of everything after it: the kernel's own function is executed. Only what type a number has
that is returned beside values is the frontend's to say (`returned.py`).
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
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
    """Runs every program of a grid.

    Args:
      function: the kernel.
      grid: the numbers of programs along the axes; the first runs fastest.
      values: the arguments by parameter name: tiles, tuples of them, compile-time values.
      buffers: the memory that pointers may reach; a buffer that is named after a pointer is all that it may reach.
      options: those of the launch.

    Raises:
      CompilationError: for what is wrong with the kernel, at its line.
      KernelFaultError: on an access out of bounds or a failed assertion.
    """
    import inspect

    from ..diagnostics import CompilationError
    from ..language.builtin import active
    from .builtins import call_builtin
    from .memory import Memory
    from .places import PYTHON_ERRORS, placed
    from .program import Program, running

    by_name = {buffer.name: buffer for buffer in buffers}
    given = inspect.BoundArguments(inspect.signature(function.fn), OrderedDict())
    given.arguments.update({name: _with_origin(name, value, by_name) for name, value in values.items()})
    memory = Memory(buffers)
    installed = active.set(call_builtin)
    launched = running.set(Program(memory, grid, options))
    try:
        python = _python(function)
        for z, y, x in itertools.product(range(grid[2]), range(grid[1]), range(grid[0])):
            memory.program = (x, y, z)
            python(*given.args, **given.kwargs)
    except CompilationError as error:
        raise placed(error)
    except PYTHON_ERRORS as error:
        raise placed(error) from error
    finally:
        active.reset(installed)
        running.reset(launched)


def call_inside(function: KernelFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A jit function called from a kernel that runs in the interpreter.

    Raises:
      ArgumentError: when the arguments do not fit its parameters.
    """
    import inspect

    from ..diagnostics import ArgumentError
    from ..language.builtin import without_annotations
    from ..language.hints import unfitting
    from .returned import typed_result
    from .support import rebound

    signature = inspect.signature(function.fn)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        name = function.__name__
        remedy = unfitting(name, without_annotations(signature), kwargs)
        raise ArgumentError(f"{name}: {error}", None, remedy) from None
    bound.apply_defaults()
    for parameter in function.params:
        if parameter.is_constexpr:
            bound.arguments[parameter.name] = rebound(bound.arguments[parameter.name])
    given = dict(bound.arguments)
    return typed_result(function, given, _python(function)(*bound.args, **bound.kwargs))


def _python(function: KernelFunction) -> Any:
    """The function as Python that runs on tiles, made once a launch."""
    from . import support
    from .program import running
    from .rewrite import python_function

    functions = running.get().functions
    if function not in functions:
        functions[function] = python_function(function, support)
    return functions[function]


def _with_origin(name: str, value: Any, by_name: dict[str, Buffer]) -> Any:
    """An argument whose pointers know the array that they may not leave."""
    from .blocks import Descriptor
    from .tile import Tile

    if isinstance(value, Descriptor):
        base = _with_origin(name, value.base, by_name)
        return Descriptor(base, value.sides, value.steps, value.block_shape, value.padding, value.rounds_to_tf32)
    if isinstance(value, Tile) and name in by_name:
        return Tile(value.values, value.element, by_name[name])
    if isinstance(value, tuple):
        items = [_with_origin(f"{name}[{number}]", item, by_name) for number, item in enumerate(value)]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value
