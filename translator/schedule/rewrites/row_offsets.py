"""What several accesses add for a row of their tiles is computed once, under a name.

In: a typed kernel. Out: the same kernel; of `offs = rows[:, None] * stride + cols[None, :]`, which two accesses or more add to
their pointers, the rows' part is a tile of its own, `offs_of_row`. Tiles of indices with two axes have no registers, so that they
stand written out in every access; those with one have, and are read by name. That tile has 64 bits, or 32 where a launch can be
asked whether all that is made of it fits (`accesses/small_offsets.py`); a pointer that a loop moves is cheaper with 64.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from ...analysis.facts import Facts, body_facts
from ...analysis.reach import Reaches
from ...artifact import Options
from ...ir.nodes import Assign, Call, Expr, For, Kernel, Literal, Statement, Use, Variable, While
from ...ir.rewrite import substituted_in, with_replaced
from ...ir.structured import assigns, is_atomic
from ...ir.tiles import broadcast_to
from ...ir.types import ValueType
from ...ir.walk import (
    assigned_inside,
    expressions,
    nested,
    next_key,
    reachable,
    read_variables,
    statements,
    subexpressions,
    used_variables,
)
from ...language.dtypes import DType, int32, int64
from ..accesses.small_offsets import may_ask

ACCESSES = ("load", "store")
SUMS = ("add", "sub", "mul")  # what is computed in 64 bits, where something is multiplied in it


def with_row_offsets(kernel: Kernel, options: Options) -> Kernel:
    """See the module docstring; products find their tiles in other ways."""
    tiles = [
        s for s in statements(kernel.body) if isinstance(s, Assign) and len(s.targets) == 1 and _has_two_axes(s.target)
    ]
    if not tiles or any(assigns(s, "dot") for s in statements(kernel.body)):
        return kernel
    facts, shared, key = body_facts(kernel.body), _shared_offsets(kernel), next_key(kernel)
    can_ask, reaches = may_ask(kernel, options), Reaches(kernel, facts.definitions)
    repeated = _read_in_more_loops(kernel.body, facts)
    replaced: dict[Statement, Statement | None] = {}
    added: dict[tuple[Statement, bool], tuple[Statement, ...]] = {}
    values: dict[Variable, Expr] = {}
    short: set[Variable] = set()
    for statement in tiles:
        target = statement.target
        if target in facts.absorbed & shared and (parts := _parts(statement.value)) is not None:
            is_short = (
                can_ask and target not in repeated and _has_ints(*parts) and reaches.of((statement.value,)) is not None
            )
            rows, whole = _apart(statement, *parts, key + len(values) * 2, int32 if is_short else int64)
            short |= {rows.target} if is_short else set()
            added[statement, False], replaced[statement] = (rows,), whole
            values[statement.target] = Use(whole.target.type, whole.target)
    body = substituted_in(with_replaced(kernel.body, replaced, added), values)
    return replace(kernel, body=body, short_rows=frozenset(short)) if values else kernel


def _has_two_axes(variable: Variable) -> bool:
    is_wide = sum(side > 1 for side in variable.type.shape) == 2
    return is_wide and variable.type.rank == 2 and variable.type.element in (int32, int64)


def _shared_offsets(kernel: Kernel) -> set[Variable]:
    """Tiles that two accesses or more add to pointers as they are, and that nobody reads otherwise."""
    parts = [part for s in statements(kernel.body) for expr in expressions(s) for part in subexpressions(expr)]
    calls = [part for part in parts if isinstance(part, Call)]
    uses = Counter(part.variable for part in parts if isinstance(part, Use))
    sums = (call.args[1] for call in calls if call.op == "ptr_add")
    added = Counter(offset.variable for offset in sums if isinstance(offset, Use))
    accessed = (set(used_variables(call.args[0])) for call in calls if call.op in ACCESSES or is_atomic(call))
    accesses = Counter(chain.from_iterable(accessed))
    return {variable for variable, count in uses.items() if added[variable] == count and accesses[variable] > 1}


def _parts(value: Expr) -> tuple[list[tuple[str, Expr]], list[tuple[str, Expr]]] | None:
    """The terms of an offset that are the same along a row, each with its sign, and the others; None where that saves nothing."""
    terms = list(_terms(value, "add"))
    if any(term.type.is_tile and term.type.rank != 2 for _, term in terms):
        return None
    for axis in range(2):
        others = [(sign, term) for sign, term in terms if _varies(term, 1 - axis)]
        along = [(sign, term) for sign, term in terms if not _varies(term, 1 - axis)]
        along.sort(key=lambda one: one[0] == "sub")  # a sum begins with what is added
        apart = others and not any(_varies(term, axis) for _, term in others)
        if apart and along and along[0][0] == "add" and _has_product(along, axis):
            return along, others
    return None


def _has_ints(along: list[tuple[str, Expr]], others: list[tuple[str, Expr]]) -> bool:
    return all(term.type.element == int32 for _, term in (*along, *others))


def _read_in_more_loops(body: tuple[Statement, ...], facts: Facts) -> set[Variable]:
    """The variables that a loop reads, by name or where they are written out, and does not assign."""
    made_of = {variable: tuple(used_variables(facts.definitions[variable])) for variable in facts.absorbed}
    found: set[Variable] = set()
    for loop in statements(body):
        if isinstance(loop, (For, While)):
            read = {variable for statement in nested(loop) for variable in read_variables(statement)}
            found |= reachable(read, made_of) - assigned_inside(loop)
    return found


def _terms(expr: Expr, sign: str) -> Iterator[tuple[str, Expr]]:
    """The terms of a sum of tiles, as "add" or "sub"."""
    while isinstance(expr, Call) and expr.op == "broadcast":
        expr = expr.args[0]
    if isinstance(expr, Call) and expr.op in ("add", "sub"):
        yield from _terms(expr.args[0], sign)
        yield from _terms(expr.args[1], "add" if expr.op == sign else "sub")
    else:
        yield sign, expr


def _varies(term: Expr, axis: int) -> bool:
    return term.type.is_tile and not isinstance(term, Literal) and term.type.shape[axis] > 1


def _multiplies(expr: Expr) -> bool:
    return any(isinstance(part, Call) and part.op == "mul" for part in subexpressions(expr))


def _has_product(terms: list[tuple[str, Expr]], axis: int) -> bool:
    """Whether a term that varies along an axis is more than a name."""
    varying = (term for _, term in terms if _varies(term, axis))
    return any(map(_multiplies, varying))


def _apart(
    statement: Assign, along: list[tuple[str, Expr]], others: list[tuple[str, Expr]], key: int, element: DType
) -> tuple[Assign, Assign]:
    """A tile of the terms `along` rows, numbered `key`, and the offset as the sum of that and the others, both of `element`."""
    tiles = (term for _, term in along if term.type.is_tile and not isinstance(term, Literal))
    target, shapes = statement.target, [tile.type.shape for tile in tiles]
    rows = Variable(f"{target.name}_of_row", ValueType(element, tuple(map(max, zip(*shapes, strict=True)))), key)
    whole = Variable(target.name, target.type.with_element(element), key + 1)
    if element == int64:
        along, others = ([(sign, _wide(term)) for sign, term in terms] for terms in (along, others))
    total = [("add", Use(rows.type, rows)), *others]
    first = Assign(statement.origin, (rows,), _sum(along, rows.type.shape))
    return first, replace(statement, targets=(whole,), value=_sum(total, whole.type.shape))


def _sum(terms: list[tuple[str, Expr]], shape: tuple[int, ...]) -> Expr:
    (_, first), *rest = terms
    total = broadcast_to(first, shape)
    for sign, term in rest:
        total = Call(total.type, sign, (total, broadcast_to(term, shape)))
    return total


def _wide(expr: Expr) -> Expr:
    """An integer in 64 bits, with the products that it is made of; what is only added up has 32, as everywhere."""
    if expr.type.element == int64:
        return expr
    type_ = expr.type.with_element(int64)
    if isinstance(expr, Literal):
        return replace(expr, type=type_)
    if isinstance(expr, Call) and expr.op in (*SUMS, "expand_dims", "broadcast") and _multiplies(expr):
        return replace(expr, type=type_, args=tuple(map(_wide, expr.args)))
    return Call(type_, "cast", (expr,))
