"""What a loop's load reads in any of its trips: its operands in terms of the loop's variable alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...analysis.facts import Facts
from ...analysis.induction import Induction
from ...ir.nodes import Assign, Call, Expr, For, Variable
from ...ir.rewrite import substituted
from ...ir.walk import used_variables

Other = Callable[[Variable], "Expr | None"]


def no_other(_: Variable) -> None:
    """Nothing stands for what has no closed form."""


def in_any_trip(
    induction: Induction, facts: Facts, statement: Assign, loop: For, other: Other = no_other
) -> Call | None:
    """A load whose operands are in terms of the loop's variable and of what the loop does not change; None if it cannot be."""
    call = statement.value
    if not isinstance(call, Call):
        return None
    args: list[Expr] = []
    for arg in call.args:
        value = value_in_any_trip(induction, facts, arg, statement, loop, other)
        if value is None:
            return None
        args.append(value)
    return replace(call, args=tuple(args))


def value_in_any_trip(
    induction: Induction, facts: Facts, expr: Expr, statement: Assign, loop: For, other: Other
) -> Expr | None:
    """An expression at a statement in the same terms.

    `other` is asked for what stands for a variable that the loop assigns in no closed form.
    """
    changed = induction.changed[loop] - {loop.variable}
    induction = replace(induction, kept=facts.index - changed)  # computed once, before the loop
    value = induction.value_at(expr, statement)
    while value is not None and (inside := next((v for v in used_variables(value) if v in changed), None)):
        definition = induction.definition(inside, statement) or other(inside)
        value = None if definition is None else substituted(value, {inside: definition})
    return value
