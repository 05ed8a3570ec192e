"""Offsets that are computed in 32 bits, because the sizes of a launch say that they fit.

In: a kernel and its facts. Out: the offsets, how far they reach, and what that takes of a launch (`analysis/reach.py`). What
may overflow is computed in 64 bits: a row's product in a pair of registers, and for `(channel * H + row) * W + col` several
instructions for each element, where one does in 32. So kernels with such offsets ask of a launch whether these and all others
fit. What a loop repeats does not ask where the product is the same in all trips: a pointer that each trip moves is cheaper then.
Nor do rows beside products of tensor cores, which hide what these cost, and beside tensor copies, which a launch that reaches
too far would lose.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from ...analysis.facts import Facts, read_through
from ...analysis.ranges import never_overflows
from ...analysis.reach import Reach, Reaches, conditions_of, furthest
from ...artifact import GRID_SIDES, LARGEST_OFFSET, Options
from ...frozen import frozen
from ...ir.nodes import Call, Expr, For, Kernel, Literal, Statement, Use, Variable, While
from ...ir.structured import assigns, is_atomic
from ...ir.types import ValueType
from ...ir.walk import MOVES, assigned_inside, bodies, expressions, reachable, statements, used_variables
from ...language.dtypes import int64
from .unrolled import ALL_TRIPS, trips_of_numbers

BEYOND = Literal(ValueType(int64), LARGEST_OFFSET + 1)  # a reach with which no launch takes the text


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


@frozen
class _Access:
    """What an access of a tile adds to its pointers, as far as these have no names.

    Attributes:
      elements: of the tile.
      offsets: as they are added, one by one.
      changing: what the innermost loop around it assigns; None outside of loops.
    """

    elements: int
    offsets: tuple[Expr, ...]
    changing: set[Variable] | None


def may_ask(kernel: Kernel, options: Options) -> bool:
    """Whether the text may hold for some launches only, and the sides of the grid have their names for themselves."""
    return options.guards and not any(parameter.variable.name in GRID_SIDES for parameter in kernel.parameters)


def small_offsets(kernel: Kernel, facts: Facts, options: Options, has_tensor_copies: bool) -> SmallOffsets:
    """Those of a kernel; none where the text has to be right for all values."""
    if not may_ask(kernel, options):
        return SmallOffsets()
    accesses = [access for access in _accesses(kernel.body, facts, None) if access.elements > 1]
    written_out = {variable: facts.definitions[variable] for variable in facts.absorbed}
    multiplies = any(assigns(statement, "dot") for statement in statements(kernel.body))
    rows = not (multiplies or has_tensor_copies)
    if not kernel.short_rows and not any(_asks(access, facts, written_out, rows) for access in accesses):
        return SmallOffsets()
    written_out |= {rows: facts.definitions[rows] for rows in kernel.short_rows if rows in facts.definitions}
    reaches, too_far = Reaches(kernel, facts.definitions), tuple[Expr, ...]()
    sums: dict[tuple[Expr, ...], Reach] = {}
    for access in accesses:
        known = tuple(offset for offset in access.offsets if _is_int(offset) and reaches.of((offset,)))
        of_short_rows = [o for o in access.offsets if not kernel.short_rows.isdisjoint(read_through(o, facts))]
        if any(offset not in known for offset in of_short_rows):
            too_far = (BEYOND,)  # nothing says any more how far it reaches
        is_wide = any(_is_wide(offset, facts, written_out) for offset in known)
        if is_wide and (of_short_rows or not _is_moved(access, facts, written_out)):
            for added in [known] if reaches.of(known) else [(offset,) for offset in known]:
                sums |= {added: reach} if (reach := reaches.of(added)) else {}
    return SmallOffsets(
        frozenset(offset for offsets in sums for offset in offsets),
        frozenset(sums),
        (*furthest(sums.values()), *too_far),
        conditions_of(sums.values()),
    )


def _accesses(block: tuple[Statement, ...], facts: Facts, changing: set[Variable] | None) -> Iterator[_Access]:
    """The accesses of a block, in whose innermost loop `changing` is assigned."""
    for statement in block:
        for call in expressions(statement):
            if isinstance(call, Call) and (call.op in ("load", "store") or is_atomic(call)):
                yield _Access(prod(call.args[0].type.shape), _offsets(call.args[0], facts), changing)
        inside = assigned_inside(statement) if _repeats(statement, facts) else changing
        for body in bodies(statement):
            yield from _accesses(body, facts, inside)


def _repeats(statement: Statement, facts: Facts) -> bool:
    """Whether a statement is a loop, and not one of few trips, which the compiler writes out."""
    numbers = trips_of_numbers(statement, facts) if isinstance(statement, For) else None
    return isinstance(statement, (For, While)) and (numbers is None or len(numbers) > ALL_TRIPS)


def _offsets(pointer: Expr, facts: Facts) -> tuple[Expr, ...]:
    offsets = list[Expr]()
    while True:
        if isinstance(pointer, Use) and pointer.variable in facts.absorbed:
            pointer = facts.definitions[pointer.variable]
        elif isinstance(pointer, Call) and pointer.op in ("ptr_add", *MOVES):
            if pointer.op == "ptr_add":
                offsets.insert(0, pointer.args[1])
            pointer = pointer.args[0]
        else:
            return tuple(offsets)


def _is_wide(offset: Expr, facts: Facts, written_out: dict[Variable, Expr]) -> bool:
    """Whether an offset may not fit in 32 bits, as far as the text tells."""
    return not never_overflows(offset, facts.definitions, written_out)


def _asks(access: _Access, facts: Facts, written_out: dict[Variable, Expr], rows: bool) -> bool:
    """Whether each element, or on demand each row, takes a product of its own in 64 bits, each time."""
    least = 2 if rows else access.elements
    return any(
        _elements(product) >= least
        and (rows or any(_is_wide(arg, facts, written_out) for arg in product.args if _elements(arg) >= least))
        and _changes(product, access.changing, facts)
        for product in _wide_products(access, facts, written_out)
    )


def _is_moved(access: _Access, facts: Facts, written_out: dict[Variable, Expr]) -> bool:
    """Whether a loop only moves the pointer of an access: whatever is multiplied is the same in all trips."""
    products = list(_wide_products(access, facts, written_out))
    return bool(products) and not any(_changes(product, access.changing, facts) for product in products)


def _wide_products(access: _Access, facts: Facts, written_out: dict[Variable, Expr]) -> Iterator[Call]:
    """The products in the offsets of an access that may not fit in 32 bits."""
    pending, seen = list(access.offsets), set[Variable]()
    while pending:
        part = pending.pop()
        if isinstance(part, Use) and part.variable in written_out:
            pending += [] if part.variable in seen else [written_out[part.variable]]
            seen.add(part.variable)
        elif isinstance(part, Call) and part.op in ("add", "sub", "mul", *MOVES):
            if part.op == "mul" and _is_wide(part, facts, written_out):
                yield part
            pending += part.args


def _changes(expr: Expr, changing: set[Variable] | None, facts: Facts) -> bool:
    """Whether an expression has to be found anew in each trip of the loop that assigns `changing`."""
    made_of = {variable: tuple(used_variables(value)) for variable, value in facts.definitions.items()}
    return changing is None or any(
        variable in changing for variable in reachable(used_variables(expr), made_of) if variable not in made_of
    )


def _is_int(offset: Expr) -> bool:
    return offset.type.dtype.bits == 32


def _elements(expr: Expr) -> int:
    """How many elements of a tile may differ."""
    while isinstance(expr, Call) and expr.op in MOVES:
        expr = expr.args[0]
    return prod(expr.type.shape)
