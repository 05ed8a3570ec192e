"""What the trips of loops of few trips load, in terms of what is known where the loop begins.

In: a kernel. Out: for each loop the loads that stand at the same place in every trip, and how each trip's is that of the first
moved along an axis (`analysis/moved.py`).
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ...analysis.facts import Facts
from ...analysis.moved import Moved, moved, with_sunk_numbers
from ...frozen import frozen
from ...ir.nodes import Assign, Call, Effect, Expr, For, Kernel, Literal, Note, Statement, Variable
from ...ir.rewrite import substituted, with_operands
from ...ir.static_loops import Trip
from ...ir.structured import assigns, is_elementwise
from ...ir.symbols import Name, Number, OfTrips, Operation, Opposite, Symbol
from ...ir.types import ValueType, padded
from ...ir.walk import assigned_inside, blocks, subexpressions, used_variables
from .cache_hints import load_hint

COUNTER = Name("counter of the loop")  # what its numbers are called until the variable has a name
ARITHMETIC = {"add": ("+", operator.add), "sub": ("-", operator.sub), "mul": ("*", operator.mul)}
MOST_TRIPS = 16  # of a loop that is unrolled for windows, since registers have no index at run time
MOST_PARTS = 64  # of an address: what a loop computes from trip to trip may grow without end


@frozen
class TripLoad:
    """One trip's load.

    Attributes:
      load: the statement.
      parts: the pointer, and the mask if there is one, without anything that the loop assigns.
      other: what stands for elements outside of the mask, if something does.
    """

    load: Assign
    parts: tuple[Expr, ...]
    other: tuple[Expr, ...]

    @property
    def target(self) -> Variable:
        """The tile that it brings."""
        return self.load.target


@frozen
class Moves:
    """How the loads of all trips are that of the first one moved along an axis.

    Attributes:
      axis: the axis.
      run: how many neighbours along it are moved together: those that a thread holds side by side.
      parts: pointer and mask of the first load.
      of_trips: how far each trip moves these.
    """

    axis: int
    run: int
    parts: tuple[Expr, ...]
    of_trips: tuple[Moved, ...]

    @property
    def by(self) -> list[int]:
        """All distances, the least first."""
        return sorted({move.by for move in self.of_trips})

    @property
    def span(self) -> int:
        """How far apart the first and the last element are that are loaded for one."""
        return self.by[-1] - self.by[0]


@frozen
class FewTrips:
    """A loop of few trips that has no other in it.

    Attributes:
      begin: where it begins: the note of a static loop's first trip, or the loop, each of whose statements stands for all trips.
      numbers: what its variable is in each trip.
      words: what the text calls them.
      trips: the statements of each.
      before: what holds in front of the loop of variables that are assigned more than once.
    """

    begin: Statement
    numbers: range
    words: tuple[Symbol, ...]
    trips: tuple[tuple[Statement, ...], ...]
    before: Mapping[Variable, Expr]

    def values(self, trip: int) -> dict[Variable, Expr]:
        """What the loop's variable is in a trip; those of a static loop have its number in themselves."""
        if not isinstance(self.begin, For):
            return {}
        variable = self.begin.variable
        return {variable: Literal(variable.type, self.numbers[trip], symbol=self.words[trip])}


def loads_of_loops(kernel: Kernel, facts: Facts) -> Iterator[tuple[FewTrips, list[list[TripLoad]]]]:
    """The loads of each loop of few trips that has no other in it, those of all trips together."""
    for block in blocks(kernel.body):
        for loop in _loops(block, facts):
            yield loop, list(_alike(loop, facts))


