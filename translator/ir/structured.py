"""Which operations are structured: they stand alone in their statements, everything else nests element by element."""

from __future__ import annotations

from typing import TypeGuard

from .nodes import Assign, Call, Expr, Statement

STRUCTURED = frozenset(
    ("load", "store", "reduce", "dot", "repack", "box_load", "box_read", "row_load", "box_store", "make_map")
    + ("device_print", "device_assert", "barrier", "assume", "gdc_wait", "gdc_launch_dependents")
    + tuple(f"atomic_{kind}" for kind in ("add", "max", "min", "and", "or", "xor", "xchg", "cas"))
)


def is_elementwise(expr: Expr) -> bool:
    """True unless the expression is a structured operation (those stand at the top, never inside)."""
    return not (isinstance(expr, Call) and expr.op in STRUCTURED)


def is_atomic(call: Call) -> bool:
    """Whether a call changes memory in one step."""
    return call.op.startswith("atomic_")


def grows_by_elements(statement: Assign) -> bool:
    """Whether the results are written again for each element that is read, so that no element may depend on them."""
    return assigns(statement, "reduce")


def assigns(statement: Statement, *ops: str) -> TypeGuard[Assign]:
    """Whether a statement assigns what one of some operations gives."""
    return isinstance(statement, Assign) and isinstance(statement.value, Call) and statement.value.op in ops
