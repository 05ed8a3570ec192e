"""Dot operands in shared memory: their arrays, the place of an element, and how they get there."""

from __future__ import annotations

import math

from ...hardware import BOX_ALIGNMENT, CHUNK_BYTES, SWIZZLE_ALIGNMENT
from ...ir.nodes import Statement, Variable
from ...ir.symbols import spelled
from ...ir.types import padded, symbol_of
from ...schedule.accesses.access import Access
from ...schedule.products.dot_plan import Operand
from ...schedule.products.instructions import Instruction
from ...schedule.products.operand_tiles import copied_tile, transposed_tile
from ...schedule.products.shared_tiles import SharedTile
from ..accesses.conditions import copies_guard
from ..accesses.vectors import vectors, width_name
from ..context import Context, ctype
from ..shared.arrays import side_text, size_text
from ..shared.memory import Owner
from ..text.element import indexed, run_at
from ..text.literals import literal_text
from ..text.operators import is_word
from ..text.point import Point, coordinate
from ..text.unit import Assignment, Branch, Comment, Line, Loop, Node, Shared, const
from .formats import line_elements

TRANSPOSED_STAGES = 2


def shared_array(
    context: Context, owner: Owner, purpose: str, name: str, variable: Variable, tile: SharedTile, comment: str
) -> None:
    """Asks for the array of a tile, with all its stages: for a `purpose` of a statement or of a variable."""
    sides = size_text(context, tile.shape).text
    stages = (
        f"[{context.constants.named('NUM_STAGES', tile.stages, 'tiles in shared memory at once', topic='stages')}]"
        if tile.stages > 1
        else ""
    )
    size = tile.stage_bytes * tile.stages
    align = SWIZZLE_ALIGNMENT if tile.swizzle else BOX_ALIGNMENT
    context.shared.scratch(
        owner, purpose, Shared(name, ctype(variable.type), f"{stages}[{sides}]", size, comment, align)
    )


def place_text(context: Context, tile: SharedTile, element: str, slow: str, fast: str, batch: str = "0") -> str:
    """The offset of an element (of C++ type `element`) within one stage, as text."""
    if tile.swizzle:
        helper = context.use_helper("swizzled")
        width, lines = (side_text(context, tile.shape[axis]).text for axis in (tile.fast, tile.slow))
        text = f"{helper}<{element}, {width}, {lines}>({slow}, {fast})"
    else:
        text = _further(
            slow, context.constants.large("SHARED_LINE", tile.line, "elements of a line in shared memory"), fast
        )
    if len(tile.shape) == 3 and tile.shape[0] > 1:
        plane = tile.shape[1] * tile.shape[2]
        text = _further(
            batch, context.constants.large("SHARED_PLANE", plane, "elements of a plane in shared memory"), text
        )
    return text


def _further(number: str, size: str, rest: str) -> str:
    """The offset `rest` behind so many parts of a size."""
    if number == "0":
        return rest
    parts = f"{number if number.isidentifier() else f'({number})'} * {size}"
    return parts if rest == "0" else f"{parts} + {rest}"


def element_place(context: Context, tile: SharedTile, variable: Variable, point: Point) -> str:
    """The offset of the element at a point of a variable's tile."""
    axes = [coordinate(Point(point.layout, point.indices, (bits,)), 0, context.axis_names).text for bits in point.axes]
    return place_text(context, tile, ctype(variable.type), axes[tile.slow], axes[tile.fast], axes[0])


def place_line(context: Context, text: str, of: str, in_loop: bool) -> tuple[tuple[Node, ...], str]:
    """Gives an offset a name where it is more than a name: (the line that does so, the name).

    Only in a loop's body, where no other line can have declared it.
    """
    if not in_loop or is_word(text):
        return (), text
    name = context.names.shared_index(f"{of}_place")
    return (const("int", name, text),), name


