"""Whether two accesses of an array touch the same element, as far as their addresses tell.

In: the addresses as sums (`affine.py`). Out: True, False, or None where the sums do not tell:

  out + tl.arange(0, 256)   and   out + 100                     meet
  out + 2 * i               and   out + 2 * i + 1               do not
  out + row * 256 + i       and   the same in a later trip      do not, where `row` counts the trips and `i` ends at 256
  out + i                   and   out + n                       cannot be told

Masks are not looked at, and how far a stride reaches that is no number is not known: rows are taken to lie apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set

from ..frozen import frozen
from ..ir.nodes import Assign, Expr, For, Statement, Use, Variable, While
from ..ir.walk import assigned_variables, bodies, statements, top_statements, used_variables
from .affine import NotAffineError, Sum, Term, along, minus, plus, quotient, scalar_part, times
from .coordinates import Reader
from .induction import as_step

EVER = 1 << 31  # more trips than a loop has
MOST_TRIED = 1 << 12  # numbers of steps that are tried
Steps = list[tuple[int, int, int]]  # (distance, least and greatest number of steps)


@frozen
class Place:
    """Where the elements of an access lie.

    Attributes:
      terms: the sum of their addresses.
      sides: how many positions each axis has.
      unknown: what is no number of the terms that are the same in all positions, and follows from no loop's variable.
      span: the least and the greatest address beside that; None where it cannot be told.
    """

    terms: Sum
    sides: tuple[int, ...]
    unknown: frozenset[Term]
    span: tuple[int, int] | None


@frozen
class Trips:
    """A loop whose trips come between two accesses.

    Attributes:
      changed: the variables that it assigns.
      moves: by how much every trip changes some of them.
    """

    changed: frozenset[Variable]
    moves: tuple[tuple[Variable, Sum], ...]


@frozen
class _Gap:
    """What lies between two accesses: a number, steps of which there may be several, and whether that is all."""

    number: int
    steps: Steps
    sure: bool


class Places:
    """The places of a kernel's accesses, each read once."""

    def __init__(self, definitions: Mapping[Variable, Expr], body: tuple[Statement, ...]) -> None:
        """`definitions` are those of the variables of the kernel's `body` that are assigned once."""
        self._reader = _AddressReader(definition=definitions.get, numeric=True)
        self._known: dict[Expr, Place | None] = {}
        loops = (s for s in statements(body) if isinstance(s, For))
        self._counts = {loop.variable: self._count(loop) for loop in loops}

    def of(self, pointer: Expr) -> Place | None:
        """The place of an access; None where its address is no sum."""
        if pointer not in self._known:
            terms, sides = self._sum(pointer), tuple(int(side) for side in pointer.type.shape)
            self._known[pointer] = None if terms is None else self._place(terms, sides)
        return self._known[pointer]

    def trips(self, loop: For | While) -> Trips:
        """What tells the trips of a loop apart."""
        inside = [v for s in statements((loop,)) for v in assigned_variables(s)]
        changed, moves = frozenset(inside), {}
        if isinstance(loop, For) and inside.count(loop.variable) == 1:
            moves[loop.variable] = self._sum(loop.step)
        for update in top_statements(bodies(loop)[-1]):
            step = as_step(update) if isinstance(update, Assign) and inside.count(update.targets[0]) == 1 else None
            if step is not None and not changed & set(used_variables(step.amount)):
                amount = self._sum(step.amount)
                moves[step.update.target] = amount and times((Term(-1 if step.negative else 1),), amount)
        return Trips(changed, tuple((variable, move) for variable, move in moves.items() if move is not None))

    def count_trips(self, variables: Set[Variable]) -> bool:
        """Whether variables all count the trips of loops."""
        return variables <= self._counts.keys()

    def meet(self, one: Place, other: Place, trips: Trips | None = None) -> bool | None:
        """Whether an access meets one in the same trip of all loops around it, or some `trips` later."""
        if one.unknown != other.unknown:
            return None
        if trips is None and one.span and other.span and (one.span[1] < other.span[0] or other.span[1] < one.span[0]):
            return False  # as most are that lie side by side
        gap, lanes = self._gap(one, other, trips), _lanes(one, other)
        if gap is None or lanes is None:
            return None
        steps, strided = lanes
        apart = [step for step in (*gap.steps, *steps) if step[0]]
        found = _reaches(-gap.number, sorted(apart, key=lambda step: -abs(step[0])))
        return found if found or (gap.sure and not strided) else None

    def goes_back(self, place: Place, trips: Trips) -> bool:
        """Whether a later trip of a loop touches what another position touched in an earlier one."""
        moves = any(_split(place.terms, variable)[0] for variable, _ in trips.moves)
        return moves and bool(self.meet(place, place, trips))

    def _place(self, terms: Sum, sides: tuple[int, ...]) -> Place:
        fixed = [term for term in terms if not _uses((term,), self._counts.keys())]
        unknown = frozenset(term for term in fixed if term.unknowns and term.lane is None)
        numbers = [(term.number, term.lane) for term in fixed if not term.unknowns]
        span = None
        if len(numbers) + len(unknown) == len(terms):
            ends = [(number, number) if lane is None else (0, number * (sides[lane] - 1)) for number, lane in numbers]
            span = sum(map(min, ends)), sum(map(max, ends))
        return Place(terms, sides, unknown, span)

    def _gap(self, one: Place, other: Place, trips: Trips | None) -> _Gap | None:
        """How far apart the first elements of two accesses are; None where that cannot be told."""
        terms, moves = [one.terms, other.terms], dict(trips.moves) if trips else {}
        changed = trips.changed if trips else frozenset()
        advance: Sum = ()
        number, sure, steps = 0, True, []
        for variable in {**self._counts, **moves}:
            (each, terms[0]), (later, terms[1]) = _split(terms[0], variable), _split(terms[1], variable)
            advance = plus(advance, times(later, moves.get(variable, ())))
            alone = variable in changed and variable not in moves  # counts the trips of a loop inside
            first, step, last = self._counts.get(variable, (None, 1, None))
            if alone and last is None and each == later:
                sure &= not each  # at the least, both are in the same trip of that loop, if they depend on it
                continue
            for sum_ in (minus((), each), later) if alone else (minus(later, each),):
                distance = _number(sum_)
                if sum_ and (distance is None or first is None):
                    return None
                if sum_ and distance is not None and first is not None:
                    number += distance * first
                    steps.append((distance * step, 0, last or 0))
                    sure &= last is not None
        rest, moved = _number(minus(scalar_part(terms[1]), scalar_part(terms[0]))), _number(advance)
        if rest is None or moved is None or any(_uses(part, changed) for part in terms):
            return None
        return _Gap(number + rest, [*steps, *([(moved, 1, EVER)] if moved else ())], sure)

    def _sum(self, expr: Expr) -> Sum | None:
        """An expression as a sum, if it is one without conditions."""
        try:
            terms = self._reader.sum(expr)
        except NotAffineError:
            return None
        return None if self._reader.guards else terms

    def _count(self, loop: For) -> tuple[int | None, int, int | None]:
        """(the first number that a loop counts, by how much it goes on, how often at the most), as far as these are known."""
        sums = (self._sum(expr) for expr in (loop.start, loop.stop, loop.step))
        first, stop, step = (None if terms is None else _number(terms) for terms in sums)
        if not step:
            return None, 1, None
        return first, step, None if first is None or stop is None else max((stop - first - 1) // step, 0)


class _AddressReader(Reader):
    """Follows the definitions of tiles too."""

    def sum(self, expr: Expr) -> Sum:
        definition = self._definition(expr.variable) if isinstance(expr, Use) and expr.type.is_tile else None
        if definition is None or not isinstance(expr, Use):
            return super().sum(expr)
        if expr.variable not in self._read:
            self._read[expr.variable] = super().sum(definition)
        return self._read[expr.variable]


def _split(terms: Sum, variable: Variable) -> tuple[Sum, Sum]:
    """(what a variable is multiplied with in the scalars of a sum, the other terms)."""
    each: list[Term] = []
    rest: list[Term] = []
    for term in terms:
        own = [factor for factor in term.factors if isinstance(factor, Use) and factor.variable is variable]
        part = quotient(term, Term(1, (own[0],))) if len(own) == 1 and term.lane is None else None
        (rest if part is None else each).append(term if part is None else part)
    return tuple(each), tuple(rest)


def _uses(terms: Sum, variables: Set[Variable]) -> bool:
    return any(v in variables for term in terms for factor in term.factors for v in used_variables(factor))


def _lanes(one: Place, other: Place) -> tuple[Steps, bool] | None:
    """(How positions differ, whether along some axes by an unknown stride, the same in both); None where strides differ."""
    bounds: dict[int, tuple[int, int]] = {}
    strided: tuple[list[Sum], list[Sum]] = [], []
    for place, sign in ((one, -1), (other, 1)):
        for lane in {term.lane for term in place.terms if term.lane is not None}:
            each, last = along(place.terms, lane), place.sides[lane] - 1
            distance = _number(each)
            if distance is None:
                strided[sign > 0].append(each)
            else:
                low, high = bounds.get(distance, (0, 0))
                bounds[distance] = (low - last, high) if sign < 0 else (low, high + last)
    if sorted(strided[0], key=repr) != sorted(strided[1], key=repr):
        return None
    return [(distance, low, high) for distance, (low, high) in bounds.items()], bool(strided[0])


def _number(terms: Sum) -> int | None:
    return None if any(term.unknowns for term in terms) else sum(term.number for term in terms)


def _reaches(target: int, steps: Sequence[tuple[int, int, int]], tries: Iterator[int] | None = None) -> bool | None:
    """Whether some numbers of steps, each within its bounds, add up to a target; None where too many would be tried."""
    if not steps:
        return target == 0
    tries = iter(range(MOST_TRIED)) if tries is None else tries
    (distance, low, high), *rest = steps
    if target % math.gcd(*(one for one, _, _ in steps)):
        return False
    if distance < 0:
        distance, low, high = -distance, -high, -low
    ends = [sorted((one * least, one * most)) for one, least, most in rest]
    first = max(low, -(-(target - sum(most for _, most in ends)) // distance))
    last = min(high, (target - sum(least for least, _ in ends)) // distance)
    for number in range(first, last + 1):
        found = _reaches(target - distance * number, rest, tries) if next(tries, None) is not None else None
        if found is not False:
            return found
    return False
