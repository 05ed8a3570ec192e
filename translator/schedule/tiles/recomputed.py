"""Tiles that are computed again wherever they are used, because the registers cannot hold them across an exchange.

In: a kernel, its facts, the layouts. Out: `Recomputed`. A tile that follows element by element from narrower ones, such as
`(x - mean) * rstd` of a 16-bit `x`, costs twice their registers while the warps wait for each other in a reduction. Where
the tiles do not fit, or where a further block would fit on the multiprocessor, only the narrow ones stay, and what follows
from them becomes a function of the register's index.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Set
from dataclasses import field

from ...analysis.facts import Facts
from ...artifact import Target
from ...frozen import frozen
from ...hardware import REGISTER_FILE
from ...ir.nodes import Assign, Call, CallFunction, Expr, For, Kernel, Statement, Use, Variable, While
from ...ir.structured import is_elementwise
from ...ir.walk import assigned_variables, bodies, children, expressions, statements, subexpressions, used_variables
from ..accesses.cache_hints import load_hint
from .held_tiles import HeldTiles
from .layout import Layout
from .registers import OTHER_REGISTERS, blocks_that_fit, needs_whole_multiprocessor, peak_registers

ENOUGH_BLOCKS = 3  # on a multiprocessor: while one computes, others load
FEWEST_REGISTERS = 4  # of a tile, per thread, that is worth it
PAIR = 2  # blocks on a multiprocessor, beside which a third brings little
MARGIN = 8  # registers that stay free where spilling would cost more than a block brings
MOST_PARTS = 48  # of an expression with everything written out that is computed again
MOST_WRITTEN_OUT = 1000  # of one that is computed once, when it is needed


@frozen
class Recomputed:
    """See the module docstring.

    Attributes:
      variables: the tiles that are functions of the register's index.
      forgotten: by statement, the tiles that the compiler must forget before it: they are used again here, behind
        a reduction, and it would otherwise keep what it has computed from them before the reduction.
      blocks: how many blocks of a multiprocessor that makes room for; None where it was done for one to fit at all.
    """

    variables: frozenset[Variable] = frozenset()
    forgotten: Mapping[Statement, tuple[Variable, ...]] = field(default_factory=dict)
    blocks: int | None = None


def choose_recomputed(
    held: HeldTiles,
    target: Target,
    enough_blocks: int = ENOUGH_BLOCKS,
    loaded_at_once: Set[Variable] = frozenset(),
) -> Recomputed:
    """Decides for the tiles in registers.

    With `enough_blocks` on a multiprocessor, no room is made for another. The tiles that are `loaded_at_once` must have room
    together where they are alive together; others the compiler loads bit by bit, as they are used.
    """
    exchanges = held.exchanges
    if not exchanges or not held.layouts:
        return Recomputed()
    order = _Order(held.kernel)
    found = _formulas(held, held.fixed, order, MOST_PARTS)
    kept = held.computed_again(frozenset(found))
    if not found or not kept.layouts:
        return Recomputed()
    num_threads = 1 << next(iter(held.layouts.values())).thread_bits
    everything = peak_registers(held)
    fits = everything <= REGISTER_FILE // num_threads - OTHER_REGISTERS
    waits = frozenset(exchanges)
    before = blocks_that_fit(peak_registers(held, waits), num_threads, target)
    before = min(before, 1) if needs_whole_multiprocessor(everything, num_threads) else before
    at_once = kept.without(kept.layouts.keys() - loaded_at_once)
    peak = max(peak_registers(kept, waits), peak_registers(at_once))
    margin = MARGIN if before >= PAIR or _loads_by_ptx(held.kernel) else 0
    after = min(blocks_that_fit(peak + margin, num_threads, target), enough_blocks)
    more = 0 < before < enough_blocks and after > before
    if fits and not more:
        return Recomputed()
    forgotten = _forgotten(exchanges, found, held.facts, order, kept.layouts)
    return Recomputed(frozenset(found), forgotten, after if more else None)


def is_straight(kernel: Kernel, others: tuple[str, ...] = ()) -> bool:
    """Whether a kernel loads, computes element by element and stores, and nothing repeats; it may do some `others` as well."""
    values = [statement.value for statement in statements(kernel.body) if isinstance(statement, Assign)]
    if any(isinstance(statement, (For, While)) for statement in statements(kernel.body)):
        return False
    known = ("load", *others)
    return all(is_elementwise(value) or (isinstance(value, Call) and value.op in known) for value in values)


def needed_at_once(held: HeldTiles) -> int:
    """The registers that the tiles of a straight kernel take together.

    What follows element by element from what is loaded needs none there: the compiler computes it when it is stored, or
    reduced, unless it is used again behind an exchange.
    """
    order = _Order(held.kernel)
    places = [order.place[exchange] for exchange in held.exchanges]
    found = frozenset(
        variable
        for variable in _formulas(held, frozenset(), order, MOST_WRITTEN_OUT)
        if not any(order.assigned[variable] < place < max(order.read.get(variable, (0,))) for place in places)
    )
    return peak_registers(held.computed_again(found))


def _formulas(held: HeldTiles, fixed: Set[Variable], order: _Order, most_parts: int) -> dict[Variable, _Formula]:
    """The tiles that follow from others wherever they are used, in at most so many parts."""
    found: dict[Variable, _Formula] = {}
    for variable, layout in held.layouts.items():
        array = variable in fixed or _is_small(layout)
        formula = None if array else _formula(variable, held.facts, order, found, most_parts)
        if formula is not None:
            found[variable] = formula
    return found


def _loads_by_ptx(kernel: Kernel) -> bool:
    """Whether loads have cache hints: to the compiler they are PTX, and it keeps an address for each of them."""
    return any(
        isinstance(part, Call) and part.op == "load" and load_hint(part) != ""
        for statement in statements(kernel.body)
        for expr in expressions(statement)
        for part in subexpressions(expr)
    )


def _is_small(layout: Layout) -> bool:
    return layout.num_registers < FEWEST_REGISTERS


def _fills_words(variable: Variable, layout: Layout) -> bool:
    """Whether several elements of a tile share a register, side by side in a thread's array."""
    bits = variable.type.dtype.bits
    return bits in (8, 16) and layout.registers(layout.array_axes()[-1]) * bits >= 32


