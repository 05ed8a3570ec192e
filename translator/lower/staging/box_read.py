"""Tiles that a tensor copy has brought, taken to registers by those who compute with them.

`schedule/products/computed_operands.py` says which, and why.
"""

from __future__ import annotations

from dataclasses import replace

from ...ir.nodes import Assign, Call, Use, Variable
from ...schedule.accesses.access import Access
from ...schedule.products.instructions import COLUMN_IN_PIECE, ROW_IN_PIECE
from ...schedule.products.shared_tiles import SharedTile
from ...schedule.tiles.layout import REGISTER, Layout, bits_of
from ..accesses.vectors import vectors, width_name
from ..context import Context, ctype
from ..products.operand import element_place, place_line, place_text
from ..text.element import indexed, run_at
from ..text.operators import sum_text
from ..text.point import Point
from ..text.register_loops import inner_index
from ..text.unit import Assignment, Declaration, Line, Node, unrolled

PAIRS_IN_PIECE = (REGISTER, 2, 3, 4)  # byte = lane / 4 * 2 + register, of the 16 bytes of a row of a matrix
LINES = 32  # of four matrices
PAIR_BYTES = 2
OWN = 8  # of these, that a lane has bytes of
MATRIX_BYTES = 2  # of an element of ldmatrix's 8x8 matrices
MATRIX_PAIRS = 4  # elements that a lane has of each of its two rows, 8 apart, in four matrices: 16 rows of 16 columns


