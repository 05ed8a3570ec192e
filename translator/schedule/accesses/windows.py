"""Loads of which the trips of a loop share most elements: each element is loaded once, ahead of the loop.

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
from fractions import Fraction
from functools import partial
from itertools import count, pairwise

from ...analysis.facts import Facts, FactsAt
from ...analysis.masks import conjuncts
from ...analysis.moved import Moved, Term, with_numbers
from ...frozen import frozen
from ...ir.nodes import Assign, Call, Expr, For, Kernel, Literal, Statement, Use, Variable
from ...ir.rewrite import with_operands
from ...ir.structured import is_elementwise
from ...ir.symbols import Number, Operation, Symbol, mentions
from ...ir.types import ValueType
from ...ir.walk import MOVES, next_key, reachable, read_variables, statements, subexpressions, used_variables
from ..tiles.layout import Layout
from .access import Access, plan_access
from .trip_loads import COUNTER, FewTrips, Moves, TripLoad, loads_of_loops, moves_along

MOST_REGISTERS = 96  # of a thread for the windows of one loop: they are used up trip by trip
WORD_BITS = 32
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
      pointer: of an element, or a vector along another axis, where the indices that move are `places`.
      access: what decides about it.
      places: for each such index a scalar of its own, with what it is at the window's first element.
      middle: those of its elements that are loaded by a vector.
      named: what address and mask make of the places more than once: a scalar for each, with what it is.
      counter: the variable of the loop, whose trips are one statement; None for a static loop.
    """

    load: Assign
    axis: int
    run: int
    span: int
    pointer: Expr
    access: Access
    places: tuple[tuple[Variable, Expr], ...]
    middle: Middle | None
    named: tuple[tuple[Variable, Expr], ...] = ()
    counter: Variable | None = None

    def registers(self, layout: Layout) -> int:
        """How many of a thread its windows take, in the layout of the tile."""
        words = max(self.load.target.type.dtype.bits, WORD_BITS) // WORD_BITS
        return layout.num_registers // self.run * (self.run + self.span) * words

    def accesses(self, layout: Layout) -> int:
        """How often a thread asks memory for all its windows, in the layout of the tile."""
        return layout.num_registers // self.run // self.access.width * (self.span + (1 if self.middle else self.run))


@frozen
class Windows:
    """All windows of a kernel.

    Attributes:
      ahead: those that are loaded where a loop begins: by it, or by the note of a static loop's first trip.
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
    for loop, together in loads_of_loops(kernel, facts):
        here: list[Window] = []
        room = MOST_REGISTERS
        for loads in together:
            layout = layouts.get(loads[0].target)
            if layout is None or any(layouts.get(load.target) != layout for load in loads):
                continue
            counter = loop.begin.variable if isinstance(loop.begin, For) else None
            found = _window(loads, loop, layout, room, facts, keys)
            if found is not None:
                room -= found[0].registers(layout)
                window = replace(found[0], counter=counter)
                here.append(window)
                taken |= {load.load: (window, start) for load, start in zip(loads, found[1], strict=True)}
        if here:
            ahead[loop.begin] = tuple(here)
    return Windows(ahead, taken, _unread(kernel, ahead, taken)) if taken else Windows()


def _window(
    loads: list[TripLoad], loop: FewTrips, layout: Layout, room: int, facts: Facts, keys: Iterator[int]
) -> tuple[Window, list[Symbol]] | None:
    """The window of the loads of all trips, and the element of it that each begins at; None where it is not worth it.

    `room` is how many registers it may take.
    """
    for axis in layout.array_axes():
        run = layout.run(axis)
        moves = moves_along(axis, run, loads, facts) if run > 1 else None
        starts = _starts(moves, loop) if moves is not None and _is_worth(moves) else None
        if moves is not None and starts is not None:
            window = _made(loads[0].load, moves, layout, facts, keys)
            if window.registers(layout) <= room:
                return window, starts
    return None


def _made(load: Assign, moves: Moves, layout: Layout, facts: Facts, keys: Iterator[int]) -> Window:
    """The window of loads that are moved along an axis; `load` is the first trip's."""
    here, places = facts.at(load), _places(moves.of_trips, keys)
    read = {expr: _all(expr, Use(variable.type, variable)) for expr, (variable, _) in places.items()}
    named, (pointer, *masks) = _mentioned_again([_replaced(part, read) for part in moves.parts], places, keys)
    mask = masks[0] if masks else None
    access = plan_access(pointer, mask, layout, here)
    if access.bounds:
        access = Access(moves.axis, 1, tuple(conjuncts(mask, facts)), ())
    first = tuple((variable, at(0)) for variable, at in places.values())
    middle = _middle(moves, places, layout, here)
    return Window(load, moves.axis, moves.run, moves.span, pointer, access, first, middle, named)


