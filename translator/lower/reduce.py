"""Reductions: each thread over its registers, each warp by shuffles, the block through shared memory.

The partial results of the warps meet in a shared array with one slot per warp along the axis and per kept element. A tile
that several operations reduce (a value and its index) travels as one state with several fields.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..ir.nodes import Assign, Call, Combine, Expr, Variable
from ..schedule.access import inside_test
from ..schedule.layout import REGISTER, Layout, drop_axis, padded
from .combine import Combination
from .combine_struct import combination_of
from .conditions import copies_guard
from .context import Context
from .convert import Move, moved
from .element import indexed
from .point import Index, Point, point_of
from .shared import dimensions, number_of, place
from .spell import Text
from .unit import Branch, Constant, Line, Loop, Node, Shared

LANE_BITS = 5


@dataclass(frozen=True, slots=True)
class _Plan:
    """One reduction: its operands, layouts, and which thread bits of the reduced axes are lanes and warps."""

    operands: tuple[Expr, ...]
    source: Layout
    axes: tuple[int, ...]
    kept: Layout
    lane_bits: tuple[int, ...]
    warp_bits: tuple[int, ...]
    combination: Combination

    @property
    def over_block(self) -> bool:
        """Whether every thread of the block, and nothing else, is reduced: the helper `block_reduce` does that."""
        return self._every_thread and not any(self.kept.axes)

    @property
    def over_block_by_rows(self) -> bool:
        """The same where each thread keeps an array of elements: the helper `block_reduce_rows`."""
        return self._every_thread and len(self.kept.array_axes()) == 1

    @property
    def _every_thread(self) -> bool:
        every_bit = len(self.lane_bits) + len(self.warp_bits) == self.source.thread_bits
        return every_bit and bool(self.warp_bits)


def lower_reduce(context: Context, statement: Assign) -> tuple[Node, ...]:
    """`targets = reduce(operands)` along one axis or all."""
    call = statement.value
    if not isinstance(call, Call):
        raise TypeError("not a reduction")
    source = context.schedule.statement_layouts[id(statement)]
    axis = call.attribute("axis")
    axes = tuple(range(source.rank)) if axis is None else (axis,)
    kept = Layout((), source.thread_bits) if axis is None else drop_axis(source, axis)
    shape = call.args[0].type.shape
    threads = sorted(bit for a in axes for bit in source.axes[a] if bit != REGISTER)
    plan = _Plan(
        operands=call.args,
        source=source,
        axes=axes,
        kept=kept,
        lane_bits=tuple(bit for bit in threads if bit < LANE_BITS),
        warp_bits=tuple(bit for bit in threads if bit >= LANE_BITS),
        combination=combination_of(context, call, any(padded(shape[a]) != shape[a] for a in axes)),
    )
    if plan.combination.fields:
        return _reduce_states(context, statement, plan)
    target = statement.target
    layout = context.schedule.layouts[target] if target.type.is_tile else None
    if layout is not None and layout != kept:
        return _reduce_and_move(context, statement, plan, layout)
    name = context.names.variable(target)
    single = all(count == 1 for count in kept.register_shape())
    declare = () if single and context.declares(statement, target) else context.declare(statement, target, layout)
    return (
        *declare,
        *_reduce_into(context, statement, plan, name, bool(single and context.declares(statement, target))),
    )


def _reduce_and_move(context: Context, statement: Assign, plan: _Plan, layout: Layout) -> tuple[Node, ...]:
    """A reduction whose result lives in another layout than the one that the reduced tile leaves it in.

    That is so where the result's other neighbours, such as the running sum that it is added to, were settled first.
    """
    target = statement.target
    own = context.temporary(id(statement), f"{target.name}_reduced", target.type)
    name = context.names.variable(own)
    move = Move(target, name, plan.kept, layout, context.names.variable(target))
    return (
        Line(f"{context.declaration(own, plan.kept)};"),
        *_reduce_into(context, statement, plan, name, False),
        *context.declare(statement, target, layout),
        *moved(context, statement, move, "result", declares=False),
    )


# ------------------------------------------------------------------------------------------------ plain elements


def _reduce_into(context: Context, statement: Assign, plan: _Plan, name: str, declares: bool) -> tuple[Node, ...]:
    """All levels of a reduction of one tile into the registers `name`."""
    target = statement.target
    prefix = f"{plan.combination.state} " if declares else ""

    def one_kept(point: Point) -> tuple[Node, ...]:
        result = indexed(context, name, target, point)
        nodes = _over_registers(context, plan, point, result, prefix)
        return (*nodes, *_over_lanes(context, plan, result))

    nodes = context.each_register(plan.kept, one_kept)
    if not plan.warp_bits:
        return nodes
    return (*nodes, *_over_warps(context, statement, plan, name))


def _source_point(context: Context, plan: _Plan, kept: Point, indices: dict[int, str]) -> Point:
    """The element of the source at a kept element and at given registers along the reduced axes."""
    chosen: list[Index] = []
    position = 0
    for axis in range(plan.source.rank):
        if axis in plan.axes:
            chosen.append(Index(indices[axis]))
        else:
            chosen.append(kept.indices[position])
            position += 1
    return point_of(plan.source, tuple(chosen))


def _over_registers(context: Context, plan: _Plan, kept: Point, result: str, prefix: str) -> tuple[Node, ...]:
    """The thread's own part: the first element, then the others in a loop."""
    names = context.axis_indices(plan.source)
    taken = {index.text for index in kept.indices}
    names = [name if axis not in plan.axes or name not in taken else f"{name}{name}" for axis, name in enumerate(names)]
    looped = [axis for axis in plan.axes if plan.source.registers(axis) > 1]
    zero = {axis: "0" for axis in plan.axes}
    first = _masked(context, plan, _source_point(context, plan, kept, zero))
    if not looped:
        return (Line(f"{prefix}{result} = {first.text};"),)
    expression = plan.combination.expression
    if expression is None:
        raise TypeError("a state is combined by its struct")
    many = len(looped) > 1
    point = _source_point(context, plan, kept, zero | {axis: names[axis] for axis in looped})
    start = plan.combination.identity if many and plan.combination.identity else first.text
    value = _masked(context, plan, point)
    node: Node = Line(_combine_line(expression, result, value.within(13)))
    for axis in reversed(looped):
        begin = "0" if many else "1"
        count = context.count(plan.source.axes[axis])
        header = f"for (int {names[axis]} = {begin}; {names[axis]} < {count}; ++{names[axis]})"
        node = Loop(header, (node,), unroll=True)
    return (Line(f"{prefix}{result} = {start};"), node)


