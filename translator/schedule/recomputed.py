"""Tiles that are computed again wherever they are used, because the registers cannot hold them across an exchange.

In: a kernel, its facts, the layouts. Out: `Recomputed`. A tile that follows element by element from narrower ones, such as
`(x - mean) * rstd` of a 16-bit `x`, costs twice their registers while the warps wait for each other in a reduction. Where
the live tiles do not fit, only the narrow ones stay, and what follows from them becomes a function of the register's index.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace

from ..analysis.facts import Facts
from ..ir.nodes import Assign, Call, CallFunction, Expr, For, Kernel, Statement, Use, Variable, While
from ..ir.walk import assigned_variables, bodies, expressions, statements, subexpressions, used_variables
from .instructions import LANE_BITS
from .layout import REGISTER, Layout
from .registers import OTHER_REGISTERS, REGISTER_FILE, peak_registers

MOST_PARTS = 48  # of an expression with everything written out that is computed again


@dataclass(frozen=True, slots=True)
class Recomputed:
    """See the module docstring.

    Attributes:
      variables: the tiles that are functions of the register's index.
      forgotten: by `id` of a reduction, the tiles that it must make the compiler forget: it would otherwise keep what it
        has computed from them before, to use it again behind the reduction.
    """

    variables: frozenset[Variable] = frozenset()
    forgotten: Mapping[int, tuple[Variable, ...]] = field(default_factory=dict)

    def seen_by(self, facts: Facts) -> Facts:
        """The facts as they are for who counts registers: these tiles have none of their own."""
        return replace(facts, absorbed=facts.absorbed | self.variables) if self.variables else facts


def choose_recomputed(
    kernel: Kernel,
    facts: Facts,
    layouts: Mapping[Variable, Layout],
    statement_layouts: Mapping[int, Layout],
    fixed: Set[Variable],
    num_threads: int,
) -> Recomputed:
    """Decides for the tiles in registers, `layouts`; the `fixed` ones are arrays whatever they are made of."""
    exchanges = [s for s in statements(kernel.body) if _is_exchange(s, statement_layouts)]
    budget = REGISTER_FILE // num_threads - OTHER_REGISTERS
    before = peak_registers(kernel, facts, layouts)
    if not exchanges or before <= budget:
        return Recomputed()
    order = _Order(kernel)
    found: set[Variable] = set()
    for variable in layouts:
        if variable not in fixed and _can_follow(variable, facts, order, found):
            found.add(variable)
    chosen = Recomputed(frozenset(found))
    kept = {variable: layout for variable, layout in layouts.items() if variable not in found}
    if not found or peak_registers(kernel, chosen.seen_by(facts), kept) >= before:
        return Recomputed()
    forgotten = {id(exchange): tuple(_forgotten(exchange, chosen, facts, order, kept)) for exchange in exchanges}
    return replace(chosen, forgotten=forgotten)


def _is_exchange(statement: Statement, layouts: Mapping[int, Layout]) -> bool:
    """Whether the statement is a reduction in which warps wait for each other."""
    call = statement.value if isinstance(statement, Assign) else None
    if not isinstance(call, Call) or call.op != "reduce" or id(statement) not in layouts:
        return False  # the last: nothing reads its result
    layout, axis = layouts[id(statement)], call.attribute("axis")
    bits = [bit for number, bits in enumerate(layout.axes) if axis in (None, number) for bit in bits]
    return any(bit != REGISTER and bit >= LANE_BITS for bit in bits)


class _Order:
    """Where in the text variables are assigned and read, and which blocks lie around."""

    def __init__(self, kernel: Kernel) -> None:
        self.place: dict[int, int] = {}  # of each statement, by `id`
        self.assigned: dict[Variable, int] = {}
        self.read: dict[Variable, list[int]] = {}
        self.end_of_block: dict[int, int] = {}  # by place: the last place of the block that it stands in
        self.loop_start: dict[int, int] = {}  # by place: that of the innermost loop around it
        self.target: dict[int, Variable] = {}  # by place: the only variable that is assigned there
        self._visit(kernel.body, -1)

    def _visit(self, block: tuple[Statement, ...], loop: int) -> None:
        places = []
        for statement in block:
            place = self.place[id(statement)] = len(self.place)
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


def _can_follow(variable: Variable, facts: Facts, order: _Order, found: Set[Variable]) -> bool:
    """Whether a tile has the same value wherever it is used as where it is assigned, for little work."""
    value = facts.definitions.get(variable)
    if value is None or variable.type.is_pointer or not variable.type.dtype.is_floating():
        return False
    if any(isinstance(part, CallFunction) for part in subexpressions(value)):
        return False
    place = order.assigned[variable]
    if any(not place < use <= order.end_of_block[place] for use in order.read.get(variable, ())):
        return False
    leaves = set(_leaves(value, facts, found))
    if any(facts.assignments[v] > 1 or order.assigned.get(v, -1) > place for v in leaves):
        return False
    return any(v.type.is_tile for v in leaves) and _parts(value, facts, found) <= MOST_PARTS


def _leaves(expr: Expr, facts: Facts, found: Set[Variable]) -> Iterator[Variable]:
    """The variables whose registers an expression reads in the end."""
    for variable in used_variables(expr):
        if variable in found or variable in facts.absorbed:
            yield from _leaves(facts.definitions[variable], facts, found)
        else:
            yield variable


def _parts(expr: Expr, facts: Facts, found: Set[Variable]) -> int:
    return sum(
        _parts(facts.definitions[part.variable], facts, found)
        if isinstance(part, Use) and part.variable in found
        else 1
        for part in subexpressions(expr)
    )


def _forgotten(
    exchange: Statement, chosen: Recomputed, facts: Facts, order: _Order, kept: Mapping[Variable, Layout]
) -> Iterator[Variable]:
    """The narrow tiles that are read on both sides of an exchange, the next trip of a loop around it included."""
    here = order.place[id(exchange)]
    loop = order.loop_start[here]
    end = order.end_of_block[loop] if loop >= 0 else here
    nowhere = chosen.variables | facts.absorbed
    for variable in kept:
        if variable.type.is_pointer or variable.type.dtype.bits >= 32 or variable not in order.assigned:
            continue
        readers = [v for v in chosen.variables if variable in _leaves(facts.definitions[v], facts, chosen.variables)]
        places = {place for reader in readers for place in order.used_at(reader, nowhere)}
        outside = order.assigned[variable] < loop
        behind = any(place > here for place in places) or (outside and any(loop < place <= end for place in places))
        if behind and any(place <= here for place in places):
            yield variable
