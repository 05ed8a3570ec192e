"""Tiles of integers that exist only to be converted: they are formed where a statement of 16-bit floats uses them.

`nibbles = (packed >> shifts) & 15`, used by `b = (nibbles - 8).to(tl.float16) * scale` alone, needs no registers of its own;
written where it is used, the statement shows what its elements are made of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from ..ir.nodes import Assign, Call, Expr, Statement, Use, Variable
from ..ir.structured import is_elementwise
from ..ir.walk import (
    assigned_variables,
    blocks,
    read_inside,
    read_variables,
    statements,
    subexpressions,
    used_variables,
)
from ..language.dtypes import DType


def converted_once(body: tuple[Statement, ...], definitions: Mapping[Variable, Expr]) -> frozenset[Variable]:
    """The tiles of integers that one later statement of the same block reads, whose operands nothing changes in between."""
    uses = Counter(read_inside(body))
    found: set[Variable] = set()
    for block in blocks(body):
        pending: set[Variable] = set()
        made_of: dict[Variable, list[Variable]] = {}  # the tiles whose definition reads a variable
        for statement in block:
            if _is_narrow(statement):
                found |= pending & set(read_variables(statement)) - set(_read_as_bits(statement))
            nested = statements((statement,)) if pending else ()
            for changed in (v for s in nested for v in assigned_variables(s)):
                pending -= {changed, *made_of.pop(changed, ())}
            if isinstance(statement, Assign) and len(statement.targets) == 1 and uses[statement.target] == 1:
                target = statement.target
                if _is_integer_tile(target) and target in definitions:
                    pending.add(target)
                    for variable in used_variables(definitions[target]):
                        made_of.setdefault(variable, []).append(target)
    return frozenset(found)


def _is_integer_tile(variable: Variable) -> bool:
    element = variable.type.element
    return variable.type.is_tile and isinstance(element, DType) and element.is_int() and not element.is_bool()


def _is_narrow(statement: Statement) -> bool:
    """Whether a statement computes a tile of 16-bit floats element by element."""
    if not isinstance(statement, Assign) or not is_elementwise(statement.value):
        return False
    element = statement.value.type.element
    return isinstance(element, DType) and element.is_floating() and element.bits == 16


def _read_as_bits(statement: Statement) -> Iterator[Variable]:
    """The variables whose bits are taken as they are: no numbers that are converted."""
    value = statement.value if isinstance(statement, Assign) else None
    for part in subexpressions(value) if value is not None else ():
        match part:
            case Call(op="cast", args=(Use(variable=variable),)) if part.attribute("bitcast"):
                yield variable