class OperandPlace:
    """An operand as the instructions see it: the text of its first element, and its format.

    `k_fast` says that K is the contiguous axis, `by_matrices` that ldmatrix can read it.
    """

    def __init__(self, base: str, tile: SharedTile, operand: Operand) -> None:
        """`base` is an expression of pointer type."""
        self.base, self.tile, self.operand, self.variable = base, tile, operand, operand.variable
        self.k_axis = operand.k_axis
        self.mn_axis = 2 * len(tile.shape) - 3 - self.k_axis
        self.k_fast = tile.fast == self.k_axis
        self.by_matrices = tile.itemsize == 2 or (tile.itemsize < 8 and self.k_fast)

    def depth(self, context: Context, instruction: Instruction) -> str:
        """The elements of K that the instructions take, by the user's name for the side where that is all."""
        side = self.variable.type.shape[self.k_axis]
        depth = instruction.depth(side)
        if depth == side and (symbol := symbol_of(side)):
            return spelled(symbol)
        return context.constants.large("MMA_DEPTH", depth, "elements of K that the instructions take")

    def place(self, context: Context, mn: str, k: str, batch: str = "0", lines: str = "") -> str:
        """The offset of an element by its coordinates along M or N, and along K; and so many lines further.

        `lines` is a multiple of 8, after which the order of chunks repeats: places so far apart share one computation.
        """
        slow, fast = (mn, k) if self.k_fast else (k, mn)
        text = place_text(context, self.tile, ctype(self.variable.type), slow, fast, batch)
        if not lines:
            return text
        line = line_elements(context, self.tile, self.variable, self.variable.name.upper())
        return f"{text} + {f'({lines})' if '+' in lines else lines} * {line.within(14)}"


def operand_place(
    context: Context, statement: Statement, operand: Operand, instruction: Instruction
) -> tuple[tuple[Node, ...], OperandPlace]:
    """Where a dot finds an operand, and the code that brings it there when it is in registers."""
    variable = operand.variable
    if variable in context.schedule.staged:
        tile = context.schedule.staged[variable]
        stage = context.ahead.stage_of.get(variable)
        name = context.names.variable(variable)
        base = f"{name}[{stage}]" if stage else name
        transposed = transposed_tile(operand, tile, instruction)
        if transposed is not None:
            return _transposed(context, statement, operand, base, transposed)
        return (), OperandPlace(base, tile, operand)
    layout = context.schedule.layouts[variable]
    tile = copied_tile(operand, layout, instruction)
    if (variable, tile) in context.around.lasting:
        return (), OperandPlace(context.around.lasting[variable, tile], tile, operand)
    if (variable, tile) in context.progress.copied:
        return (), OperandPlace(context.progress.copied[variable, tile], tile, operand)
    purpose = operand.side.value
    owner = context.shared.owner_of_all_trips(statement, purpose, (variable.name, variable.type, tile))
    name = context.shared.scratch_name(owner, purpose, f"{variable.name}_shared", f"{variable.name}_for_dot")
    shared_array(context, owner, purpose, name, variable, tile, f"{variable.name}, for the dot")
    place = OperandPlace(name, tile, operand)
    if not context.shared.in_turns:
        context.progress.copied[variable, tile] = name
    return (*context.before_write(name), *_copy(context, place), *_zeros(context, place, instruction)), place


def _transposed(
    context: Context, statement: Statement, operand: Operand, source: str, tile: SharedTile
) -> tuple[tuple[Node, ...], OperandPlace]:
    """Transposes a tile of bytes in shared memory: instructions read these along K only.

    Where products run on into the next iteration, they read one tile while the next is written.
    """
    variable, purpose = operand.variable, operand.side.value
    choices = f"{variable.name}_turned", f"{variable.name}_turned_for_dot"
    runs_on = context.around.trip_count != "" and statement in context.around.in_flight
    name = context.shared.scratch_name(statement, purpose, *choices, lasting=runs_on)
    before, array = context.before_write(name), name
    outer, stages = "", 1
    if runs_on:
        comment = "of transposed tiles: one is read while the next is written"
        count, stages = (
            context.constants.named("TURNED_STAGES", TRANSPOSED_STAGES, comment, topic="stages"),
            TRANSPOSED_STAGES,
        )
        outer, array = f"[{count}]", f"{name}[{context.around.trip_count} % {count}]"
    sides = size_text(context, tile.shape).text
    alignment = SWIZZLE_ALIGNMENT if tile.swizzle else CHUNK_BYTES
    several = f"{stages} of " if stages > 1 else ""
    context.remarks.transposed[variable] = f"; transposed into {several}{tile.stage_bytes} bytes"
    size, comment = stages * tile.stage_bytes, f"{variable.name}, contiguous along K"
    context.shared.scratch(
        statement, purpose, Shared(name, ctype(variable.type), f"{outer}[{sides}]", size, comment, alignment)
    )
    context.use_helper("swizzled")
    context.use_helper("ldmatrix", "ldmatrix_x4_trans", count=4, trans=True)
    matrices = context.schedule.target.has_matrix_stores
    if matrices:
        context.use_helper("stmatrix", "stmatrix_x4", count=4)
    helper = context.use_helper("transpose_bytes", matrices=matrices)
    lines, width = (side_text(context, tile.shape[axis]).text for axis in (tile.fast, tile.slow))
    transpose = Line(f"{helper}<{lines}, {width}>({array}, {source});")
    return (*before, transpose), OperandPlace(array, tile, operand)