def _is_worth(moves: Moves) -> bool:
    """Whether a window loads fewer elements than the trips, without gaps."""
    apart = any(after - before > moves.run for before, after in pairwise(moves.by))
    return not apart and (moves.run + moves.span) * WORTH[1] <= moves.run * len(moves.by) * WORTH[0]


At = Callable[[int], Expr]  # what an index is at an element of the window


def _places(moves: Sequence[Moved], keys: Iterator[int]) -> dict[Expr, tuple[Variable, At]]:
    """For each index of the first trip that moves: a scalar that stands for it, and what it is."""
    least = min(moves, key=lambda move: move.by)
    places: dict[Expr, tuple[Variable, At]] = {}
    for number, place in enumerate(moves[0].places):
        if place.expr not in places:
            names = [v.name for v in used_variables(place.base) if v.type.is_tile]
            variable = Variable(f"{(names or ['place'])[-1]}_near", ValueType(place.expr.type.element), next(keys))
            places[place.expr] = variable, partial(_index, number, moves, least)
    return places


def _mentioned_again(
    parts: list[Expr], places: Mapping[Expr, tuple[Variable, At]], keys: Iterator[int]
) -> tuple[tuple[tuple[Variable, Expr], ...], list[Expr]]:
    """Names for what is computed from a single place and scalars more than once, and the parts that mention these.

    An index that is clamped to the sides of a picture is in the address, and in a mask.
    """
    scalars = {variable: variable.name for variable, _ in places.values()}
    found = dict.fromkeys(one for part in parts for one in subexpressions(part) if _is_of_one_place(one, scalars))
    named: list[tuple[Variable, Expr]] = []
    for expr in sorted(found, key=lambda one: -sum(1 for _ in subexpressions(one))):
        if sum(one == expr for part in parts for one in subexpressions(part)) > 1:
            stem = next(scalars[one] for one in used_variables(expr) if one in scalars).removesuffix("_near")
            variable = Variable(f"{stem}_read", ValueType(expr.type.element), next(keys))
            named.append((variable, expr))
            parts = [_replaced(part, {expr: _all(expr, Use(variable.type, variable))}) for part in parts]
    return tuple(named), parts


def _is_of_one_place(expr: Expr, scalars: Mapping[Variable, str]) -> bool:
    """Whether a tile of integers is computed from one of some scalars and from what is the same for all of its elements."""
    if not isinstance(expr, Call) or expr.op in MOVES or expr.type.is_pointer or not expr.type.dtype.is_int():
        return False
    used = used_variables(expr)
    return sum(one in scalars for one in used) == 1 and not any(one.type.is_tile for one in used)


def _index(place: int, moves: Sequence[Moved], least: Moved, element: int) -> Expr:
    """An index at an element of the window, which begins where the trip does that is moved least."""
    own = least.places[place]
    terms, rest = list[Term](), own.rest + element
    for number, (sign, literal) in enumerate(own.terms):
        if mentions(literal.symbol, COUNTER) or any(move.places[place].terms[number][1] != literal for move in moves):
            rest += sign * int(literal.value)  # a word of its trip is none of the window's
        else:
            terms.append((sign, literal))
    return with_numbers(own, tuple(terms), rest)


def _middle(
    moves: Moves,
    places: Mapping[Expr, tuple[Variable, At]],
    layout: Layout,
    here: FactsAt,
) -> Middle | None:
    """The elements of each run's window that are aligned, if there are such."""
    for start in range(moves.span + 1):
        starts = {expr: at(start) for expr, (_, at) in places.items()}
        pointer, *mask = (_replaced(part, starts) for part in moves.parts)
        access = plan_access(pointer, mask[0] if mask else None, layout, here)
        if access.axis == moves.axis and access.width == moves.run and not access.bounds:
            tests = tuple(test for test in access.tests if not _always_holds(test, here))
            return Middle(start, pointer, replace(access, tests=tests))
    return None


