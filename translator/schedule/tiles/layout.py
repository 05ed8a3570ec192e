"""Who holds which element of a tile: a layout says it bit by bit.

Sides are padded to powers of two, so that an element's coordinate along an axis is a string of bits, and each bit is
chosen by one bit of the thread's index or by one bit of the register's index. `Layout.axes[a][b]` names who chooses bit
`b` of axis `a`: the thread bit's number, or `REGISTER`. Thread bits that choose nothing mean that threads hold copies.

This is the permutation case of the linear layouts of Zhou et al., arXiv 2505.23819: every column of the matrix has at
most a single one. Blocked layouts, their slices, transposes and reshapes, and mma fragments are all of this kind.

Worked example, a [16, 128] tile over 128 threads, 4 consecutive elements along the last axis for each:

  axis 1 (7 bits): REGISTER REGISTER 0 1 2 3 4    column = thread % 32 * 4 + register % 4
  axis 0 (4 bits): 5 6 REGISTER REGISTER          row    = register / 4 * 4 + thread / 32

Per axis the registers count on their own: a thread keeps `x[4][4]`, rows by columns.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from ...frozen import frozen
from ...hardware import LANE_BITS
from ...ir.types import padded

REGISTER = -1


def bits_of(side: int) -> int:
    """How many bits a coordinate along a side has, padding included."""
    return padded(side).bit_length() - 1


@frozen
class Layout:
    """See the module docstring. `thread_bits` is log2 of the number of threads in the block."""

    axes: tuple[tuple[int, ...], ...]
    thread_bits: int

    def __post_init__(self) -> None:
        """Rejects a layout in which one thread bit chooses two coordinate bits."""
        used = self.used_thread_bits()
        if len(used) != len(set(used)) or any(bit >= self.thread_bits for bit in used):
            raise ValueError(f"not a layout over {1 << self.thread_bits} threads: {self.axes}")

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.axes)

    def used_thread_bits(self) -> list[int]:
        """The thread bits that choose a coordinate bit."""
        return [source for axis in self.axes for source in axis if source != REGISTER]

    def free_thread_bits(self) -> tuple[int, ...]:
        """The thread bits along which threads hold copies of the same elements."""
        used = set(self.used_thread_bits())
        return tuple(bit for bit in range(self.thread_bits) if bit not in used)

    def registers(self, axis: int) -> int:
        """How many coordinates along `axis` one thread holds."""
        return 1 << self.axes[axis].count(REGISTER)

    @property
    def num_registers(self) -> int:
        """Elements of the tile that a thread holds."""
        return math.prod(self.register_shape())

    def register_shape(self) -> tuple[int, ...]:
        """Registers along each axis: the shape of a thread's part of the tile."""
        return tuple(self.registers(axis) for axis in range(self.rank))

    def array_axes(self) -> tuple[int, ...]:
        """The axes of a thread's register array, outermost first: those with several registers.

        The last is the one along which neighbouring threads continue a thread's run, be it in the row after, otherwise the one
        with the longest run: what lies side by side in memory then does so in the array as well.
        """
        axes = [axis for axis in range(self.rank) if self.registers(axis) > 1]

        def rank(axis: int) -> tuple[bool, int, int]:
            run = self.run(axis)
            rows = next((bits for bits in reversed(self.axes[:axis]) if bits), ())
            behind = (self.axes[axis] + rows)[run.bit_length() - 1 :]
            return run > 1 and behind[:1] == (0,), run, axis

        innermost = max(axes, key=rank, default=0)
        return (*(axis for axis in axes if axis != innermost), innermost) if axes else ()

    def vector(self, axis: int) -> int:
        """How many consecutive coordinates along `axis` lie side by side in a thread's array."""
        return self.run(axis) if axis in self.array_axes()[-1:] else 1

    def run(self, axis: int) -> int:
        """How many consecutive coordinates along `axis` lie in consecutive registers of one thread."""
        length = 0
        for source in self.axes[axis]:
            if source != REGISTER:
                break
            length += 1
        return 1 << length


def blocked(
    shape: tuple[int, ...],
    num_threads: int,
    fast_axis: int,
    run: int,
    other_runs: Mapping[int, int] | None = None,
    distances: Mapping[int, float] | None = None,
    reduced: Collection[int] = (),
) -> Layout:
    """Threads side by side along `fast_axis`, `run` consecutive elements each, then along the other axes, last first.

    Those come first whose neighbours lie at the least of the known `distances` from each other.
    `other_runs` are the consecutive elements of a thread along other axes. What the threads cannot cover at once goes into
    further registers; threads that find nothing left hold copies. An axis that is `reduced` leaves the warps to those behind
    it, so that a warp has all that makes a result.
    """
    runs = {**(other_runs or {}), fast_axis: run}
    thread_bits = int(math.log2(num_threads))
    others = [axis for axis in reversed(range(len(shape))) if axis != fast_axis]
    order = [fast_axis, *sorted(others, key=lambda axis: (distances or {}).get(axis, math.inf))]
    axes: list[tuple[int, ...]] = [()] * len(shape)
    next_bit, warp_bits = 0, max(thread_bits - LANE_BITS, 0)
    vectors = [min(bits_of(runs.get(axis, 1)), bits_of(side)) for axis, side in enumerate(shape)]
    for place, axis in enumerate(order):
        total, vector = bits_of(shape[axis]), vectors[axis]
        kept = sum(bits_of(shape[other]) - vectors[other] for other in order[place + 1 :] if other not in reduced)
        left = thread_bits - next_bit - (min(kept, warp_bits) if axis in reduced else 0)
        threads = min(total - vector, max(left, 0))
        rest = total - vector - threads
        axes[axis] = (REGISTER,) * vector + tuple(range(next_bit, next_bit + threads)) + (REGISTER,) * rest
        next_bit += threads
    return Layout(tuple(axes), thread_bits)


def drop_axis(layout: Layout, axis: int) -> Layout:
    """The layout of a tile's reduction over `axis`: threads that differed only along it now hold copies."""
    return Layout(layout.axes[:axis] + layout.axes[axis + 1 :], layout.thread_bits)


def elements(layout: Layout, thread: int) -> list[tuple[int, ...]]:
    """Coordinates that one thread holds, in register order (last axis fastest): the layout by enumeration, for tests."""
    per_axis = []
    for axis in layout.axes:
        coordinates = []
        for register in range(1 << axis.count(REGISTER)):
            coordinate, taken = 0, 0
            for bit, source in enumerate(axis):
                if source == REGISTER:
                    value, taken = register >> taken & 1, taken + 1
                else:
                    value = thread >> source & 1
                coordinate |= value << bit
            coordinates.append(coordinate)
        per_axis.append(coordinates)
    result: list[tuple[int, ...]] = [()]
    for coordinates in per_axis:
        result = [(*head, coordinate) for head in result for coordinate in coordinates]
    return result
