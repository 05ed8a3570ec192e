"""Which arrays in shared memory take turns, and when each is in use.

There are two ways (`Sharing`). In areas, the arrays of single statements have one piece of memory, the tiles that only one
statement at the top of the kernel needs, such as a loop, another one, and the tiles that several of these need a third one.
Nested, an array has its memory for that part of the innermost block around all its uses from the first to the last of them:
loops within a loop take turns, and so do a loop and a conversion behind it. Parts hold one another or have nothing in common,
so the struct of arrays is made of unions within structs (`plan.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field
from enum import Enum, auto

from ...analysis.facts import Facts
from ...frozen import frozen
from ...ir.nodes import Expr, For, Inlined, Kernel, Note, Statement, Variable, While
from ...ir.static_loops import StaticLoop
from ...ir.walk import assigned_variables, bodies, expressions, nested, statements, top_statements, used_variables
from ...schedule.staging.ring_plan import Ring

# Areas of shared memory, whose arrays take turns.
STATEMENTS, LOOPS, PARTS, STORES, NESTED = "statements", "loops", "parts", "stores", "nested"


class Sharing(Enum):
    """Whether arrays share memory, and which: the more do, the more often threads wait for one another."""

    NONE = auto()
    AREAS = auto()
    NESTED = auto()


@frozen
class Turn:
    """When an array has its memory in an area: from one statement to another, both by number."""

    area: str
    first: int
    last: int

    def holds(self, other: Turn) -> bool:
        """Whether all of another turn is within this one."""
        return self.area == other.area and self.first <= other.first and other.last <= self.last

    def takes_from(self, other: Turn) -> bool:
        """Whether an array of this turn takes memory of another one's: never while both are in use."""
        return self.area == other.area and (self.last < other.first or other.last < self.first)


@frozen
class Turns:
    """The turns of a kernel's arrays.

    Attributes:
      tiles: of staged tiles, and of what threads load ahead for themselves; the others keep their memory.
      statements: the numbers of statements, where arrays are nested; None where those of statements have an area.
      in_first_trip: of statements in later trips of a static loop, the one that stands in their place in its first.
    """

    tiles: Mapping[Variable, Turn]
    statements: Mapping[Statement, int] | None = None
    in_first_trip: Mapping[Statement, Statement] = field(default_factory=dict)

    def of_statement(self, statement: Statement, area: str) -> Turn | None:
        """The turn of an array that a statement needs in an area; None where it keeps its memory."""
        if self.statements is None or area != STATEMENTS:
            own = id(statement)  # any number that no other one has
            return Turn(area, own, own)
        number = self.statements.get(statement)
        return None if number is None else Turn(NESTED, number, number)


def find_turns(
    kernel: Kernel, facts: Facts, tiles: Collection[Variable], rings: Iterable[Ring], sharing: Sharing
) -> Turns | None:
    """The turns of `tiles` and of what statements need; None where all arrays keep their memory."""
    if sharing is Sharing.NONE:
        return None
    if sharing is Sharing.AREAS:
        return Turns(_in_areas(kernel, facts, tiles), in_first_trip=_in_first_trip(kernel))
    uses = _uses(statements(kernel.body), facts, tiles)
    rings_of = {ring.loop: ring for ring in rings}
    found = {tile: Turn(NESTED, *part) for tile, part in _parts(kernel.body, 0, uses, rings_of)}
    times = Counter(statements(kernel.body))
    return Turns(found, {s: number for number, s in enumerate(statements(kernel.body)) if times[s] == 1})


def _in_first_trip(kernel: Kernel) -> dict[Statement, Statement]:
    """Which statement of a static loop's first trip stands in the place of one in a later trip."""
    found: dict[Statement, Statement] = {}
    first: dict[tuple[object, ...], Statement] = {}
    around: list[StaticLoop] = []
    place: list[int] = [0]  # in the kernel, and in a trip of each loop around
    for statement in statements(kernel.body):
        place[-1] += 1
        trip = statement.trip if isinstance(statement, Note) else None
        if trip is None:
            one = first.setdefault((*around, *place), statement)
            if one is not statement:
                found[statement] = one
        elif trip.number == 0:
            around.append(trip.loop)
            place.append(0)
        elif around and around[-1] == trip.loop:
            place[-1] = 0
            if trip.number == trip.loop.trips:
                around.pop()
                place.pop()
    return found