def lower_box_read(context: Context, statement: Assign) -> tuple[Node, ...]:
    """`target = box_read(tile)`: consecutive elements at once, as many as lie side by side for a thread.

    Along an axis that is longer than the tile's, neighbours share an element.
    """
    call, target = statement.value, statement.target
    if not isinstance(call, Call) or not isinstance(call.args[0], Use):
        raise TypeError("not a reading of a box")
    source = call.args[0].variable
    layout, tile = context.schedule.layouts[target], context.schedule.staged[source]
    base = f"{context.names.variable(source)}[{context.ahead.stage_of[source]}]"
    sharing = tuple(side // own for side, own in zip(target.type.shape, tile.shape, strict=True))
    width = min(layout.run(tile.fast), tile.chunk) if sharing[tile.fast] == 1 else 1
    access = Access(tile.fast, width, (), ())
    if max(sharing) == 1 and _by_matrices(layout, tile):
        return (*context.declare(statement, target, layout), *_byte_pairs(context, target, layout, tile, base))
    if max(sharing) == 1 and _by_transposed_matrices(layout, tile):
        return (*context.declare(statement, target, layout), *_matrices(context, target, layout, tile, base))
    several = layout.num_registers > width
    name = context.names.variable(target)

    def read(point: Point) -> tuple[Node, ...]:
        at = replace(point, axes=tuple(bits[bits_of(n) :] for bits, n in zip(point.axes, sharing, strict=True)))
        naming, place = place_line(context, element_place(context, tile, source, at), source.name, several)
        element = indexed(context, name, target, point)
        if width == 1:
            return (*naming, Assignment(element, f"{base}[{place}]"))
        if width * tile.itemsize == PAIR_BYTES and layout.vector(tile.fast) >= width > 1:
            pair = context.use_helper("load_byte_pair")
            return (*naming, Line(f"{pair}({run_at(element)}, &{base}[{place}]);"))
        helper = context.use_helper("load_vec", "load_vec", kind="", modifier="", bools=False)
        context.needs.packets.add(width * tile.itemsize)
        count = width_name(context, layout, access)
        if layout.vector(tile.fast) >= width:
            return (*naming, Line(f"{helper}<{count}>({run_at(element)}, &{base}[{place}]);"))
        loaded, i = context.names.shared_index("loaded"), inner_index(context, "i", layout)
        moved = tuple(
            f"[{sum_text(point.indices[axis].text, i) if axis == tile.fast else point.indices[axis].text}]"
            for axis in layout.array_axes()
        )
        return (
            *naming,
            Declaration(ctype(target.type), loaded, sides=f"[{count}]"),
            Line(f"{helper}<{count}>({loaded}, &{base}[{place}]);"),
            unrolled(i, count, (Assignment(f"{name}{''.join(moved)}", f"{loaded}[{i}]"),)),
        )

    return (*context.declare(statement, target, layout), *vectors(context, layout, access, read))


def _by_transposed_matrices(layout: Layout, tile: SharedTile) -> bool:
    """Whether lanes hold a 16-bit tile as ldmatrix brings it transposed: the pairs of a lane are of two lines.

    Pairs that lie side by side in a line are read by plain loads, which the compiler may move.
    """
    if tile.itemsize != MATRIX_BYTES or layout.rank != 2:
        return False
    across, down = layout.axes[tile.slow], layout.axes[tile.fast]
    further = down[len(ROW_IN_PIECE) :]
    return (
        across[: len(COLUMN_IN_PIECE) + 1] == (*COLUMN_IN_PIECE, REGISTER)
        and all(bit == REGISTER for bit in across[len(COLUMN_IN_PIECE) :])
        and down[: len(ROW_IN_PIECE)] == ROW_IN_PIECE
        and REGISTER not in further[: len(further) - further.count(REGISTER)]
    )


def _matrices(context: Context, target: Variable, layout: Layout, tile: SharedTile, base: str) -> tuple[Node, ...]:
    """Reads a warp's 16 rows, 16 columns at once, which are lines of the tile."""
    context.use_helper("ldmatrix", "ldmatrix_x4_trans", count=4, trans=True)
    helper = context.use_helper("load_matrices")
    name, v, r = context.names.variable(target), context.names.shared_index("v"), context.names.shared_index("r")
    columns, down = tile.slow, layout.axes[tile.fast]
    own = context.axis_names.thread_text(
        (*[REGISTER] * len(ROW_IN_PIECE), *down[len(ROW_IN_PIECE) :]), ("row", "column")[tile.fast]
    ).text
    count, pieces = layout.registers(columns) // MATRIX_PAIRS, layout.registers(tile.fast) // 2
    apart = (1 << len(down)) // pieces  # rows from a warp's 16 to its next ones
    lane = context.axis_names.lane()
    row = sum_text(own, f"{r} * {apart}" * (pieces > 1))
    column = f"{v} * 16" * (count > 1)
    place = sum_text(column, f"{lane} / 16 * 8", f"{lane} % 8"), sum_text(row, f"{lane} / 8 % 2 * 8")
    in_loop = count > 1 or pieces > 1
    text = place_text(context, tile, ctype(target.type), *place)
    naming, at = place_line(context, text, f"{target.name}_tile", in_loop)
    rows = (f"{r} * 2", f"{r} * 2 + 1") if pieces > 1 else ("0", "1")
    first = f"{v} * {MATRIX_PAIRS}" if count > 1 else "0"
    upper, lower = (run_at(f"{name}[{one}][{first}]") for one in rows)
    nodes: tuple[Node, ...] = (*naming, Line(f"{helper}({upper}, {lower}, &{base}[{at}]);"))
    if count > 1:
        limit = f"{context.count(layout.axes[columns])} / {MATRIX_PAIRS}"
        nodes = (unrolled(v, limit, nodes),)
    if pieces > 1:
        limit = f"{context.count(down)} / 2"
        nodes = (unrolled(r, limit, nodes),)
    return nodes


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
    element, v, lane = ctype(target.type), context.names.shared_index("v"), context.axis_names.lane()
    count = layout.registers(tile.slow) // OWN
    first = context.axis_names.thread_text(
        (*[REGISTER] * len(PAIRS_IN_PIECE), *layout.axes[tile.fast][len(PAIRS_IN_PIECE) :]),
        ("row", "column")[tile.fast],
    ).text
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
    return (unrolled(v, limit, nodes),)
