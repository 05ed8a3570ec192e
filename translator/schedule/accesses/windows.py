"""Loads of which the trips of a static loop share most elements: each is loaded once, ahead of the loop.

In: a kernel, its facts, the layouts. Out: `Windows`. `tl.load(x_ptr + row * W + c + dc)` in `for dc in tl.static_range(-1, 2)`
loads what lies at `c - 1`, `c` and `c + 1`: a thread that holds four neighbours asks memory for 12 elements, of which 6 are
different. These 6 are its window, from which each trip takes four. A load has one if, in every trip, address and mask are what
they are in the first one with each index along one axis moved by as much (`analysis/moved.py`). What a window loads the kernel
loads itself, under the same mask: no other address is touched.

Example, `v = tl.load(p + c + dc, mask=c + dc < W)`, runs of 4 elements:
  window[i] = c[0] - 1 + i < W ? p[c[0] - 1 + i] : 0, for i < 6;  then, in the trip with dc:  v[e] = window[e + dc + 1]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import count, pairwise

from ...analysis.axis_info import AxisInfo, axis_info
from ...analysis.facts import Facts
from ...analysis.moved import Moved, Term, moved, with_sunk_numbers, with_terms
from ...frozen import frozen
from ...ir.nodes import Assign, Call, Effect, Expr, Kernel, Literal, Note, Statement, Use, Variable
from ...ir.rewrite import substituted, with_operands
from ...ir.static_loops import Trip
from ...ir.structured import assigns, is_elementwise
from ...ir.symbols import Number, Operation, Symbol
from ...ir.types import ValueType, padded
from ...ir.walk import MOVES, blocks, next_key, read_variables, statements, subexpressions, used_variables
from ..tiles.layout import Layout
from .access import Access, plan_access
from .cache_hints import load_hint

MOST_ELEMENTS = 64  # of a thread in one window
MOST_PARTS = 64  # of an address: what a loop computes from trip to trip may grow without end
WORTH = (3, 4)  # a window loads at most this share of what the trips would


@frozen
class Middle:
    """The elements of a window that an access brings all at once: as many as a run has.

    Attributes:
      start: the first of them.
      pointer: theirs.
      access: what decides about them.
    """

    start: int
    pointer: Expr
    access: Access


@frozen
class Window:
    """The elements that a load asks for in all trips of a loop.

    Attributes:
      load: that of the first trip.
      axis: the axis along which trips move.
      run: how many neighbours along it a thread holds side by side.
      span: how many elements more than these a window has.
      pointer, mask: of an element, where the indices that move are `places`.
      places: for each such index a scalar of its own, with what it is at the window's first element.
      middle: those of its elements that are loaded by a vector.
    """

    load: Assign
    axis: int
    run: int
    span: int
    pointer: Expr
    mask: Expr | None
    places: tuple[tuple[Variable, Expr], ...]
    middle: Middle | None

    def accesses(self, layout: Layout) -> int:
        """How often a thread asks memory for all its windows, in the layout of the tile."""
        return layout.num_registers // self.run * (self.span + (1 if self.middle else self.run))


@frozen
class Windows:
    """All windows of a kernel.

    Attributes:
      ahead: those that are loaded where a loop begins, by the note of its first trip.
      taken: of a load that takes its elements from a window: which, and from which element on.
      unread: variables that only the addresses and masks of such loads are made of.
    """

    ahead: Mapping[Statement, tuple[Window, ...]] = field(default_factory=dict)
    taken: Mapping[Statement, tuple[Window, Symbol]] = field(default_factory=dict)
    unread: frozenset[Variable] = frozenset()

    @property
    def arrays(self) -> frozenset[Variable]:
        """The tiles that are taken from windows."""
        return frozenset(s.target for s in self.taken if isinstance(s, Assign))


def choose_windows(kernel: Kernel, facts: Facts, layouts: Mapping[Variable, Layout]) -> Windows:
    """See the module docstring; `layouts` are those of the tiles in registers."""
    ahead: dict[Statement, tuple[Window, ...]] = {}
    taken: dict[Statement, tuple[Window, Symbol]] = {}
    keys = count(next_key(kernel))
    for note, trips in (loop for block in blocks(kernel.body) for loop in _loops(block)):
        here: list[Window] = []
        for loads in _alike(trips, layouts):
            found = _window(loads, layouts[loads[0].load.target], facts, keys)
            if found is not None:
                here.append(found[0])
                taken |= {one.load: (found[0], start) for one, start in zip(loads, found[1], strict=True)}
        if here:
            ahead[note] = tuple(here)
    return Windows(ahead, taken, _unread(kernel, ahead, taken)) if taken else Windows()


# --------------------------------------------------------------------------------------------------- loops and loads


def _loops(block: Sequence[Statement]) -> Iterator[tuple[Statement, list[list[Statement]]]]:
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


@frozen
class _Load:
    """A load, with address and mask in terms of what is known where its loop begins."""

    load: Assign
    parts: tuple[Expr, ...]  # the pointer, and the mask if there is one
    other: tuple[Expr, ...]  # what stands for elements outside of it, if something does


def _alike(trips: list[list[Statement]], layouts: Mapping[Variable, Layout]) -> Iterator[list[_Load]]:
    """The loads that stand at the same place in every trip of a loop that only computes and loads."""
    inside = [statement for trip in trips for statement in trip]
    if len(trips) < 2 or len({len(trip) for trip in trips}) > 1 or not all(map(_only_computes, inside)):
        return
    changed = {variable for s in inside if isinstance(s, Assign) for variable in s.targets}
    found = _written_out(trips)
    for together in zip(*trips, strict=True):
        loads = [found[s] for s in together if s in found and s.targets[0] in layouts]  # type: ignore[attr-defined]
        own = {variable for one in loads for part in one.parts for variable in used_variables(part)}
        kinds = {(one.load.target.type, layouts[one.load.target], one.other, len(one.parts)) for one in loads}
        if len(loads) == len(trips) and len(kinds) == 1 and own.isdisjoint(changed):
            yield loads


def _only_computes(statement: Statement) -> bool:
    if isinstance(statement, Effect):
        return statement.call.op == "assume"
    computes = isinstance(statement, Assign) and is_elementwise(statement.value)
    return computes or isinstance(statement, Note) or assigns(statement, "load", "reduce")


def _written_out(trips: list[list[Statement]]) -> dict[Statement, _Load]:
    """The loads of tiles without wishes of their own whose addresses can be told where the loop begins."""
    values: dict[Variable, Expr | None] = {}
    found: dict[Statement, _Load] = {}
    for statement in (s for trip in trips for s in trip if isinstance(s, Assign)):
        call = statement.value
        if assigns(statement, "load") and isinstance(call, Call) and _is_plain(call):
            parts = [_expanded(part, values) for part in call.args[:2]]
            if None not in parts:
                found[statement] = _Load(statement, tuple(parts), call.args[2:])  # type: ignore[arg-type]
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


# ---------------------------------------------------------------------------------------------------------- windows


def _window(
    loads: list[_Load], layout: Layout, facts: Facts, keys: Iterator[int]
) -> tuple[Window, list[Symbol]] | None:
    """The window of the loads of all trips, and the element of it that each begins at; None where it is not worth it."""
    known = facts.environments[loads[0].load]
    for axis in layout.array_axes():
        run = layout.run(axis)
        if run == 1:
            continue
        parts = [[with_sunk_numbers(part, axis, run, known) for part in load.parts] for load in loads]
        moves = [moved(parts[0], other, axis, run, known) for other in parts]
        if None in moves:
            continue
        by = sorted({move.by for move in moves})  # type: ignore[union-attr]
        span, elements = by[-1] - by[0], layout.num_registers // run * (run + by[-1] - by[0])
        apart = any(after - before > run for before, after in pairwise(by))
        if apart or elements > MOST_ELEMENTS or (run + span) * WORTH[1] > run * len(by) * WORTH[0]:
            continue
        starts = _starts(moves)  # type: ignore[arg-type]
        if starts is not None:
            places = _places(moves, keys)  # type: ignore[arg-type]
            read = {expr: _all(expr, Use(variable.type, variable)) for expr, (variable, _) in places.items()}
            pointer, *mask = (_replaced(part, read) for part in parts[0])
            called = tuple((variable, at(0)) for variable, at in places.values())
            middle = _middle(parts[0], places, axis, run, span, layout, facts, known)
            window = Window(loads[0].load, axis, run, span, pointer, mask[0] if mask else None, called, middle)
            return window, starts
    return None


At = Callable[[int], Expr]  # what an index is at an element of the window


def _places(moves: list[Moved], keys: Iterator[int]) -> dict[Expr, tuple[Variable, At]]:
    """For each index of the first trip that moves: a scalar that stands for it, and what it is."""
    least = min(moves, key=lambda move: move.by)
    places: dict[Expr, tuple[Variable, At]] = {}
    for number, place in enumerate(moves[0].places):
        if place.expr not in places:
            names = [v.name for v in used_variables(place.base) if v.type.is_tile]
            variable = Variable(f"{(names or ['place'])[-1]}_near", ValueType(place.expr.type.element), next(keys))
            places[place.expr] = variable, partial(_index, number, moves, least)
    return places


def _index(place: int, moves: list[Moved], least: Moved, element: int) -> Expr:
    """An index at an element of the window, which begins where the trip does that is moved least."""
    terms: list[Term] = []
    for number, (sign, literal) in enumerate(least.places[place].terms):
        if any(move.places[place].terms[number] != (sign, literal) for move in moves):
            value, element = int(literal.value) + sign * element, 0
            literal = replace(literal, value=value, symbol=None)  # a word of its trip is none of the window's
        terms.append((sign, literal))
    return with_terms(least.places[place], tuple(terms))


def _middle(
    parts: Sequence[Expr],
    places: Mapping[Expr, tuple[Variable, At]],
    axis: int,
    run: int,
    span: int,
    layout: Layout,
    facts: Facts,
    known: Mapping[Variable, AxisInfo],
) -> Middle | None:
    """The elements of each run's window that are aligned, if there are such."""
    for start in range(span + 1):
        here = {expr: at(start) for expr, (_, at) in places.items()}
        pointer, *mask = (_replaced(part, here) for part in parts)
        access = plan_access(pointer, mask[0] if mask else None, layout, facts, known)
        if access.axis == axis and access.width == run and not access.bounds:
            tests = tuple(test for test in access.tests if not _always_holds(test, known))
            return Middle(start, pointer, replace(access, tests=tests))
    return None


