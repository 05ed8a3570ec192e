"""Which elements of every tile can make a difference: those that a store's mask lets through, and what they come from.

In: a typed kernel. Out: `Demand`. A store under `offs_m[:, None] < M` reads no row of its tile from M on; neither does
anything that the row was computed from, element by element or as a row of a dot's operand. Whatever else is read (by a
reduction along the axis, by a condition, through a pointer) is demanded whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..frozen import frozen
from ..ir.nodes import Assign, Call, CallFunction, Effect, Expr, Kernel, Statement, Use, Variable
from ..ir.structured import is_atomic, is_elementwise
from ..ir.walk import assigned_variables, expressions, statements, used_variables
from .affine import NotAffineError, Sum, minus
from .box_dimensions import Site
from .box_masks import bound
from .facts import Facts
from .induction import Induction, Source, Version
from .masks import conjuncts


@frozen(eq=False)
class Bound:
    """Positions along an axis from `room` on make no difference. The same number is the same object (`Demand.known`).

    Attributes:
      room: a scalar that holds at the statement where the bound was found.
      versions: which values of the variables in `room` are meant; None for parameters.
    """

    room: Sum
    versions: frozenset[tuple[Variable, Version | None]]


Bounds = dict[int, Bound]  # by axis; of an axis that is missing every position counts


@dataclass(slots=True)
class Demand:
    """See the module docstring.

    Attributes:
      variables: the bounds of every tile that something reads.
      parts: the bounds of every operation inside an expression, by `id` of the expression.
      known: all bounds that were found.
    """

    kernel: Kernel
    facts: Facts
    induction: Induction
    variables: dict[Variable, Bounds] = field(default_factory=dict)
    parts: dict[int, Bounds] = field(default_factory=dict)
    known: list[Bound] = field(default_factory=list)
    changed: bool = True
    loops: dict[Statement, frozenset[Variable]] = field(default_factory=dict)  # what each changes


def find_demand(kernel: Kernel, facts: Facts, induction: Induction) -> Demand:
    """Follows every effect back to where its elements come from, until nothing changes."""
    demand = Demand(kernel, facts, induction)
    stored = {
        s: _bounds(call, number, s, demand) for s in statements(kernel.body) for call, number in _masked(s)
    }  # fmt: skip
    backwards = list(statements(kernel.body))[::-1]
    for dead_too in (False, True):  # a load that nothing reads still reads through its pointers
        demand.changed = True
        while demand.changed:
            demand.changed = False
            for statement in backwards:
                for expr, bounds in _reads(statement, demand, stored.get(statement, {}), dead_too):
                    _need(expr, bounds, statement, demand)
    return demand


def carried_by(variable: Variable, statement: Statement, demand: Demand) -> frozenset[Variable]:
    """What the loop changes that a variable's value at a statement may come through from an earlier trip; else nothing."""
    version = demand.induction.versions[statement].get(variable)
    if version is None or version.source is not Source.CARRIED:
        return frozenset()
    loop = version.statement
    if loop not in demand.loops:
        demand.loops[loop] = frozenset(v for s in statements((loop,)) for v in assigned_variables(s))
    return demand.loops[loop]


def bound_at(condition: Expr, statement: Statement, demand: Demand) -> tuple[int, Bound]:
    """The axis and the bound that a condition over the tile `position < …` sets at a statement.

    Raises:
      NotAffineError: when it is no such condition.
    """
    site = Site(statement, demand.kernel, demand.facts, demand.induction)
    parts = conjuncts(condition, demand.facts)
    if len(parts) != 1:
        raise NotAffineError("several conditions")
    limit = bound(parts[0], site)
    if limit.lowest:
        raise NotAffineError("a bound from below")
    used = dict.fromkeys(v for term in limit.value for factor in term.factors for v in used_variables(factor))
    versions = demand.induction.versions[statement]
    found = Bound(limit.value, frozenset((variable, versions.get(variable)) for variable in used))
    same = (one for one in demand.known if one.versions == found.versions and not minus(one.room, found.room))
    return limit.axis, next(same, None) or _noted(found, demand)


def _noted(found: Bound, demand: Demand) -> Bound:
    demand.known.append(found)
    return found


# ------------------------------------------------------------------------------------------------------ where it starts


def _masked(statement: Statement) -> Iterator[tuple[Call, int]]:
    """The call of a statement that writes a tile under a mask, and the mask's place among its operands."""
    call = _call(statement)
    if call is None or not call.args or not call.args[0].type.is_tile or len(call.args) < 3:
        return
    if call.op == "store" or (is_atomic(call) and call.op != "atomic_cas"):
        yield call, 2


