"""Tiles that tensor copies bring and threads take to registers (`box_read`): in a loop whose operands tensor copies bring.

In: the plan of a kernel's rings and a load of a loop. Out: a tensor copy in its place, and behind it a reading of what that
brings. Nobody but the loading thread then computes addresses, and a whole tile is one copy, where threads that fetch what
they will hold themselves make one for each run of elements: of sums of wgmma that is four bytes of halves. A tile that is
multiplied and used otherwise as well is multiplied where it lies, and no thread writes it to shared memory again.
"""

from __future__ import annotations

from dataclasses import replace

from ...analysis.boxes import Box
from ...ir.nodes import Assign, Call, Expr, For, Literal, Use, Variable
from ...ir.rewrite import substituted, with_operands
from ...ir.symbols import Number, Operation
from ...ir.types import Dim, ValueType, symbol_of
from ..products.dots import dot_statements
from ..products.instructions import whole_pieces
from ..products.shared_tiles import SharedTile, fits
from .own_loads import LEAST_BYTES
from .read_ahead import Found
from .ring_plan import RingPlan
from .tensor_copies import box_load, find_any_box, why_not_copied


def read_large_tiles(plan: RingPlan, loop: For, own: list[Found]) -> None:
    """Has tensor copies bring the large tiles among the loads that threads could make ahead."""
    for one in own:
        load = one.statement
        found = box_to_read(plan, load, loop) if load.target.type.is_tile and not one.numbers else None
        if found is not None and found[1].stage_bytes >= LEAST_BYTES:
            read_box(plan, load, found, loop)


def box_to_read(plan: RingPlan, load: Assign, loop: For) -> tuple[Box, SharedTile] | None:
    """The box of a load, and its format in shared memory; None where no tensor copy can bring it."""
    call, shape, itemsize = load.value, load.target.type.shape, load.target.type.dtype.itemsize
    zeros = isinstance(call, Call) and (
        len(call.args) < 3 or (isinstance(call.args[2], Literal) and call.args[2].value == 0)
    )
    if not zeros or call.attribute("volatile") or not whole_pieces(shape) or len(shape) != 2:  # type: ignore[attr-defined]
        return None
    box = find_any_box(plan, load, loop, shared=True)
    if not isinstance(box, Box) or box.dims[0].axis is None:
        return None
    sharing = {dim.axis: dim.sharing for dim in box.dims}
    sides = tuple(_quotient(side, sharing.get(axis, 1)) for axis, side in enumerate(shape))
    tile = SharedTile(sides, box.dims[0].axis, itemsize)
    possible = fits(tile.shape, tile.fast, itemsize) and not why_not_copied(plan, box, tile, tile)
    starts = (*(dim.start for dim in box.dims), *(Use(v.type, v) for v in box.made_of))
    return (box, tile) if possible and plan.given.thread.comes_to(loop, starts) else None


def _quotient(side: int, number: int) -> int:
    """A side of the box, of whose elements each is that of so many neighbours in the tile."""
    symbol = symbol_of(side)
    if number == 1 or symbol is None:
        return side if number == 1 else side // number
    return Dim(side // number, Operation("/", symbol, Number(number)))


def read_box(plan: RingPlan, load: Assign, found: tuple[Box, SharedTile], loop: For) -> Variable:
    """Puts a tensor copy, and behind it a reading of what it brings, in the place of a load: the shared tile."""
    box, tile = found
    brought = plan.variable(f"{load.target.name}_tile", load.target.type.with_shape(tile.shape))
    plan.dots = replace(plan.dots, staged=plan.dots.staged | {brought: tile})
    plan.replaced[load] = box_load(plan, load, box, tile, loop.variable, brought)
    type_: ValueType = load.target.type
    call = Call(type_, "box_read", (Use(type_, brought),), span=load.value.span)
    plan.add_behind(load, replace(load, value=call))
    return brought


def multiply_where_it_lies(plan: RingPlan, load: Assign, brought: Variable) -> None:
    """Has dots read a tile where a tensor copy has brought it; all others take it to registers."""
    values: dict[Variable, Expr] = {load.target: Use(brought.type, brought)}
    for dot, _ in dot_statements(plan.given.kernel):
        planned = plan.replaced.get(dot, dot)  # its other operand may be such a tile, too
        if isinstance(planned, Assign) and isinstance(planned.value, Call):
            call = planned.value
            operands = tuple(substituted(arg, values) for arg in call.args[:2])
            plan.replaced[dot] = replace(planned, value=with_operands(call, (*operands, *call.args[2:])))
