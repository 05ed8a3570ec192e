"""What is stored in fewer bits is rounded before it moves to the threads that store it.

In: a kernel, its facts and its schedule. Out: the same kernel, in which the value of such a store has a name of its own, so that
it is computed where its operands lie. Of `tl.store(p, acc.to(tl.bfloat16))` half as many bytes then move through shared memory,
or between lanes, and of a value that is computed from several tiles, one tile moves.
"""

from __future__ import annotations

from dataclasses import replace

from ...analysis.facts import Facts
from ...ir.nodes import Assign, Call, Effect, Expr, Kernel, Statement, Use, Variable
from ...ir.rewrite import with_replaced
from ...ir.walk import next_key, statements
from ..plan import Schedule
from ..tiles.layout_problem import tile_uses
from ..tiles.layouts import follow


def with_narrow_moves(kernel: Kernel, facts: Facts, schedule: Schedule) -> Kernel:
    """See the module docstring; the same object where nothing is rounded earlier."""
    replaced: dict[Statement, Statement | None] = {}
    added: dict[tuple[Statement, bool], list[Statement]] = {}
    key = next_key(kernel)
    for statement in statements(kernel.body):
        moving = {one.variable for one in schedule.conversions.get(statement, ())}
        if not moving or not isinstance(statement, Effect) or statement.call.op != "store":
            continue
        pointer, value, *rest = statement.call.args
        tile = _where_computed(value, facts, schedule)
        if tile not in moving or not _is_rounding(value):
            continue
        rounded = Variable(f"{tile.name}_rounded", value.type, key)
        key += 1
        added[statement, False] = [Assign(statement.origin, (rounded,), _for_store(value))]
        call = replace(statement.call, args=(pointer, Use(rounded.type, rounded), *rest))
        replaced[statement] = replace(statement, call=call)
    return replace(kernel, body=with_replaced(kernel.body, replaced, added)) if replaced else kernel


def _where_computed(value: Expr, facts: Facts, schedule: Schedule) -> Variable | None:
    """A tile in whose layout a value can be computed from what threads hold; None where there is none."""
    uses = list(tile_uses(value, facts))
    for tile, path in uses:
        layout = schedule.layouts.get(tile)
        if layout is not None and not path and all(follow(layout, p) == schedule.layouts.get(v) for v, p in uses):
            return tile
    return None


def _for_store(value: Expr) -> Expr:
    """The cast, with what tells it from the user's own."""
    return replace(value, attributes=(*value.attributes, ("for_store", True))) if isinstance(value, Call) else value


def _is_rounding(value: Expr) -> bool:
    """Whether a value is made narrower at last, from floats to floats."""
    if not isinstance(value, Call) or value.op != "cast":
        return False
    wide, narrow = value.args[0].type.dtype, value.type.dtype
    return wide.is_floating() and narrow.is_floating() and narrow.itemsize < wide.itemsize
