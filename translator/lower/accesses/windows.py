"""The windows of loops: what their trips load, each element once; `schedule/accesses/windows.py` says which and why."""

from __future__ import annotations

from collections.abc import Callable

from ...ir.nodes import Assign, Call, Expr, Statement, Use, Variable
from ...ir.symbols import Name, renamed, spelled
from ...schedule.accesses.access import Access, load_operands
from ...schedule.accesses.trip_loads import COUNTER
from ...schedule.accesses.windows import Window
from ...schedule.tiles.layout import Layout
from ..context import Context, ctype
from ..text.axis_names import NamedAxis
from ..text.element import element_text, indexed, run_at
from ..text.operators import ZERO, Text, infix
from ..text.point import FIRST, Index, Point, point_of, register, vector_start
from ..text.register_loops import axis_indices, each_register, inner_index
from ..text.unit import Assignment, Comment, Declaration, Node, const, unrolled
from .conditions import all_tests
from .elements import chosen
from .memory_order import note_load, order_after_stores
from .vector_loads import vector_load
from .vectors import width_name


def lower_windows(context: Context, begin: Statement) -> tuple[Node, ...]:
    """The windows that are loaded where a loop begins: it, or the note of a static loop's first trip."""
    return tuple(node for window in context.schedule.windows.ahead.get(begin, ()) for node in _lower(context, window))


def taken_from_window(context: Context, statement: Assign) -> tuple[Node, ...]:
    """A trip's load: its elements of the window."""
    window, start = context.schedule.windows.taken[statement]
    target, layout = statement.target, context.schedule.layouts[statement.target]
    name, array, run = context.names.variable(target), _name(context, window), _run(context, window)
    if window.counter is not None:
        start = renamed(start, COUNTER, Name(context.names.variable(window.counter)))

    def one(point: Point) -> tuple[Node, ...]:
        source = array
        for axis in layout.array_axes():
            index = point.indices[axis].whole
            if axis == window.axis and _has_runs(layout, window):
                source += f"[{infix(index, '/', Text(run)).text}]"
                index = infix(index, "%", Text(run))
            moved = infix(index, "+", Text(spelled(start))) if axis == window.axis else index
            source += f"[{moved.text}]"
        return (Assignment(indexed(context, name, target, point), source),)

    return (*context.declare(statement, target, layout), *each_register(context, layout, one))


def _lower(context: Context, window: Window) -> tuple[Node, ...]:
    target, layout, access = window.load.target, context.schedule.layouts[window.load.target], window.access
    pointer = load_operands(window.load)[0]
    before = order_after_stores(context, pointer, layout)
    note_load(context, pointer, layout)
    names, run, array = axis_indices(context, layout), _run(context, window), _name(context, window)
    number, inner = context.names.shared_index("v"), inner_index(context, "i", layout)
    total, axes = f"{run} + {window.span}", layout.array_axes()
    indices = [register(name) if layout.registers(axis) > 1 else FIRST for axis, name in enumerate(names)]
    loops = {axis: [(names[axis], context.count(layout.axes[axis]))] for axis in axes}
    sizes = {axis: f"[{size}]" for axis in axes for _, size in loops[axis]}
    runs = [(number, _runs(context, window))] if _has_runs(layout, window) else []
    indices[window.axis] = vector_start(Text(number), run, window.run.bit_length() - 1) if runs else FIRST
    loops[window.axis], sizes[window.axis] = runs, "".join(f"[{size}]" for _, size in runs) + f"[{total}]"
    if access.width > 1:
        indices[access.axis], loops[access.axis] = _vectors(context, access, layout, names[access.axis])
    point = point_of(layout, tuple(indices))

    def element(place: str) -> str:
        at = {axis: f"[{point.indices[axis].text}]" for axis in axes}
        at[window.axis] = f"[{number}]" * len(runs) + f"[{place}]"
        return array + "".join(at[axis] for axis in axes)

    if window.axis == axes[-1]:
        nodes = _beside_run(context, window, point, inner, element)
    else:
        nodes = _at_place(context, window, point, inner, element(inner))
        loops[window.axis] = [*runs, (inner, total)]
    for name, size in (one for axis in reversed(axes) for one in reversed(loops[axis])):
        nodes = (unrolled(name, size, nodes),)
    where = window.load.origin.place(window.load.origin.span.line)
    what = f"What the iterations load at {where}, each element once: {run} neighbours, and {window.span} beside them."
    declared = Declaration(ctype(target.type), array, sides="".join(sizes[axis] for axis in axes))
    return (*before, Comment(what), declared, *nodes)


