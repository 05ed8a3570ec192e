"""Loads and stores of tiles and scalars."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...hardware import ACCESS_BYTES
from ...ir.nodes import Assign, Call, Effect, Expr, Literal, Use, Variable
from ...language.dtypes import DType
from ...schedule.accesses.access import Access, is_zero, load_operands
from ...schedule.accesses.cache_hints import load_hint, store_hint, vector_hint
from ...schedule.accesses.predicated import is_predicated
from ...schedule.tiles.layout import Layout
from ..context import Context, ctype
from ..staging.own_places import place_of_scalar, place_read
from ..text.element import element_text, indexed, run_at
from ..text.operators import Text
from ..text.point import Point
from ..text.register_loops import each_register
from ..text.rounding import materialised
from ..text.unit import Assignment, Declaration, Node, Spelled
from .conditions import both, copies_guard, scalar_test, uniform_test, valid_count, why_one_test
from .elements import (
    fallback_text,
    guarded,
    is_for_next,
    load_if,
    loaded_element,
    memory_value,
    pointee,
    store_element,
    store_if,
)
from .memory_order import note_load, note_store, order_after_loads, order_after_stores, order_among_stores, stored_word
from .recompute import function_of_index
from .told import told_by_one
from .torn_stores import is_taken_apart
from .vector_loads import vector_load
from .vectors import (
    access_of,
    access_stored,
    copies_of_repeated,
    moved_from,
    registers_of_runs,
    vectors,
    width_name,
)
from .windows import taken_from_window


def lower_load(context: Context, statement: Assign) -> tuple[Node, ...]:
    """`target = load(pointer, mask, other)`."""
    call, target = statement.value, statement.target
    if not isinstance(call, Call):
        raise TypeError("not a load")
    pointer, mask, other = load_operands(statement)
    if not pointer.type.is_tile:
        return _load_scalar(context, statement, call)
    if statement in context.schedule.windows.taken:
        return taken_from_window(context, statement)
    if target in context.ahead.stage_of:
        return ()  # the loop around it has loaded it
    if target in context.schedule.staged:
        from ..staging.copies import lower_staged_load

        return lower_staged_load(context, statement)
    layout = context.schedule.layouts[target]
    access = access_of(context, statement)
    modifier = "" if target in context.ahead.own else load_hint(call)
    if access.width > 1 and not (other is None or _is_uniform(other)):
        access = _access_by_element(context, access, pointer, mask)
    if target in context.ahead.own and is_zero(other):
        access = replace(access, tests=(), bounds=())  # its copies left zeros where the mask is false
    before, declare = order_after_stores(context, pointer, layout), context.declare(statement, target, layout)
    note_load(context, pointer, layout)
    name = context.names.variable(target)
    load: Callable[[Point], tuple[Node, ...]]
    if access.width == 1 and not modifier:
        offsets, element = loaded_element(context, statement, access)
        ahead, before = target in context.ahead.own, (*before, *offsets)
        if target in context.schedule.late_loads:
            return (*before, *function_of_index(context, target, element))

        def one(point: Point) -> tuple[Node, ...]:
            naming, place = place_read(context, statement, point) if ahead else ((), "")
            return (*naming, Assignment(indexed(context, name, target, point), element(point, place).text))

        if not access.repeats:
            return (*before, *with_value(context, target, layout, declare, each_register(context, layout, one)))
        load = one
    else:
        if target not in context.ahead.own:
            accesses = layout.num_registers // access.width
            modifier = vector_hint(call, access.width * target.type.dtype.itemsize, accesses)
        load = _load_vector(context, statement, call, access, name, modifier)

    def all_of_it(point: Point) -> tuple[Node, ...]:
        whole: tuple[Node, ...] = ()
        if access.scattered:
            loaded = context.names.shared_index("loaded")
            whole = (Declaration(ctype(target.type), loaded, sides=f"[{width_name(context, layout, access)}]"),)
        return (*whole, *load(point), *copies_of_repeated(context, name, target, access, point))

    why = why_one_test(context, statement, access, layout)
    return (*before, *why, *declare, *vectors(context, layout, access, all_of_it))


def with_value(
    context: Context, target: Variable, layout: Layout, declare: tuple[Node, ...], nodes: tuple[Node, ...]
) -> tuple[Node, ...]:
    """A declaration, if there is one, and what is assigned after it: one line where that is a single element."""
    if not declare or len(nodes) != 1 or not isinstance(nodes[0], Assignment):
        return (*declare, *nodes)
    return (context.defined(target, layout, nodes[0].value),)


def _is_uniform(other: Expr) -> bool:
    """Whether all elements outside a mask get the same value."""
    if isinstance(other, Call) and other.op in ("broadcast", "cast"):
        return _is_uniform(other.args[0])
    return isinstance(other, Literal) or not other.type.is_tile


def _access_by_element(context: Context, access: Access, pointer: Expr, mask: Expr | None) -> Access:
    """The same access without vectors: where each element has a replacement of its own."""
    from ...analysis.masks import conjuncts
    from ...schedule.accesses.access import padding_tests

    return Access(access.axis, 1, tuple([*conjuncts(mask, context.facts), *padding_tests(pointer.type.shape)]), ())


def lower_store(context: Context, statement: Effect) -> tuple[Node, ...]:
    """`store(pointer, value, mask)`."""
    call = statement.call
    pointer, value = call.args[:2]
    mask = call.args[2] if len(call.args) > 2 else None
    if not pointer.type.is_tile:
        return _store_scalar(context, pointer, value, mask)
    layout = context.schedule.statement_layouts[statement]
    access = access_stored(context, statement)
    modifier = store_hint(call)
    ready = isinstance(moved_from(value), (Use, Literal)) or layout.register_shape() == (1,) * layout.rank
    predicated = is_predicated(access, pointer, value.type, layout, context.facts.at(statement))
    word = stored_word(context, pointer)
    nodes: tuple[Node, ...]
    if not predicated and (access.width > 1 or modifier):
        prepare, run = registers_of_runs(context, statement, value, layout, access, word)
        why = why_one_test(context, statement, access, layout)
        nodes = (*why, *vectors(context, layout, access, _store_vector(context, call, access, run, modifier)))
    else:
        # The whole tile is computed before the first element is stored: in a branch, element would wait for element.
        source, prepare = (None, ()) if ready else materialised(context, statement, value, layout, word)
        store = store_if(context, value.type, modifier) if predicated else ""
        nodes = each_register(context, layout, store_element(context, pointer, value, access, source, store))
    nodes = (*prepare, *nodes)
    guard = copies_guard(context, layout)
    if guard:
        nodes = (
            both(guard, nodes, "" if guard == f"{context.axis_names.tid} == 0" else "the other threads hold copies"),
        )
    before = order_after_loads(context, pointer, layout) or order_among_stores(context, pointer, layout)
    note_store(context, pointer, layout)
    return (*before, *nodes)


# ------------------------------------------------------------------------------------------------------- scalars


def _load_scalar(context: Context, statement: Assign, call: Call) -> tuple[Node, ...]:
    pointer, mask, other = load_operands(statement)
    target = statement.target
    element = pointee(pointer)
    modifier = load_hint(call)
    if target in context.ahead.own:
        text = Text(place_of_scalar(context, target))
    elif modifier:
        text = Text(f"{_scalar_reader(context, modifier, element)}({context.speller.text(pointer)})")
    else:
        text = element_text(context, pointer, None)
    if element.is_bool():
        text = Text(f"{text.within(9)} != 0", 9)
    condition = scalar_test(context, mask)
    if condition is not None and not (target in context.ahead.own and is_zero(other)):
        fallback = fallback_text(context, other, target.type, None)
        if is_for_next(context, target):
            address = context.speller.text(pointer)
            text = Text(f"{load_if(context, target.type)}({address}, {condition.text}, {fallback.text})")
        else:
            text = Text(f"{condition.within(4)} ? {text.within(4)} : {fallback.within(3)}", 3)
    before = order_after_stores(context, pointer, None)
    if target in context.memory.agreed:
        first, what = f"{context.axis_names.tid} == 0", "loaded by one thread, so that all go the same way"
        return (*before, *told_by_one(context, statement, target, first, text.text, what))
    note_load(context, pointer, None)
    if target is context.instead.at_once:
        context.instead.in_place[target] = text
        return before
    return (*before, *context.bind_scalar(statement, target, text.text))


def _scalar_reader(context: Context, modifier: str, element: DType) -> str:
    """The helper that loads one element; CUDA has such loads for all types but 8-bit floats, which go as bytes."""
    as_byte = element.is_fp8()
    return context.use_helper("load_one", f"load_{modifier}{'_byte' * as_byte}", modifier=modifier, as_byte=as_byte)


def _store_scalar(context: Context, pointer: Expr, value: Expr, mask: Expr | None) -> tuple[Node, ...]:
    condition, test = Text(f"{context.axis_names.tid} == 0", 9), scalar_test(context, mask)
    if test is not None:
        condition = Text(f"{condition.text} && {test.within(6, '&&')}", 5, "&&")
    text = memory_value(value.type, context.speller.spell(value))
    target = element_text(context, pointer, None).text
    before = order_after_loads(context, pointer, None) or order_among_stores(context, pointer, None)
    note_store(context, pointer, None)
    return (*before, *guarded(condition, Assignment(target, text)))


# ------------------------------------------------------------------------------------------------------- vectors


def _load_vector(
    context: Context, statement: Assign, call: Call, access: Access, name: str, modifier: str
) -> Callable[[Point], tuple[Node, ...]]:
    pointer, target = call.args[0], statement.target

    def one(point: Point) -> tuple[Node, ...]:
        naming: tuple[Node, ...] = ()
        if target in context.ahead.own:
            naming, place = place_read(context, statement, point)
            source = f"&{place}"
        else:
            source = context.speller.text(pointer, point)
        loaded = (
            context.names.shared_index("loaded") if access.scattered else run_at(indexed(context, name, target, point))
        )
        return (*naming, vector_load(context, statement, access, point, loaded, source, modifier))

    return one


def _store_vector(context: Context, call: Call, access: Access, run: Callable[[Point], str], modifier: str) -> object:
    pointer, value = call.args[:2]
    whole = access.width * value.type.dtype.itemsize == ACCESS_BYTES  # two words stay together
    if not modifier and whole and is_taken_apart(context, pointer):
        modifier = "wb"  # what plain stores do, in one piece

    def one(point: Point) -> tuple[Node, ...]:
        test, count = uniform_test(context, access, point), valid_count(context, access, point)
        kind = "bounded" if count else ""
        bools = value.type.dtype.is_bool()
        helper = "_".join(filter(None, ("store_bools" if bools else "store_vec", kind, modifier)))
        context.use_helper("store_vec", helper, kind=kind, modifier=modifier, bools=bools)
        context.needs.packets |= {access.width * value.type.dtype.itemsize}
        values = {
            "helper": helper,
            "kind": kind,
            "width": width_name(context, point.layout, access),
            "target": context.speller.text(pointer, point),
            "source": run(point),
            "count": count.text if count else "",
        }
        return guarded(test, Spelled("store_vec", values))

    return one