def _loops(block: Sequence[Statement], facts: Facts) -> Iterator[FewTrips]:
    """The loops of few trips in a block that have no other in them."""
    before: dict[Variable, Expr] = {}
    begin: tuple[Note, Mapping[Variable, Expr]] | None = None
    trips: list[list[Statement]] = []
    for statement in block:
        trip = statement.trip if isinstance(statement, Note) else None
        if isinstance(statement, For) and (numbers := _numbers(statement)):
            trips_of_body = (statement.body,) * len(numbers)
            yield FewTrips(statement, numbers, (COUNTER,) * len(numbers), trips_of_body, before)
        if trip is None:
            if begin is not None:
                trips[-1].append(statement)
            before = _behind(statement, before, facts)
        elif trip.number == 0:
            begin, trips = (statement, before), [[]]  # type: ignore[assignment]
        elif begin is None or trip != Trip(begin[0].trip.loop, len(trips)):  # type: ignore[union-attr]
            begin = None
        elif trip.number < trip.loop.trips:
            trips.append([])
        else:
            words = map(trip.loop.number_of, range(trip.loop.trips))
            yield FewTrips(begin[0], trip.loop.numbers, tuple(words), tuple(map(tuple, trips)), begin[1])
            begin = None


def _behind(statement: Statement, before: dict[Variable, Expr], facts: Facts) -> dict[Variable, Expr]:
    """What holds behind a statement of variables that are assigned more than once; `before` holds in front of it."""
    if not before and not isinstance(statement, Assign):
        return before  # nothing to forget: what is inside need not be looked through
    changed = assigned_inside(statement)
    known = {v: value for v, value in before.items() if v not in changed and changed.isdisjoint(used_variables(value))}
    if isinstance(statement, Assign) and len(changed) == 1 and is_elementwise(statement.value):
        again = facts.assignments[statement.target] > 1 and statement.target not in used_variables(statement.value)
        if again and _is_for_addresses(statement.value.type):
            known[statement.target] = statement.value
    return known


def _numbers(loop: For) -> range:
    """What the variable of a loop goes through: nothing where numbers do not tell, or are many, or the user has other wishes."""
    bounds = (loop.start, loop.stop, loop.step)
    if loop.options or not all(isinstance(bound, Literal) and bound.trips is None for bound in bounds):
        return range(0)
    numbers = range(*(int(bound.value) for bound in bounds))  # type: ignore[attr-defined]
    return numbers if 2 <= len(numbers) <= MOST_TRIPS else range(0)


def _folded(expr: Expr) -> Expr:
    """An expression in which sums, products and opposites of numbers are numbers."""
    if not isinstance(expr, Call):
        return expr
    args = tuple(map(_folded, expr.args))
    match expr.op, args:
        case "broadcast", (Literal() as literal,):
            return replace(literal, type=expr.type)
        case "neg", (Literal(value=int(value), symbol=word, trips=trips),) if _is_for_addresses(expr.type):
            reach = trips and OfTrips((-trips.reach[1], -trips.reach[0]), trips.divisor)
            return Literal(expr.type, -value, symbol=word and Opposite(word, trips=reach))
        case ("add" | "sub" | "mul") as op, (Literal(trips=None) as left, Literal(trips=None) as right) if (
            _is_for_addresses(expr.type)
        ):
            sign, compute = ARITHMETIC[op]
            first, second = (one.symbol or Number(int(one.value)) for one in (left, right))
            word = Operation(sign, first, second) if left.symbol or right.symbol else None
            return Literal(expr.type, compute(left.value, right.value), symbol=word)
    return with_operands(expr, args)


def moves_along(axis: int, run: int, loads: Sequence[TripLoad], facts: Facts) -> Moves | None:
    """How the loads of all trips are moved along an axis, in runs of `run` elements; None where they are not, or none is."""
    known = facts.environments[loads[0].load]
    parts = [tuple(with_sunk_numbers(part, axis, run, known) for part in load.parts) for load in loads]
    found = moved(parts, axis, run, known)
    moves = Moves(axis, run, parts[0], found) if found is not None else None
    return moves if moves is not None and moves.span else None


def moving_axes(kernel: Kernel, facts: Facts) -> dict[Variable, frozenset[int]]:
    """The axes along which the trips of a loop move a load: neighbours along these share most of what they load."""
    found: dict[Variable, frozenset[int]] = {}
    for _, together in loads_of_loops(kernel, facts):
        for loads in together:
            rank = loads[0].target.type.rank
            axes = {axis for axis in range(rank) if moves_along(axis, 2, loads, facts) is not None}
            found |= {load.target: frozenset(axes) for load in loads if axes}
    return found


