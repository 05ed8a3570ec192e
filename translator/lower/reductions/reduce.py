"""Reductions: each thread over its registers, then what `levels.py` has for warps and the block.

Several tiles that are reduced together are in `states.py`.
"""

from __future__ import annotations

from ...hardware import LANE_BITS
from ...ir.c_operators import ATOM
from ...ir.nodes import Assign, Call
from ...ir.types import padded
from ...schedule.tiles.layout import REGISTER, Layout, drop_axis
from ..context import Context
from ..shared.convert import Move, moved
from ..text.element import indexed
from ..text.operators import ZERO, Text, infix
from ..text.point import FIRST, Index, Point, register
from ..text.register_loops import axis_indices, each_register
from ..text.unit import Declaration, Node, unrolled
from .combine_struct import combination_of
from .levels import Part, combined, over_lanes, over_warps
from .reduction import (
    Reduction,
    first_value,
    has_padding,
    in_register_loops,
    is_array,
    loop_names,
    masked,
    source_point,
)
from .states import reduce_states

LEAST_OF_TWO_CHAINS = 16  # elements of a thread


def lower_reduce(context: Context, statement: Assign) -> tuple[Node, ...]:
    """`targets = reduce(operands)` along one axis or all."""
    call = statement.value
    if not isinstance(call, Call):
        raise TypeError("not a reduction")
    source = context.schedule.statement_layouts[statement]
    axis = call.attribute("axis")
    axes = tuple(range(source.rank)) if axis is None else (axis,)
    kept = Layout((), source.thread_bits) if axis is None else drop_axis(source, axis)
    shape = call.args[0].type.shape
    threads = sorted(bit for a in axes for bit in source.axes[a] if bit != REGISTER)
    plan = Reduction(
        operands=call.args,
        source=source,
        axes=axes,
        kept=kept,
        lane_bits=tuple(bit for bit in threads if bit < LANE_BITS),
        warp_bits=tuple(bit for bit in threads if bit >= LANE_BITS),
        combination=combination_of(context, call, any(padded(shape[a]) != shape[a] for a in axes)),
    )
    if plan.combination.fields:
        return reduce_states(context, statement, plan)
    target = statement.target
    layout = context.schedule.layouts[target] if target.type.is_tile else None
    if layout is not None and layout != kept:
        return _reduce_and_move(context, statement, plan, layout)
    name = context.names.variable(target)
    single = kept.num_registers == 1
    declare = () if single and context.declares(statement, target) else context.declare(statement, target, layout)
    return (
        *declare,
        *_reduce_into(context, statement, plan, name, bool(single and context.declares(statement, target))),
    )


def _reduce_and_move(context: Context, statement: Assign, plan: Reduction, layout: Layout) -> tuple[Node, ...]:
    """A reduction whose result lives in another layout than the one that the reduced tile leaves it in.

    That is so where the result's other neighbours, such as the running sum that it is added to, were settled first.
    """
    target = statement.target
    own = context.beside(statement, target, "reduced")
    name = context.names.variable(own)
    move = Move(target, name, plan.kept, layout, context.names.variable(target))
    single = not plan.kept.array_axes()
    declare = () if single else (context.declaration(own, plan.kept),)
    return (
        *declare,
        *_reduce_into(context, statement, plan, name, single),
        *context.declare(statement, target, layout),
        *moved(context, statement, move, "result", declares=False),
    )


def _reduce_into(context: Context, statement: Assign, plan: Reduction, name: str, declares: bool) -> tuple[Node, ...]:
    """All levels of a reduction of one tile into the registers `name`."""
    target = statement.target

    def one_kept(point: Point) -> tuple[Node, ...]:
        result = indexed(context, name, target, point)
        chains = _over_two_chains(context, statement, plan, point, result, declares)
        return over_lanes(context, plan, result, chains or _over_registers(context, plan, point, result, declares))

    nodes = each_register(context, plan.kept, one_kept)
    if not plan.warp_bits:
        return nodes
    return (*nodes, *over_warps(context, statement, plan, name))


def _over_two_chains(
    context: Context, statement: Assign, plan: Reduction, kept: Point, result: str, declares: bool
) -> tuple[Node, ...]:
    """The thread's own part of a long row, every second element apart; () where that is no use.

    Beside a loading warpgroup a scheduler has two or three warps: one chain of dependent operations leaves it idle, and the
    tensor cores with it.
    """
    operand, expression = plan.operands[0], plan.combination.expression
    looped = [axis for axis in plan.axes if plan.source.registers(axis) > 1]
    if not context.schedule.rings.has_producer or not is_array(context, operand) or len(looped) != 1:
        return ()
    if expression is None or not plan.combination.commutes:
        return ()
    (axis,) = looped
    if plan.source.registers(axis) < LEAST_OF_TWO_CHAINS or has_padding(plan):
        return ()
    index = loop_names(plan, kept, axis_indices(context, plan.source))[axis]
    zero = dict.fromkeys(plan.axes, FIRST)

    def element(place: Text) -> Text:
        return context.speller.spell(operand, source_point(plan, kept, zero | {axis: Index(place)}))

    odd = context.names.once(f"{statement.target.name}_odd", ("odd", statement))
    both = (
        combined(expression, result, element(Text(index))),
        combined(expression, odd, element(infix(Text(index), "+", Text("1")))),
    )
    return (
        first_value(plan, result, element(ZERO).text, declares),
        Declaration(
            plan.combination.state, odd, element(Text("1")).text, comment="two independent chains hide latency"
        ),
        unrolled(index, context.count(plan.source.axes[axis]), both, start=2, step=2),
        combined(expression, result, Text(odd)),
    )


def _over_registers(context: Context, plan: Reduction, kept: Point, result: str, declares: bool) -> Part:
    """The thread's own part: the first element, then the others in a loop."""
    names = loop_names(plan, kept, axis_indices(context, plan.source))
    looped = [axis for axis in plan.axes if plan.source.registers(axis) > 1]
    zero = dict.fromkeys(plan.axes, FIRST)
    first = _element(context, plan, source_point(plan, kept, zero))
    if not looped:
        return first_value(plan, result, first.text, declares)
    expression = plan.combination.expression
    if expression is None:
        raise TypeError("a state is combined by its struct")
    # What is computed for an element stands in the text once.
    once = len(looped) > 1 or (plan.combination.adds_up and first.precedence < ATOM)
    point = source_point(plan, kept, zero | {axis: register(names[axis]) for axis in looped})
    start = plan.combination.identity if once else None
    value = _element(context, plan, point)
    node = combined(expression, result, value)
    begin = first_value(plan, result, start or first.text, declares)
    return (begin, in_register_loops(context, plan, names, node, taken=start is None))


def _element(context: Context, plan: Reduction, point: Point) -> Text:
    value = context.speller.spell(plan.operands[0], point)
    return masked(context, plan, point, value, plan.combination.identity)