def _always_holds(test: Expr, here: FactsAt) -> bool:
    """Whether a test asks for an index that is never below zero to be none: where trips move it, that is one of many."""
    while isinstance(test, Call) and test.op in MOVES:
        test = test.args[0]
    if not isinstance(test, Call) or test.op != "ge" or not isinstance(test.args[1], Literal):
        return False
    return test.args[1].value == 0 and here.info(test.args[0]).nonnegative


def _starts(moves: Moves, loop: FewTrips) -> list[Symbol] | None:
    """For each trip, which element of the window is its first; None where the text has no words for that.

    It goes with what the trips count by, or by the words of the index.
    """
    starts = [move.by - moves.by[0] for move in moves.of_trips]
    each = Fraction(starts[1] - starts[0], loop.numbers.step)
    if all(start == starts[0] + each * loop.numbers.step * trip for trip, start in enumerate(starts)):
        return [_in_steps(word, each, loop.numbers[0], starts[0]) for word in loop.words]
    terms = zip(*(move.places[0].terms for move in moves.of_trips), strict=True)
    changing = list(zip(*(trips for trips in terms if len({n.value for _, n in trips}) > 1), strict=True))
    rest = {start - sum(sign * int(n.value) for sign, n in trip) for start, trip in zip(starts, changing, strict=False)}
    if len(rest) != 1:
        return None
    return [_sum([(sign, n.symbol) for sign, n in trip if n.symbol], *rest) for trip in changing]


def _in_steps(word: Symbol, each: Fraction, first: int, start: int) -> Symbol:
    """`start + (word - first) * each`."""
    times, of = abs(each.numerator), each.denominator
    if of > 1:
        word = _sum([(1, word)], -first)
    else:
        start -= int(each) * first
    if times > 1:
        word = Operation("*", word, Number(times))
    return _sum([(1 if each > 0 else -1, Operation("/", word, Number(of)) if of > 1 else word)], start)


def _sum(terms: Sequence[tuple[int, Symbol]], number: int) -> Symbol:
    """What some words come to, that are added or taken away, with one more number."""
    added = [symbol for sign, symbol in terms if sign > 0]
    taken = [symbol for sign, symbol in terms if sign < 0]
    if not added:
        added, number = [Number(number)], 0
    found = added[0]
    for symbol in added[1:]:
        found = Operation("+", found, symbol)
    for symbol in taken:
        found = Operation("-", found, symbol)
    while isinstance(found, Operation) and found.operator in ("+", "-") and isinstance(found.right, Number):
        number += found.right.value if found.operator == "+" else -found.right.value
        found = found.left
    return Operation("+" if number > 0 else "-", found, Number(abs(number))) if number else found


def _replaced(expr: Expr, places: Mapping[Expr, Expr]) -> Expr:
    """An expression with others in the place of some indices."""
    if expr in places:
        return places[expr]
    if isinstance(expr, Literal):
        return _without_counter(expr)
    return with_operands(expr, tuple(_replaced(arg, places) for arg in expr.args)) if isinstance(expr, Call) else expr


def _without_counter(literal: Literal) -> Literal:
    """A number that is the same in all trips, such as `r * 0 + 3`, without the name of what they count by."""
    return replace(literal, symbol=None) if mentions(literal.symbol, COUNTER) else literal


def _all(place: Expr, scalar: Expr) -> Expr:
    """A tile like an index, all of whose elements are a scalar."""
    return Call(place.type, "broadcast", (scalar,))


def _unread(
    kernel: Kernel,
    ahead: Mapping[Statement, tuple[Window, ...]],
    taken: Mapping[Statement, tuple[Window, Symbol]],
) -> frozenset[Variable]:
    """The variables that nothing reads any more but addresses and masks of loads that take from windows."""
    needed = [
        variable
        for window in (window for windows in ahead.values() for window in windows)
        for expr in (window.pointer, *window.access.tests, *(is_ for _, is_ in (*window.places, *window.named)))
        for variable in used_variables(expr)
    ]
    steps: dict[Variable, set[Variable]] = {}
    for statement in statements(kernel.body):
        if isinstance(statement, Assign) and is_elementwise(statement.value):
            steps.setdefault(statement.target, set()).update(read_variables(statement))
        elif statement not in taken:
            needed += read_variables(statement)
    return frozenset(steps.keys() - reachable(needed, steps))
