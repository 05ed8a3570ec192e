"""One element of a tile, as a place in the text: which registers, whose thread, and how its coordinates are spelled."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from ...frozen import frozen
from ...ir.c_operators import ATOM
from ...ir.nodes import Expr
from ...schedule.tiles.layout import REGISTER, Layout
from ...schedule.tiles.paths import operand_axes
from .axis_names import AxisNames, NamedAxis
from .operators import ZERO, Text, infix, summed


@frozen
class Index:
    """The register index along one axis: a loop variable, or the start of vector number `vector` of `width` registers.

    The first `bits` bits of such a start are zero. A loop variable goes on by `step`.
    """

    whole: Text
    vector: Text | None = None
    width: str = ""
    bits: int = 0
    step: int = 1

    @property
    def text(self) -> str:
        """The index as a subscript."""
        return self.whole.text


FIRST = Index(ZERO)


def register(name: str, step: int = 1) -> Index:
    """The index that a variable holds, all multiples of `step`; "0" is the only register's."""
    return FIRST if name == "0" else Index(Text(name), step=step)


def vector_start(vector: Text, width: str, bits: int = 0) -> Index:
    """The index at which a vector starts."""
    return Index(ZERO if vector == ZERO else infix(vector, "*", Text(width)), vector, width, bits)


# A coordinate bit: a thread bit, (axis of the statement, bit of its register index), or (KNOWN, its value).
PointBit = int | tuple[int, int]
KNOWN = -1


@frozen
class Point:
    """An element of a statement's tile.

    Attributes:
      layout: the statement's layout.
      indices: the register index along each of its axes.
      axes: the coordinate bits of the element in the tile being spelled (an operand further down, after slices and
        transposes); those of `layout` at first.
      apart: of the second element of a pair, the bit of the register index that the first has as 0.
    """

    layout: Layout
    indices: tuple[Index, ...]
    axes: tuple[tuple[PointBit, ...], ...]
    apart: int | None = None

    def operand(self, call: Expr, operand: Expr) -> Point | None:
        """The same element seen from an operand; None where no permutation of bits leads there."""
        axes = operand_axes(call, operand, self.axes, lambda value: (KNOWN, value))
        return None if axes is None else replace(self, axes=axes)

    def pattern(self) -> Layout:
        """The layout that a register tile must have to be read at this point."""
        axes = tuple(tuple(bit if isinstance(bit, int) else REGISTER for bit in axis) for axis in self.axes)
        return Layout(axes, self.layout.thread_bits)


def point_of(layout: Layout, indices: tuple[Index, ...]) -> Point:
    """The element of a statement's own tile at the given register indices."""
    axes = []
    for number, axis in enumerate(layout.axes):
        bits: list[PointBit] = []
        taken = 0
        for source in axis:
            if source == REGISTER:
                bits.append((number, taken))
                taken += 1
            else:
                bits.append(source)
        axes.append(tuple(bits))
    return Point(layout, indices, tuple(axes))


def register_index(point: Point, axis: int) -> str | None:
    """The text of the register index along one axis of the tile at this point; None when there is one register."""
    bits = [bit for bit in point.axes[axis] if not isinstance(bit, int)]
    if not bits:
        return None
    whole = _whole_index(point, bits)
    return whole.text if whole else summed(list(_segments(point, tuple(bits), None))).text


def coordinate(point: Point, axis: int, axis_names: AxisNames) -> Text:
    """The coordinate along one axis of the tile at this point."""
    bits = point.axes[axis]
    pattern = tuple(bit if isinstance(bit, int) else REGISTER for bit in bits)
    named = axis_names.find(pattern) if bits else None
    registers = [bit for bit in bits if not isinstance(bit, int)]
    if any(number == KNOWN for number, _ in registers):
        return summed(list(_segments(point, bits, axis_names)))
    index = _whole_index(point, registers) if registers else FIRST
    if named and named.thread_range is not None and index:
        return _blocked_coordinate(named, index, bool(registers))
    if named and named.thread_range is None and named.place:
        return summed([Text(named.place), *_register_segments(point, bits, named, axis_names)])
    return summed(list(_segments(point, bits, axis_names)))


