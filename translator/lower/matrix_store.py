"""An accumulator's tile into swizzled shared memory by stmatrix: a warp writes 16 rows and 16 columns at once."""

from __future__ import annotations

from ..ir.nodes import Variable
from ..schedule.instructions import COLUMN_IN_PIECE, ROW_IN_PIECE
from ..schedule.layout import REGISTER, Layout
from ..schedule.shared_tiles import SharedTile
from .context import Context, ctype
from .operand import place_line, place_text
from .unit import Line, Loop, Node

ITEM_BYTES = 2  # of stmatrix's elements
OWN = 4  # elements that a lane has in each of its two rows of 16 columns
OTHER_PIECE = 32  # rows from a warp's 16 to its next ones, per row that a thread has


def stores_matrices(layout: Layout, tile: SharedTile, per_piece: int) -> bool:
    """Whether warps hold a 16-bit tile in pieces of 16 x 16, columns contiguous in memory, as products of wgmma leave it."""
    if tile.itemsize != ITEM_BYTES or layout.rank != 2 or tile.fast != 1 or per_piece % OWN:
        return False
    rows, columns = layout.axes
    further = [bit for bit in rows[len(ROW_IN_PIECE) + 2 :] if bit == REGISTER]
    return (
        rows[: len(ROW_IN_PIECE) + 2] == (*ROW_IN_PIECE, 5, 6)
        and list(rows[len(ROW_IN_PIECE) + 2 :][: len(further)]) == further
        and columns[: len(COLUMN_IN_PIECE) + 1] == (*COLUMN_IN_PIECE, REGISTER)
    )


def write_matrices(
    context: Context, variable: Variable, layout: Layout, tile: SharedTile, array: str, first: str, limit: str
) -> tuple[Node, ...]:
    """This warp's part of a piece whose first element in a thread's rows is `first`; `limit` counts these elements."""
    context.use_helper("stmatrix", "stmatrix_x4", count=4)
    helper = context.use_helper("store_matrices")
    name, lane = context.names.variable(variable), context.lane()
    v, r = context.names.shared_index("v"), context.names.shared_index("r")
    text = context.roles.thread_text((0, 1, 2, 3, *layout.axes[0][len(ROW_IN_PIECE) :]))
    row = context.thread_place("matrix_row", text, "the row that this lane addresses")
    several = layout.registers(0) > 2
    line = f"{row} + {r} * {OTHER_PIECE}" if several else row
    column = f"{v} * 16 + {lane} / 16 * 8"
    naming, place = place_line(
        context, place_text(context, tile, ctype(variable.type), line, column, "0"), variable.name, True
    )
    at = f"{first} + {v} * {OWN}" if first else f"{v} * {OWN}"
    rows = (f"{r}", f"{r} + 1") if several else ("0", "1")
    sources = ", ".join(f"&{name}[{number}][{at}]" for number in rows)
    nodes: tuple[Node, ...] = (*naming, Line(f"{helper}(&{array}[{place}], {sources});"))
    nodes = (Loop(f"for (int {v} = 0; {v} < {limit} / {OWN}; ++{v})", nodes, unroll=True),)
    if several:
        nodes = (Loop(f"for (int {r} = 0; {r} < {context.count(layout.axes[0])}; {r} += 2)", nodes, unroll=True),)
    return nodes