class _Order:
    """Where in the text variables are assigned and read, and which blocks lie around."""

    def __init__(self, kernel: Kernel) -> None:
        self.place: dict[Statement, int] = {}
        self.statement: dict[int, Statement] = {}  # the other way round
        self.assigned: dict[Variable, int] = {}
        self.read: dict[Variable, list[int]] = {}
        self.end_of_block: dict[int, int] = {}  # by place: the last place of the block that it stands in
        self.loop_start: dict[int, int] = {}  # by place: that of the innermost loop around it
        self.end_of_loop: dict[int, int] = {}  # by place of a loop: the last place inside
        self.target: dict[int, Variable] = {}  # by place: the only variable that is assigned there
        self._visit(kernel.body, -1)

    def _visit(self, block: tuple[Statement, ...], loop: int) -> None:
        places = []
        for statement in block:
            place = self.place[statement] = len(self.place)
            self.statement[place] = statement
            places.append(place)
            self.loop_start[place] = loop
            for variable in assigned_variables(statement):
                self.assigned[variable] = place
                self.target[place] = variable
            for expr in expressions(statement):
                for variable in used_variables(expr):
                    self.read.setdefault(variable, []).append(place)
            for body in bodies(statement):
                self._visit(body, place if isinstance(statement, (For, While)) else loop)
            self.end_of_loop[place] = len(self.place) - 1
        last = len(self.place) - 1
        self.end_of_block |= dict.fromkeys(places, last)

    def used_at(self, variable: Variable, nowhere: frozenset[Variable]) -> Iterator[int]:
        """The places where a tile is needed, directly or through tiles that are computed `nowhere` of their own."""
        for place in self.read.get(variable, ()):
            target = self.target.get(place)
            if target in nowhere:
                yield from self.used_at(target, nowhere)
            else:
                yield place


