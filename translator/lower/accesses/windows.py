"""Windows: what several loads, or trips of one, take their elements from, each loaded once.

`schedule/accesses/windows.py` and `schedule/accesses/records.py` say which and why.
"""

from __future__ import annotations

from collections.abc import Callable

from ...analysis.masks import conjuncts
from ...ir.nodes import Assign, Call, Expr, Statement, Use, Variable
from ...ir.symbols import Name, Symbol, renamed, spelled
from ...ir.types import ValueType
from ...language.dtypes import int32
from ...schedule.accesses.access import Access, is_zero, load_operands
from ...schedule.accesses.trip_loads import COUNTER
from ...schedule.accesses.window import Window
from ...schedule.tiles.layout import Layout
from ..context import Context, ctype
from ..text.axis_names import NamedAxis
from ..text.element import element_text, indexed, run_at
from ..text.operators import ZERO, Text, infix
from ..text.point import FIRST, Index, Point, point_of, register, vector_start
from ..text.register_loops import axis_indices, each_register, inner_index
from ..text.unit import Assignment, Branch, Comment, Declaration, Node, const, unrolled
from .conditions import all_tests, uniform_test, valid_count, why_one_test
from .elements import chosen
from .memory_order import note_load, order_after_stores
from .vector_loads import count_under, vector_load, vector_within
from .vectors import width_name


def lower_windows(context: Context, begin: Statement) -> tuple[Node, ...]:
    """The windows that are loaded in front of a statement: a loop, the note of a static loop's first trip, a load."""
    return tuple(node for window in context.schedule.windows.ahead.get(begin, ()) for node in _lower(context, window))


def taken_from_window(context: Context, statement: Assign) -> tuple[Node, ...]:
    """A load of a trip, or of a block: its elements of the window, which is loaded in front of the block's first."""
    window, start = context.schedule.windows.taken[statement]
    target, layout = statement.target, context.schedule.layouts[statement.target]
    name, array = context.names.variable(target), _name(context, window)
    if window.counter is not None:
        start = renamed(start, COUNTER, Name(context.names.variable(window.counter)))

    def one(point: Point) -> tuple[Node, ...]:
        source = array
        for axis in _axes(layout, window):
            index = point.indices[axis].whole
            source += _element(context, window, layout, index, start) if axis == window.axis else f"[{index.text}]"
        return (
            Assignment(
                indexed(context, name, target, point), _or_own_number(context, statement, window, point, source)
            ),
        )

    ahead = lower_windows(context, statement)
    return (*ahead, *context.declare(statement, target, layout), *each_register(context, layout, one))


def _element(context: Context, window: Window, layout: Layout, index: Text, start: Symbol) -> str:
    """The subscripts along the window's axis of what one register takes from it."""
    number, run = "", Text(_run(context, window))
    if window.run == 1:
        number = f"[{index.text}]" * _has_runs(layout, window)
    elif _has_runs(layout, window):
        number, index = f"[{infix(index, '/', run).text}]", infix(index, "%", run)
    if window.stride > 1:
        index = infix(index, "*", Text(str(window.stride)))
    first = Text(spelled(start))
    place = first if window.run == 1 else infix(index, "+", first) if not window.vector or first != Text("0") else index
    return f"{number}[{place.text}]"


def _or_own_number(context: Context, load: Assign, window: Window, point: Point, element: str) -> str:
    """An element of a window, or, outside of the mask, the number that a load has for it where the window has another one."""
    _, mask, other = load_operands(load)
    same = other == window.other or (is_zero(other) and is_zero(window.other))
    if not window.vector or mask is None or same:
        return element
    each = Access(window.axis, 1, tuple(conjuncts(mask, context.facts)), ())
    condition = all_tests(context, each, point, load.target)
    return chosen(context, condition, Text(element), other, load.target.type, point).text if condition else element


def _axes(layout: Layout, window: Window) -> tuple[int, ...]:
    """The axes of the array of windows, outermost first: what lies side by side in memory does so in the array as well."""
    axes = layout.array_axes()
    return (*(axis for axis in axes if axis != window.axis), window.axis) if window.vector else axes


