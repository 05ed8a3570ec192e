"""The rules of expressions, an entry per operation of `docs/ir.md`: operand types and shapes, and the result's.

In: an expression. Out: what is wrong with it, in words. Used by `verify.py` only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..diagnostics import CompilationError
from ..language.dtypes import DType, PointerType, float32
from ..ops.dots import PRECISIONS, dot_shape, dot_types
from ..ops.registry import OPS, Operand
from .nodes import Call, CallFunction, Combine, Expr, Literal, Use
from .types import ValueType

Problems = Iterator[str]


def expression_problems(expr: Expr) -> Problems:
    """What is wrong with an expression itself; its operands are checked on their own."""
    if isinstance(expr, Use):
        if expr.type != expr.variable.type:
            yield f"{expr.variable.name} of type {expr.variable.type} is used as {expr.type}"
    elif isinstance(expr, Literal):
        yield from _literal(expr)
    elif isinstance(expr, CallFunction):
        yield from _call_function(expr)
    elif isinstance(expr, Call):
        yield from _call(expr)
    else:
        yield f"{type(expr).__name__} is no expression"


def _call(expr: Call) -> Problems:
    if expr.op not in RULES and expr.op not in OPS:
        yield f"{expr.op} is no operation"
        return
    fewest, most = OPERANDS[expr.op] if expr.op in RULES else (len(OPS[expr.op].parameters),) * 2
    if not fewest <= len(expr.args) <= (len(expr.args) if most is None else most):  # rules take them for granted
        count = str(fewest) if most == fewest else f"{fewest} or more" if most is None else f"{fewest} to {most}"
        yield f"{expr.op} takes {count} operand{'' if most == 1 else 's'}, not {len(expr.args)}"
        return
    yield from RULES[expr.op](expr) if expr.op in RULES else _table_operation(expr)


def _literal(expr: Literal) -> Problems:
    element = expr.type.element
    wanted = bool if not isinstance(element, DType) or element.is_bool() else float if element.is_floating() else int
    if type(expr.value) is not wanted:
        yield f"{expr.value!r} as a literal of type {expr.type}"


def _call_function(expr: CallFunction) -> Problems:
    parameters = [parameter.type.element for parameter in expr.function.parameters]
    if [arg.type.element for arg in expr.args] != parameters:
        yield f"{expr.function.name} takes {', '.join(str(p) for p in parameters)}"
    if expr.type.element != expr.function.result.element:
        yield f"{expr.function.name} returns {expr.function.result}"
    yield from _one_shape(expr)


def _one_shape(expr: Call | CallFunction) -> Problems:
    for arg in expr.args:
        if arg.type.shape != expr.type.shape:
            yield f"an operand of type {arg.type} for a result of type {expr.type}"


def _table_operation(expr: Call) -> Problems:
    yield from _one_shape(expr)
    elements = tuple(arg.type.element for arg in expr.args)
    try:
        resolved = OPS[expr.op].rule(tuple(Operand(element) for element in elements))
    except CompilationError as error:
        yield error.cause
        return
    if resolved.operands != elements:
        yield f"{expr.op} wants its operands as {', '.join(str(e) for e in resolved.operands)}"
    if resolved.result != expr.type.element:
        yield f"{expr.op} returns {resolved.result}, not {expr.type.element}"


# ------------------------------------------------------------------------------------------- elementwise operations


def _program(expr: Call) -> Problems:
    if str(expr.type) != "i32" or expr.attribute("axis") not in (0, 1, 2):
        yield "a program index is a scalar int32 along axis 0, 1 or 2"


def _arange(expr: Call) -> Problems:
    if str(expr.type) != f"i32[{expr.attribute('end') - expr.attribute('start')}]":
        yield f"arange has the type {expr.type}"


def _cast(expr: Call) -> Problems:
    yield from _one_shape(expr)
    if expr.args[0].type.element == expr.type.element:
        yield f"a cast from {expr.type} to itself"


def _broadcast(expr: Call) -> Problems:
    (arg,) = expr.args
    sides = zip(arg.type.shape, expr.type.shape, strict=False)
    fits = not arg.type.is_tile or arg.type.rank == expr.type.rank
    if arg.type.element != expr.type.element or not fits or any(side not in (1, wide) for side, wide in sides):
        yield f"{arg.type} does not broadcast to {expr.type}"


def _expand_dims(expr: Call) -> Problems:
    (arg,), axis = expr.args, expr.attribute("axis")
    if expr.type != arg.type.with_shape((*arg.type.shape[:axis], 1, *arg.type.shape[axis:])):
        yield f"{arg.type} with a new axis {axis} is not {expr.type}"


def _ptr_add(expr: Call) -> Problems:
    yield from _one_shape(expr)
    pointer, offset = expr.args
    if not pointer.type.is_pointer or pointer.type.element != expr.type.element:
        yield f"{pointer.type} is moved to {expr.type}"
    if offset.type.is_pointer or not offset.type.dtype.is_int():
        yield f"an offset of type {offset.type}"


def _hint(expr: Call) -> Problems:
    if expr.args[0].type != expr.type:
        yield "a hint changes the type"


def _permute(expr: Call) -> Problems:
    (arg,), order = expr.args, expr.attribute("order")
    if sorted(order) != list(range(arg.type.rank)):
        yield f"the order {order} of {arg.type.rank} axes"
    elif expr.type != arg.type.with_shape(tuple(arg.type.shape[axis] for axis in order)):
        yield f"{arg.type} in the order {order} is not {expr.type}"


def _reshape(expr: Call) -> Problems:
    (arg,) = expr.args
    if arg.type.element != expr.type.element or arg.type.numel != expr.type.numel:
        yield f"{arg.type} is no {expr.type}"


def _select(expr: Call) -> Problems:
    (arg,) = expr.args
    if arg.type.shape[:-1] != expr.type.shape or arg.type.element != expr.type.element or not expr.type.is_tile:
        yield f"{expr.type} is no slice of {arg.type}"
    elif not 0 <= expr.attribute("index") < arg.type.shape[-1]:
        yield f"{arg.type} has no element {expr.attribute('index')} along its last axis"


# -------------------------------------------------------------------------------------------- structured operations


def _pointee(expr: Call) -> DType | None:
    element = expr.args[0].type.element
    return element.element_ty if isinstance(element, PointerType) else None


def _memory_operands(expr: Call, values: int) -> Problems:
    """A pointer, `values` values of its element type and perhaps a mask, all of one shape."""
    if _pointee(expr) is None:
        yield f"{expr.op} through {expr.args[0].type}"
    shape = expr.args[0].type.shape
    for number, arg in enumerate(expr.args[1:]):
        wanted = _pointee(expr) if number < values else "i1"
        if arg.type.is_pointer or str(arg.type.element) != str(wanted) or arg.type.shape != shape:
            yield f"{expr.op} at {expr.args[0].type} takes an operand of type {arg.type}"


def _load(expr: Call) -> Problems:
    pointer, *rest = expr.args
    if expr.type.element != _pointee(expr) or expr.type.shape != pointer.type.shape:
        yield f"a load of {expr.type} through {pointer.type}"
    for arg, element in zip(rest, ("i1", str(expr.type.element)), strict=False):
        if arg.type.shape != expr.type.shape or str(arg.type.element) != element:
            yield f"a load of {expr.type} with an operand of type {arg.type}"


def _atomic(values: int) -> Callable[[Call], Problems]:
    def rule(expr: Call) -> Problems:
        yield from _memory_operands(expr, values)
        if expr.type.element != _pointee(expr) or expr.type.shape != expr.args[0].type.shape:
            yield f"{expr.op} through {expr.args[0].type} gives {expr.type}"

    return rule


def _reduce(expr: Call) -> Problems:
    first, axis, combine = expr.args[0].type, expr.attribute("axis"), expr.attribute("combine")
    if any(arg.type.shape != first.shape for arg in expr.args):
        yield "tiles of several shapes are reduced together"
    shape = () if axis is None else first.shape[:axis] + first.shape[axis + 1 :]
    if not first.is_tile or expr.type != ValueType(first.element, shape):
        yield f"{first} reduced along axis {axis} is not {expr.type}"
    yield from _combination(combine, [arg.type.element for arg in expr.args])


def _combination(combine: Combine, elements: list[object]) -> Problems:
    if combine.op is not None:
        return
    for variables in (combine.left, combine.right, combine.results):
        if [variable.type.element for variable in variables] != elements or any(v.type.is_tile for v in variables):
            yield f"{combine.name} does not combine scalars of the reduced types"


def _dot(expr: Call) -> Problems:
    left, right, *acc = (arg.type for arg in expr.args)
    try:
        shape = dot_shape(left.shape, right.shape)
        types = dot_types(left.dtype, right.dtype, left.shape[-1], expr.type.dtype, None, None, None, None)
    except CompilationError as error:
        yield error.cause
        return
    if left.rank > 3 or expr.type != ValueType(types.result, shape) or any(one != expr.type for one in acc):
        yield f"a dot of {' and '.join(str(arg.type) for arg in expr.args)} is not {expr.type}"
    if expr.attribute("input_precision") not in (PRECISIONS if left.dtype == float32 else ("ieee",)):
        yield f"input_precision {expr.attribute('input_precision')!r} of operands of type {left.dtype}"


def _device_assert(expr: Call) -> Problems:
    if any(str(arg.type.element) != "i1" for arg in expr.args) or len({arg.type.shape for arg in expr.args}) != 1:
        yield "an assertion takes a condition and a mask of one shape"


def _assume(expr: Call) -> Problems:
    if [str(arg.type) for arg in expr.args] != ["i1"]:
        yield "an assumption is a scalar condition"


def _nothing(expr: Call) -> Problems:
    return iter(())


RULES: dict[str, Callable[[Call], Problems]] = {
    "program_id": _program,
    "num_programs": _program,
    "arange": _arange,
    "cast": _cast,
    "broadcast": _broadcast,
    "expand_dims": _expand_dims,
    "ptr_add": _ptr_add,
    "hint": _hint,
    "permute": _permute,
    "reshape": _reshape,
    "repack": _reshape,
    "select": _select,
    "load": _load,
    "store": lambda expr: _memory_operands(expr, 1),
    "atomic_cas": _atomic(2),
    **{f"atomic_{kind}": _atomic(1) for kind in ("add", "max", "min", "and", "or", "xor", "xchg")},
    "reduce": _reduce,
    "dot": _dot,
    "device_print": _nothing,
    "device_assert": _device_assert,
    "barrier": _nothing,
    "gdc_wait": _nothing,
    "gdc_launch_dependents": _nothing,
    "assume": _assume,
}

# The fewest operands and the most, None for any number; operations of the op table take their parameters.
OPERANDS: dict[str, tuple[int, int | None]] = {
    **dict.fromkeys(("program_id", "num_programs", "arange"), (0, 0)),
    **dict.fromkeys(("cast", "broadcast", "expand_dims", "hint", "permute", "reshape", "repack", "select"), (1, 1)),
    "ptr_add": (2, 2),
    "load": (1, 3),
    "store": (2, 3),
    "atomic_cas": (3, 3),
    **{f"atomic_{kind}": (2, 3) for kind in ("add", "max", "min", "and", "or", "xor", "xchg")},
    "reduce": (1, None),
    "dot": (2, 3),
    "device_print": (0, None),
    "device_assert": (1, 2),
    **dict.fromkeys(("barrier", "gdc_wait", "gdc_launch_dependents"), (0, 0)),
    "assume": (1, 1),
}
