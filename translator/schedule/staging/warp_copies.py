"""Which lane of a warp makes the copies of what another lane will hold: of tiles that threads load ahead for themselves.

In: the layout in which a tile is used, and how it lies in memory. Out: the layout in which it is copied, where another order
of a warp's lanes touches fewer lines of memory, and the places at which the two meet in shared memory. Registers stay what
they are and warps keep to themselves, so that nothing is needed between the two but `__syncwarp()`.

Worked example, B of `mma.sync` [16, 128] over 4 warps, used with 4 neighbouring columns of 4 bytes per lane. The instruction
has rows chosen by the low bits of the lane, so that 8 lanes read from 4 rows; memory wants columns chosen by them:

  used    axis 1: REGISTER REGISTER 2 3 4 5 6    axis 0: 0 1 REGISTER REGISTER    lanes 0 to 7: 4 rows, 32 bytes each
  copied  axis 1: REGISTER REGISTER 0 1 2 5 6    axis 0: 3 4 REGISTER REGISTER    lanes 0 to 7: 1 row, 128 bytes

What lane `l` holds is then copied by lane `l % 4 * 8 + l / 4`. In shared memory it lies at the place of the lane that copies it:
a sector of 32 bytes whose halves of 16 went to different places would be fetched from L2 twice.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from ...analysis.facts import Facts
from ...frozen import frozen
from ...hardware import CACHE_LINE_BYTES, COPY_BYTES, LANE_BITS, SECTOR_BYTES
from ...ir.nodes import Assign, Expr, Kernel, Variable
from ...ir.structured import assigns
from ...ir.walk import statements, used_variables
from ..accesses.access import load_operands, plan_load
from ..tiles.exchange import Swizzle, exchange_swizzle
from ..tiles.layout import REGISTER, Layout
from .ring_plan import Rings


@frozen
class WarpCopy:
    """How a tile is copied by other lanes than those that hold it.

    Attributes:
      layout: in which threads copy; its registers are those of the layout in which the tile is used.
      lane_bits: log2 of the lanes of a warp that copy, the first ones; where lanes hold the same elements, one copies for all.
      copiers: bit by bit, from which bit of its own number a thread takes the number of the copy that is for it.
      swizzle: of the places of a warp's copying lanes, so that neither the copies nor the reads meet a bank twice.
    """

    layout: Layout
    lane_bits: int
    copiers: tuple[int, ...]
    swizzle: Swizzle


def choose_warp_copies(
    kernel: Kernel, facts: Facts, layouts: Mapping[Variable, Layout], rings: Rings, by_all: Container[Variable]
) -> dict[Variable, WarpCopy]:
    """The tiles of all rings that other lanes copy than those that hold them, but for those that are copied `by_all` threads."""
    held = {value for ring in rings.rings for value in ring.own if value.type.is_tile}
    found: dict[Variable, WarpCopy] = {}
    numbers = numbers_ahead(kernel, rings)
    for load in statements(kernel.body):
        if not assigns(load, "load") or load.target not in held or load.target in by_all:
            continue
        if not is_found_anywhere(load, facts, numbers):
            continue  # such as a list of rows, of which each lane holds what its own elements come from
        target, pointer = load.target, load_operands(load)[0]
        access, itemsize = plan_load(load, layouts[target], facts), target.type.dtype.itemsize
        if access.width * itemsize in COPY_BYTES:
            repeats = facts.at(load).info(pointer).constancy
            pieces = Pieces(target.type.shape, access.axis, access.width, itemsize, repeats)
            found |= {target: copy} if (copy := warp_copy(layouts[target], pieces)) else {}
    return found


def numbers_ahead(kernel: Kernel, rings: Rings) -> dict[Variable, Expr]:
    """The loads of what each thread reads ahead to find what it copies."""
    variables = {one.variable for one in rings.ahead}
    return {s.target: s.value for s in statements(kernel.body) if isinstance(s, Assign) and s.targets[0] in variables}


def is_found_anywhere(load: Assign, facts: Facts, numbers: Mapping[Variable, Expr]) -> bool:
    """Whether any lane can compute where any element of a loaded tile is, and whether it is loaded."""
    pointer, mask, _ = load_operands(load)
    return all(is_computed_anywhere(part, facts, numbers) for part in (pointer, mask) if part is not None)


def is_computed_anywhere(expr: Expr, facts: Facts, numbers: Mapping[Variable, Expr]) -> bool:
    """Whether any lane can compute any element of a tile, because it comes from no tile that registers hold.

    The `numbers` of `numbers_ahead` are read by whoever needs them.
    """
    pending, seen = [expr], set()
    while pending:
        for variable in used_variables(pending.pop()):
            if not variable.type.is_tile or variable in seen:
                continue
            if not any(variable in known for known in (facts.index, facts.absorbed, numbers)):
                return False
            seen.add(variable)
            pending.append(numbers.get(variable) or facts.definitions[variable])
    return True


@frozen
class Pieces:
    """How the copies of a tile lie in memory.

    Attributes:
      shape: the tile's sides; padding is copied by nobody.
      axis: along which it is contiguous in memory.
      width: elements of one copy.
      itemsize: bytes of an element.
      repeats: per axis, how many neighbours are the same element in memory.
    """

    shape: tuple[int, ...]
    axis: int
    width: int
    itemsize: int
    repeats: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """Of one copy."""
        return self.width * self.itemsize


def warp_copy(used: Layout, pieces: Pieces) -> WarpCopy | None:
    """The copies of a tile by other lanes than those that read it, which do so in the layout `used`.

    None where they would be as many, and touch as many lines, as those of its holders.
    """
    order = _fast_axis_first(used, pieces.axis)
    copied = _by_lanes(used, order)
    counts = [_lines_and_sectors(layout, pieces) for layout in (copied, used)]
    lane_bits = LANE_BITS - sum(bit < LANE_BITS for bit in used.free_thread_bits())
    if counts[0] >= counts[1] and lane_bits == LANE_BITS:
        return None
    written, read = (Layout((bits[:lane_bits],), LANE_BITS) for bits in (tuple(range(LANE_BITS)), tuple(order)))
    swizzle = exchange_swizzle(written, read, pieces.bytes)
    return WarpCopy(copied, lane_bits, (*order[:lane_bits], *range(LANE_BITS, used.thread_bits)), swizzle)


def lines_for_holders(used: Layout, pieces: Pieces) -> int:
    """How many lines are touched to copy a line's worth to those that hold it, by themselves or by others of their warps."""
    layouts = used, _by_lanes(used, _fast_axis_first(used, pieces.axis))
    return min(_lines_and_sectors(layout, pieces)[0] for layout in layouts)


