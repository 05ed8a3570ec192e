"""What a loop's loads are found by: where loads are started ahead, it is named as in the loop.

The operands of such loads are in terms of the loop's variable alone. What the loop's own lines compute from it, such as the
batch and the head of a tile's number, or the row and the column of a pixel's, would else be written out in every address and
in every test of a limit. Scalars are named once, an index of elements at every element.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice

from ...ir.nodes import Assign, Call, CallFunction, Expr, For, Use, Variable
from ...ir.rewrite import substituted
from ...ir.structured import is_elementwise
from ...ir.types import ValueType
from ...ir.walk import MOVES, assigned_variables, children, statements, subexpressions, top_statements
from ..context import Context, ctype
from ..text.point import Point
from ..text.tags import tag
from ..text.unit import Node, const

FEWEST = 2  # operations of a scalar that gets a name, quotients and remainders counted twice
FEWEST_OF_INDEX = 3  # the same of an index, which has its name at every element
MOST = 200  # operations and operands: a chain whose links mention the one before twice doubles
PLACES = MOVES | {"arange"}  # which element, not what is computed
REMARK = "for the copies"


@contextmanager
def names_ahead(context: Context, loop: For, loads: Iterable[Assign]) -> Iterator[list[Node]]:
    """Names, while loads are spelled, what they are found by more than once; the list gets scalars' definitions in the end."""
    found = _often(_values(loop), [load.value for load in loads])
    scalars = {value: _named(context, loop, one) for value, one in found.items() if not one.target.type.is_tile}
    tiles = {value: (_named(context, loop, one), one) for value, one in found.items() if one.target.type.is_tile}
    definitions: list[Node] = []
    with context.speller.calling(scalars, tiles) as called:
        yield definitions
        for value, scalar in reversed(found.items()):
            variable = scalars.pop(value, None)
            if variable is not None and variable in called:
                definitions[:0] = _defined(context, variable, scalar, context.speller.text(value))


def named_elements(
    context: Context, point: Point, spelled: Callable[[Point], tuple[Node, ...]], in_loop: bool
) -> tuple[Node, ...]:
    """What is `spelled` at an element, in the body of a loop below the indices that it is found by more than once."""
    if not in_loop:
        return spelled(point)
    with context.speller.naming_elements() as called:
        nodes = spelled(point)
        found: list[tuple[Variable, Assign, str]] = []
        for value, (variable, statement) in reversed([*context.speller.tiles.items()]):  # later ones call earlier ones
            if value in called:
                text = context.speller.definition(value, replace(point, axes=called[value]))
                found.append((variable, statement, text))
    definitions: list[Node] = []
    quoted = None
    for variable, statement, text in reversed(found):
        lines = _defined(context, variable, statement, text)
        definitions += lines[-1:] if statement.origin.span is quoted else lines
        quoted = statement.origin.span
    return (*definitions, *nodes)


def _named(context: Context, loop: For, statement: Assign) -> Variable:
    return context.beside(loop, statement.target, "ahead", ValueType(statement.target.type.element))


def _defined(context: Context, variable: Variable, statement: Assign, text: str) -> list[Node]:
    """The line that gives a name to what a statement computes, below that statement."""
    origin = replace(statement.origin.noted(REMARK), comments=(), blank_before=False)
    return [*tag(origin, "", False), const(ctype(variable.type), context.names.variable(variable), text)]


def _values(loop: For) -> dict[Expr, Assign]:
    """What scalars and indices are computed from, in terms of the loop's variable and of what the loop does not change."""
    times = Counter(variable for inner in statements(loop.body) for variable in assigned_variables(inner))
    values: dict[Variable, Expr] = {}
    found: dict[Expr, Assign] = {}
    for statement in top_statements(loop.body):
        if not isinstance(statement, Assign) or len(statement.targets) != 1 or times[statement.target] != 1:
            continue
        type_ = statement.target.type
        if type_.rank > 1 or type_.is_pointer or not is_elementwise(statement.value):
            continue
        value = substituted(statement.value, values)
        parts = list(islice(subexpressions(value), MOST))
        if len(parts) == MOST or any(isinstance(part, Use) and part.variable in times for part in parts):
            continue
        values[statement.target] = value
        if sum(map(_weight, parts)) >= (FEWEST_OF_INDEX if type_.is_tile else FEWEST):
            found.setdefault(value, statement)
    return found


def _weight(part: Expr) -> int:
    if isinstance(part, Call) and part.op in ("floordiv", "mod"):
        return 2
    return int(isinstance(part, CallFunction) or (isinstance(part, Call) and part.op not in PLACES))


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
