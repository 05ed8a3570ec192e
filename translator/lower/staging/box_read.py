"""Tiles that a tensor copy has brought, taken to registers by those who compute with them.

`schedule/products/computed_operands.py` says which, and why.
"""

from __future__ import annotations

from ...ir.nodes import Assign, Call, Use, Variable
from ...schedule.accesses.access import Access
from ...schedule.products.instructions import COLUMN_IN_PIECE
from ...schedule.products.shared_tiles import SharedTile
from ...schedule.tiles.layout import REGISTER, Layout, bits_of
from ..accesses.vectors import vectors, width_name
from ..context import Context, ctype
from ..products.operand import element_place, place_line, place_text
from ..text.element import indexed, run_at
from ..text.point import Point
from ..text.unit import Line, Loop, Node

PAIRS_IN_PIECE = (REGISTER, 2, 3, 4)  # byte = lane / 4 * 2 + register, of the 16 bytes of a row of a matrix
LINES = 32  # of four matrices
PAIR_BYTES = 2
OWN = 8  # of these, that a lane has bytes of


def lower_box_read(context: Context, statement: Assign) -> tuple[Node, ...]:
    """`target = box_read(tile)`: consecutive elements at once, as many as lie side by side for a thread."""
    call, target = statement.value, statement.target
    if not isinstance(call, Call) or not isinstance(call.args[0], Use):
        raise TypeError("not a reading of a box")
    source = call.args[0].variable
    layout, tile = context.schedule.layouts[target], context.schedule.staged[source]
    base = f"{context.names.variable(source)}[{context.stages.stage_of[source]}]"
    width = min(layout.run(tile.fast), tile.chunk)
    access = Access(tile.fast, width, (), ())
    if _by_matrices(layout, tile):
        return (*context.declare(statement, target, layout), *_byte_pairs(context, target, layout, tile, base))
    several = layout.num_registers > width
    name = context.names.variable(target)

    def read(point: Point) -> tuple[Node, ...]:
        naming, place = place_line(context, element_place(context, tile, source, point), source.name, several)
        element = indexed(context, name, target, point)
        if width == 1:
            return (*naming, Line(f"{element} = {base}[{place}];"))
        if width * tile.itemsize == PAIR_BYTES and layout.vector(tile.fast) >= width > 1:
            pair = context.use_helper("load_byte_pair")
            return (*naming, Line(f"{pair}({run_at(element)}, &{base}[{place}]);"))
        helper = context.use_helper("load_vec", "load_vec", kind="", modifier="", bools=False)
        context.needs.packets.add(width * tile.itemsize)
        count = width_name(context, layout, access)
        if layout.vector(tile.fast) >= width:
            return (*naming, Line(f"{helper}<{count}>({run_at(element)}, &{base}[{place}]);"))
        loaded, i = context.names.shared_index("loaded"), context.inner_index("i", layout)
        moved = tuple(
            f"[{_added(point.indices[axis].text, i) if axis == tile.fast else point.indices[axis].text}]"
            for axis in layout.array_axes()
        )
        return (
            *naming,
            Line(f"{ctype(target.type)} {loaded}[{count}];"),
            Line(f"{helper}<{count}>({loaded}, &{base}[{place}]);"),
            Loop(
                f"for (int {i} = 0; {i} < {count}; ++{i})",
                (Line(f"{name}{''.join(moved)} = {loaded}[{i}];"),),
                unroll=True,
            ),
        )

    return (*context.declare(statement, target, layout), *vectors(context, layout, access, read))


def _by_matrices(layout: Layout, tile: SharedTile) -> bool:
    """Whether lanes hold bytes as ldmatrix brings them that takes pairs for its elements, and transposes."""
    along, down = layout.axes[tile.fast], layout.axes[tile.slow]
    return (
        tile.itemsize == 1
        and along[: len(PAIRS_IN_PIECE)] == PAIRS_IN_PIECE
        and REGISTER not in along[len(PAIRS_IN_PIECE) :]
        and down[: len(COLUMN_IN_PIECE)] == COLUMN_IN_PIECE
        and all(bit == REGISTER for bit in down[len(COLUMN_IN_PIECE) :])
        and len(down) >= bits_of(LINES)
    )


def _byte_pairs(context: Context, target: Variable, layout: Layout, tile: SharedTile, base: str) -> tuple[Node, ...]:
    """Reads a warp's 16 neighbouring bytes of every line, 32 lines at once."""
    context.use_helper("ldmatrix", "ldmatrix_x4_trans", count=4, trans=True)
    helper, name = context.use_helper("load_byte_pairs"), context.names.variable(target)
    element, v, lane = ctype(target.type), context.names.shared_index("v"), context.lane()
    count = layout.registers(tile.slow) // OWN
    first = context.axis_names.thread_text(
        (*[REGISTER] * len(PAIRS_IN_PIECE), *layout.axes[tile.fast][len(PAIRS_IN_PIECE) :]),
        ("row", "column")[tile.fast],
    )
    line = f"{v} * {LINES} + {lane}" if count > 1 else lane
    naming, place = place_line(
        context, place_text(context, tile, element, line, first), f"{target.name}_tile", count > 1
    )
    at = f"{v} * {OWN}" if count > 1 else "0"
    rows = (run_at(f"{name}[{row}][{at}]") for row in (0, 1))
    nodes: tuple[Node, ...] = (*naming, Line(f"{helper}({', '.join(rows)}, &{base}[{place}]);"))
    if count == 1:
        return nodes
    limit = f"{context.count(layout.axes[tile.slow])} / {OWN}"
    return (Loop(f"for (int {v} = 0; {v} < {limit}; ++{v})", nodes, unroll=True),)


def _added(index: str, more: str) -> str:
    return more if index == "0" else f"{index} + {more}"
