"""Loops over short lines that take several trips at once: what a trip's tensor copies bring along K is less than a line.

In: a loop all of whose loads are boxes. Out: the same loop with wider boxes and a wider step. A tensor copy takes as long for
a line of 64 bytes as for one of 128, which is as long as lines in shared memory get: two trips of tiles that have 32 halves
along K cost what one does (docs/performance.md). Products are added up in the same order, to the same last bit.

The last step may reach beyond the last trip. Boxes bring zeros from there: their tensors end along K where the loop does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ...analysis.affine import NotAffineError, Sum, Term, build, minus, plus, times
from ...analysis.box_dimensions import BoxDim, Site
from ...analysis.boxes import Box
from ...analysis.outliving import Outside
from ...analysis.ranges import number_of
from ...frozen import frozen
from ...hardware import SWIZZLED_LINE_BYTES
from ...ir.nodes import Assign, Call, CallFunction, Expr, For, Inlined, Literal, Note, Use, Variable
from ...ir.rewrite import with_operands
from ...ir.structured import is_elementwise
from ...ir.symbols import Number, Operation
from ...ir.types import Dim, symbol_of
from ...ir.walk import statements, subexpressions, used_variables
from ..products.dots import dot_statements
from .ring_plan import RingPlan

LEAST_STAGES = 3  # of joined trips: one that is read, one that is freed, one that is on its way
IN_PARAMETERS = {"add", "sub", "mul", "floordiv", "cast"}  # what the launcher computes sizes with
REMARK = "{} trips at once, for lines of {} bytes; zeros lie behind the last"


@frozen
class Joined:
    """How many trips of a loop become one, and the boxes of its loads, as wide as those of one trip are."""

    trips: int
    boxes: Mapping[Assign, Box]


def joined_trips(plan: RingPlan, loop: For, boxes: Mapping[Assign, Box], outside: Outside) -> Joined | None:
    """What becomes of a loop with these loads; None where its trips cannot be joined, or that would spare nothing."""
    axes = {load: _axis_of_k(plan, load.target) for load in boxes}
    lines = [
        int(load.target.type.shape[axis]) * load.target.type.dtype.itemsize
        for load, axis in axes.items()
        if axis is not None and boxes[load].dims[0].axis == axis
    ]
    trips = SWIZZLED_LINE_BYTES // min(lines, default=SWIZZLED_LINE_BYTES)
    stage = max(trips, 1) * sum(plan.dots.staged[load.target].stage_bytes for load in boxes)
    room = min(plan.given.target.max_dynamic_shared_bytes // stage, plan.given.wishes.most_stages)
    if trips < 2 or room < LEAST_STAGES or loop.descending or not _only_multiplies(plan, loop, boxes, outside):
        return None
    try:
        side_by_side = {load: _side_by_side(plan, loop, load, box, axes[load], trips) for load, box in boxes.items()}
    except NotAffineError:
        return None
    return Joined(trips, side_by_side)


def _axis_of_k(plan: RingPlan, tile: Variable) -> int | None:
    """The axis of a tile that is K to all dots that read it; None where they differ."""
    axes = {one.k_axis for dot in plan.dots.plans.values() for one in dot.operands if one.variable is tile}
    return axes.pop() if len(axes) == 1 else None


def _only_multiplies(plan: RingPlan, loop: For, boxes: Mapping[Assign, Box], outside: Outside) -> bool:
    """Whether a trip does nothing but multiply what it loads, and find places that nobody needs behind it."""
    for statement in statements(loop.body):
        if statement in boxes or statement in plan.dots.plans or isinstance(statement, (Note, Inlined)):
            continue
        if not isinstance(statement, Assign) or isinstance(statement.value, CallFunction):
            return False
        if not is_elementwise(statement.value) or any(target in outside for target in statement.targets):
            return False
    return True


# ------------------------------------------------------------------------------------------- what the boxes of a trip bring


def _side_by_side(plan: RingPlan, loop: For, load: Assign, box: Box, axis: int | None, trips: int) -> Box:
    """The box of a load, which ends where that of the next trip starts; its tensor ends behind the last trip's.

    Raises:
      NotAffineError: when those of consecutive trips do not lie side by side along K, or something lies behind the last.
    """
    if not isinstance(loop.step, Literal) or loop.step.trips is not None:
        raise NotAffineError("its step is no number")
    site = Site(load, plan.given.kernel, plan.given.facts, plan.given.induction)
    dims: list[BoxDim] = []
    for dim in box.dims:
        slope, rest = _start(dim, site, loop)
        along_k = axis is not None and dim.axis == axis
        if slope * loop.step.value != (dim.side if along_k else 0):
            raise NotAffineError("it does not start where the one before ends")
        ends = not along_k or _come_out_even(plan, loop, trips)
        dims.append(dim if ends else replace(dim, size=_size(plan, loop, dim, slope, rest)))
    return replace(box, dims=tuple(dims))


def _start(dim: BoxDim, site: Site, loop: For) -> tuple[int, Sum]:
    """Where a box starts along a dimension: so many times the loop's variable, and what is the same in all trips."""
    own = (Use(loop.variable.type, loop.variable),)
    terms = site.numeric.sum(dim.start)
    rest = tuple(term for term in terms if term.factors != own)
    changed = site.induction.changed[loop] | {loop.variable}
    if any(changed & set(used_variables(factor)) for term in rest for factor in term.factors):
        raise NotAffineError("it starts elsewhere in each trip")
    return sum(term.coefficient for term in terms if term.factors == own), rest