def _copy(context: Context, place: OperandPlace) -> tuple[Node, ...]:
    """Writes a tile from registers to its place, consecutive elements at once."""
    variable, tile, name = place.variable, place.tile, place.base
    layout = context.schedule.layouts[variable]
    source = context.names.variable(variable)
    side = variable.type.shape[place.k_axis]
    width = min(layout.vector(tile.fast), tile.chunk)
    if place.k_fast:
        width = math.gcd(width, side)
    access = Access(tile.fast, width, (), ())
    context.needs.packets |= {access.width * tile.itemsize} if access.width > 1 else set()

    in_loop = layout.num_registers > access.width

    def write(point: Point) -> tuple[Node, ...]:
        naming, offset = place_line(context, element_place(context, tile, variable, point), variable.name, in_loop)
        value = indexed(context, source, variable, point)
        line: Node = Assignment(f"{name}[{offset}]", value)
        if access.width > 1:
            helper = context.use_helper("store_vec", "store_vec", kind="", modifier="", bools=False)
            line = Line(f"{helper}<{width_name(context, layout, access)}>(&{name}[{offset}], {run_at(value)});")
        if padded(side) == side:
            return (*naming, line)
        k = coordinate(Point(point.layout, point.indices, (point.axes[place.k_axis],)), 0, context.axis_names)
        return (Branch(f"{k.text} < {_own_depth(context, variable, side)}", (*naming, line)),)

    nodes = vectors(context, layout, access, write)
    if guard := copies_guard(context, layout):
        return (Branch(guard, nodes),)
    return nodes


def _own_depth(context: Context, variable: Variable, side: int) -> str:
    """The elements of K that a tile has itself, by the user's name where there is one."""
    if symbol := symbol_of(side):
        return spelled(symbol)
    return context.constants.large(f"{variable.name.upper()}_DEPTH", int(side), f"elements of {variable.name} along K")


def _zeros(context: Context, place: OperandPlace, instruction: Instruction) -> tuple[Node, ...]:
    """Writes the zeros that a short tile lacks along K."""
    variable, tile = place.variable, place.tile
    side = variable.type.shape[place.k_axis]
    rest = instruction.depth(side) - side
    if not rest:
        return ()
    others = int(tile.shape[place.mn_axis])
    e, tid = context.names.shared_index("e"), context.axis_names.tid
    count = math.prod(tile.shape[:-2]) * others * rest
    lacking = "elements that a tile lacks along K"
    if len(tile.shape) == 2:
        mn, batch = f"{e} / {rest}", "0"
    else:
        mn = f"{e} / {rest} % {side_text(context, tile.shape[place.mn_axis]).within(14)}"
        batch = f"{e} / {context.constants.large('PLANE_ZEROS', rest * others, f'{lacking}, of a plane')}"
    at = place.place(context, mn, f"{_own_depth(context, variable, side)} + {e} % {rest}", batch)
    line = Assignment(f"{place.base}[{at}]", literal_text(0, variable.type.dtype))
    zeros = context.constants.large("ZEROS", count, lacking)
    header = f"for (int {e} = {tid}; {e} < {zeros}; {e} += NUM_THREADS)"
    return (Comment(f"The instruction takes {instruction.k} elements of K: zeros for the rest."), Loop(header, (line,)))