def _combine_line(expression: object, result: str, value: str) -> str:
    text = expression(result, value)  # type: ignore[operator]
    for operator in ("+", "^", "|", "&"):
        if text == f"{result} {operator} {value}":
            return f"{result} {operator}= {value};"
    return f"{result} = {text};"


def _masked(context: Context, plan: _Plan, point: Point) -> Text:
    """An element of the operand, or the identity where the coordinate is padding."""
    value = context.speller.spell(plan.operands[0], point)
    shape = plan.operands[0].type.shape
    for axis in plan.axes:
        if padded(shape[axis]) != shape[axis]:
            test = context.speller.spell(inside_test(shape, axis), point)
            value = Text(f"{test.within(4)} ? {value.within(4)} : {plan.combination.identity}", 3)
    return value


def _over_lanes(context: Context, plan: _Plan, result: str) -> tuple[Node, ...]:
    if plan.over_block or plan.over_block_by_rows:
        return ()
    nodes = []
    for first, last in _runs(plan.lane_bits):
        context.use_helper("shuffle_xor")
        context.use_helper("warp_reduce")
        nodes.append(Line(f"{result} = warp_reduce<{plan.combination.struct}, {1 << last}, {1 << first}>({result});"))
    return tuple(reversed(nodes))


def _runs(bits: tuple[int, ...]) -> list[tuple[int, int]]:
    """Consecutive thread bits as (lowest, highest)."""
    runs: list[tuple[int, int]] = []
    for bit in bits:
        if runs and bit == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], bit)
        else:
            runs.append((bit, bit))
    return runs