def _always_holds(test: Expr, known: Mapping[Variable, AxisInfo]) -> bool:
    """Whether a test asks for an index that is never below zero to be none: where trips move it, that is one of many."""
    while isinstance(test, Call) and test.op in MOVES:
        test = test.args[0]
    if not isinstance(test, Call) or test.op != "ge" or not isinstance(test.args[1], Literal):
        return False
    return test.args[1].value == 0 and axis_info(test.args[0], known).nonnegative


def _starts(moves: list[Moved]) -> list[Symbol] | None:
    """For each trip, which element of the window is its first; None where the text has no words for that."""
    for number, place in enumerate(moves[0].places):
        terms = [[move.places[number].terms[term] for move in moves] for term in range(len(place.terms))]
        changing = [each for each in terms if any(one != each[0] for one in each)]
        if not changing:
            continue
        if any(literal.symbol is None for each in changing for _, literal in each):
            return None
        least = min(sum(sign * int(literal.value) for sign, literal in trip) for trip in zip(*changing, strict=True))
        return [_sum(trip, -least) for trip in zip(*changing, strict=True)]
    return None


def _sum(terms: Sequence[Term], number: int) -> Symbol:
    """What the words of some numbers come to, with one more."""
    added = [literal.symbol for sign, literal in terms if sign > 0 and literal.symbol]
    taken = [literal.symbol for sign, literal in terms if sign < 0 and literal.symbol]
    if not added:
        added, number = [Number(number)], 0
    found = added[0]
    for symbol in added[1:]:
        found = Operation("+", found, symbol)
    for symbol in taken:
        found = Operation("-", found, symbol)
    return Operation("+" if number > 0 else "-", found, Number(abs(number))) if number else found