def _call(statement: Statement) -> Call | None:
    if isinstance(statement, Effect):
        return statement.call
    value = statement.value if isinstance(statement, Assign) else None
    return value if isinstance(value, Call) else None


def _bounds(call: Call, number: int, statement: Statement, demand: Demand) -> Bounds:
    mask = demand.induction.value_at(call.args[number], statement)
    found: Bounds = {}
    for part in conjuncts(mask, demand.facts) if mask is not None else ():
        try:
            axis, limit = bound_at(part, statement, demand)
        except NotAffineError:
            continue  # excludes further elements
        found.setdefault(axis, limit)
    return found


# ------------------------------------------------------------------------------------------------------ how it spreads


def _reads(statement: Statement, demand: Demand, stored: Bounds, dead_too: bool) -> Iterator[tuple[Expr, Bounds]]:
    """What a statement reads, each with the bounds within which it reads it."""
    targets = statement.targets if isinstance(statement, Assign) else ()
    wanted = [demand.variables[v] for v in targets if v in demand.variables]
    match _call(statement):
        case Call(op="dot") as call:
            yield from _read_by_dot(call, wanted[0]) if wanted else ()
        case Call(op="reduce") as call if wanted:
            for arg in call.args:
                yield arg, _read_by_reduction(call, wanted)
        case Call(op="load") as call if wanted or dead_too:
            for arg in call.args:
                yield arg, wanted[0] if wanted and not call.attribute("volatile") else {}
        case Call(op="load" | "reduce"):
            return
        case Call(op=op) as call if op == "store" or is_atomic(call):
            for number, arg in enumerate(call.args):
                yield arg, stored if number == 1 else {}
        case Call() as call if is_elementwise(call):
            yield from ((call, bounds) for bounds in wanted)
        case _:
            elementwise = isinstance(statement, Assign)
            for expr in expressions(statement):
                yield from ((expr, bounds) for bounds in wanted) if elementwise else ((expr, {}),)


def _read_by_reduction(call: Call, wanted: list[Bounds]) -> Bounds:
    """Other axes than the reduced one keep their bounds."""
    axis = call.attribute("axis")
    if axis is None or len(wanted) != 1:
        return {}
    return {place + (place >= axis): one for place, one in wanted[0].items()}


def _read_by_dot(call: Call, wanted: Bounds) -> Iterator[tuple[Expr, Bounds]]:
    """Rows of the result come from rows of the left operand, columns from columns of the right one."""
    rank = call.type.rank
    for number, own in enumerate((rank - 2, rank - 1)):
        yield call.args[number], {axis: one for axis, one in wanted.items() if axis < rank - 2 or axis == own}
    for acc in call.args[2:]:
        yield acc, wanted


def _need(expr: Expr, bounds: Bounds, statement: Statement, demand: Demand) -> None:
    """Notes that an expression is read within bounds."""
    if isinstance(expr, Use):
        stale = carried_by(expr.variable, statement, demand)
        fresh = {a: one for a, one in bounds.items() if not any(v in stale for v, _ in one.versions)}
        _join(demand.variables, expr.variable, fresh, demand)
        return
    if isinstance(expr, (Call, CallFunction)):
        _join(demand.parts, id(expr), bounds, demand)
        for arg in expr.args:
            _need(arg, _below(expr, arg, bounds), statement, demand)


def _join(table: dict[Any, Bounds], key: object, bounds: Bounds, demand: Demand) -> None:
    before = table.get(key)
    after = bounds if before is None else {a: one for a, one in before.items() if bounds.get(a) is one}
    if before is None or len(after) < len(before):
        table[key] = after
        demand.changed = True


def _below(call: Expr, arg: Expr, bounds: Bounds) -> Bounds:
    """The bounds of an operand, given those of the result of an elementwise operation."""
    axes = axes_of(call, arg)
    return {own: bounds[axis] for own, axis in axes.items() if axis in bounds}


def axes_of(call: Expr, arg: Expr) -> dict[int, int]:
    """Which axis of the result each axis of an operand is, where positions along the two are the same."""
    shape = arg.type.shape
    match call:
        case Call(op="broadcast"):
            return {axis: axis for axis, side in enumerate(shape) if side == call.type.shape[axis]}
        case Call(op="expand_dims"):
            new = call.attribute("axis")
            return {axis: axis + (axis >= new) for axis in range(len(shape))}
        case Call(op="permute"):
            return {axis: place for place, axis in enumerate(call.attribute("order"))}
        case Call(op="reshape"):
            return {}  # moves positions
    return {axis: axis for axis in range(len(shape))}
