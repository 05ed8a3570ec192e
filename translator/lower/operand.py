"""Dot operands in shared memory: their arrays, the place of an element, and how they get there."""

from __future__ import annotations

import math
import re

from ..ir.nodes import Statement, Variable
from ..ir.types import Dim
from ..schedule.dots import Operand, copied_tile
from ..schedule.shared_tiles import ALIGNMENT, SharedTile
from .access import Access
from .context import Context, ctype
from .memory import copies_guard, indexed, vectors, width_name
from .point import Point, coordinate
from .shared import side_text
from .unit import Branch, Line, Node, Shared


def shared_array(context: Context, key: object, name: str, variable: Variable, tile: SharedTile, comment: str) -> None:
    """Asks for the array of a tile, with all its stages."""
    sides = " * ".join(side_text(context, side) for side in variable.type.shape)
    stages = (
        f"[{context.constant('NUM_STAGES', tile.stages, 'tiles in shared memory at once', topic='stages')}]"
        if tile.stages > 1
        else ""
    )
    size = tile.stage_bytes * tile.stages
    context.shared.setdefault(
        key,  # type: ignore[arg-type]
        Shared(name, ctype(variable.type), f"{stages}[{sides}]", size, comment, ALIGNMENT if tile.swizzle else 16),
    )


def place_text(context: Context, tile: SharedTile, element: str, slow: str, fast: str, batch: str = "0") -> str:
    """The offset of an element (of C++ type `element`) within one stage, as text."""
    if tile.swizzle:
        helper = context.use_helper("swizzled")
        width, lines = (side_text(context, tile.shape[axis]) for axis in (tile.fast, tile.slow))
        text = f"{helper}<{element}, {width}, {lines}>({slow}, {fast})"
    else:
        text = f"({slow}) * {tile.line} + {fast}" if slow != "0" else fast
    if len(tile.shape) == 3 and tile.shape[0] > 1:
        text = f"({batch}) * {tile.shape[1] * tile.shape[2]} + {text}"
    return text


def element_place(context: Context, tile: SharedTile, variable: Variable, point: Point) -> str:
    """The offset of the element at a point of a variable's tile."""
    axes = [coordinate(Point(point.layout, point.indices, (bits,)), 0, context.roles) for bits in point.axes]
    return place_text(context, tile, ctype(variable.type), axes[tile.slow], axes[tile.fast], axes[0])


def place_line(context: Context, text: str, of: str, in_loop: bool) -> tuple[tuple[Node, ...], str]:
    """Gives an offset a name where it is more than a name: (the line that does so, the name).

    Only in a loop's body, where no other line can have declared it.
    """
    if not in_loop or re.fullmatch(r"\w+", text):
        return (), text
    name = context.names.shared_index(f"{of}_place")
    return (Line(f"const int {name} = {text};"),), name


class OperandPlace:
    """An operand as the instructions see it: the text of its first element, and its format.

    `k_fast` says that K is the contiguous axis; `mn` is the side of the other axis.
    """

    def __init__(self, base: str, tile: SharedTile, operand: Operand, is_a: bool) -> None:
        """`base` is an expression of pointer type."""
        self.base, self.tile, self.variable = base, tile, operand.variable
        rank = len(tile.shape)
        self.k_axis = rank - 1 if is_a != operand.swapped else rank - 2
        self.mn_axis = 2 * rank - 3 - self.k_axis
        self.k_fast = tile.fast == self.k_axis

    def side_of_k(self) -> int | Dim:
        """The side along K, with the user's name for it."""
        return self.variable.type.shape[self.k_axis]

    def place(self, context: Context, mn: str, k: str, batch: str = "0") -> str:
        """The offset of an element by its coordinates along M or N, and along K."""
        slow, fast = (mn, k) if self.k_fast else (k, mn)
        return place_text(context, self.tile, ctype(self.variable.type), slow, fast, batch)


def operand_place(
    context: Context, statement: Statement, operand: Operand, is_a: bool
) -> tuple[tuple[Node, ...], OperandPlace]:
    """Where a dot finds an operand, and the code that brings it there when it is in registers."""
    variable = operand.variable
    if variable in context.schedule.staged:
        tile = context.schedule.staged[variable]
        stage = context.stage_of.get(variable)
        name = context.names.variable(variable)
        return (), OperandPlace(f"{name}[{stage}]" if stage else name, tile, operand, is_a)
    layout = context.schedule.layouts[variable]
    tile = copied_tile(operand, layout, is_a)
    purpose = "a" if is_a else "b"
    name = context.scratch_name(id(statement), purpose, f"{variable.name}_shared")
    shared_array(context, (id(statement), purpose), name, variable, tile, f"{variable.name}, for the dot")
    return (*context.before_write(name), *_copy(context, operand, tile, name)), OperandPlace(name, tile, operand, is_a)


def _copy(context: Context, operand: Operand, tile: SharedTile, name: str) -> tuple[Node, ...]:
    """Writes a tile from registers to its place, consecutive elements at once."""
    variable, layout = operand.variable, context.schedule.layouts[operand.variable]
    source = context.names.variable(variable)
    access = Access(tile.fast, min(layout.vector(tile.fast), tile.chunk), (), ())
    context.packets |= {access.width * tile.itemsize} if access.width > 1 else set()

    in_loop = math.prod(layout.register_shape()) > access.width

    def write(point: Point) -> tuple[Node, ...]:
        place, offset = place_line(context, element_place(context, tile, variable, point), variable.name, in_loop)
        value = indexed(context, source, variable, point)
        if access.width == 1:
            return (*place, Line(f"{name}[{offset}] = {value};"))
        helper = context.use_helper("store_vec", "store_vec", kind="", modifier="")
        return (*place, Line(f"{helper}<{width_name(context, layout, access)}>(&{name}[{offset}], &{value});"))

    nodes = vectors(context, layout, access, write)
    if guard := copies_guard(context, layout):
        return (Branch(guard, nodes),)
    return nodes
