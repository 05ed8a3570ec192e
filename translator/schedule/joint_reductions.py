"""Reductions of the same block that can share one exchange between warps become one reduction with several results.

In: a typed kernel. Out: the same kernel, in which a later reduction to a scalar stands beside an earlier one when all that it
reads is known there. Each exchange costs a barrier and two chains of shuffles, one after the other; together they cost one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ..ir.nodes import Assign, Call, Combine, For, If, Inlined, Kernel, Note, Statement, Variable, While
from ..ir.walk import assigned_variables, expressions, statements, used_variables
from .layout import padded

JOINED = ("sum", "max", "min")  # combinations that are spelled field by field
LANES = 32
WIDEST_RUN = 16  # elements that one thread holds side by side, at most: 16 bytes of bytes


def join_reductions(kernel: Kernel, num_warps: int) -> Kernel:
    """See the module docstring; a block of one warp exchanges nothing and is returned as it is."""
    if num_warps == 1:
        return kernel
    assignments = Counter(v for s in statements(kernel.body) for v in assigned_variables(s))
    return replace(kernel, body=_joined(kernel.body, assignments))


def _joined(block: tuple[Statement, ...], assignments: Counter[Variable]) -> tuple[Statement, ...]:
    rest = [_inside(statement, assignments) for statement in block]
    result: list[Statement] = []
    while rest:
        first = rest.pop(0)
        if _can_join(first, assignments):
            others = _partners(first, rest, assignments)
            rest = _without(rest, first, others)
            first = _together([first, *others]) if others else first
        result.append(first)
    return tuple(result)


def _inside(statement: Statement, assignments: Counter[Variable]) -> Statement:
    match statement:
        case If():
            then, otherwise = _joined(statement.then, assignments), _joined(statement.otherwise, assignments)
            return replace(statement, then=then, otherwise=otherwise)
        case For() | While() | Inlined():
            return replace(statement, body=_joined(statement.body, assignments))
    return statement


def _can_join(statement: Statement, assignments: Counter[Variable]) -> bool:
    """Whether a statement reduces one tile of several warps to a scalar, in a way that can be spelled by fields."""
    if not (isinstance(statement, Assign) and isinstance(statement.value, Call) and statement.value.op == "reduce"):
        return False
    call, combine = statement.value, statement.value.attribute("combine")
    if len(call.args) != 1 or combine.op not in JOINED or call.type.is_tile or assignments[statement.target] != 1:
        return False
    shape = call.args[0].type.shape
    return len(shape) == 1 and shape[0] == padded(shape[0]) and shape[0] > LANES * WIDEST_RUN


def _partners(first: Statement, rest: list[Statement], assignments: Counter[Variable]) -> list[Assign]:
    """The later reductions of the same block whose operands nothing in between assigns."""
    found: list[Assign] = []
    changed = set(assigned_variables(first))
    for statement in rest:
        if _can_join(statement, assignments) and _shape(statement) == _shape(first):
            reads = {v for expr in expressions(statement) for v in used_variables(expr)}
            if isinstance(statement, Assign) and not reads & changed:
                found.append(statement)
        changed |= {v for inner in statements((statement,)) for v in assigned_variables(inner)}
    return found


def _shape(statement: Statement) -> tuple[int, ...]:
    (call,) = expressions(statement)
    return call.args[0].type.shape  # type: ignore[attr-defined]


def _without(rest: list[Statement], first: Statement, others: list[Assign]) -> list[Statement]:
    """The statements after a reduction without those that are done with it; their lines say so."""
    kept: list[Statement] = []
    elsewhere = [other.origin for other in others if other.origin != first.origin]
    for statement in rest:
        if statement.origin in elsewhere:
            noted = replace(statement.origin, note=f"(reduced at L{first.origin.span.line})")
            alone = sum(s.origin == statement.origin for s in rest) == 1
            if not any(statement is other for other in others):
                kept.append(replace(statement, origin=noted))
            elif alone:
                kept.append(Note(noted))
        elif not any(statement is other for other in others):
            kept.append(statement)
    return kept


def _together(reductions: list[Assign]) -> Assign:
    """One reduction with the results of several."""
    calls = [reduction.value for reduction in reductions]
    targets = tuple(reduction.target for reduction in reductions)
    ops = [call.attribute("combine").op for call in calls]  # type: ignore[attr-defined]
    word = f"{ops[0]}s" if len(set(ops)) == 1 else "_".join(ops)
    combine = Combine("together", word, parts=tuple(zip(ops, (target.name for target in targets), strict=True)))
    arguments = tuple(call.args[0] for call in calls)  # type: ignore[attr-defined]
    call = replace(calls[0], args=arguments, attributes=(("axis", None), ("combine", combine)))  # type: ignore[arg-type]
    return replace(reductions[0], targets=targets, value=call)
