"""How far apart in memory neighbours along the axes of a pointer tile lie, if not in every place.

`(offs % M)[:, None] + offs_k[None, :] * stride`: neighbours along axis 0 are neighbours in memory except where the
remainder wraps around. That is no reason to load several at once, but one to give them to neighbouring threads; so is
`2 * offs`, of which a sector holds as many elements as it can.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..ir.nodes import Call, Expr, Literal, Use, Variable

Steps = dict[int, int]  # by axis
FEW = 8  # neighbours: remainders by less wrap around in most places where threads side by side look
THROUGH = ("hint", "cast", "mod", "minimum", "maximum")  # the first operand's neighbours mostly stay neighbours


def unit_axes(expr: Expr, definitions: Mapping[Variable, Expr]) -> frozenset[int]:
    """The axes along which an expression mostly rises by 1."""
    return frozenset(axis for axis, step in steps(expr, definitions).items() if step == 1)


def steps(expr: Expr, definitions: Mapping[Variable, Expr], known: dict[Variable, Steps] | None = None) -> Steps:
    """By how much an expression mostly rises, or falls, along its axes, where numbers tell.

    `known` keeps what is found for variables: they are mentioned many times, by each other too.
    """
    known = {} if known is None else known
    if not expr.type.is_tile:
        return {}
    if isinstance(expr, Use):
        if expr.variable not in known and expr.variable in definitions:
            known[expr.variable] = steps(definitions[expr.variable], definitions, known)
        return known.get(expr.variable, {})
    if not isinstance(expr, Call):
        return {}
    if expr.op == "arange":
        return {0: 1}
    below = [steps(arg, definitions, known) for arg in expr.args]
    match expr.op:
        case "add" | "ptr_add":
            return {axis: below[0].get(axis, 0) + below[1].get(axis, 0) for axis in (*below[0], *below[1])}
        case "sub":
            return {axis: below[0].get(axis, 0) - below[1].get(axis, 0) for axis in (*below[0], *below[1])}
        case "mul":
            for factor, factors in zip(expr.args, reversed(below), strict=True):
                if isinstance(factor, Literal) and factor.value > 0:
                    return {axis: step * int(factor.value) for axis, step in factors.items()}
        case "broadcast":
            sides = expr.args[0].type.shape
            return {axis: step for axis, step in below[0].items() if sides[axis] == expr.type.shape[axis]}
        case "expand_dims":
            new = expr.attribute("axis")
            return {axis + (axis >= new): step for axis, step in below[0].items()}
        case "mod" if isinstance(divisor := _scalar(expr.args[1]), Literal) and divisor.value < FEW:
            return {}
        case "permute":
            return {expr.attribute("order").index(axis): step for axis, step in below[0].items()}
    return below[0] if expr.op in THROUGH else {}


def _scalar(expr: Expr) -> Expr:
    """What all elements of a tile are, where it is made of a scalar."""
    while isinstance(expr, Call) and expr.op == "broadcast":
        expr = expr.args[0]
    return expr
