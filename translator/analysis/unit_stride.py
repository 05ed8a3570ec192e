"""Along which axes of a pointer tile neighbours lie side by side in memory, if not in every place.

`(offs % M)[:, None] + offs_k[None, :] * stride`: neighbours along axis 0 are neighbours in memory except where the
remainder wraps around. That is no reason to load several at once, but one to give them to neighbouring threads.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..ir.nodes import Call, Expr, Literal, Use, Variable

THROUGH = ("hint", "cast", "mod", "minimum", "maximum")  # the first operand's neighbours mostly stay neighbours


def unit_axes(expr: Expr, definitions: Mapping[Variable, Expr]) -> frozenset[int]:
    """The axes along which an expression mostly rises by 1."""
    return _axes(expr, definitions, {})


def _axes(expr: Expr, definitions: Mapping[Variable, Expr], known: dict[Variable, frozenset[int]]) -> frozenset[int]:
    """The same; `known` keeps what has been found for variables, which may be mentioned many times."""
    if not expr.type.is_tile:
        return frozenset()
    if isinstance(expr, Use):
        if expr.variable not in known and expr.variable in definitions:
            known[expr.variable] = _axes(definitions[expr.variable], definitions, known)
        return known.get(expr.variable, frozenset())
    if not isinstance(expr, Call):
        return frozenset()
    if expr.op == "arange":
        return frozenset((0,))
    below = [_axes(arg, definitions, known) for arg in expr.args]
    match expr.op:
        case "add" | "ptr_add":
            return below[0] | below[1]
        case "sub":
            return below[0]
        case "mul":
            ones = [isinstance(arg, Literal) and arg.value == 1 for arg in expr.args]
            return below[1] if ones[0] else below[0] if ones[1] else frozenset()
        case "broadcast":
            return frozenset(axis for axis in below[0] if expr.args[0].type.shape[axis] == expr.type.shape[axis])
        case "expand_dims":
            new = expr.attribute("axis")
            return frozenset(axis + (axis >= new) for axis in below[0])
        case "permute":
            return frozenset(expr.attribute("order").index(axis) for axis in below[0])
    return below[0] if expr.op in THROUGH else frozenset()
