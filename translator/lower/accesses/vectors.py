"""How the vectors of an access follow each other: loops over them, their names, and where a thread finds and holds its own.

In: a statement's access and layout. Out: loops around what is done with each vector, and the constants that count them.
"""

from __future__ import annotations

from collections.abc import Callable

from ...ir.nodes import Assign, Call, Effect, Expr, Use, Variable
from ...ir.walk import MOVES
from ...schedule.accesses.access import Access, plan_load, plan_store
from ...schedule.tiles.layout import Layout
from ..context import Context
from ..text.element import indexed, run_at
from ..text.operators import ZERO, Text
from ..text.point import FIRST, Index, Point, point_of, register, vector_start
from ..text.register_loops import axis_indices, inner_index
from ..text.rounding import materialised
from ..text.unit import Assignment, Comment, Node, unrolled


def access_of(context: Context, statement: Assign, layout: Layout | None = None) -> Access:
    """How a load of a tile touches memory, in another layout than the tile's where one is given."""
    layout = layout or context.schedule.layouts[statement.target]
    found = context.accesses.get((statement, layout))
    if found is None:
        found = plan_load(statement, layout, context.facts)
        context.accesses[statement, layout] = found
    return found


def access_stored(context: Context, statement: Effect) -> Access:
    """How a store of a tile touches memory."""
    layout = context.schedule.statement_layouts[statement]
    found = context.accesses.get((statement, layout))
    if found is None:
        found = plan_store(statement, layout, context.facts)
        context.accesses[statement, layout] = found
    return found


def copy_helper(context: Context, load: Assign, size: int) -> str:
    """The helper that copies `size` bytes of a load to shared memory, past which L2 keeps them as the load wishes."""
    name, read_once = f"cp_async_{size}", load.value.attribute("eviction_policy") == "evict_first"  # type: ignore[attr-defined]
    if not read_once:
        return context.use_helper("cp_async", name, bytes=size)
    return context.use_helper("cp_async", f"{name}_evict_first", bytes=size, read_once=True)


def copies_of_repeated(context: Context, name: str, target: Variable, access: Access, point: Point) -> tuple[Node, ...]:
    """Copies of what one access has loaded: for registers whose elements are the same in memory, or that lie elsewhere."""
    if not access.repeats and not access.scattered:
        return ()
    words = [inner_index(context, "i", point.layout), *map(context.names.shared_index, ("copy", "other"))]
    moves = dict(zip((axis for axis, _ in access.repeats), words[1:], strict=False))
    if access.width > 1:
        moves[access.axis] = words[0]
    along = access.axis if access.width > 1 else None
    first = {axis: 1 if len(access.repeats) == 1 and axis != along and not access.scattered else 0
             for axis, _ in access.repeats}  # fmt: skip
    only = {axis for axis, run in access.repeats if run - first[axis] == 1}  # a single copy takes no loop
    moves |= dict.fromkeys(only, "1")
    to, source = "", ""
    for axis in point.layout.array_axes():
        text, move = point.indices[axis].text, moves.get(axis)
        moved = text if move is None else move if text == "0" else f"{text} + {move}"
        to, source = f"{to}[{moved}]", f"{source}[{moved if axis == along else text}]"
    column = context.column(target, name)
    loaded = f"{context.names.shared_index('loaded')}[{words[0]}]" if access.scattered else f"{name}{source}{column}"
    looped = len(only) < len(access.repeats)
    comment = "" if looped or not access.repeats else "the same place in memory"
    line = Assignment(f"{name}{to}{column}", loaded, comment=comment)
    nodes: tuple[Node, ...] = (line,)
    limits = [(access.axis, width_name(context, point.layout, access))] if access.width > 1 else []
    layout = point.layout
    runs = {a: context.count(layout.axes[a]) if run == layout.registers(a) else str(run) for a, run in access.repeats}
    for axis, limit in [*limits, *((axis, run) for axis, run in runs.items() if axis not in only)]:
        nodes = (unrolled(moves[axis], limit, nodes, start=first.get(axis, 0)),)
    return (Comment("These elements share one place in memory."), *nodes) if looped else nodes


def moved_from(value: Expr) -> Expr:
    """The expression whose elements a value has, in other places perhaps."""
    while isinstance(value, Call) and value.op in MOVES:
        value = value.args[0]
    return value


def registers_of_runs(
    context: Context, statement: Assign | Effect, value: Expr, layout: Layout, access: Access, tensor: str
) -> tuple[tuple[Node, ...], Callable[[Point], str]]:
    """What computes a value that goes to memory by vectors, if anything must, and where each vector's registers begin."""
    if _lies_in_order(context, value, layout, access):
        return (), lambda point: run_at(context.speller.text(value, point))
    source, prepare = materialised(context, statement, value, layout, tensor)
    return prepare, lambda point: run_at(indexed(context, context.names.variable(source), source, point))


def _lies_in_order(context: Context, value: Expr, layout: Layout, access: Access) -> bool:
    """Whether registers hold a value, the elements of each of the access's vectors side by side."""
    tile = moved_from(value)
    elsewhere = context.schedule.in_shared | context.schedule.functions
    if not isinstance(tile, Use) or tile.variable in elsewhere | context.facts.absorbed:
        return False
    probe = point_of(layout, tuple(register(f"axis{axis}") for axis in range(layout.rank)))
    return access.width == 1 or context.speller.text(value, probe).endswith(f"[axis{access.axis}]")


def vectors(context: Context, layout: Layout, access: Access, body: object) -> tuple[Node, ...]:
    """Loops over the vectors of a tile: along the access's axis by vectors, along the others by registers."""
    names = axis_indices(context, layout)
    count = layout.registers(access.axis) // access.width
    width = width_name(context, layout, access)
    vector = context.names.shared_index("v")
    repeats = dict(access.repeats)
    steps = [repeats.get(axis, 1) for axis in range(layout.rank)]
    bits = access.width.bit_length() - 1
    number = Text(vector) if count > steps[access.axis] else ZERO
    start = Index(number, number, width, bits) if access.width == 1 else vector_start(number, width, bits)
    indices = tuple(
        start
        if axis == access.axis
        else register(names[axis], steps[axis])
        if layout.registers(axis) > steps[axis]
        else FIRST
        for axis in range(layout.rank)
    )
    nodes = body(point_of(layout, indices))  # type: ignore[operator]
    for axis in reversed(range(layout.rank)):
        limit, name = (count, vector) if axis == access.axis else (layout.registers(axis), names[axis])
        if limit > steps[axis]:
            text = vectors_name(context, layout, access) if axis == access.axis else context.count(layout.axes[axis])
            nodes = (unrolled(name, text, nodes, step=steps[axis]),)
    return tuple(nodes)


def width_name(context: Context, layout: Layout, access: Access) -> str:
    """The constant that counts the elements of one access."""
    if access.width == 1:
        return "1"
    named = context.axis_names.find(layout.axes[access.axis])
    if named and named.run == access.width:
        return named.vector
    return context.constants.width(access.width)


def vectors_name(context: Context, layout: Layout, access: Access) -> str:
    """How many accesses a thread makes along the vector axis, as text."""
    if access.width == 1:
        return context.count(layout.axes[access.axis])
    named = context.axis_names.find(layout.axes[access.axis])
    if named and named.run == access.width:
        return named.vectors
    return f"{context.count(layout.axes[access.axis])} / {width_name(context, layout, access)}"