def _over_warps(context: Context, statement: Assign, plan: _Plan, name: str) -> tuple[Node, ...]:
    """Through shared memory: a slot per warp along the axis and per kept element."""
    warps = 1 << len(plan.warp_bits)
    kept = _kept_shape(plan)
    shared_name = context.scratch_name(id(statement), "partial", f"{name}_partial")
    state = plan.combination.state
    size = warps * math.prod(padded(side) for side in kept) * context.size_of(state)
    comment = "one partial result per warp" if math.prod(kept) == 1 else "by warp and kept element"
    leading = _warps_text(context, plan, name)
    array = Shared(shared_name, state, dimensions(context, kept, leading), size, comment)
    context.scratch(id(statement), "partial", array)
    before = context.before_write(shared_name)
    if plan.over_block or plan.over_block_by_rows:
        helper = "block_reduce" if plan.over_block else "block_reduce_rows"
        for needed in ("shuffle_xor", "warp_reduce", *(() if plan.over_block else ("combine_warps",))):
            context.use_helper(needed)
        context.use_helper(helper, barrier=context.block_barrier())
        text = f"{helper}<{plan.combination.struct}>({name}, {shared_name});"
        node = Line(
            f"{name} = {text}" if plan.over_block else text,
            "a barrier inside: every warp has written its partial result",
        )
        context.after_barrier()
        context.pending_reads.add(shared_name)
        return (*before, node)
    nodes = _exchange(context, plan, statement, name, shared_name)
    context.pending_reads.add(shared_name)
    return (*before, *nodes)


def _kept_shape(plan: _Plan) -> tuple[int, ...]:
    shape = plan.operands[0].type.shape
    return tuple(side for axis, side in enumerate(shape) if axis not in plan.axes)


def _warps_text(context: Context, plan: _Plan, name: str) -> str:
    """How many warps share the reduced axes, by name."""
    warps = 1 << len(plan.warp_bits)
    if len(plan.warp_bits) == plan.source.thread_bits - LANE_BITS:
        return "NUM_WARPS"
    text = context.names.once(f"{name.upper()}_WARPS", ("warps", name, warps))
    constant = Constant(text, str(warps), f"warps that share one element of {name}")
    if constant not in context.roles.constants:
        context.roles.constants.append(constant)
    return text


def _exchange(context: Context, plan: _Plan, statement: Assign, name: str, shared: str) -> tuple[Node, ...]:
    target = statement.targets[0]
    kept = _kept_shape(plan)
    warp = number_of(context, plan.warp_bits, plan.source.thread_bits)
    index = context.names.shared_index("w")
    kept_sides = [side for side in kept if padded(side) > 1]

    def slot(point: Point) -> str:
        return place(context, point, kept) if math.prod(kept) > 1 else ""

    def write(point: Point) -> tuple[Node, ...]:
        return (Line(f"{shared}[{warp}]{slot(point)} = {indexed(context, name, target, point)};"),)

    def read(point: Point) -> tuple[Node, ...]:
        if len(kept_sides) == 1:
            context.use_helper("combine_warps")
            place_text = slot(point)[1:-1]
            text = f"combine_warps<{plan.combination.struct}>({shared}, {place_text})"
            return (Line(f"{indexed(context, name, target, point)} = {text};"),)
        result, other = indexed(context, name, target, point), f"{shared}[{index}]{slot(point)}"
        struct = plan.combination.struct
        expression = plan.combination.expression or (lambda left, right: f"{struct}::combine({left}, {right})")
        header = f"for (int {index} = 1; {index} < {_warps_text(context, plan, name)}; ++{index})"
        loop = Loop(header, (Line(_combine_line(expression, result, other)),), unroll=True)
        return (Line(f"{result} = {shared}[0]{slot(point)};"), loop)

    writers = Layout((*plan.kept.axes, plan.warp_bits), plan.source.thread_bits)
    nodes = context.each_register(plan.kept, write)
    if guard := copies_guard(context, writers):
        nodes = (Branch(guard, nodes),)
    barrier = context.barrier("every warp has written its partial results")
    return (*nodes, *barrier, *context.each_register(plan.kept, read))


