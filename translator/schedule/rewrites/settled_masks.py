"""Masks that are settled when the kernel is translated: comparisons that come out alike for every element.

In: a typed kernel. Out: the same kernel without tests of what is always true, as with `cols < N` where the row fills the block
and N is a constexpr, or `row < M` in a loop whose head has tested that: loads and stores lose the mask, `where` its condition.
"""

from __future__ import annotations

from dataclasses import replace

from ...analysis.loop_limits import LoopLimit, loop_limits
from ...ir.nodes import Assign, Call, Effect, Expr, Kernel, Literal, Statement, Use, Variable
from ...ir.rewrite import with_operands, with_replaced
from ...ir.walk import MOVES, only_values, statements

REMARK = "always true"


def with_settled_masks(kernel: Kernel) -> Kernel:
    """See the module docstring."""
    definitions = only_values(kernel.body)
    fixed = frozenset(definitions) | {p.variable for p in kernel.parameters}
    settling = _Settling(definitions, loop_limits(kernel, definitions, fixed))
    replaced: dict[Statement, Statement] = {}
    for statement in statements(kernel.body):
        if isinstance(statement, Assign):
            value = settling.settled(statement.value)
            if value is not statement.value:
                origin = statement.origin.noted(REMARK) if _is_true(value) else statement.origin
                replaced[statement] = replace(statement, value=value, origin=origin)
        elif isinstance(statement, Effect):
            call = settling.settled(statement.call)
            if call is not statement.call and isinstance(call, Call):
                replaced[statement] = replace(statement, call=call)
    return replace(kernel, body=with_replaced(kernel.body, replaced)) if replaced else kernel


class _Settling:
    """Rewrites expressions.

    `definitions` are the values of variables that are assigned once, `loops` the limits of loops' variables; what follows
    for a variable is kept, so that names that build upon each other are followed once.
    """

    def __init__(self, definitions: dict[Variable, Expr], loops: dict[Variable, LoopLimit]) -> None:
        self.definitions = definitions
        self.known: dict[Variable, bool] = {}
        self.limits_of: dict[Variable, tuple[int, int] | None] = {}
        self.counted_of: dict[Variable, tuple[LoopLimit, int] | None] = {
            variable: (limit, 0) for variable, limit in loops.items()
        }

    def settled(self, expr: Expr) -> Expr:
        """The expression without what is known to be true; the same object where nothing is."""
        if expr.type.is_tile and not expr.type.is_pointer and expr.type.dtype.is_bool() and self.is_true(expr):
            return Literal(expr.type, True)
        if not isinstance(expr, Call):
            return expr
        args = tuple(self.settled(arg) for arg in expr.args)
        if expr.op == "where" and _is_true(args[0]):
            return args[1]
        if expr.op in ("and", "logical_and") and any(map(_is_true, args)):
            return args[1] if _is_true(args[0]) else args[0]
        mask = {"load": 1, "store": 2}.get(expr.op, len(args))
        if mask < len(args) and _is_true(args[mask]):
            args = args[:mask]
        return with_operands(expr, args)

    def is_true(self, expr: Expr) -> bool:
        """Whether every element of a tile of booleans is true."""
        if isinstance(expr, Use):
            if expr.variable not in self.known:
                value = self.definitions.get(expr.variable)
                self.known[expr.variable] = value is not None and self.is_true(value)
            return self.known[expr.variable]
        if not isinstance(expr, Call):
            return _is_true(expr)
        if expr.op in MOVES:
            return self.is_true(expr.args[0])
        if expr.op in ("and", "logical_and"):
            return all(self.is_true(arg) for arg in expr.args)
        if expr.op not in ("lt", "le", "gt", "ge"):
            return False
        smaller, larger = expr.args if expr.op in ("lt", "le") else reversed(expr.args)
        left, right = self.limits(smaller), self.limits(larger)
        if left is None or right is None:
            return self.is_inside_loop(smaller, larger)
        return left[1] < right[0] or (expr.op in ("le", "ge") and left[1] == right[0])

    def is_inside_loop(self, index: Expr, stop: Expr) -> bool:
        """Whether `index` is a loop's variable, plus too little to reach `stop`, where the loop ends."""
        parts = self.counted(index)
        if parts is None:
            return False
        limit, highest = parts
        while isinstance(stop, Call) and stop.op in MOVES:
            stop = stop.args[0]
        return highest < limit.distance and isinstance(stop, Use) and stop.variable is limit.stop

    def counted(self, expr: Expr) -> tuple[LoopLimit, int] | None:
        """The loop's variable that integers count from, by its limit, and the most that is added to it."""
        if isinstance(expr, Use):
            if expr.variable not in self.counted_of:
                value = self.definitions.get(expr.variable)
                self.counted_of[expr.variable] = None if value is None else self.counted(value)
            return self.counted_of[expr.variable]
        if isinstance(expr, Call) and expr.op in MOVES:
            return self.counted(expr.args[0])
        if isinstance(expr, Call) and expr.op == "add":
            for base, more in (expr.args, expr.args[::-1]):
                parts, added = self.counted(base), self.limits(more)
                if parts is not None and added is not None and added[0] >= 0:
                    return parts[0], parts[1] + added[1]
        return None

    def limits(self, expr: Expr) -> tuple[int, int] | None:
        """The least and the largest element of integers that compile-time values determine."""
        if isinstance(expr, Literal) and isinstance(expr.value, int):
            return expr.reach
        if isinstance(expr, Use):
            if expr.variable not in self.limits_of:
                value = self.definitions.get(expr.variable)
                self.limits_of[expr.variable] = None if value is None else self.limits(value)
            return self.limits_of[expr.variable]
        if not isinstance(expr, Call):
            return None
        if expr.op == "arange":
            return int(expr.attribute("start", 0)), int(expr.attribute("end")) - 1
        if expr.op in MOVES:
            return self.limits(expr.args[0])
        if expr.op == "add":
            both = [self.limits(arg) for arg in expr.args]
            bits = expr.type.dtype.bits
            if both[0] is not None and both[1] is not None:
                low, high = both[0][0] + both[1][0], both[0][1] + both[1][1]
                return (low, high) if -(1 << (bits - 1)) <= low and high < 1 << (bits - 1) else None
        return None


def _is_true(expr: Expr) -> bool:
    return isinstance(expr, Literal) and expr.value is True