@frozen
class _Formula:
    """What a tile is made of in the end: the variables whose registers it reads, and how many parts that has."""

    leaves: frozenset[Variable]
    parts: int


def _formula(
    variable: Variable, facts: Facts, order: _Order, found: Mapping[Variable, _Formula], most_parts: int
) -> _Formula | None:
    """How a tile can be had wherever it is used; None where that is not the same as where it is assigned, or much work."""
    value = facts.definitions.get(variable)
    if value is None or variable.type.is_pointer or not variable.type.dtype.is_floating():
        return None
    place = order.assigned[variable]
    if any(not place < use <= order.end_of_block[place] for use in order.read.get(variable, ())):
        return None
    formula = _written_out(value, facts, found, most_parts)
    if formula is None or not any(leaf.type.is_tile for leaf in formula.leaves):
        return None
    if any(facts.assignments[leaf] > 1 or order.assigned.get(leaf, -1) > place for leaf in formula.leaves):
        return None
    return formula


def _written_out(expr: Expr, facts: Facts, found: Mapping[Variable, _Formula], most_parts: int) -> _Formula | None:
    """An expression with everything written out that has no registers; None where that is too long."""
    leaves: set[Variable] = set()
    parts, pending = 0, [expr]
    while pending:
        part = pending.pop()
        parts += 1
        if parts > most_parts or isinstance(part, CallFunction):
            return None
        if not isinstance(part, Use):
            pending += children(part)
        elif part.variable in found:
            leaves |= found[part.variable].leaves
            parts += found[part.variable].parts
        elif part.variable in facts.absorbed:
            pending.append(facts.definitions[part.variable])
        else:
            leaves.add(part.variable)
    return _Formula(frozenset(leaves), parts) if parts <= most_parts else None


def _forgotten(
    exchanges: list[Assign],
    found: Mapping[Variable, _Formula],
    facts: Facts,
    order: _Order,
    kept: Mapping[Variable, Layout],
) -> dict[Statement, tuple[Variable, ...]]:
    """The narrow tiles that are read on both sides of an exchange, by the first statement behind that reads them.

    Those whose elements are loaded one by one, and have a register each until something takes them together, are forgotten
    before they are first read as well.
    """
    nowhere = facts.absorbed | found.keys()
    places: dict[Variable, set[int]] = {}
    for variable, formula in found.items():
        of_this = set(order.used_at(variable, nowhere))
        for leaf in formula.leaves:
            places.setdefault(leaf, set()).update(of_this)
    narrow = {
        v: sorted(places[v])
        for v, layout in kept.items()
        if v in places and v in order.assigned and not _is_small(layout) and _fills_words(v, layout)
    }
    result: dict[Statement, dict[Variable, None]] = {}
    for variable, used in narrow.items():
        if kept[variable].run(kept[variable].array_axes()[-1]) == 1:  # loaded one by one: words are made of them once
            first = min([used[0], *(place for place in order.read[variable] if order.target.get(place) not in nowhere)])
            result.setdefault(order.statement[first], {})[variable] = None
    for exchange in exchanges:
        here = order.place[exchange]
        loop = order.loop_start[here]
        last = order.end_of_loop[loop] if loop >= 0 else here
        for variable, used in narrow.items():
            behind = bisect_right(used, here)
            if behind == len(used) and order.assigned[variable] < loop:
                behind = bisect_right(used, loop)  # on the loop's next trip
                behind = behind if behind < len(used) and used[behind] <= last else len(used)
            if used[0] <= here and behind < len(used):
                result.setdefault(order.statement[used[behind]], {})[variable] = None
    return {statement: tuple(tiles) for statement, tiles in result.items()}
