"""Which expressions take several instructions: functions, and quotients by what is no power of two; or several operations.

In: an expression. Out: whether it takes long. The compiler branches around such a computation where its result is not always
wanted, and what stands in a branch overlaps with nothing else; around several operations it does so where a condition chooses.
"""

from __future__ import annotations

from collections.abc import Container

from ..ir.nodes import Call, CallFunction, Expr, Literal, Use, Variable
from ..ir.walk import MOVES, children, expressions, statements, subexpressions, used_variables
from ..ops.registry import OPS
from .facts import FactsAt

SEVERAL = 2  # operations for which the compiler makes a branch, and predicates what is in it


def takes_long(expr: Expr, named: Container[Expr] = ()) -> bool:
    """Whether an expression computes a function or a quotient, which the compiler would branch around.

    What is `named` is computed elsewhere.
    """
    pending = [expr]
    while pending:
        part = pending.pop()
        if part in named:
            continue
        if isinstance(part, Call) and ((part.op in OPS and OPS[part.op].long) or _is_quotient(part)):
            return True
        if isinstance(part, CallFunction):
            inner = [expr for statement in statements(part.function.body) for expr in expressions(statement)]
            if any(map(takes_long, inner)):
                return True
        pending += children(part)
    return False


def invites_branch(expr: Expr) -> bool:
    """Whether the compiler would branch around an expression that is chosen by a condition: a function, or several operations."""
    arithmetic = (
        part for part in subexpressions(expr) if isinstance(part, Call) and part.op in OPS and part.op not in MOVES
    )
    return takes_long(expr) or sum(1 for _ in arithmetic) >= SEVERAL


def _is_quotient(call: Call) -> bool:
    """Whether integers are divided by more than a shift."""
    return call.op in ("floordiv", "mod") and not is_power_of_two(call.args[1])


def is_power_of_two(expr: Expr) -> bool:
    """Whether an expression is a number that is a power of two."""
    while isinstance(expr, Call) and expr.op in MOVES:
        expr = expr.args[0]
    value = int(expr.value) if isinstance(expr, Literal) else 0
    return value > 0 and value & (value - 1) == 0


def is_found_slowly(places: Expr, here: FactsAt) -> bool:
    """Whether the elements of a tile of addresses or indices follow from a computation for each that takes long.

    A quotient that neighbours have in common, or a remainder that rises by 1, is computed once for all of them, and what an
    outer loop computes stands in no branch of an inner one.
    """
    facts = here.facts
    inner = max((facts.loops.get(variable, 0) for variable in used_variables(places)), default=0)
    pending, seen = [places], set[Variable]()
    while pending:
        part = pending.pop()
        if not part.type.is_tile:
            continue  # what scalars are computed from is computed once
        if isinstance(part, Call) and ((part.op in OPS and OPS[part.op].long) or _is_quotient(part)):
            info = here.info(part)
            if max(*info.constancy, *info.contiguity) == 1:
                return True
        if isinstance(part, Use) and part.variable in facts.index | facts.absorbed and part.variable not in seen:
            seen.add(part.variable)
            if facts.loops.get(part.variable, 0) >= inner:
                pending.append(facts.definitions[part.variable])
        pending += children(part)
    return False
