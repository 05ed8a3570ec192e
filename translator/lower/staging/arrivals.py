"""Tiles on their way to shared memory by copies that nobody has waited for: the wait stands where the first is read.

Outside of loops and branches a load of a whole tile starts its copies only. In front of the statement that reads one of the
tiles all threads wait for their copies, and for each other: once, however many tiles are on their way.
"""

from __future__ import annotations

from ...ir.nodes import Statement, Variable
from ...ir.walk import read_inside
from ..context import Context
from ..text.unit import Line, Node
from .copies import proxy_fence


def wait_for_tiles(context: Context, statement: Statement) -> tuple[Node, ...]:
    """The wait for the tiles that are on their way, if a statement, or one inside of it, reads one of them."""
    arriving = context.progress.arriving
    if not arriving:
        return ()
    return arrival(context) if arriving.keys() & set(read_inside((statement,))) else ()


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
