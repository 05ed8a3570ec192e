"""Which dots add to a sum that nothing but the dot has read: what a statement of the same block has computed for it.

In: a typed block. Out: such dots. Another dot's sum may be in registers that others compute from as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.nodes import Assign, Call, Expr, Literal, Statement, Use
from ..ir.structured import assigns
from ..ir.walk import assigned_variables, blocks, read_variables, statements, subexpressions, top_statements


def dots_with_own_sums(body: tuple[Statement, ...]) -> frozenset[Statement]:
    """See the module docstring."""
    found: set[Statement] = set()
    for block in blocks(body):
        straight = list(top_statements(block))
        dots = ((place, s) for place, s in enumerate(straight) if isinstance(s, Assign) and assigns(s, "dot"))
        found.update(dot for place, dot in dots if _owns(dot, straight[:place]))
    return frozenset(found)


def _owns(dot: Assign, before: Sequence[Statement]) -> bool:
    sums = dot.value.args[2:] if isinstance(dot.value, Call) else ()
    if not sums or not isinstance(sums[0], Use) or sums[0].variable is not dot.target:
        return False
    for statement in reversed(before):
        if isinstance(statement, Assign) and dot.target in statement.targets:
            return _is_new(statement.value)
        inside = statements((statement,))
        if any(dot.target in {*read_variables(one), *assigned_variables(one)} for one in inside):
            return False
    return False


def _is_new(value: Expr) -> bool:
    """Whether an expression gives what no register had before: no other name of a value, nor `x * 1.0`, which may be one."""
    parts = list(subexpressions(value))
    constant = not any(isinstance(part, Use) for part in parts)
    return constant or (isinstance(value, Call) and not any(isinstance(part, Literal) for part in parts))
