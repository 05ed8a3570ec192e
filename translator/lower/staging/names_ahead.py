"""Scalars of a loop that its loads are found by: where loads are started ahead, these are named as in the loop.

The operands of such loads are in terms of the loop's variable alone. What the loop's own lines compute from it, such as the
batch and the head of a tile's number, would else be written out in every address and in every test of a limit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice

from ...ir.nodes import Assign, Call, CallFunction, Expr, For, Use, Variable
from ...ir.rewrite import substituted
from ...ir.structured import is_elementwise
from ...ir.walk import assigned_variables, children, statements, subexpressions, top_statements
from ..context import Context, ctype
from ..text.tags import tag
from ..text.unit import Line, Node

FEWEST = 2  # operations of a scalar that gets a name, quotients and remainders counted twice
MOST = 200  # operations and operands: a chain whose links mention the one before twice doubles
REMARK = "for the copies"


@contextmanager
def scalars_ahead(context: Context, loop: For, loads: Iterable[Assign]) -> Iterator[list[Node]]:
    """Names, while loads are spelled, what they are found by more than once; the list gets the definitions in the end."""
    found = _often(_values(loop), [load.value for load in loads])
    names = {value: context.beside(id(loop), scalar.target, "ahead") for value, scalar in found.items()}
    definitions: list[Node] = []
    with context.speller.calling(names) as called:
        yield definitions
        for value, scalar in reversed(found.items()):
            variable = names.pop(value)
            if variable in called:
                line = (
                    f"const {ctype(variable.type)} {context.names.variable(variable)} = {context.speller.text(value)};"
                )
                origin = replace(scalar.origin.noted(REMARK), comments=(), blank_before=False)
                definitions[:0] = [*tag(origin, "", False), Line(line)]


def _values(loop: For) -> dict[Expr, Assign]:
    """What scalars of the loop are computed from, in terms of the loop's variable and of what the loop does not change."""
    times = Counter(variable for inner in statements(loop.body) for variable in assigned_variables(inner))
    values: dict[Variable, Expr] = {}
    found: dict[Expr, Assign] = {}
    for statement in top_statements(loop.body):
        if not isinstance(statement, Assign) or len(statement.targets) != 1 or times[statement.target] != 1:
            continue
        if statement.target.type.is_tile or statement.target.type.is_pointer or not is_elementwise(statement.value):
            continue
        value = substituted(statement.value, values)
        parts = list(islice(subexpressions(value), MOST))
        if len(parts) == MOST or any(isinstance(part, Use) and part.variable in times for part in parts):
            continue
        values[statement.target] = value
        if sum(map(_weight, parts)) >= FEWEST:
            found.setdefault(value, statement)
    return found


def _weight(part: Expr) -> int:
    if isinstance(part, Call) and part.op in ("floordiv", "mod"):
        return 2
    return int(isinstance(part, (Call, CallFunction)))


def _often(known: dict[Expr, Assign], exprs: list[Expr]) -> dict[Expr, Assign]:
    """Those values that are written more than once in expressions, and in the values of such."""
    times: Counter[Expr] = Counter()
    for expr in exprs:
        times.update(_largest(known, expr))
    for value in reversed(known):  # a value may stand in those of later lines
        if times[value]:
            times.update(inner for part in children(value) for inner in _largest(known, part))
    return {value: statement for value, statement in known.items() if times[value] > 1}


def _largest(known: dict[Expr, Assign], expr: Expr) -> Iterator[Expr]:
    """The values in an expression that stand in no larger one."""
    if expr in known:
        yield expr
    else:
        for part in children(expr):
            yield from _largest(known, part)