# -------------------------------------------------------------------------------------------- states of several fields


def _reduce_states(context: Context, statement: Assign, plan: _Plan) -> tuple[Node, ...]:
    """The same levels for several tiles that are combined together: one state per kept element."""
    combine: Combine = statement.value.attribute("combine")  # type: ignore[attr-defined]
    purpose = combine.name if combine.parts else f"{statement.targets[0].name}_state"
    state = context.temporary(id(statement), purpose, statement.targets[0].type)
    name = context.names.variable(state)
    layout = plan.kept if plan.kept.rank else None
    single = layout is None or not layout.array_axes()
    nodes: list[Node] = [] if single else [Line(f"{plan.combination.state} {name}{context.dimensions(layout)};")]

    def fields(point: Point) -> str:
        values = [context.speller.text(operand, point) for operand in plan.operands]
        if len(plan.combination.fields) > len(values):
            shape = plan.operands[0].type.shape
            tests = [
                context.speller.text(inside_test(shape, axis), point)
                for axis in plan.axes
                if padded(shape[axis]) != shape[axis]
            ]
            values.append(" && ".join(tests))
        return f"{{{', '.join(values)}}}"

    def one_kept(point: Point) -> tuple[Node, ...]:
        result = indexed(context, name, state, point)
        declared = f"{plan.combination.state} " if single else ""
        return (
            *_states_over_registers(context, plan, point, result, fields, declared),
            *_over_lanes(context, plan, result),
        )

    nodes += context.each_register(plan.kept, one_kept)
    if plan.warp_bits:
        nodes += _over_warps(context, statement, plan, name)
    for number, target in enumerate(statement.targets):
        if target not in context.facts.unused:
            nodes += _unpack(context, statement, plan, target, name, plan.combination.fields[number][1])
    return tuple(nodes)


def _states_over_registers(
    context: Context, plan: _Plan, kept: Point, result: str, fields: object, declared: str
) -> tuple[Node, ...]:
    names = context.axis_indices(plan.source)
    looped = [axis for axis in plan.axes if plan.source.registers(axis) > 1]
    zero = {axis: "0" for axis in plan.axes}
    first = Line(f"{declared}{result} = {fields(_source_point(context, plan, kept, zero))};")  # type: ignore[operator]
    if not looped:
        return (first,)
    point = _source_point(context, plan, kept, zero | {a: names[a] for a in looped})
    struct = plan.combination.struct
    node: Node = Line(f"{result} = {struct}::combine({result}, {fields(point)});")  # type: ignore[operator]
    if len(looped) > 1:  # the very first element is the start
        node = Branch(" || ".join(f"{names[axis]} > 0" for axis in looped), (node,))
    for axis in reversed(looped):
        count = context.count(plan.source.axes[axis])
        begin = "1" if len(looped) == 1 else "0"
        node = Loop(f"for (int {names[axis]} = {begin}; {names[axis]} < {count}; ++{names[axis]})", (node,), True)
    return (first, node)


def _unpack(
    context: Context, statement: Assign, plan: _Plan, target: Variable, state: str, field: str
) -> tuple[Node, ...]:
    name = context.names.variable(target)
    layout = context.schedule.layouts[target] if target.type.is_tile else None

    def one(point: Point) -> tuple[Node, ...]:
        left, right = indexed(context, name, target, point), indexed(context, state, target, point)
        return (Line(f"{left} = {right}.{field};"),)

    if layout is None:
        return context.bind_scalar(statement, target, f"{state}.{field}")
    if layout == plan.kept:
        return (*context.declare(statement, target, layout), *context.each_register(plan.kept, one))
    own = context.temporary(id(statement), f"{target.name}_reduced", target.type)
    name = context.names.variable(own)
    move = Move(target, name, plan.kept, layout, context.names.variable(target))
    return (
        Line(f"{context.declaration(own, plan.kept)};"),
        *context.each_register(plan.kept, one),
        *context.declare(statement, target, layout),
        *moved(context, statement, move, f"result_{field}", declares=False),
    )
