"""The grid that a launch starts, where blocks run several programs one after another."""

from __future__ import annotations

import operator

from tilewright.artifact import MOST_PROGRAMS
from tilewright.diagnostics import GridError

Grid = tuple[int, int, int]


def in_a_row(grid: Grid, axes: int) -> tuple[Grid, tuple[int, ...]]:
    """A grid with the programs of its first `axes` axes along x, and how many there are along each of these.

    Raises:
      GridError: where they are too many to be counted.
      TypeError: when the grid is not of integers.
    """
    x, y, z = grid
    if axes == 1:
        operator.index(x)
        return grid, (x,)
    programs = operator.index(x * y if axes == 2 else x * y * z)
    if programs > MOST_PROGRAMS:
        raise GridError(
            f"the grid {grid} has {programs} programs; a kernel whose blocks run several of them takes {MOST_PROGRAMS}"
        )
    return ((programs, 1, z), (x, y)) if axes == 2 else ((programs, 1, 1), grid)


def started(grid: Grid, axes: int, resident: int) -> tuple[Grid, tuple[int, ...]]:
    """The blocks to start on a device that holds `resident` at once, for programs along `axes` axes, and the latter's sides.

    Raises:
      GridError, TypeError: as `in_a_row`.
    """
    (programs, y, z), counts = in_a_row(grid, axes)
    return (blocks_along_x(programs, y * z, resident), y, z), counts


def blocks_along_x(programs: int, others: int, resident: int) -> int:
    """Blocks along x of a kernel whose blocks run several programs along x, for a grid of `programs` times `others`.

    As many as the device holds at once (`resident`), unless programs one by one would take fewer rounds: all blocks run the
    programs of one place along the other axes, so that some multiprocessors may have no block, or fewer programs than others.
    """
    most = resident // others
    if most and -(-programs // most) <= -(-programs * others // resident):
        return min(programs, most)
    return programs