def lines_for_all(layout: Layout, pieces: Pieces) -> int:
    """The same for those that copy in a layout."""
    return _lines_and_sectors(layout, pieces)[0]


def _by_lanes(used: Layout, order: list[int]) -> Layout:
    """The layout in which lanes have the numbers that they have in the order."""
    renamed = {lane: number for number, lane in enumerate(order)}
    axes = tuple(tuple(renamed.get(source, source) for source in bits) for bits in used.axes)
    return Layout(axes, used.thread_bits)


def _fast_axis_first(used: Layout, axis: int) -> list[int]:
    """The lane's bits in the order in which they choose coordinates, lowest first, along the contiguous axis first."""
    order = [source for source in used.axes[axis] if REGISTER < source < LANE_BITS]
    for other in reversed(range(used.rank)):
        order += [source for source in used.axes[other] if REGISTER < source < LANE_BITS and other != axis]
    return order + [lane for lane in range(LANE_BITS) if lane not in order]


def _lines_and_sectors(layout: Layout, pieces: Pieces) -> tuple[int, int]:
    """How many lines and sectors of memory the lanes touch that copy a line's worth at once, each line counted once.

    Every element of another axis is taken to lie in a line of its own.
    """
    at_once = min(CACHE_LINE_BYTES // pieces.bytes, 1 << LANE_BITS)
    lines, sectors = set(), set()
    for lane in range(at_once):
        first = [
            sum((lane >> source & 1) << bit for bit, source in enumerate(bits) if REGISTER < source < LANE_BITS)
            for bits in layout.axes
        ]
        if all(coordinate < side for coordinate, side in zip(first, pieces.shape, strict=True)):
            others = tuple(c // pieces.repeats[a] for a, c in enumerate(first) if a != pieces.axis)
            byte = first[pieces.axis] * pieces.itemsize
            lines.add((others, byte // CACHE_LINE_BYTES))
            sectors.add((others, byte // SECTOR_BYTES))
    return len(lines), len(sectors)