def parted(point: Point, axis: int, axis_names: AxisNames, moved: int) -> tuple[Text, Text]:
    """A coordinate as what its upper bits add and the rest, which an exclusive or with fewer than `moved` bits stays within.

    The upper bits are chosen by registers alone, so that one address serves all of them: an instruction adds what they tell.
    """
    bits = point.axes[axis]
    above = next((k for k in range(len(bits) + 1) if k >= moved and _is_seam(bits, k)), len(bits))
    pattern = tuple(bit if isinstance(bit, int) else REGISTER for bit in bits)
    named = axis_names.find(pattern) if bits else None
    upper, lower = (replace(point, axes=(part,)) for part in (bits[above:], bits[:above]))
    number = coordinate(upper, 0, axis_names)
    if above == len(bits) or number == ZERO:
        return ZERO, coordinate(point, axis, axis_names)
    if not named or not named.thread_range or above != len(named.thread_range) + named.run.bit_length() - 1:
        return infix(number, "*", Text(str(1 << above))), coordinate(lower, 0, axis_names)
    step, place, vector = infix(number, "*", Text(named.threads)), Text(named.place), Text(named.vector)
    if named.run == 1:
        return step, place
    registers = [bit for bit in bits if not isinstance(bit, int)]
    index = _whole_index(point, registers)
    if index and index.width == named.vector:
        within = ZERO
    elif index and not any(part == KNOWN for part, _ in registers):
        within = _within_run(named, index)
    else:
        within = coordinate(replace(point, axes=(bits[: named.run.bit_length() - 1],)), 0, axis_names)
    return infix(step, "*", vector), summed([infix(place, "*", vector), *([within] if within != ZERO else [])])


def _is_seam(bits: tuple[PointBit, ...], k: int) -> bool:
    """Whether only registers choose the bits from `k` on, and not as the next bits of a number below."""
    registers = all(not isinstance(bit, int) for bit in bits[k:])
    return registers and not (0 < k < len(bits) and _follows(bits[k - 1], bits[k]))


def _blocked_coordinate(named: NamedAxis, index: Index, has_registers: bool) -> Text:
    place, threads, vector = Text(named.place), Text(named.threads), Text(named.vector)
    if not has_registers:
        return place
    if not named.threads:
        return index.whole
    if index.text == "0":
        return place if named.run == 1 else infix(place, "*", vector)
    if named.run == 1:
        return infix(infix(_factor(index.whole), "*", threads), "+", place)
    if named.num_registers == named.run:
        return infix(infix(place, "*", vector), "+", index.whole)
    if index.vector and index.width == named.vector:
        return infix(infix(infix(index.vector, "*", threads), "+", place), "*", vector)
    if index.vector and 1 < 1 << index.bits < named.run:
        number, per_run = index.vector, Text(str(named.run >> index.bits))
        run = infix(infix(infix(infix(number, "/", per_run), "*", threads), "+", place), "*", vector)
        return infix(run, "+", _within_run(named, index))
    run = infix(infix(infix(infix(_factor(index.whole), "/", vector), "*", threads), "+", place), "*", vector)
    return infix(run, "+", _within_run(named, index))


def _within_run(named: NamedAxis, index: Index) -> Text:
    """How far into a run of a thread's coordinates an index leads."""
    if index.vector and 1 < 1 << index.bits < named.run:
        return infix(infix(index.vector, "%", Text(str(named.run >> index.bits))), "*", Text(index.width))
    return infix(_factor(index.whole), "%", Text(named.vector))


def _factor(index: Text) -> Text:
    """An index as a factor of its own: what it is made of stays together."""
    return Text(index.within(ATOM), number=index.number)


def _whole_index(point: Point, bits: list[tuple[int, int]]) -> Index | None:
    """The index variable whose bits these are, all of them and in order."""
    number = bits[0][0]
    if number == KNOWN:
        return None
    count = point.layout.axes[number].count(REGISTER)
    return point.indices[number] if bits == [(number, k) for k in range(count)] else None