def _replaced(expr: Expr, places: Mapping[Expr, Expr]) -> Expr:
    """An expression with others in the place of some indices."""
    if expr in places:
        return places[expr]
    return with_operands(expr, tuple(_replaced(arg, places) for arg in expr.args)) if isinstance(expr, Call) else expr


def _all(place: Expr, scalar: Expr) -> Expr:
    """A tile like an index, all of whose elements are a scalar."""
    return Call(place.type, "broadcast", (scalar,))


def _unread(
    kernel: Kernel,
    ahead: Mapping[Statement, tuple[Window, ...]],
    taken: Mapping[Statement, tuple[Window, Symbol]],
) -> frozenset[Variable]:
    """The variables that nothing reads any more but addresses and masks of loads that take from windows."""
    pending = [
        variable
        for window in (window for windows in ahead.values() for window in windows)
        for expr in (window.pointer, window.mask, *(start for _, start in window.places))
        if expr is not None
        for variable in used_variables(expr)
    ]
    makers: dict[Variable, list[Statement]] = {}
    for statement in statements(kernel.body):
        if isinstance(statement, Assign) and is_elementwise(statement.value):
            makers.setdefault(statement.target, []).append(statement)
        elif statement not in taken:
            pending += read_variables(statement)
    needed: set[Variable] = set()
    while pending:
        variable = pending.pop()
        if variable not in needed:
            needed.add(variable)
            pending += [one for maker in makers.get(variable, ()) for one in read_variables(maker)]
    return frozenset(makers.keys() - needed)
