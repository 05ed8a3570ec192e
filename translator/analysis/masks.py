"""The parts of a mask: a conjunction of conditions that can be looked at one by one."""

from __future__ import annotations

from dataclasses import replace

from ..ir.nodes import Call, Expr, Literal, Use
from .facts import Facts

CONJUNCTIONS = ("and", "logical_and")


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
    if isinstance(part, Call) and part.op in ("lt", "le", "gt", "ge"):
        sides = (replace(move, type=move.type.with_element(arg.type.element), args=(arg,)) for arg in part.args)
        return replace(part, type=move.type, args=tuple(sides))
    return replace(move, args=(part,))
