"""An accumulator's tile into swizzled shared memory by stmatrix: a warp writes 16 rows and 16 columns at once."""

from __future__ import annotations

from ...hardware import WARPGROUP_BITS
from ...schedule.products.instructions import COLUMN_IN_PIECE, ROW_IN_PIECE
from ...schedule.products.shared_tiles import SharedTile
from ...schedule.tiles.layout import REGISTER, Layout, bits_of
from ..context import Context
from ..shared.arrays import side_text
from ..text.element import run_at
from ..text.unit import Line, Node, unrolled
from .outgoing import Outgoing

ITEM_BYTES = 2  # of stmatrix's elements
OWN = 4  # elements that a lane has in each of its two rows of 16 columns
OTHER_PIECE = 32  # rows (or columns) from a warp's 16 to its next ones, per one that a thread has


def stores_matrices(layout: Layout, tile: SharedTile, per_piece: int) -> bool:
    """Whether warps hold a 16-bit tile in pieces of 16 x 16, columns contiguous in memory, as products of wgmma leave it."""
    if tile.itemsize != ITEM_BYTES or layout.rank != 2 or tile.fast != 1 or per_piece % OWN:
        return False
    rows, columns = layout.axes
    within = bits_of(tile.shape[1])
    own, above = columns[len(COLUMN_IN_PIECE) : within], columns[within:]
    registers = next((place for place, bit in enumerate(own) if bit != REGISTER), len(own))
    further = [bit for bit in rows[len(ROW_IN_PIECE) + 2 :] if bit == REGISTER]
    return (
        rows[: len(ROW_IN_PIECE) + 2] == (*ROW_IN_PIECE, 5, 6)
        and list(rows[len(ROW_IN_PIECE) + 2 :][: len(further)]) == further
        and columns[: len(COLUMN_IN_PIECE) + 1] == (*COLUMN_IN_PIECE, REGISTER)
        and all(bit >= WARPGROUP_BITS for bit in own[registers:])
        and all(bit == REGISTER for bit in above)
    )


def stores_across(layout: Layout, tile: SharedTile) -> bool:
    """Whether warps hold a 16-bit tile as `stores_matrices` says, but for its columns in the place of its rows."""
    if tile.itemsize != ITEM_BYTES or layout.rank != 2 or tile.fast != 1 or layout.registers(0) % OWN:
        return False
    down, across = layout.axes
    further = [bit for bit in across[len(ROW_IN_PIECE) + 2 :] if bit == REGISTER]
    return (
        down[: len(COLUMN_IN_PIECE)] == COLUMN_IN_PIECE
        and all(bit == REGISTER for bit in down[len(COLUMN_IN_PIECE) :])
        and across[: len(ROW_IN_PIECE) + 2] == (*ROW_IN_PIECE, 5, 6)
        and list(across[len(ROW_IN_PIECE) + 2 :][: len(further)]) == further
        and len(across) == bits_of(tile.shape[1])
    )


def write_across(context: Context, outgoing: Outgoing) -> tuple[Node, ...]:
    """This warp's 16 columns of a tile, transposed on their way."""
    layout, tile = outgoing.layout, outgoing.tile
    for template, name, values in (
        ("swizzled", "swizzled", {}),
        ("stmatrix", "stmatrix_x4_trans", {"count": 4, "trans": True}),
    ):
        context.use_helper(template, name, **values)
    helper, name = context.use_helper("store_matrices_across"), context.names.variable(outgoing.variable)
    own = context.axis_names.thread_text(
        (*[REGISTER] * len(ROW_IN_PIECE), *layout.axes[1][len(ROW_IN_PIECE) :]), "column"
    ).text
    sides = ", ".join(side_text(context, tile.shape[axis]).text for axis in (tile.fast, tile.slow))
    count, c, several = context.count(layout.axes[0]), context.names.shared_index("c"), layout.registers(1) > 2
    columns = (c, f"{c} + 1") if several else ("0", "1")
    at = f"{own} + {c} * {OTHER_PIECE}" if several else own
    store = Line(
        f"{helper}<{sides}, {count}>({outgoing.array}, {at}, {', '.join(f'{name}[{column}]' for column in columns)});"
    )
    if not several:
        return (store,)
    return (unrolled(c, context.count(layout.axes[1]), (store,), step=2),)


def write_matrices(context: Context, outgoing: Outgoing, first: str, count: str) -> tuple[Node, ...]:
    """This warp's part of a piece: `count` elements of each of a thread's rows, from `first` ("" for the start) on."""
    layout, tile = outgoing.layout, outgoing.tile
    for template, name, values in (("swizzled", "swizzled", {}), ("stmatrix", "stmatrix_x4", {"count": 4})):
        context.use_helper(template, name, **values)
    tile_name = context.names.variable(outgoing.variable)
    in_piece = layout.axes[1][len(COLUMN_IN_PIECE) : bits_of(tile.shape[1])]
    shared_out = any(bit != REGISTER for bit in in_piece)  # warpgroups hold columns side by side
    suffix = "_from" if shared_out else ""
    helper = context.use_helper("store_matrices", f"store_matrices{suffix}", columns=shared_out)
    warp_row = context.axis_names.thread_text(
        (*[REGISTER] * len(ROW_IN_PIECE), *layout.axes[0][len(ROW_IN_PIECE) :]), "row"
    ).text
    sides = ", ".join(side_text(context, tile.shape[axis]).text for axis in (tile.fast, tile.slow))
    r, several = context.names.shared_index("r"), layout.registers(0) > 2
    rows = (r, f"{r} + 1") if several else ("0", "1")
    at = f"{warp_row} + {r} * {OTHER_PIECE}" if several else warp_row
    if shared_out:
        at += f", {context.axis_names.thread_text((*[REGISTER] * len(COLUMN_IN_PIECE), *in_piece), 'column').text}"
    sources = ", ".join(run_at(f"{tile_name}[{row}][{first or 0}]") for row in rows)
    store = Line(f"{helper}<{sides}, {count}>({outgoing.array}, {at}, {sources});")
    if not several:
        return (store,)
    return (unrolled(r, context.count(layout.axes[0]), (store,), step=2),)