def _alike(loop: FewTrips, facts: Facts) -> Iterator[list[TripLoad]]:
    """The loads that stand at the same place in every trip of a loop that only computes and loads."""
    inside = [statement for trip in loop.trips for statement in trip]
    if len({len(trip) for trip in loop.trips}) > 1 or not all(map(_only_computes, inside)):
        return
    changed = {variable for s in inside if isinstance(s, Assign) for variable in s.targets}
    for loads in zip(*_written_out(loop, facts), strict=True):
        if None in loads:
            continue
        read = {variable for load in loads for part in load.parts for variable in used_variables(part)}
        kinds = {(load.target.type, load.other, len(load.parts)) for load in loads}
        if len(kinds) == 1 and read.isdisjoint(changed):
            yield list(loads)


def _only_computes(statement: Statement) -> bool:
    if isinstance(statement, Effect):
        return statement.call.op == "assume"
    computes = isinstance(statement, Assign) and is_elementwise(statement.value)
    named = isinstance(statement, Note) and statement.trip is None
    return computes or named or assigns(statement, "load", "reduce")


def _written_out(loop: FewTrips, facts: Facts) -> Iterator[list[TripLoad | None]]:
    """Per trip and statement, the load of a tile without wishes of its own whose address can be told where the loop begins."""
    changed = {variable for trip in loop.trips for s in trip if isinstance(s, Assign) for variable in s.targets}
    values = {v: _expanded(value, {}, facts) for v, value in loop.before.items() if v in changed}
    for number, trip in enumerate(loop.trips):
        values |= loop.values(number)
        found: list[TripLoad | None] = []
        for statement in trip:
            found.append(_load(statement, values, facts))
            if isinstance(statement, Assign):
                value = statement.value
                known = is_elementwise(value) and _is_for_addresses(value.type)
                values |= dict.fromkeys(statement.targets, _expanded(value, values, facts) if known else None)
        yield found


def _load(statement: Statement, values: Mapping[Variable, Expr | None], facts: Facts) -> TripLoad | None:
    """A statement as a load of which all that it asks memory by is known."""
    if not isinstance(statement, Assign) or not isinstance(statement.value, Call) or statement.value.op != "load":
        return None
    call = statement.value
    parts = [_expanded(part, values, facts) for part in call.args[:2]] if is_plain(call) else [None]
    known = tuple(_folded(part) for part in parts if part is not None)
    return TripLoad(statement, known, call.args[2:]) if len(known) == len(parts) else None


def is_plain(load: Call) -> bool:
    """Whether a load brings a tile whose sides are not padded, by plain accesses, and one number where its mask is false."""
    other, shape = load.args[2:], load.type.shape
    whole = load.type.is_tile and all(padded(side) == side for side in shape)
    plain = not load.type.is_pointer and not load.type.dtype.is_bool() and not load_hint(load)
    return whole and plain and all(isinstance(one, Literal) for one in other)


def _is_for_addresses(type_: ValueType) -> bool:
    return type_.is_pointer or type_.dtype.is_int()


def _expanded(expr: Expr, values: Mapping[Variable, Expr | None], facts: Facts) -> Expr | None:
    """An expression with what the loop has assigned, and what has no registers, written out; None if not known, or long."""
    found: dict[Variable, Expr] = {}
    for variable in used_variables(expr):
        value = values.get(variable)
        if value is None and variable in facts.absorbed and variable not in values:
            value = _expanded(facts.definitions[variable], values, facts)
        if value is not None:
            found[variable] = value
        elif variable in values or variable in facts.absorbed:
            return None
    whole = substituted(expr, found) if found else expr
    parts = sum(1 for _ in subexpressions(whole))
    return whole if parts <= MOST_PARTS else None
