"""Offsets that are computed in 32 bits, because the sizes of a launch say that they fit.

In: a kernel and its facts. Out: the offsets, how far they reach, and what that takes of a launch (`analysis/reach.py`). What
may overflow is computed in 64 bits; a product of a product, `(channel * H + row) * W + col`, then takes several instructions
for each element, where one does in 32. So kernels with such offsets ask of a launch whether these and all others fit. A single
product needs no question: one instruction multiplies integers of 32 bits, and adds to an address of 64.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ...analysis.facts import Facts
from ...analysis.ranges import never_overflows
from ...analysis.reach import Reach, Reaches, conditions_of, furthest
from ...artifact import GRID_SIDES, Options
from ...frozen import frozen
from ...ir.nodes import Call, Expr, Kernel, Use, Variable
from ...ir.structured import is_atomic
from ...ir.walk import MOVES, expressions, statements


@frozen
class SmallOffsets:
    """See the module docstring.

    Attributes:
      offsets: as they are added to a pointer, one by one.
      sums: those that are added to one pointer, and whose sums fit, too.
      reaches: what the offsets and sums do not exceed, over parameters and the sides of the grid.
      conditions: over parameters, under which that is so.
    """

    offsets: frozenset[Expr] = frozenset()
    sums: frozenset[tuple[Expr, ...]] = frozenset()
    reaches: tuple[Expr, ...] = ()
    conditions: tuple[Expr, ...] = ()


def small_offsets(kernel: Kernel, facts: Facts, options: Options) -> SmallOffsets:
    """Those of a kernel; none where the text has to be right for all values."""
    if not options.guards or any(parameter.variable.name in GRID_SIDES for parameter in kernel.parameters):
        return SmallOffsets()
    accesses = [(elements, offsets) for elements, offsets in _offsets(kernel, facts) if elements > 1]
    if not any(_multiplies_wide(offset, elements, facts) for elements, offsets in accesses for offset in offsets):
        return SmallOffsets()
    reaches = Reaches(kernel, facts.definitions)
    sums: dict[tuple[Expr, ...], Reach] = {}
    for _, offsets in accesses:
        known = tuple(offset for offset in offsets if _is_int(offset) and reaches.of((offset,)))
        if any(_is_wide(offset, facts) for offset in known) and (reach := reaches.of(known)):
            sums[known] = reach
    return SmallOffsets(
        frozenset(offset for offsets in sums for offset in offsets),
        frozenset(sums),
        furthest(sums.values()),
        conditions_of(sums.values()),
    )


def _offsets(kernel: Kernel, facts: Facts) -> Iterator[tuple[int, list[Expr]]]:
    """Of each access of a tile its number of elements, and what is added to its pointers, as far as these have no names."""
    for statement in statements(kernel.body):
        for call in expressions(statement):
            if not isinstance(call, Call) or not (call.op in ("load", "store") or is_atomic(call)):
                continue
            pointer, offsets = call.args[0], list[Expr]()
            while True:
                if isinstance(pointer, Use) and pointer.variable in facts.absorbed:
                    pointer = facts.definitions[pointer.variable]
                elif isinstance(pointer, Call) and pointer.op in ("ptr_add", *MOVES):
                    if pointer.op == "ptr_add":
                        offsets.insert(0, pointer.args[1])
                    pointer = pointer.args[0]
                else:
                    break
            yield prod(call.args[0].type.shape), offsets


def _is_wide(offset: Expr, facts: Facts) -> bool:
    """Whether an offset may not fit in 32 bits, as far as the text tells."""
    return not never_overflows(offset, facts.definitions, _written_out(facts))


def _written_out(facts: Facts) -> dict[Variable, Expr]:
    return {variable: facts.definitions[variable] for variable in facts.absorbed}


def _multiplies_wide(offset: Expr, elements: int, facts: Facts) -> bool:
    """Whether every element takes a product of its own in 64 bits, since what it multiplies may not fit in 32."""
    written_out = _written_out(facts)
    pending, seen = [offset], set[Variable]()
    while pending:
        part = pending.pop()
        if isinstance(part, Use) and part.variable in written_out:
            pending += [] if part.variable in seen else [written_out[part.variable]]
            seen.add(part.variable)
        elif isinstance(part, Call) and part.op in ("add", "sub", "mul", *MOVES):
            own = [arg for arg in part.args if _elements(arg) == elements]
            if part.op == "mul" and any(_is_wide(arg, facts) for arg in own):
                return True
            pending += own
    return False


def _is_int(offset: Expr) -> bool:
    return offset.type.dtype.bits == 32


def _elements(expr: Expr) -> int:
    """How many elements of a tile may differ."""
    while isinstance(expr, Call) and expr.op in MOVES:
        expr = expr.args[0]
    return prod(expr.type.shape)
