"""The parts of a mask: a conjunction of conditions that can be looked at one by one."""

from __future__ import annotations

from dataclasses import replace

from ..ir.nodes import Call, Expr, Literal, Use
from .facts import Facts

CONJUNCTIONS = ("and", "logical_and")
COMPARISONS = ("lt", "le", "gt", "ge")


def conjuncts(mask: Expr | None, facts: Facts) -> list[Expr]:
    """The parts of a mask that must all hold; masks with names of their own are followed to their definition."""
    if mask is None or (isinstance(mask, Literal) and mask.value):
        return []
    if isinstance(mask, Use) and mask.variable in facts.absorbed:
        return conjuncts(facts.definitions[mask.variable], facts)
    if isinstance(mask, Call):
        if mask.op in CONJUNCTIONS:
            return [part for arg in mask.args for part in conjuncts(arg, facts)]
        if mask.op in ("broadcast", "expand_dims") and mask.args[0].type.is_tile:
            return [_moved(mask, part) for part in conjuncts(mask.args[0], facts)]
    return [mask]


def _moved(move: Call, part: Expr) -> Expr:
    """A broadcast (or new axis) of a part of a mask; of a comparison, it moves to the operands."""
    if isinstance(part, Call) and part.op in COMPARISONS:
        sides = (replace(move, type=move.type.with_element(arg.type.element), args=(arg,)) for arg in part.args)
        return replace(part, type=move.type, args=tuple(sides))
    return replace(move, args=(part,))


def compares_with_number(part: Expr, facts: Facts) -> bool:
    """Whether a condition compares something with a number, or with a variable that is never anything else."""
    return isinstance(part, Call) and part.op in COMPARISONS and any(is_number(side, facts) for side in part.args)


def is_number(expr: Expr, facts: Facts) -> bool:
    """Whether an expression is a number, or a variable that is never anything else."""
    while True:
        if isinstance(expr, Call) and expr.op in ("broadcast", "expand_dims", "cast"):
            expr = expr.args[0]
        elif isinstance(expr, Use) and expr.variable in facts.definitions:
            expr = facts.definitions[expr.variable]
        else:
            return isinstance(expr, Literal)
