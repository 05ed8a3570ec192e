"""Atomic operations on tiles and scalars.

Ordering is Triton's: `acq_rel` unless said otherwise. The operations themselves are relaxed, as CUDA's functions are; a
fence before them releases, one after them acquires, which orders the same and costs once per statement. Where the kernel has
done nothing yet that others could see too late, there is nothing to release (`schedule/accesses/releases.py`).
"""

from __future__ import annotations

import math

from ...analysis.masks import conjuncts
from ...ir.nodes import Assign, Call, Effect, Expr, Literal, Variable
from ...ir.types import padded
from ...language.dtypes import DType
from ...schedule.accesses.access import padding_tests, plan_access
from ...schedule.accesses.atomic_widths import elements_at_once
from ...schedule.accesses.releases import has_to_release
from ...schedule.tiles.layout import Layout
from ..context import Context, ctype
from ..shared.arrays import dimensions, place
from ..text.element import indexed
from ..text.operators import Text, conjunction
from ..text.point import Point
from ..text.register_loops import each_register
from ..text.unit import Assignment, Branch, Line, Node, Shared
from .conditions import both, copies_guard, uniform_test, valid_count
from .elements import guarded, pointee
from .memory_order import note_atomic, order_after_loads, order_among_stores, stored_word
from .told import told_by_one
from .vectors import registers_of_runs, vectors, width_name

FENCES = {"cta": "__threadfence_block();", "gpu": "__threadfence();", "sys": "__threadfence_system();"}
SCOPES = {"cta": "_block", "gpu": "", "sys": "_system"}
FUNCTIONS = {
    "atomic_add": "atomicAdd",
    "atomic_max": "atomicMax",
    "atomic_min": "atomicMin",
    "atomic_and": "atomicAnd",
    "atomic_or": "atomicOr",
    "atomic_xor": "atomicXor",
    "atomic_xchg": "atomicExch",
    "atomic_cas": "atomicCAS",
}


def lower_atomic(context: Context, statement: Assign | Effect) -> tuple[Node, ...]:
    """`[target =] atomic(pointer, value[, mask])`."""
    call = statement.value if isinstance(statement, Assign) else statement.call
    if not isinstance(call, Call):
        raise TypeError("not an atomic")
    target = statement.targets[0] if isinstance(statement, Assign) else None
    if target is not None and target in context.facts.unused:
        target = None
    values = 2 if call.op == "atomic_cas" else 1
    mask = call.args[values + 1] if len(call.args) > values + 1 else None
    pointer = call.args[0]
    scalar = not pointer.type.is_tile
    layout = None if scalar else _layout(context, statement)
    before = order_after_loads(context, pointer, layout, atomic=True)
    before = before or order_among_stores(context, pointer, layout, atomic=True)
    note_atomic(context, pointer, layout)
    return (*before, *(_scalar if scalar else _tile)(context, statement, call, mask, target))


def _layout(context: Context, statement: Assign | Effect) -> Layout:
    """The layout of the old elements, or of the statement where nobody reads these."""
    schedule = context.schedule
    return (
        schedule.layouts[statement.target] if isinstance(statement, Assign) else schedule.statement_layouts[statement]
    )


def _fences(
    context: Context, statement: Assign | Effect, call: Call, used: bool
) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """The fences before and after, by the operation's ordering and scope."""
    order = call.attribute("sem") or "acq_rel"
    fence = FENCES[call.attribute("scope") or "gpu"]
    releases = order in ("acq_rel", "release") and has_to_release(context.kernel, statement)
    before = (Line(fence, "releases: this thread's earlier accesses come before the atomic"),) if releases else ()
    after = (Line(fence, "acquires: later reads come after the atomic"),) if used and order.startswith("acq") else ()
    return before, after


def _operation(context: Context, call: Call, address: str, values: list[str]) -> str:
    """The call of the atomic; types that CUDA's functions do not take go through a helper."""
    element = pointee(call.args[0])
    # Of elements of 16 bits CUDA's atomics are those of the device only.
    scope = "" if element.bits == 16 else SCOPES[call.attribute("scope") or "gpu"]
    function = f"{FUNCTIONS[call.op]}{scope}"
    if _is_native(call.op, element):
        return f"{function}({', '.join([address, *values])})"
    helper = f"{call.op}_{element.word}{scope}"
    ordered = element.is_floating() and call.op in ("atomic_max", "atomic_min")
    context.use_helper(
        ("atomic_half" if element.bits == 16 else "atomic_float") if ordered else "atomic_bits",
        helper,
        function=function,
        ctype=element.cuda,
        bits=element.bits,
        maximum=call.op == "atomic_max",
        parameters=["compare", "value"] if call.op == "atomic_cas" else ["value"],
    )
    return f"{helper}({', '.join([address, *values])})"


def _is_native(op: str, element: DType) -> bool:
    """Whether CUDA has the function for this type."""
    name = element.short
    if op == "atomic_add":
        return name in ("i32", "u32", "u64", "fp16", "bf16", "fp32", "fp64")
    if op == "atomic_xchg":
        return name in ("i32", "u32", "u64", "fp32")
    if op == "atomic_cas":
        return name in ("i32", "u32", "u64", "u16")
    if op in ("atomic_max", "atomic_min"):
        return name in ("i32", "u32", "i64", "u64")
    return name in ("i32", "u32", "u64")


