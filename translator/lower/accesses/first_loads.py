"""The loads of all trips of a loop, in front of it; `schedule/accesses/first_loads.py` says which and why.

What a trip loads is an element of an array for all of them: both loops call it `x[k]`, where it would be `x` otherwise.
"""

from __future__ import annotations

from dataclasses import replace

from ...ir.nodes import Assign, For, Literal
from ...ir.structured import assigns
from ...schedule.accesses.unrolled import trips_of_numbers
from ..blocks import lower_block
from ..context import Context
from ..staging.loop_bounds import Bounds, for_header
from ..text.operators import Text, infix
from ..text.unit import Comment, Loop, Node

WHY = "The loads of all iterations come first: none waits behind a store."


def lower_first_loads(context: Context, loop: For, bounds: Bounds) -> tuple[Node, ...]:
    """The arrays and the loop that fills them; from here on the tiles are called by their places there."""
    ahead, numbers = context.schedule.first_loads.ahead.get(loop, ()), trips_of_numbers(loop, context.facts)
    if not ahead or numbers is None:
        return ()
    counter = context.names.variable(loop.variable)
    plain = isinstance(loop.stop, Literal) and (numbers.start, numbers.step) == (0, 1)
    size = bounds.stop.text if plain else str(len(numbers))
    place = infix(infix(Text(counter), "-", bounds.start), "/", bounds.step).text if not plain else counter
    targets = [s.target for s in ahead if isinstance(s, Assign) and assigns(s, "load")]
    arrays = [context.declaration(target, context.schedule.layouts.get(target)) for target in targets]
    context.names.of_trip = {target: f"[{place}]" for target in targets}
    with context.inside(replace(context.around, loads_first=True)):
        nodes = lower_block(context, ahead)
    sides = (replace(array, sides=f"[{size}]{array.sides}") for array in arrays)
    return (Comment(WHY), *sides, Loop(for_header(loop, counter, bounds), nodes, unroll=True))
