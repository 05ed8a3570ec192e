"""How a tile gets from one layout to another: by shuffles within warps, or through shared memory without bank conflicts.

Shuffles serve where every warp holds what it needs and no lane would have to send several registers at once. Otherwise the
tile lies in shared memory in row-major order, except that the number of the bank is changed by an exclusive or with other
bits of the coordinates. Which ones follows from the two layouts: the lanes of a warp, when they write and when they read,
must meet different banks, so the coordinate bits that lanes choose must reach the bits of the bank independently.

Worked example, floats [32, 32], rows held by lanes first and columns afterwards: the lanes that read a column would all
meet one bank; with the row's number added by exclusive or to the column's, they meet 32.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...frozen import frozen
from ...hardware import ACCESS_BITS, BANK_BYTES_BITS, BANKS_BYTES_BITS, LANE_BITS, WIDEST_ONCE_BITS
from .layout import REGISTER, Layout

CoordinateBit = tuple[int, int]  # (axis, bit of the coordinate)


@frozen
class Swizzle:
    """Changes of places in shared memory: bit `target` of the coordinates is replaced by its exclusive or with `source`."""

    pairs: tuple[tuple[CoordinateBit, CoordinateBit], ...]

    def place(self, coordinates: tuple[int, ...]) -> tuple[int, ...]:
        """Where an element lies, as the coordinates of the place: the swizzle by arithmetic, for tests."""
        moved = list(coordinates)
        for (axis, bit), (source_axis, source_bit) in self.pairs:
            moved[axis] ^= (coordinates[source_axis] >> source_bit & 1) << bit
        return tuple(moved)

    def terms(self, axis: int) -> Iterator[dict[int, CoordinateBit]]:
        """What is added to the coordinate along an axis: for every term, the sources by target bit."""
        left = [(target[1], source) for target, source in self.pairs if target[0] == axis]
        while left:
            term: dict[int, CoordinateBit] = {}
            for bit, source in left:
                term.setdefault(bit, source)
            left = [(bit, source) for bit, source in left if term[bit] != source]
            yield term


def shuffles(held: Layout, wanted: Layout) -> bool:
    """Whether every thread finds each element that it wants in a lane of its own warp, in a register that all lanes agree on.

    A register must therefore stay a register, and what warps choose must be chosen by the same warps.
    """
    for before, after in zip(held.axes, wanted.axes, strict=True):
        for source, target in zip(before, after, strict=True):
            if source == REGISTER and target != REGISTER:
                return False
            if source >= LANE_BITS and target != source:
                return False
    return True


def lane_swaps(held: Layout, wanted: Layout) -> tuple[tuple[int, int, int], ...]:
    """The exchanges between two lanes each that lead from one layout to the other; none where it takes anything else.

    Returns:
      (axis, bit of the lane's number, bit of the register's number along the axis): what was chosen by one is chosen by the
      other afterwards.
    """
    found: list[tuple[int, int, int]] = []
    for axis, (before, after) in enumerate(zip(held.axes, wanted.axes, strict=True)):
        lost = [(source, bit) for bit, source in enumerate(before) if source != after[bit] and source != REGISTER]
        for lane, bit in lost:
            if lane >= LANE_BITS or after[bit] != REGISTER or lane not in after:
                return ()
            place = after[:bit].count(REGISTER)
            other = after.index(lane)
            if before[other] != REGISTER or before[:other].count(REGISTER) != place:
                return ()
            found.append((axis, lane, place))
        if sum(b != a for b, a in zip(before, after, strict=True)) != 2 * len(lost):
            return ()
    return tuple(found)


@frozen
class Passage:
    """How a tile passes through shared memory: its swizzle, and the elements along `axis` of one access at either side."""

    swizzle: Swizzle
    axis: int
    written: int
    read: int


def passage(held: Layout, wanted: Layout, itemsize: int) -> Passage:
    """The passage with the widest accesses that meet no bank twice.

    Args:
      held: in which the tile is written, as many elements at once as lie side by side in a thread's registers.
      wanted: in which it is read, likewise.
      itemsize: bytes of an element, a power of two up to 8.
    """
    axis = max((axis for axis, bits in enumerate(held.axes) if bits), default=0)
    widest = [layout.vector(axis).bit_length() - 1 for layout in (held, wanted)]
    for width in range(ACCESS_BITS - (itemsize.bit_length() - 1), 0, -1):
        widths = [min(width, own) for own in widest]
        swizzle = _swizzle(held, wanted, itemsize, widths) if max(widths) == width else None
        if swizzle is not None:
            return Passage(swizzle, axis, 1 << widths[0], 1 << widths[1])
    return Passage(exchange_swizzle(held, wanted, itemsize), axis, 1, 1)


def exchange_swizzle(held: Layout, wanted: Layout, itemsize: int) -> Swizzle:
    """The swizzle with which a warp meets no bank twice, neither when it writes in one layout nor when it reads in the other.

    Args:
      held: in which the tile is written, an element of a thread at a time.
      wanted: in which it is read.
      itemsize: bytes of an element, or of a vector that takes its place, a power of two up to 16.
    """
    swizzle = _swizzle(held, wanted, itemsize, (0, 0))
    if swizzle is None:
        raise ValueError(f"every exchange of single elements has a swizzle: {held.axes}, {wanted.axes}")
    return swizzle


def _swizzle(held: Layout, wanted: Layout, itemsize: int, widths: Sequence[int]) -> Swizzle | None:
    """The same for accesses of 2 ** `widths` elements, when writing and when reading; None where banks would be met twice."""
    item_bits = itemsize.bit_length() - 1
    flat = [(axis, bit) for axis in reversed(range(held.rank)) for bit in range(len(held.axes[axis]))]
    row = flat[: BANKS_BYTES_BITS - item_bits]
    banks = row[max(BANK_BYTES_BITS - item_bits, *widths) :]  # the elements of an access stay side by side
    at_once = [LANE_BITS - max(item_bits + width - WIDEST_ONCE_BITS, 0) for width in widths]
    chosen = [_chosen_by_lanes(layout, bits) for layout, bits in zip((held, wanted), at_once, strict=True)]
    free = [[bit for bit in banks if bit not in lanes] for lanes in chosen]
    outside = [[bit for bit in lanes if bit not in row] for lanes in chosen]
    if any(len(sources) > len(side) for side, sources in zip(free, outside, strict=True)):
        return None
    pairs: list[tuple[CoordinateBit, CoordinateBit]] = []
    both = [bit for bit in outside[0] if bit in outside[1]]
    for source in both:
        common = next((bit for bit in free[0] if bit in free[1]), None)
        targets = {common} if common is not None else {free[0][0], free[1][0]}
        for side in free:
            side[:] = [bit for bit in side if bit not in targets]
        pairs += [(target, source) for target in sorted(targets)]  # type: ignore[type-var]
    for side, sources in zip(free, outside, strict=True):
        pairs += zip(side, [source for source in sources if source not in both], strict=False)
    return Swizzle(tuple(pairs))


def _chosen_by_lanes(layout: Layout, lane_bits: int) -> list[CoordinateBit]:
    """The coordinate bits that the lanes of one access choose, lowest lane bit first."""
    by_lane = {
        source: (axis, bit)
        for axis, bits in enumerate(layout.axes)
        for bit, source in enumerate(bits)
        if 0 <= source < lane_bits
    }
    return [by_lane[lane] for lane in sorted(by_lane)]