def _come_out_even(plan: RingPlan, loop: For, trips: int) -> bool:
    """Whether numbers say that no step reaches beyond the last trip."""
    bounds = (number_of(bound, plan.given.facts.definitions) for bound in (loop.start, loop.stop, loop.step))
    start, stop, step = bounds
    return not (start is None or stop is None or not step) and len(range(start, stop, step)) % trips == 0


def _size(plan: RingPlan, loop: For, dim: BoxDim, slope: int, rest: Sum) -> Expr:
    """The size of the tensor, which ends where the trip behind the last one would start; what no mask bounds ends there.

    Raises:
      NotAffineError: when it may go on.
    """
    site = Site(loop, plan.given.kernel, plan.given.facts, plan.given.induction)
    first, stop = (site.numeric.sum(bound) for bound in (loop.start, loop.stop))
    if dim.size is not None:
        last = plus(_at_least(times((Term(slope),), stop), site), rest)
        beyond = minus(last, site.numeric.sum(dim.size))
        if any(term.unknowns for term in beyond) or sum(term.number for term in beyond) < 0:
            raise NotAffineError("the tensor does not end where the loop does")
        return dim.size
    end = build(plus(times((Term(slope),), plus(first, _whole_steps(minus(stop, first), loop, site))), rest))
    parameters = {parameter.variable for parameter in plan.given.kernel.parameters}
    calls = {part.op for part in subexpressions(end) if isinstance(part, Call)}
    if not parameters.issuperset(used_variables(end)) or not calls <= IN_PARAMETERS:
        raise NotAffineError("where the loop ends is not known beforehand")
    return end


def _whole_steps(length: Sum, loop: For, site: Site) -> Sum:
    """How far the steps of a loop reach that counts so far."""
    size, step = build(length), loop.step
    if not isinstance(step, Literal) or site.divisor(size) % step.value == 0:
        return length
    number = Literal(size.type, step.value)
    rounded = build(plus(length, (Term(int(step.value) - 1),)))
    return (Term(int(step.value), (Call(size.type, "floordiv", (rounded, number)),)),)


def _at_least(terms: Sum, site: Site) -> Sum:
    """What a sum is not below, without quotients that it holds as often as they divide: `n * (x // n) >= x - (n - 1)`."""
    found: list[Sum] = []
    for term in terms:
        match term.factors:
            case (Call(op="floordiv", args=(dividend, Literal(value=number))),) if term.coefficient == number:
                found.append(minus(site.numeric.sum(dividend), (Term(int(number) - 1),)))
            case _:
                found.append((term,))
    return plus(*found)


# ------------------------------------------------------------------------------------------------------ the joined loop


def join(plan: RingPlan, loop: For, loads: Iterable[Assign], trips: int) -> dict[Variable, Variable]:
    """Has a loop take so many trips at once: the wider tiles that its dots then read, by what its loads bring otherwise."""
    wider: dict[Variable, Variable] = {}
    for tile in (load.target for load in loads):
        axis = _axis_of_k(plan, tile)
        sides = tuple(_times(side, trips) if number == axis else side for number, side in enumerate(tile.type.shape))
        wider[tile] = plan.variable(tile.name, tile.type.with_shape(sides))
        staged = {wider[tile]: replace(plan.dots.staged[tile], shape=sides)}
        plan.dots = replace(plan.dots, staged=plan.dots.staged | staged)
    for dot, call in dot_statements(plan.given.kernel):
        operands = tuple(_widened(arg, wider) for arg in call.args[:2])
        if (widened := with_operands(call, (*operands, *call.args[2:]))) is not call:
            plan.replaced[dot] = replace(dot, value=widened)
    if isinstance(loop.step, Literal):
        symbol = loop.step.symbol and Operation("*", Number(trips), loop.step.symbol)
        step = replace(loop.step, value=loop.step.value * trips, symbol=symbol)
        plan.replaced[loop] = replace(
            loop, origin=loop.origin.noted(REMARK.format(trips, SWIZZLED_LINE_BYTES)), step=step
        )
    return wider


def _times(side: int, trips: int) -> int:
    """A side that is so many times as long."""
    symbol = symbol_of(side)
    return Dim(side * trips, symbol and Operation("*", Number(trips), symbol))


def _widened(operand: Expr, wider: Mapping[Variable, Variable]) -> Expr:
    """An operand of a dot, perhaps transposed, of a wider tile."""
    if isinstance(operand, Use):
        tile = wider.get(operand.variable)
        return Use(tile.type, tile, span=operand.span) if tile else operand
    if isinstance(operand, Call) and (inner := _widened(operand.args[0], wider)) is not operand.args[0]:
        sides = tuple(inner.type.shape[axis] for axis in operand.attribute("order"))
        return replace(operand, type=operand.type.with_shape(sides), args=(inner,))
    return operand
