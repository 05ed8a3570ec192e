"""How many blocks a launch starts, where blocks run several programs one after another."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterator

Grid = tuple[int, int, int]


def started(grid: Grid, axes: int, resident: int, turns: bool = False) -> tuple[Grid, tuple[int, ...]]:
    """The blocks to start on a device that holds `resident` at once, and how many programs lie along each of `axes` axes.

    Those that take `turns` at the programs of all these axes lie along x.

    Raises:
      TypeError: when the grid is not of integers.
    """
    if turns:
        return in_turns(grid, axes, resident), grid[:axes]
    x, y, z = grid
    if axes == 1:
        return (blocks_along_x(operator.index(x), y * z, resident), y, z), (x,)
    if axes == 2:
        x, y, _ = boxes((operator.index(x), operator.index(y), 1), resident // z)
        return (x, y, z), grid[:2]
    return boxes((operator.index(x), operator.index(y), operator.index(z)), resident), grid


def in_turns(grid: Grid, axes: int, resident: int) -> Grid:
    """As many blocks along x as the device holds at once, to take turns at the programs that lie along some axes."""
    x, y, z = map(operator.index, grid)
    most = max(resident // math.prod((x, y, z)[axes:]), 1)
    return min(math.prod((x, y, z)[:axes]), most), 1 if axes > 1 else y, 1 if axes > 2 else z


def blocks_along_x(programs: int, others: int, resident: int) -> int:
    """Blocks along x of a kernel whose blocks run several programs along x, for a grid of `programs` times `others`.

    As many as the device holds at once (`resident`), unless programs one by one would take fewer rounds: all blocks run the
    programs of one place along the other axes, so that some multiprocessors may have no block, or fewer programs than others.
    """
    most = resident // others
    if most and -(-programs // most) <= -(-programs * others // resident):
        return min(programs, most)
    return programs


@functools.lru_cache(maxsize=4096)
def boxes(grid: Grid, resident: int) -> Grid:
    """Blocks along each axis, for blocks that run every n-th program along each.

    As few rounds as can be, and of such numbers of blocks those that read the least at a time: x and y are taken to be rows
    and columns of products, z to count these. Programs one by one, where that takes more than an eighth fewer rounds.
    """
    if not resident:
        return grid
    fewest = -(-math.prod(grid) // resident)
    best = fewest + fewest // 8, 0, grid
    for x in _even(grid[0], resident):
        for y in _even(grid[1], resident // x):
            z = _evenly(grid[2], resident // (x * y))
            rounds = math.prod(-(-side // blocks) for side, blocks in zip(grid, (x, y, z), strict=True))
            if rounds < best[0] or (rounds == best[0] and ((x + y) * z < best[1] or not best[1])):
                best = rounds, (x + y) * z, (x, y, z)
    return best[2]


def _even(side: int, most: int) -> Iterator[int]:
    """The numbers of blocks, up to `most`, of which no smaller one takes as few rounds."""
    blocks = 0
    while blocks < min(side, most):
        blocks += 1
        if _evenly(side, blocks) == blocks:
            yield blocks


def _evenly(side: int, most: int) -> int:
    """As few blocks as take as few rounds as `most` do."""
    return -(-side // -(-side // min(side, most)))
