"""Tiles of integers that exist only to be converted: they are formed where a statement of 16-bit floats uses them.

`nibbles = (packed >> shifts) & 15`, used by `b = (nibbles - 8).to(tl.float16) * scale` alone, needs no registers of its own;
written where it is used, the statement shows what its elements are made of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from ..ir.nodes import Assign, Expr, Statement, Variable
from ..ir.walk import assigned_variables, bodies, expressions, statements, used_variables
from ..language.dtypes import DType
from .structured import is_elementwise


def converted_once(body: tuple[Statement, ...], definitions: Mapping[Variable, Expr]) -> frozenset[Variable]:
    """The tiles of integers that one later statement of the same block reads, whose operands nothing changes in between."""
    uses = Counter(v for s in statements(body) for expr in expressions(s) for v in used_variables(expr))
    found: set[Variable] = set()
    blocks = [body, *(block for s in statements(body) for block in bodies(s))]
    for block in blocks:
        pending: dict[Variable, Expr] = {}
        for statement in block:
            if _is_narrow(statement):
                read = {v for expr in expressions(statement) for v in used_variables(expr)}
                found |= {v for v in pending if v in read}
            changed = {v for s in statements((statement,)) for v in assigned_variables(s)}
            pending = {v: d for v, d in pending.items() if not changed & {v, *used_variables(d)}}
            if isinstance(statement, Assign) and len(statement.targets) == 1:
                target = statement.target
                element = target.type.element
                integers = isinstance(element, DType) and element.is_int() and not element.is_bool()
                if integers and target.type.is_tile and target in definitions and uses[target] == 1:
                    pending[target] = definitions[target]
    return frozenset(found)


def _is_narrow(statement: Statement) -> bool:
    """Whether a statement computes a tile of 16-bit floats element by element."""
    if not isinstance(statement, Assign) or not is_elementwise(statement.value):
        return False
    element = statement.value.type.element
    return isinstance(element, DType) and element.is_floating() and element.bits == 16
