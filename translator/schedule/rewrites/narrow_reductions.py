"""Maxima and minima of widened tiles are taken of the narrow ones and widened afterwards: the order is the same.

In: a typed kernel. Out: the same kernel, in which `max(x.to(fp32))` of a 16-bit tile reads `x` itself, which saves widening
every element once more where the wide tile is not kept. Where something else that is made of the wide tile is reduced beside it
(`joint_reductions.py`), both tiles would be in registers at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...ir.nodes import Assign, Call, Expr, Kernel, Statement, Use, Variable
from ...ir.rewrite import substituted_in, with_replaced
from ...ir.structured import assigns
from ...ir.walk import computed_from, next_key, only_values, reachable, statements, used_variables

NARROW = ("fp16", "bf16")  # both have maxima of their own, which treat NaN as those of fp32 do


def with_narrow_reductions(kernel: Kernel) -> Kernel:
    """See the module docstring."""
    definitions, key, steps = only_values(kernel.body), next_key(kernel), computed_from(kernel.body)
    replaced: dict[Statement, Statement] = {}
    widened: dict[Variable, Expr] = {}
    for statement in statements(kernel.body):
        source = _narrow_source(statement, definitions)
        if source is not None and isinstance(statement, Assign) and isinstance(statement.value, Call):
            target = statement.target
            if _is_reduced_beside(kernel, statement, steps):
                continue
            narrow = Variable(target.name, target.type.with_element(source.type.element), key)
            key += 1
            value = replace(statement.value, args=(source,), type=narrow.type)
            replaced[statement] = replace(statement, targets=(narrow,), value=value)
            widened[target] = Call(target.type, "cast", (Use(narrow.type, narrow),), ())
    return replace(kernel, body=substituted_in(with_replaced(kernel.body, replaced), widened)) if replaced else kernel


def _is_reduced_beside(kernel: Kernel, statement: Assign, steps: Mapping[Variable, set[Variable]]) -> bool:
    """Whether another reduction, which does not need the result of this one, reads the same wide tile.

    `steps` are those by which the kernel computes one variable from others.
    """
    wide = set(used_variables(statement.value))
    for other in statements(kernel.body):
        if other is not statement and isinstance(other, Assign) and assigns(other, "reduce"):
            made_of = reachable(used_variables(other.value), steps)
            if wide <= made_of and statement.target not in made_of:
                return True
    return False


def _narrow_source(statement: Statement, definitions: dict[Variable, Expr]) -> Use | None:
    """The 16-bit tile whose widened elements a statement reduces to their largest or smallest; None for any other."""
    call = statement.value if isinstance(statement, Assign) and len(statement.targets) == 1 else None
    if not isinstance(call, Call) or call.op != "reduce" or call.attribute("combine").op not in ("max", "min"):
        return None
    if statement.targets[0] not in definitions:  # type: ignore[attr-defined]
        return None
    operand = call.args[0]
    if isinstance(operand, Use):
        operand = definitions.get(operand.variable, operand)
    if not isinstance(operand, Call) or operand.op != "cast" or operand.type.dtype.name != "fp32":
        return None
    source = operand.args[0]
    if not isinstance(source, Use) or source.type.is_pointer or source.type.dtype.name not in NARROW:
        return None
    return source if source.variable in definitions else None
