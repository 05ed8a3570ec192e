"""The windows of static loops: what their trips load, each element once; `schedule/accesses/windows.py` says which and why."""

from __future__ import annotations

from collections.abc import Callable

from ...analysis.masks import conjuncts
from ...ir.nodes import Assign, Call, Expr, Literal, Statement, Use, Variable
from ...ir.symbols import spelled
from ...schedule.accesses.access import Access
from ...schedule.accesses.windows import Middle, Window
from ...schedule.tiles.layout import Layout
from ..context import Context, ctype
from ..text.axis_names import NamedAxis
from ..text.element import element_text, indexed
from ..text.literals import literal_text
from ..text.operators import Text, infix
from ..text.point import FIRST, Point, point_of, register, vector_start
from ..text.unit import Comment, Line, Loop, Node, Spelled
from .conditions import all_tests, uniform_test
from .elements import chosen
from .memory_order import note_load, order_after_stores
from .vectors import load_operands


def lower_windows(context: Context, note: Statement) -> tuple[Node, ...]:
    """The windows that are loaded where a static loop begins."""
    return tuple(node for window in context.schedule.windows.ahead.get(note, ()) for node in _lower(context, window))


def taken_from_window(context: Context, statement: Assign) -> tuple[Node, ...]:
    """A trip's load: its elements of the window."""
    window, start = context.schedule.windows.taken[statement]
    target, layout = statement.target, context.schedule.layouts[statement.target]
    name, array, run = context.names.variable(target), _name(context, window), _run(context, window)

    def one(point: Point) -> tuple[Node, ...]:
        source = array
        for axis in layout.array_axes():
            index = point.indices[axis].whole
            if axis == window.axis and _has_runs(layout, window):
                source += f"[{infix(index, '/', Text(run)).text}]"
                index = infix(index, "%", Text(run))
            moved = infix(index, "+", Text(spelled(start))) if axis == window.axis else index
            source += f"[{moved.text}]"
        return (Spelled("assign", {"target": indexed(context, name, target, point), "value": source}),)

    return (*context.declare(statement, target, layout), *context.each_register(layout, one))


def _lower(context: Context, window: Window) -> tuple[Node, ...]:
    target, layout = window.load.target, context.schedule.layouts[window.load.target]
    pointer, _, other = load_operands(window.load.value)  # type: ignore[arg-type]
    before = order_after_stores(context, pointer, layout)
    note_load(context, pointer, layout)
    names, run, array = context.axis_indices(layout), _run(context, window), _name(context, window)
    number = context.names.shared_index("v") if _has_runs(layout, window) else ""
    start = vector_start(Text(number), run, window.run.bit_length() - 1) if number else FIRST
    indices = [register(name) if layout.registers(a) > 1 else FIRST for a, name in enumerate(names)]
    indices[window.axis] = start
    point = point_of(layout, tuple(indices))
    loops = {axis: [(names[axis], context.count(layout.axes[axis]))] for axis in layout.array_axes()}
    loops[window.axis] = [(number, _runs(context, window))] if number else []

    def element(place: str) -> str:
        at = {axis: "".join(f"[{name}]" for name, _ in each) for axis, each in loops.items()}
        at[window.axis] += f"[{place}]"
        return array + "".join(at[axis] for axis in layout.array_axes())

    sizes = {axis: "".join(f"[{size}]" for _, size in each) for axis, each in loops.items()}
    sizes[window.axis] += f"[{run} + {window.span}]"
    nodes = _one_by_one(context, window, point, other, element)
    if window.middle is not None:
        nodes = (_vector(context, window.load, window.middle, point, run, element(str(window.middle.start))), *nodes)
    for name, size in (one for axis in reversed(layout.array_axes()) for one in reversed(loops[axis])):
        nodes = (Loop(f"for (int {name} = 0; {name} < {size}; ++{name})", nodes, unroll=True),)
    origin, dimensions = window.load.origin, "".join(sizes[axis] for axis in layout.array_axes())
    where = origin.place(origin.span.line)
    what = Comment(
        f"What the iterations load at {where}, each element once: {run} neighbours, and {window.span} beside them."
    )
    return (*before, what, Line(f"{ctype(target.type)} {array}{dimensions};"), *nodes)


def _one_by_one(
    context: Context, window: Window, point: Point, other: Expr | None, element: Callable[[str], str]
) -> tuple[Node, ...]:
    """The elements of a run's window that no vector brings."""
    target, run, layout = window.load.target, _run(context, window), point.layout
    inner, middle = context.inner_index("i", layout), window.middle
    place, count, naming = inner, f"{run} + {window.span}", tuple[Node, ...]()
    if middle is not None:
        count = str(window.span)
        beside = {0: f"{run} + {inner}", window.span: inner}
        which = beside.get(middle.start, f"{inner} < {middle.start} ? {inner} : {run} + {inner}")
        if which != inner:
            place = context.names.shared_index("place")
            naming = (Line(f"const int {place} = {which};", "in front of those, or behind"),)
    access = Access(window.axis, 1, tuple(conjuncts(window.mask, context.facts)), ())
    condition, value = all_tests(context, access, point, target), element_text(context, window.pointer, point)
    if condition is not None:
        value = chosen(context, condition, value, other, target.type, point)
    nodes = (
        *naming,
        *(_place(context, window, variable, first, point, place) for variable, first in window.places),
        Spelled("assign", {"target": element(place), "value": value.text}),
    )
    return (Loop(f"for (int {inner} = 0; {inner} < {count}; ++{inner})", nodes, unroll=True),)


def _vector(context: Context, load: Assign, middle: Middle, point: Point, run: str, target: str) -> Node:
    """The elements that a vector brings."""
    type_, (_, _, other) = load.target.type, load_operands(load.value)  # type: ignore[arg-type]
    test = uniform_test(context, middle.access, point, load.target)
    kind = "if" if test else ""
    helper = context.use_helper("load_vec", "load_vec_if" if test else "load_vec", kind=kind, modifier="", bools=False)
    context.needs.packets |= {middle.access.width * type_.dtype.itemsize}
    values = {
        "width": run,
        "target": f"&{target}",
        "source": context.speller.text(middle.pointer, point),
        "suffix": "",
        "helper": helper,
        "kind": kind,
        "fill": literal_text(other.value if isinstance(other, Literal) else 0, type_.dtype),
    }
    return Spelled("load_vec", values | ({"condition": test.text} if test else {}))


def _place(context: Context, window: Window, variable: Variable, first: Expr, point: Point, place: str) -> Line:
    """The index of an element of the window."""
    roots = [root for root in (window.pointer, window.mask) if root is not None]
    there = next(found for root in roots if (found := _point_of(root, variable, point)) is not None)
    text = infix(context.speller.spell(first, there), "+", Text(place))
    return Line(f"const {ctype(variable.type)} {context.names.variable(variable)} = {text.text};")


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
