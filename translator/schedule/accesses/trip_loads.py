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
from ...ir.symbols import Name, Number, Operation
from ...ir.types import ValueType, padded
from ...ir.walk import blocks, subexpressions, used_variables
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
    """How the loads of all trips are that of the first one moved along an axis: `parts` are its pointer and mask."""

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


def loads_of_loops(kernel: Kernel) -> Iterator[tuple[Statement, list[list[TripLoad]]]]:
    """The loads of each loop of few trips that has no other in it, those of all trips together, by where the loop begins.

    Of a static loop that is the note of the first trip; of another one it is the loop, whose load stands for those of all trips.
    """
    for block in blocks(kernel.body):
        for note, trips in _static_loops(block):
            yield note, list(_alike(trips))
        for statement in block:
            if isinstance(statement, For) and (numbers := _numbers(statement)) is not None:
                yield (
                    statement,
                    [_in_each_trip(load, statement.variable, numbers) for (load,) in _alike([list(statement.body)])],
                )


def _numbers(loop: For) -> range | None:
    """What the variable of a loop goes through: where numbers tell, and are few, and the user has no other wishes."""
    bounds = (loop.start, loop.stop, loop.step)
    if loop.options or not all(isinstance(bound, Literal) and bound.trips is None for bound in bounds):
        return None
    numbers = range(*(int(bound.value) for bound in bounds))  # type: ignore[attr-defined]
    return numbers if 2 <= len(numbers) <= MOST_TRIPS else None


def _in_each_trip(load: TripLoad, variable: Variable, numbers: range) -> list[TripLoad]:
    """The load of a loop's body as it is in each trip."""
    values = [{variable: Literal(variable.type, number, symbol=COUNTER)} for number in numbers]
    return [replace(load, parts=tuple(_folded(substituted(part, value)) for part in load.parts)) for value in values]


def _folded(expr: Expr) -> Expr:
    """An expression in which sums and products of numbers are numbers."""
    if not isinstance(expr, Call):
        return expr
    args = tuple(map(_folded, expr.args))
    match expr.op, args:
        case "broadcast", (Literal() as literal,):
            return replace(literal, type=expr.type)
        case ("add" | "sub" | "mul") as op, (Literal() as left, Literal() as right) if _is_for_addresses(expr.type):
            sign, compute = ARITHMETIC[op]
            first, second = (one.symbol or Number(int(one.value)) for one in (left, right))
            return Literal(expr.type, compute(left.value, right.value), symbol=Operation(sign, first, second))
    return with_operands(expr, args)


def moves_along(axis: int, run: int, loads: Sequence[TripLoad], facts: Facts) -> Moves | None:
    """How the loads of all trips are moved along an axis, in runs of `run` elements; None where they are not, or none is."""
    known = facts.environments[loads[0].load]
    parts = [tuple(with_sunk_numbers(part, axis, run, known) for part in load.parts) for load in loads]
    found = [moved(parts[0], other, axis, run, known) for other in parts]
    moves = Moves(parts[0], tuple(move for move in found if move is not None))
    return moves if len(moves.of_trips) == len(loads) and moves.span else None


def moving_axes(kernel: Kernel, facts: Facts) -> dict[Variable, frozenset[int]]:
    """The axes along which the trips of a loop move a load: neighbours along these share most of what they load."""
    found: dict[Variable, frozenset[int]] = {}
    for _, together in loads_of_loops(kernel):
        for loads in together:
            rank = loads[0].target.type.rank
            axes = {axis for axis in range(rank) if moves_along(axis, 2, loads, facts) is not None}
            found |= {load.target: frozenset(axes) for load in loads if axes}
    return found


def _static_loops(block: Sequence[Statement]) -> Iterator[tuple[Statement, list[list[Statement]]]]:
    """The static loops in a block that have no other in them: the note of the first trip, the statements of each."""
    begin: Note | None = None
    trips: list[list[Statement]] = []
    for statement in block:
        trip = statement.trip if isinstance(statement, Note) else None
        if trip is None:
            if begin is not None:
                trips[-1].append(statement)
        elif trip.number == 0:
            begin, trips = statement, [[]]  # type: ignore[assignment]
        elif begin is None or trip != Trip(begin.trip.loop, len(trips)):  # type: ignore[union-attr]
            begin = None
        elif trip.number < trip.loop.trips:
            trips.append([])
        else:
            yield begin, trips
            begin = None


def _alike(trips: list[list[Statement]]) -> Iterator[list[TripLoad]]:
    """The loads that stand at the same place in every trip of a loop that only computes and loads."""
    inside = [statement for trip in trips for statement in trip]
    if len({len(trip) for trip in trips}) > 1 or not all(map(_only_computes, inside)):
        return
    changed = {variable for s in inside if isinstance(s, Assign) for variable in s.targets}
    found = _written_out(trips)
    for together in zip(*trips, strict=True):
        loads = [found[statement] for statement in together if statement in found]
        read = {variable for load in loads for part in load.parts for variable in used_variables(part)}
        kinds = {(load.target.type, load.other, len(load.parts)) for load in loads}
        if len(loads) == len(trips) and len(kinds) == 1 and read.isdisjoint(changed):
            yield loads


def _only_computes(statement: Statement) -> bool:
    if isinstance(statement, Effect):
        return statement.call.op == "assume"
    computes = isinstance(statement, Assign) and is_elementwise(statement.value)
    named = isinstance(statement, Note) and statement.trip is None
    return computes or named or assigns(statement, "load", "reduce")


def _written_out(trips: list[list[Statement]]) -> dict[Statement, TripLoad]:
    """The loads of tiles without wishes of their own whose addresses can be told where the loop begins."""
    values: dict[Variable, Expr | None] = {}
    found: dict[Statement, TripLoad] = {}
    for statement in (s for trip in trips for s in trip if isinstance(s, Assign)):
        call = statement.value
        if assigns(statement, "load") and isinstance(call, Call) and _is_plain(call):
            parts = [_expanded(part, values) for part in call.args[:2]]
            if None not in parts:
                found[statement] = TripLoad(statement, tuple(parts), call.args[2:])  # type: ignore[arg-type]
        known = _expanded(call, values) if is_elementwise(call) and _is_for_addresses(call.type) else None
        values |= dict.fromkeys(statement.targets, known)
    return found


def _is_plain(load: Call) -> bool:
    """Whether a load brings a tile whose sides are not padded, by plain accesses, and one number where its mask is false."""
    other, shape = load.args[2:], load.type.shape
    whole = load.type.is_tile and all(padded(side) == side for side in shape)
    plain = not load.type.is_pointer and not load.type.dtype.is_bool() and not load_hint(load)
    return whole and plain and all(isinstance(one, Literal) for one in other)


def _is_for_addresses(type_: ValueType) -> bool:
    return type_.is_pointer or type_.dtype.is_int()


def _expanded(expr: Expr, values: Mapping[Variable, Expr | None]) -> Expr | None:
    """An expression with what the loop has assigned written out; None where that is not known, or grows too long."""
    read = [variable for variable in used_variables(expr) if variable in values]
    if any(values[variable] is None for variable in read):
        return None
    whole = substituted(expr, {variable: values[variable] for variable in read}) if read else expr  # type: ignore[misc]
    parts = sum(1 for _ in subexpressions(whole))
    return whole if parts <= MOST_PARTS else None
