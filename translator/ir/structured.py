"""Which operations are structured: they stand alone in their statements, everything else nests element by element."""

from __future__ import annotations

from typing import TypeGuard

from .nodes import Assign, Call, CallFunction, Expr, Note, Statement, Use, Variable
from .walk import REARRANGES, subexpressions, used_variables

STRUCTURED = frozenset(
    ("load", "store", "reduce", "dot", "repack", "box_load", "box_read", "row_load", "box_store", "make_map")
    + ("device_print", "device_assert", "barrier", "assume", "gdc_wait", "gdc_launch_dependents")
    + tuple(f"atomic_{kind}" for kind in ("add", "max", "min", "and", "or", "xor", "xchg", "cas"))
)
LOADS = ("load", "box_load", "row_load")  # what brings elements from memory


def is_elementwise(expr: Expr) -> bool:
    """True unless the expression is a structured operation (those stand at the top, never inside)."""
    return not (isinstance(expr, Call) and expr.op in STRUCTURED)


def is_atomic(call: Call) -> bool:
    """Whether a call changes memory in one step."""
    return call.op.startswith("atomic_")


def reads_what_it_writes(statement: Assign, target: Variable) -> bool:
    """Whether a statement would read its own result: some of `target` that it may have written before.

    A reduction writes its results again for each element; a load or an atomic operation writes elements one by one, which
    others must not depend on. A dot reads its operands first, and its lowering copies a sum whose elements change places.
    """
    value = statement.value
    if not isinstance(value, Call) or is_elementwise(value) or target not in used_variables(value):
        return False
    if value.op == "reduce":
        return True
    moves = (part for part in subexpressions(value) if isinstance(part, Call) and part.op in REARRANGES)
    return value.op != "dot" and any(target in used_variables(part) for part in moves)


def assigned_call(statement: Statement, *ops: str) -> Call | None:
    """What a statement assigns, where that is what one of some operations gives."""
    call = statement.value if isinstance(statement, Assign) else None
    return call if isinstance(call, Call) and call.op in ops else None


def assigns(statement: Statement, *ops: str) -> TypeGuard[Assign]:
    """Whether a statement assigns what one of some operations gives."""
    return assigned_call(statement, *ops) is not None


def is_promise_alone(statement: Assign) -> bool:
    """Whether a statement only promises something of what it assigns to itself: `x = tl.multiple_of(x, 16)`."""
    value = statement.value
    while isinstance(value, Call) and value.op == "hint":
        value = value.args[0]
    return value is not statement.value and isinstance(value, Use) and value.variable is statement.target


def is_quiet(statement: Statement) -> bool:
    """Whether a statement touches no memory, has threads wait for no others, and is no boundary of a trip."""
    if isinstance(statement, Note):
        return statement.trip is None
    if not isinstance(statement, Assign) or any(isinstance(p, CallFunction) for p in subexpressions(statement.value)):
        return False
    return is_elementwise(statement.value) or assigns(statement, "dot", "reduce", "repack")
