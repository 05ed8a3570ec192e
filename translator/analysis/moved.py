"""Whether expressions are others moved along an axis: their elements are the others', some places further on.

In: expressions, one or several of each trip of a loop, an axis, and how many neighbours along it count. Out: by how much the
indices of each trip are those of the first moved on, and which these are. `row * W + (c + 1)` is `row * W + (c - 1)` moved by
2 along the axis of `c = tl.arange(0, 128)`. Only runs of neighbours count: an index rises by 1 in each, all else stays the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..frozen import frozen
from ..ir.nodes import Call, Expr, Literal, Use, Variable
from ..ir.rewrite import with_operands
from ..ir.walk import REARRANGES
from .axis_info import AxisInfo, axis_info

SUMS = ("add", "sub", "ptr_add")
Term = tuple[int, Literal]  # a number that has a word and is added, or taken away: with 1 or -1


@frozen
class Place:
    """An index that rises along the axis: `base`, and the numbers that move it: some with words, and what the others come to."""

    expr: Expr
    base: Expr
    terms: tuple[Term, ...]
    rest: int

    @property
    def number(self) -> int:
        """What all of them come to."""
        return sum(sign * int(literal.value) for sign, literal in self.terms) + self.rest

    @property
    def signs(self) -> tuple[int, ...]:
        """Which terms are added, and which taken away."""
        return tuple(sign for sign, _ in self.terms)


@frozen
class Moved:
    """See the module docstring.

    Attributes:
      by: how much further on a trip's expressions are than the first's.
      places: its indices, in the order in which they are met.
    """

    by: int
    places: tuple[Place, ...]


Rows = list[tuple[Place, ...]]  # for each index that moves: what it is in the first expression, the second, ...


def moved(
    all_of: Sequence[Sequence[Expr]], axis: int, run: int, known: Mapping[Variable, AxisInfo]
) -> tuple[Moved, ...] | None:
    """How all expressions of each are those of the first moved along `axis`, in runs of `run` elements; None if they are not.

    All are looked at together, for what is an index that moves in one of them is that in all.
    """
    rows: Rows = []
    if not all(_compare(one, axis, run, known, rows) for one in zip(*all_of, strict=True)):
        return None
    found = []
    for places in zip(*rows, strict=True):
        distances = {place.number - row[0].number for place, row in zip(places, rows, strict=True)}
        if len(distances) > 1:
            return None
        found.append(Moved(distances.pop(), places))
    return tuple(found) or None


def with_sunk_numbers(expr: Expr, axis: int | None, run: int, known: Mapping[Variable, AxisInfo]) -> Expr:
    """The same expression where a number that is added to a sum stands at the term that differs between neighbours.

    `row * W + c + 1` has `c + 1` in it then, as a mask `c + 1 < W` does.
    """
    if axis is None or not expr.type.is_tile or not isinstance(expr, Call) or expr.op in REARRANGES or not expr.args:
        return expr
    args = tuple(with_sunk_numbers(arg, _axis_below(expr, arg, axis), run, known) for arg in expr.args)
    whole = with_operands(expr, args)
    total, number = args[0], args[-1]
    if expr.op not in SUMS or not isinstance(number, Literal) or not isinstance(total, Call) or total.op not in SUMS:
        return whole
    apart = [_axis_below(total, term, axis) for term in total.args]
    rising = [k for k, at in enumerate(apart) if at is not None and not _is_alike(total.args[k], at, run, known)]
    if len(rising) != 1 or isinstance(total.args[1], Literal):
        return whole
    (place,) = rising
    term = _with_number(total.args[place], expr.op, number)
    if term is None:
        return whole
    terms = tuple(term if k == place else arg for k, arg in enumerate(total.args))
    return with_sunk_numbers(replace(total, args=terms), axis, run, known)


def _with_number(term: Expr, op: str, number: Literal) -> Expr | None:
    """A term with a number added, or taken away: below what only gives it another shape; None for another integer type."""
    if isinstance(term, Call) and term.op in ("broadcast", "expand_dims") and term.args[0].type.is_tile:
        below = _with_number(term.args[0], op, number)
        return replace(term, args=(below,)) if below is not None else None
    if term.type.is_pointer or number.type.dtype != term.type.dtype:
        return None
    moved_by = replace(number, type=replace(number.type, shape=term.type.shape))
    return Call(term.type, "sub" if op == "sub" else "add", (term, moved_by))


def _compare(
    trips: tuple[Expr, ...], axis: int | None, run: int, known: Mapping[Variable, AxisInfo], rows: Rows
) -> bool:
    """Whether expressions differ in the numbers that move their indices alone; adds these to `rows`."""
    one, same = trips[0], len(set(trips)) == 1
    if axis is None or not one.type.is_tile:
        return same
    if same and _is_alike(one, axis, run, known):
        return True
    places = tuple(map(_place, trips))
    first = places[0]
    is_index = any(place.base is not place.expr or _is_index(place.expr) for place in places)
    if is_index and axis_info(first.base, known).contiguity[axis] % run == 0:
        rows.append(places)
        return len({(place.base, place.signs) for place in places}) == 1
    if not all(isinstance(other, Call) and other.args and other.op not in REARRANGES for other in trips):
        return False
    calls: tuple[Call, ...] = trips  # type: ignore[assignment]
    if len({(call.op, call.type, call.attributes, len(call.args)) for call in calls}) > 1:
        return False
    operands = zip(*(call.args for call in calls), strict=True)
    return all(_compare(arg, _axis_below(calls[0], arg[0], axis), run, known, rows) for arg in operands)


def _place(expr: Expr) -> Place:
    base, terms, rest = expr, list[Term](), 0
    while isinstance(base, Call) and base.op in ("add", "sub"):
        left, right = base.args
        if isinstance(right, Literal):
            sign, literal, base = 1 if base.op == "add" else -1, right, left
        elif isinstance(left, Literal) and base.op == "add":
            sign, literal, base = 1, left, right
        else:
            break
        if literal.symbol is None:
            rest += sign * int(literal.value)
        else:
            terms.append((sign, literal))
    return Place(expr, base, tuple(terms), rest)


def _is_alike(expr: Expr, axis: int, run: int, known: Mapping[Variable, AxisInfo]) -> bool:
    """Whether the elements of each run are the same."""
    return not expr.type.is_tile or axis_info(expr, known).constancy[axis] % run == 0


def _is_index(expr: Expr) -> bool:
    return isinstance(expr, Use) or (isinstance(expr, Call) and expr.op == "arange")


def _axis_below(call: Call, operand: Expr, axis: int) -> int | None:
    """The axis of an operand along which its elements go with those of a call; None where there is no such."""
    if call.op == "expand_dims":
        new = call.attribute("axis")
        return None if axis == new else axis - (axis > new)
    if call.op == "broadcast" and (not operand.type.is_tile or operand.type.shape[axis] == 1):
        return None
    return axis


def with_numbers(place: Place, terms: tuple[Term, ...], rest: int) -> Expr:
    """The index with other numbers in place of its own."""
    expr, type_ = place.base, place.expr.type
    own = [(1 if rest > 0 else -1, Literal(type_, abs(rest)))] if rest else []
    for sign, literal in (*reversed(terms), *own):
        expr = Call(type_, "add" if sign > 0 else "sub", (expr, replace(literal, type=type_)))
    return expr
