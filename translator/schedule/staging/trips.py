"""What a loop's load reads in any of its trips: its operands in terms of the loop's variable alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...analysis.facts import Facts
from ...analysis.induction import Induction
from ...ir.nodes import Assign, Call, Expr, For, Variable
from ...ir.rewrite import substituted
from ...ir.walk import assigned_variables, statements, used_variables


def in_any_trip(
    induction: Induction,
    facts: Facts,
    statement: Assign,
    loop: For,
    other: Callable[[Variable], Expr | None] = lambda variable: None,
) -> Call | None:
    """A load whose operands are in terms of the loop's variable and of what the loop does not change; None if it cannot be.

    `other` is asked for what stands for a variable that the loop assigns in no closed form.
    """
    changed = {v for inner in statements(loop.body) for v in assigned_variables(inner)}
    induction = replace(induction, kept=facts.index - changed)  # computed once, before the loop
    call = statement.value
    if not isinstance(call, Call):
        return None
    args: list[Expr] = []
    for arg in call.args:
        value = induction.value_at(arg, statement)
        while value is not None and (inside := next((v for v in used_variables(value) if v in changed), None)):
            definition = induction.definition(inside, statement) or other(inside)
            value = None if definition is None else substituted(value, {inside: definition})
        if value is None:
            return None
        args.append(value)
    return replace(call, args=tuple(args))
