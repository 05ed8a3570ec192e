"""Tiles on their way to shared memory by copies that nobody has waited for: the wait stands where the first is read.

A load of a whole tile starts its copies only. In front of the statement of its block that reads one of the tiles, itself or
inside of it, all threads wait for their copies, and for each other: once, however many tiles are on their way. So they do in
front of a branch or a loop that loads one of the tiles again, and at the end of a block, for what it has started.
"""

from __future__ import annotations

from ...ir.nodes import Statement, Variable
from ...ir.walk import assigned_inside, bodies, read_inside
from ..context import Context
from ..text.unit import Line, Node
from .copies import proxy_fence


def wait_for_tiles(context: Context, statement: Statement) -> tuple[Node, ...]:
    """The wait for the tiles that are on their way, if a statement, or one inside of it, reads one of them or loads it again."""
    arriving = context.progress.arriving
    if not arriving:
        return ()
    again = {variable for body in bodies(statement) for inner in body for variable in assigned_inside(inner)}
    return arrival(context) if arriving.keys() & {*read_inside((statement,)), *again} else ()


def arrival(context: Context) -> tuple[Node, ...]:
    """The wait for all tiles that are on their way."""
    arriving, context.progress.arriving = context.progress.arriving, {}
    if not arriving:
        return ()
    names = sorted(tile.name for tile in arriving)
    wait = (Line("cp_async_wait<0>();", "this thread's share has arrived"),) if any(arriving.values()) else ()
    nodes = (*wait, *proxy_fence(context), *context.barrier(f"all of {_listed(names)} is in shared memory"))
    context.shared.being_read.update(context.shared.tile_name(tile) for tile in arriving)
    return nodes


def note_arriving(context: Context, tile: Variable, asynchronous: bool) -> bool:
    """Notes that copies of a tile have been started; False where they are to be waited for at once."""
    if not context.around.may_arrive_later:
        return False
    context.progress.arriving = {**context.progress.arriving, tile: asynchronous}
    return True


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