def _register_segments(
    point: Point, bits: tuple[PointBit, ...], named: NamedAxis, axis_names: AxisNames
) -> Iterator[Text]:
    """What the registers of a scattered axis add to the thread's own place."""
    registers = [bit for bit in bits if not isinstance(bit, int)]
    index = _whole_index(point, registers) if registers else None

    def stride(number: int) -> str:
        return axis_names.stride(number, "STEP", named.noun)

    if index is not None and index.text == "0" and not index.vector:
        return
    run = named.run.bit_length() - 1
    if index is not None and run and index.width == named.vector and registers == list(bits[:run]) + registers[run:]:
        # The start of a vector: the bits within it are zero, the others are the vector's number.
        if index.text != "0":
            point = replace(
                point, indices=tuple(Index(i.vector or i.whole) if i is index else i for i in point.indices)
            )
            number = registers[0][0]
            shifted = tuple(bit if isinstance(bit, int) else (number, bit[1] - run) for bit in bits[run:])
            placed = ((k + run, bit) for k, bit in enumerate(shifted) if not isinstance(bit, int))
            yield from _segments_at(point, placed, stride, run)
        return
    yield from _segments_at(point, ((k, bit) for k, bit in enumerate(bits) if not isinstance(bit, int)), stride)


def _segments_at(
    point: Point, placed: Iterable[tuple[int, tuple[int, int]]], stride: Callable[[int], str], dropped: int = 0
) -> Iterator[Text]:
    """Runs of register bits, each shifted to its place, highest first; `dropped` low bits are not in the index."""
    runs: list[tuple[int, list[tuple[int, int]]]] = []
    for position, bit in placed:
        last = runs[-1] if runs else None
        if last and last[0] + len(last[1]) == position and _follows(last[1][-1], bit):
            last[1].append(bit)
        else:
            runs.append((position, [bit]))
    for position, run in reversed(runs):
        number, low = run[0]
        total = point.layout.axes[number].count(REGISTER) - dropped
        text = _factor(point.indices[number].whole)
        text = text if low == 0 else infix(text, "/", Text(str(1 << low)))
        text = text if low + len(run) == total else infix(text, "%", Text(str(1 << len(run))))
        yield text if position == 0 else infix(text, "*", Text(stride(1 << position)))


def _segments(point: Point, bits: tuple[PointBit, ...], axis_names: AxisNames | None) -> Iterator[Text]:
    """Runs of bits from one source, each shifted to its place, highest first."""
    runs: list[tuple[int, list[PointBit]]] = []
    for position, bit in enumerate(bits):
        if runs and _follows(runs[-1][1][-1], bit):
            runs[-1][1].append(bit)
        else:
            runs.append((position, [bit]))
    for position, run in reversed(runs):
        first = run[0]
        if not isinstance(first, int) and first[0] == KNOWN:
            if first[1]:
                yield Text(str(1 << position))
            continue
        if isinstance(first, int):
            text, low, total = Text(axis_names.tid if axis_names else "tid"), first, point.layout.thread_bits
        else:
            index = point.indices[first[0]]
            skipped = index.bits if first[1] >= index.bits else 0  # the number of the vector tells the bits above
            text, low = _factor(index.vector if skipped and index.vector else index.whole), first[1] - skipped
            total = point.layout.axes[first[0]].count(REGISTER) - skipped
            if text.text == "0":
                continue
        below = (
            axis_names.threads_below(low)
            if axis_names and isinstance(first, int) and low > 5
            else AxisNames.power(1 << low)
        )
        text = text if low == 0 else infix(text, "/", below)
        text = text if low + len(run) == total else infix(text, "%", AxisNames.power(1 << len(run)))
        yield text if position == 0 else infix(text, "*", Text(str(1 << position)))


def _follows(before: PointBit, bit: PointBit) -> bool:
    if isinstance(before, int) or isinstance(bit, int):
        return isinstance(before, int) and isinstance(bit, int) and bit == before + 1
    return before[0] != KNOWN and bit == (before[0], before[1] + 1)
