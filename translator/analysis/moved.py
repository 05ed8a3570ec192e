"""Whether an expression is another one moved along an axis: its elements are the other's, some places further on.

In: two expressions, or several of each, an axis, and how many neighbours along it count. Out: by how much the indices of the
second are those of the first moved on, and which these are. `row * W + (c + 1)` is `row * W + (c - 1)` moved by 2 along the
axis of `c = tl.arange(0, 128)`. Only runs of neighbours count: an index rises by 1 in each, and all else stays the same.
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
Term = tuple[int, Literal]  # a number that is added, or taken away: with 1 or -1


@frozen
class Place:
    """An index that rises along the axis: `base`, and the numbers that move it."""

    expr: Expr
    base: Expr
    terms: tuple[Term, ...]

    @property
    def number(self) -> int:
        """What the terms come to."""
        return sum(sign * int(literal.value) for sign, literal in self.terms)


@frozen
class Moved:
    """See the module docstring.

    Attributes:
      by: how much further on the second expression is.
      places: its indices, in the order in which they are met.
    """

    by: int
    places: tuple[Place, ...]


Pairs = list[tuple[Place, Place]]


def moved(
    first: Sequence[Expr], second: Sequence[Expr], axis: int, run: int, known: Mapping[Variable, AxisInfo]
) -> Moved | None:
    """How all expressions of `second` are those of `first` moved along `axis`, in runs of `run` elements; None if not."""
    pairs: Pairs = []
    if not all(_compare(one, other, axis, run, known, pairs) for one, other in zip(first, second, strict=True)):
        return None
    distances = {after.number - before.number for before, after in pairs}
    return Moved(distances.pop(), tuple(after for _, after in pairs)) if len(distances) == 1 else None


def with_sunk_numbers(expr: Expr, axis: int | None, run: int, known: Mapping[Variable, AxisInfo]) -> Expr:
    """The same expression where a number that is added to a sum stands at the term that differs between neighbours.

    `row * W + c + 1` has `c + 1` in it then, as a mask `c + 1 < W` does.
    """
    if axis is None or _is_alike(expr, axis, run, known) or not isinstance(expr, Call) or expr.op in REARRANGES:
        return expr
    if not expr.args:
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
    one: Expr, other: Expr, axis: int | None, run: int, known: Mapping[Variable, AxisInfo], pairs: Pairs
) -> bool:
    """Whether two expressions differ in the numbers that move their indices alone; adds these to `pairs`."""
    if axis is None or _is_alike(one, axis, run, known):
        return one == other
    before, after = _place(one), _place(other)
    is_index = bool(before.terms) or isinstance(one, Use) or _is_arange(one)
    if is_index and axis_info(before.base, known).contiguity[axis] % run == 0:
        pairs.append((before, after))
        signs, others = ([sign for sign, _ in place.terms] for place in (before, after))
        return before.base == after.base and signs == others
    if not (isinstance(one, Call) and isinstance(other, Call) and one.args and one.op not in REARRANGES):
        return False
    if (one.op, one.type, one.attributes, len(one.args)) != (other.op, other.type, other.attributes, len(other.args)):
        return False
    operands = zip(one.args, other.args, strict=True)
    return all(_compare(a, b, _axis_below(one, a, axis), run, known, pairs) for a, b in operands)


def _place(expr: Expr) -> Place:
    base, terms = expr, list[Term]()
    while isinstance(base, Call) and base.op in ("add", "sub"):
        left, right = base.args
        if isinstance(right, Literal):
            terms.append((1 if base.op == "add" else -1, right))
            base = left
        elif isinstance(left, Literal) and base.op == "add":
            terms.append((1, left))
            base = right
        else:
            break
    return Place(expr, base, tuple(terms))


def _is_alike(expr: Expr, axis: int, run: int, known: Mapping[Variable, AxisInfo]) -> bool:
    """Whether the elements of each run are the same."""
    return not expr.type.is_tile or axis_info(expr, known).constancy[axis] % run == 0


def _is_arange(expr: Expr) -> bool:
    return isinstance(expr, Call) and expr.op == "arange"


def _axis_below(call: Call, operand: Expr, axis: int) -> int | None:
    """The axis of an operand along which its elements go with those of a call; None where there is no such."""
    if call.op == "expand_dims":
        new = call.attribute("axis")
        return None if axis == new else axis - (axis > new)
    if call.op == "broadcast" and (not operand.type.is_tile or operand.type.shape[axis] == 1):
        return None
    return axis


def with_terms(place: Place, terms: tuple[Term, ...]) -> Expr:
    """The index with other numbers in place of its own."""
    expr = place.base
    for sign, literal in reversed(terms):
        expr = Call(place.expr.type, "add" if sign > 0 else "sub", (expr, replace(literal, type=place.expr.type)))
    return expr