def _lower(context: Context, window: Window) -> tuple[Node, ...]:
    target, layout, access = window.load.target, context.schedule.layouts[window.load.target], window.access
    pointer = load_operands(window.load)[0]
    before = order_after_stores(context, pointer, layout)
    note_load(context, pointer, layout)
    names, run, array = axis_indices(context, layout), _run(context, window), _name(context, window)
    number = context.names.shared_index("v") if window.run > 1 else names[window.axis]
    inner = inner_index(context, "i", layout)
    total, axes = _length(context, window), _axes(layout, window)
    indices = [register(name) if layout.registers(axis) > 1 else FIRST for axis, name in enumerate(names)]
    several = {axis: layout.registers(axis) > 1 for axis in axes}
    loops = {axis: [(names[axis], context.count(layout.axes[axis]))] if several[axis] else [] for axis in axes}
    sizes = {axis: f"[{size}]" for axis in axes for _, size in loops[axis]}
    runs = [(number, _runs(context, window))] if _has_runs(layout, window) else []
    bits = window.run.bit_length() - 1
    indices[window.axis] = (
        vector_start(Text(number), run, bits) if runs and bits else register(number) if runs else FIRST
    )
    loops[window.axis], sizes[window.axis] = runs, "".join(f"[{size}]" for _, size in runs) + f"[{total}]"
    if access.width > 1 and not window.vector:
        indices[access.axis], loops[access.axis] = _vectors(context, access, layout, names[access.axis])
    point = point_of(layout, tuple(indices))

    def element(place: str) -> str:
        at = {axis: f"[{point.indices[axis].text}]" for axis in axes}
        at[window.axis] = f"[{number}]" * len(runs) + f"[{place}]"
        return array + "".join(at[axis] for axis in axes)

    if window.vector:
        nodes = _whole(context, window, point, inner, element)
    elif window.axis == axes[-1]:
        nodes = _beside_run(context, window, point, inner, element)
    else:
        nodes = _at_place(context, window, point, inner, element(inner))
        loops[window.axis] = [*runs, (inner, total)]
    for name, size in (one for axis in reversed(axes) for one in reversed(loops[axis])):
        nodes = (unrolled(name, size, nodes),)
    what = _said(context, window)
    declared = Declaration(ctype(target.type), array, sides="".join(sizes[axis] for axis in axes))
    why = why_one_test(context, window.load, access, layout) if window.vector else ()
    return (*before, Comment(what), *why, declared, *nodes)


def _said(context: Context, window: Window) -> str:
    """What a window is, for the reader."""
    run, where = _run(context, window), window.load.origin.place(window.load.origin.span.line)
    if window.vector:
        taken = (load.origin for load, (one, _) in context.schedule.windows.taken.items() if one is window)
        *others, last = dict.fromkeys(origin.place(origin.span.line) for origin in taken)
        lines = f"{', '.join(others)} and {last}" if others else last
        records = "a record" if window.run == 1 else f"{run} records"
        return f"What is loaded at {lines}: {window.span + 1} fields of {records}, side by side in memory."
    return f"What the iterations load at {where}, each element once: {run} neighbours, and {window.span} beside them."


def _length(context: Context, window: Window) -> str:
    """How many elements it has, as text."""
    if not window.vector:
        return f"{_run(context, window)} + {window.span}"
    return str(window.length) if window.run == 1 else f"{_run(context, window)} * {window.stride}"


def _whole(
    context: Context, window: Window, point: Point, inner: str, element: Callable[[str], str]
) -> tuple[Node, ...]:
    """A window that is loaded by vectors alone, unless the tile ends within it."""
    load, access, length = window.load, window.access, _length(context, window)
    test, count = uniform_test(context, access, point, load.target), valid_count(context, access, point)
    source = context.speller.spell(window.pointer, point)
    if (end := count_under(test, count)) is None:
        return _whole_vectors(context, window, point, inner, element, source, test)
    names = (context.temporary(load, f"{load.target.stem}_{word}", ValueType(int32)) for word in ("start", "inside"))
    start, inside = map(context.names.variable, names)
    valid = f"min(max({end.text}, 0), {_run(context, window)}) * {window.stride}"
    one = chosen(
        context, Text(f"{inner} < {inside}", 10, "<"), Text(f"{start}[{inner}]"), window.other, load.target.type, point,
    )  # fmt: skip
    return (
        Declaration(ctype(window.pointer.type, writes=False), start, source.text),
        const("int", inside, valid, "elements that may be touched"),
        Branch(
            f"{inside} == {length}",
            _whole_vectors(context, window, point, inner, element, Text(start), None),
            (unrolled(inner, length, (Assignment(element(inner), one.text),)),),
        ),
    )


def _whole_vectors(
    context: Context,
    window: Window,
    point: Point,
    inner: str,
    element: Callable[[str], str],
    source: Text,
    test: Text | None,
) -> tuple[Node, ...]:
    """All elements of a window by vectors, if a test holds."""
    name, several = context.constants.width(window.vector), window.length > window.vector
    place = infix(Text(inner), "*", Text(name)) if several else ZERO
    source = infix(source, "+", place) if several else source
    vector = vector_within(
        context,
        window.load.target.type,
        window.other,
        point,
        (window.vector, name),
        test,
        None,
        run_at(element(place.text)),
        source.text,
    )
    return (unrolled(inner, f"{_length(context, window)} / {name}", (vector,)) if several else vector,)


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
    word = "records" if window.vector else "window"
    return context.names.variable(context.temporary(window.load, f"{target.stem}_{word}", target.type))


def _has_runs(layout: Layout, window: Window) -> bool:
    """Whether a thread has several runs along the axis."""
    return layout.registers(window.axis) > window.run


def _run(context: Context, window: Window) -> str:
    """The constant that counts the elements of a run."""
    named = _named(context, window)
    if named is None or window.run == 1:
        return str(window.run)
    return named.vector if named.num_registers > named.run else named.count


def _runs(context: Context, window: Window) -> str:
    """The constant that counts a thread's runs."""
    named, layout = _named(context, window), context.schedule.layouts[window.load.target]
    if window.run == 1:
        return context.count(layout.axes[window.axis])
    return named.vectors if named else str(layout.registers(window.axis) // window.run)


def _named(context: Context, window: Window) -> NamedAxis | None:
    """The names of the axis, where its vectors are the runs."""
    named = context.axis_names.find(context.schedule.layouts[window.load.target].axes[window.axis])
    return named if named and named.run == window.run else None