def _in_areas(kernel: Kernel, facts: Facts, tiles: Collection[Variable]) -> dict[Variable, Turn]:
    """The turns of tiles.

    Those that stand in one loop, or one other block, of the kernel alone have the turn of that loop; of the others, those
    that are needed at the same time have theirs together.
    """
    top = list(top_statements(kernel.body))
    own = {number for number, statement in enumerate(top) if bodies(statement)}
    places: dict[Variable, set[int]] = {tile: set() for tile in tiles}
    for number, statement in enumerate(top):
        for tile, found in _uses(statements((statement,)), facts, tiles).items():
            places[tile] |= {number} if found else set()
    alone = {tile for tile, found in places.items() if len(found) == 1 and found <= own}
    turns = {tile: Turn(LOOPS, min(places[tile]), min(places[tile])) for tile in alone}
    for tile, (first, _) in _together({t: found for t, found in places.items() if found and t not in alone}):
        turns[tile] = Turn(PARTS, first, first)
    return turns


def _together(places: Mapping[Variable, Collection[int]]) -> Iterator[tuple[Variable, tuple[int, int]]]:
    """The first and the last place of each tile and of all those that are needed at the same time."""
    groups: list[tuple[int, int, list[Variable]]] = []
    for tile in sorted(places, key=lambda tile: min(places[tile])):
        first, last, mates = min(places[tile]), max(places[tile]), [tile]
        if groups and first <= groups[-1][1]:
            before = groups.pop()
            first, last, mates = before[0], max(last, before[1]), [*before[2], tile]
        groups.append((first, last, mates))
    return ((tile, (first, last)) for first, last, mates in groups for tile in mates)


def _uses(walk: Iterable[Statement], facts: Facts, tiles: Collection[Variable]) -> dict[Variable, set[int]]:
    """The statements of a walk, by number, that assign or read each of the tiles."""
    found: dict[Variable, set[int]] = {tile: set() for tile in tiles}
    for number, statement in enumerate(walk):
        mentioned = set(assigned_variables(statement))
        for expr in expressions(statement):
            mentioned |= _read(expr, facts)
        for variable in mentioned & found.keys():
            found[variable].add(number)
    return found


def _read(expr: Expr, facts: Facts) -> set[Variable]:
    """The variables that an expression reads, through those that stand for expressions."""
    found: set[Variable] = set()
    for variable in used_variables(expr):
        found |= {variable} | (_read(facts.definitions[variable], facts) if variable in facts.absorbed else set())
    return found


def _parts(
    block: tuple[Statement, ...], start: int, uses: Mapping[Variable, Collection[int]], rings: Mapping[Variable, Ring]
) -> Iterator[tuple[Variable, tuple[int, int]]]:
    """The parts of a block, from number to number, for which the tiles that are used in it alone have their memory.

    A staged tile is assigned by its load alone, and known nowhere but in the rest of that block: it is in use within one run
    of the block. A ring's tiles are: they are loaded for other trips, so that theirs is the whole loop. `start` is the number
    of the first statement.
    """
    spans = list(_spans(block, start))
    several: dict[Variable, set[int]] = {}
    inside: dict[int, dict[Variable, Collection[int]]] = {}
    for tile, found in uses.items():
        holders = {n for n, (_, first, last) in enumerate(spans) if any(first <= use <= last for use in found)}
        if len(holders) == 1 and bodies(spans[min(holders)][0]):
            inside.setdefault(min(holders), {})[tile] = found
        elif holders:
            several[tile] = holders
    for tile, (one, other) in _together(several):
        yield tile, (spans[one][1], spans[other][2])
    for holder, tiles in inside.items():
        yield from _parts_inside(*spans[holder], tiles, rings)


def _parts_inside(
    statement: Statement,
    first: int,
    last: int,
    uses: Mapping[Variable, Collection[int]],
    rings: Mapping[Variable, Ring],
) -> Iterator[tuple[Variable, tuple[int, int]]]:
    """The parts of a statement's blocks, or all of it."""
    ring = rings.get(statement.variable) if isinstance(statement, For) else None
    left = dict(uses)
    start = first + 1
    for block in _blocks(statement):
        end = start + sum(1 for _ in statements(block))
        if ring is None or ring.kind != "tma":  # such a loop may start products of one trip in another
            kept = () if ring is None else (*ring.tiles, *ring.own)
            own = {t: found for t, found in left.items() if t not in kept and all(start <= u < end for u in found)}
            left = {tile: found for tile, found in left.items() if tile not in own}
            yield from _parts(block, start, own, rings)
        start = end
    yield from ((tile, (first, last)) for tile in left)


def _blocks(statement: Statement) -> tuple[tuple[Statement, ...], ...]:
    """The blocks of a statement that run apart from each other."""
    return ((*statement.prelude, *statement.body),) if isinstance(statement, While) else bodies(statement)


def _spans(block: tuple[Statement, ...], start: int) -> Iterator[tuple[Statement, int, int]]:
    """The statements that every run of a block passes once, each with its number and that of the last one inside."""
    for statement in block:
        last = start + sum(1 for _ in nested(statement))
        if isinstance(statement, Inlined):
            yield from _spans(statement.body, start + 1)
        else:
            yield statement, start, last
        start = last + 1
