"""Loads that go straight to shared memory, for dots: asynchronous copies by the threads of the block."""

from __future__ import annotations

from ...ir.nodes import Assign, Call, Variable
from ...schedule.accesses.access import Access, load_operands, plan_copies
from ...schedule.products.shared_tiles import SharedTile
from ...schedule.staging.tile_copies import bytes_at_once
from ...schedule.tiles.layout import Layout
from ..accesses.conditions import all_tests, copies_guard, uniform_test, valid_count
from ..accesses.memory_order import note_load, order_after_stores
from ..accesses.vectors import copy_helper, vectors, width_name
from ..context import Context
from ..products.operand import element_place, place_line, shared_array
from ..text.element import element_text, indexed
from ..text.literals import literal_text
from ..text.operators import Text
from ..text.point import Point
from ..text.register_loops import each_register
from ..text.unit import Assignment, Branch, Line, Node
from .names_ahead import named_elements


def lower_staged_load(context: Context, statement: Assign) -> tuple[Node, ...]:
    """A load of the whole tile, waited for at once or by what reads it first."""
    from .arrivals import note_arriving

    target = statement.target
    name, layout = declare_tile(context, statement), context.schedule.layouts[target]
    pointer, _, _ = load_operands(statement)
    stored = order_after_stores(context, pointer, layout)
    nodes: list[Node] = [*stored, *context.before_write(name), *copy_tile(context, statement, name)]
    asynchronous = is_asynchronous(context, statement)
    if asynchronous:
        for helper in ("cp_async_commit", "cp_async_wait"):
            context.use_helper(helper)
        nodes.append(Line("cp_async_commit();"))
    if context.memory.lasts(_call(statement)) and note_arriving(context, target, asynchronous):
        return tuple(nodes)
    if asynchronous:
        nodes.append(Line("cp_async_wait<0>();", "this thread's share has arrived"))
    nodes += [*proxy_fence(context), *context.barrier(f"all of {target.name} is in shared memory")]
    context.shared.being_read.add(name)
    return tuple(nodes)


def proxy_fence(context: Context) -> tuple[Node, ...]:
    """Shows what threads wrote to shared memory to the tensor cores that read it themselves."""
    if not any(plan.instruction.kind == "wgmma" for plan in context.schedule.dots.values()):
        return ()
    context.use_helper("async_proxy_fence")
    return (Line("async_proxy_fence();", "the tensor cores read through the asynchronous proxy"),)


def declare_tile(context: Context, statement: Assign) -> str:
    """Asks for the shared array of a staged load; its name is the variable's."""
    target = statement.target
    name = context.shared.tile_name(target)
    tile = context.schedule.staged[target]
    shared_array(context, target, "staged", name, target, tile, tile_comment(tile))
    return name


def tile_comment(tile: SharedTile) -> str:
    """What the declaration says about the format."""
    return f"{tile.swizzle}-byte swizzle" if tile.swizzle else "no swizzle"


def is_asynchronous(context: Context, statement: Assign) -> bool:
    """Whether `cp.async` can make the copies of a staged load: of 4 bytes at least, along the contiguous axis."""
    schedule = context.schedule
    return bytes_at_once(statement, schedule.layouts, schedule.staged, context.facts) > 0


def _access(context: Context, statement: Assign) -> Access:
    return plan_copies(statement, context.schedule.layouts[statement.target], context.facts)


def _call(statement: Assign) -> Call:
    if not isinstance(statement.value, Call):
        raise TypeError("not a load")
    return statement.value


def copy_tile(context: Context, statement: Assign, array: str, condition: str = "") -> tuple[Node, ...]:
    """This thread's copies of a tile to the stage `array`; elements outside the mask become zeros.

    Where a `condition` is given and does not hold, all asynchronous copies bring zeros, and nothing is read.
    """
    if not is_asynchronous(context, statement):
        variable = ahead_registers(context, statement)
        name = context.names.variable(variable)
        declare = context.declaration(variable, context.schedule.layouts[statement.target], name)
        return (declare, *fetch_tile(context, statement), *put_tile(context, statement, array))
    target = statement.target
    tile, layout = context.schedule.staged[target], context.schedule.layouts[target]
    pointer, _, _ = load_operands(statement)
    note_load(context, pointer, layout)
    nodes = _vector_copies(context, statement, array, tile, layout, condition)
    if guard := copies_guard(context, layout):
        return (Branch(guard, nodes),)
    return nodes


def ahead_registers(context: Context, statement: Assign) -> Variable:
    """The registers in which elements wait that no asynchronous copy can take."""
    return context.beside(statement, statement.target, "ahead")


def fetch_tile(context: Context, statement: Assign) -> tuple[Node, ...]:
    """Loads this thread's elements of a tile into registers: all loads are under way before the first is needed."""
    target = statement.target
    layout = context.schedule.layouts[target]
    pointer, _, _ = load_operands(statement)
    note_load(context, pointer, layout)
    access = _access(context, statement)
    variable = ahead_registers(context, statement)
    name = context.names.variable(variable)
    zero = literal_text(0, target.type.dtype)

    def one(point: Point) -> tuple[Node, ...]:
        value = element_text(context, pointer, point)
        if condition := all_tests(context, access, point):
            value = Text(f"{condition.within(4)} ? {value.within(4)} : {zero}", 3)
        return (Assignment(indexed(context, name, variable, point), value.text),)

    return each_register(context, layout, one)


def put_tile(context: Context, statement: Assign, array: str) -> tuple[Node, ...]:
    """Writes fetched elements to the stage `array`."""
    target = statement.target
    tile, layout = context.schedule.staged[target], context.schedule.layouts[target]
    variable = ahead_registers(context, statement)
    name = context.names.variable(variable)

    in_loop = layout.num_registers > 1

    def one(point: Point) -> tuple[Node, ...]:
        value = indexed(context, name, variable, point)
        naming, place = place_line(context, element_place(context, tile, target, point), target.name, in_loop)
        return (*naming, Assignment(f"{array}[{place}]", value))

    nodes = each_register(context, layout, one)
    if guard := copies_guard(context, layout):
        return (Branch(guard, nodes),)
    return nodes


def _vector_copies(
    context: Context, statement: Assign, array: str, tile: SharedTile, layout: Layout, condition: str
) -> tuple[Node, ...]:
    pointer, _, _ = load_operands(statement)
    access = _access(context, statement)
    target, size = statement.target, access.width * tile.itemsize
    in_loop = layout.num_registers > access.width
    helper = copy_helper(context, statement, size)

    def one(point: Point) -> tuple[Node, ...]:
        test, count = uniform_test(context, access, point), valid_count(context, access, point)
        valid = str(size)
        if count is not None:
            width = width_name(context, layout, access)
            context.use_helper("valid_bytes")
            valid = f"valid_bytes<{tile.itemsize}, {width}>({count.text})"
        if test is not None:
            condition_here = f"{condition} && {test.within(5, '&&')}" if condition else test.within(4)
        else:
            condition_here = condition
        if condition_here:
            valid = f"{condition_here} ? {valid} : 0"
        naming, place = place_line(context, element_place(context, tile, target, point), target.name, in_loop)
        source = context.speller.text(pointer, point)
        return (*naming, Line(f"{helper}(&{array}[{place}], {source}, {valid});"))

    return vectors(context, layout, access, lambda point: named_elements(context, point, one, in_loop))