def _vectors(context: Context, access: Access, layout: Layout, name: str) -> tuple[Index, list[tuple[str, str]]]:
    """The index at which the vectors along an axis start, and the loop over them, if there are several."""
    count, width = layout.registers(access.axis) // access.width, width_name(context, layout, access)
    if count == 1:
        return vector_start(ZERO, width, access.width.bit_length() - 1), []
    return vector_start(Text(name), width, access.width.bit_length() - 1), [(name, str(count))]


def _beside_run(
    context: Context, window: Window, point: Point, inner: str, element: Callable[[str], str]
) -> tuple[Node, ...]:
    """The window of a run whose elements lie side by side: a vector, if there is one, and those beside it."""
    run, middle = _run(context, window), window.middle
    place, count = inner, f"{run} + {window.span}"
    nodes: tuple[Node, ...] = ()
    naming: tuple[Node, ...] = ()
    if middle is not None:
        nodes = (_vector(context, window.load, middle.pointer, middle.access, point, element(str(middle.start))),)
        count = str(window.span)
        on_both_sides = f"{inner} < {middle.start} ? {inner} : {run} + {inner}", "in front of those, or behind"
        behind = f"{run} + {inner}", "behind those"
        which, where = behind if middle.start == 0 else on_both_sides
        if middle.start < window.span:  # else all stand in front
            place = context.names.shared_index("place")
            naming = (const("int", place, which, where),)
    rest = (*naming, *_at_place(context, window, point, place, element(place)))
    return (*nodes, unrolled(inner, count, rest))


def _at_place(context: Context, window: Window, point: Point, place: str, element: str) -> tuple[Node, ...]:
    """One element of the window, or a vector along another axis than the window's."""
    naming = tuple(_index(context, window, variable, first, point, place) for variable, first in window.places)
    for variable, made in window.named:
        text = context.speller.text(made, _where_read(window, variable, point))
        naming += (const(ctype(variable.type), context.names.in_block(variable), text),)
    if window.access.width > 1:
        return (*naming, _vector(context, window.load, window.pointer, window.access, point, element))
    target, other = window.load.target, load_operands(window.load)[2]
    condition = all_tests(context, window.access, point, target)
    value = element_text(context, window.pointer, point)
    if condition is not None:
        value = chosen(context, condition, value, other, target.type, point)
    return (*naming, Assignment(element, value.text))


def _vector(context: Context, load: Assign, pointer: Expr, access: Access, point: Point, target: str) -> Node:
    """Elements that one access brings."""
    source = context.speller.text(pointer, point)
    return vector_load(context, load, access, point, run_at(target), source)


def _index(context: Context, window: Window, variable: Variable, first: Expr, point: Point, place: str) -> Declaration:
    """The index of an element of the window."""
    there = _where_read(window, variable, point)
    text = infix(context.speller.spell(first, there), "+", Text(place))
    return const(ctype(variable.type), context.names.in_block(variable), text.text)


def _where_read(window: Window, variable: Variable, point: Point) -> Point:
    """The place in a tile from which an address, a mask or what these mention by name reads a scalar of the window."""
    roots: list[tuple[Expr, Point]] = [(root, point) for root in (window.pointer, *window.access.tests)]
    for named, value in window.named:
        at = next((at for root, start in roots if (at := _point_of(root, named, start)) is not None), None)
        roots += [(value, at)] if at is not None else []
    return next(at for root, start in roots if (at := _point_of(root, variable, start)) is not None)


def _point_of(expr: Expr, variable: Variable, point: Point | None) -> Point | None:
    """The place in a tile from which an expression reads a scalar that stands for all of it."""
    if point is None or not isinstance(expr, Call):
        return None
    if expr.op == "broadcast" and isinstance(expr.args[0], Use) and expr.args[0].variable == variable:
        return point
    below = ((arg, point.operand(expr, arg)) for arg in expr.args if arg.type.is_tile)
    return next((found for arg, at in below if (found := _point_of(arg, variable, at)) is not None), None)


def _name(context: Context, window: Window) -> str:
    target = window.load.target
    return context.names.variable(context.temporary(window.load, f"{target.stem}_window", target.type))


def _has_runs(layout: Layout, window: Window) -> bool:
    """Whether a thread has several runs along the axis."""
    return layout.registers(window.axis) > window.run


def _run(context: Context, window: Window) -> str:
    """The constant that counts the elements of a run."""
    named = _named(context, window)
    if named is None:
        return str(window.run)
    return named.vector if named.num_registers > named.run else named.count


def _runs(context: Context, window: Window) -> str:
    """The constant that counts a thread's runs."""
    named, layout = _named(context, window), context.schedule.layouts[window.load.target]
    return named.vectors if named else str(layout.registers(window.axis) // window.run)


def _named(context: Context, window: Window) -> NamedAxis | None:
    """The names of the axis, where its vectors are the runs."""
    named = context.axis_names.find(context.schedule.layouts[window.load.target].axes[window.axis])
    return named if named and named.run == window.run else None