def _scalar(
    context: Context, statement: Assign | Effect, call: Call, mask: Expr | None, target: Variable | None
) -> tuple[Node, ...]:
    """One thread acts for the block; the result reaches the others through shared memory."""
    values = [context.speller.text(arg) for arg in call.args[1 : 3 if call.op == "atomic_cas" else 2]]
    operation = _operation(context, call, context.speller.text(call.args[0]), values)
    condition = Text(f"{context.axis_names.tid} == 0", 9)
    if mask is not None and not (isinstance(mask, Literal) and mask.value):
        condition = Text(f"{condition.text} && {context.speller.spell(mask).within(6, '&&')}", 5)
    before, after = _fences(context, statement, call, target is not None)
    if target is None:
        return (Branch(condition.text, (*before, Line(f"{operation};"), *after)),)
    what = "the atomic's result"
    return told_by_one(context, statement, target, condition.text, operation, what, (before, after))


def _tile(
    context: Context, statement: Assign | Effect, call: Call, mask: Expr | None, target: Variable | None
) -> tuple[Node, ...]:
    layout = _layout(context, statement)
    pointer = call.args[0]
    tests = [*conjuncts(mask, context.facts), *padding_tests(pointer.type.shape)]
    before, after = _fences(context, statement, call, target is not None)
    guard = copies_guard(context, layout)
    if target is not None and guard:
        return (*before, *_through_shared(context, statement, call, tests, target, layout, guard), *after)
    if target is None and (added := _by_vectors(context, statement, call, mask, layout)):
        return _guarded(guard, (*before, *added))
    name = context.names.variable(target) if target is not None else ""

    def one(point: Point) -> tuple[Node, ...]:
        node: Node = Line(f"{_at(context, call, point)};")
        if target is not None:
            node = Assignment(indexed(context, name, target, point), _at(context, call, point))
        condition = conjunction(context.masks.spelled(context, tests, point))
        return (node,) if condition is None else (Branch(condition.text, (node,)),)

    declare = context.declare(statement, target, layout) if target is not None else ()
    nodes = each_register(context, layout, one)
    return (*declare, *_guarded(guard, (*before, *nodes)), *after)


def _guarded(guard: str, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """What is done by those threads that hold no copies; a fence of the others would order nothing."""
    return (both(guard, nodes),) if guard else nodes


def _by_vectors(
    context: Context, statement: Assign | Effect, call: Call, mask: Expr | None, layout: Layout
) -> tuple[Node, ...]:
    """Sums whose results nobody reads, several neighbours at a time; nothing where memory or the mask does not allow that."""
    pointer, value = call.args[:2]
    most = elements_at_once(call, context.schedule.target)
    if most == 1:
        return ()
    here = context.facts.at(statement)
    access = plan_access(pointer, mask, layout, here, lambda axis: min(layout.vector(axis), most))
    if access.width == 1:
        return ()
    prepare, run = registers_of_runs(context, statement, value, layout, access, stored_word(context, pointer))
    helper, width = _vector_helper(context, call, bool(access.bounds)), width_name(context, layout, access)

    def one(point: Point) -> tuple[Node, ...]:
        count = valid_count(context, access, point)
        arguments = [context.speller.text(pointer, point), run(point), *([count.text] if count else [])]
        return guarded(uniform_test(context, access, point), Line(f"{helper}<{width}>({', '.join(arguments)});"))

    return (*prepare, *vectors(context, layout, access, one))


def _vector_helper(context: Context, call: Call, bounded: bool) -> str:
    """The helper that adds a vector, or as much of it as a bound allows."""
    element, scope = pointee(call.args[0]), call.attribute("scope") or "gpu"
    name = f"atomic_add_vec{SCOPES[scope]}"
    template = "atomic_add_vec" if context.schedule.target.has_vector_atomics else "atomic_add_pair"
    values = {"scope": scope, "suffix": SCOPES[scope]}
    whole = context.needs.overload(name, element.cuda, values, template)
    if not bounded:
        return whole
    one = _operation(context, call, "target + i", ["source[i]"])
    return context.needs.overload(f"{name}_bounded", element.cuda, {"whole": whole, "one": one}, "atomic_add_bounded")


def _at(context: Context, call: Call, point: Point) -> str:
    values = [context.speller.text(arg, point) for arg in call.args[1 : 3 if call.op == "atomic_cas" else 2]]
    return _operation(context, call, context.speller.text(call.args[0], point), values)


def _through_shared(
    context: Context,
    statement: Assign | Effect,
    call: Call,
    tests: list[Expr],
    target: Variable,
    layout: Layout,
    guard: str,
) -> tuple[Node, ...]:
    """Threads that hold copies get the old elements from the one that did the atomic."""
    shape = target.type.shape
    shared = context.shared.scratch_name(statement, "result", f"{target.name}_shared")
    size = math.prod(padded(side) for side in shape) * target.type.dtype.itemsize
    array = Shared(shared, ctype(target.type), dimensions(context, shape), size, "old elements")
    context.shared.scratch(statement, "result", array)
    name = context.names.variable(target)

    def act(point: Point) -> tuple[Node, ...]:
        node = Assignment(f"{shared}{place(context, point, shape)}", _at(context, call, point))
        condition = conjunction(context.masks.spelled(context, tests, point))
        return (node,) if condition is None else (Branch(condition.text, (node,)),)

    def read(point: Point) -> tuple[Node, ...]:
        return (Assignment(indexed(context, name, target, point), f"{shared}{place(context, point, shape)}"),)

    nodes = (
        *context.declare(statement, target, layout),
        *context.before_write(shared),
        both(guard, each_register(context, layout, act)),
        *context.barrier("the old elements are there for everyone"),
        *each_register(context, layout, read),
    )
    context.shared.being_read.add(shared)
    return nodes
