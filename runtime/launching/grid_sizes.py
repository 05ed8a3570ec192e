"""The grid that a launch is given: numbers, or a function of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilewright.artifact import Options
from tilewright.diagnostics import (
    CooperativeGridError,
    GridError,
)
from tilewright.hardware import MOST_PROGRAMS
from tilewright.language.hints import shown as in_words


def grid_sizes(grid: Any, bound: dict[str, Any]) -> tuple[int, int, int]:
    """The numbers of programs along the three axes.

    Raises:
      GridError: when the grid is not one to three non-negative integers.
    """
    try:
        return _sizes(called(grid, bound) if callable(grid) else grid)
    except GridError as error:
        raise error.of("grid")


def _sizes(shown: Any) -> tuple[int, int, int]:
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
