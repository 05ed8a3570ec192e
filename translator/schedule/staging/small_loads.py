"""Whether small tiles are loaded ahead, too, in a loop of tensor copies: where its products wait for them.

In: a schedule without and one with such loads. Out: yes or no. A row of statistics is there soon enough, unless the loop has
several products, which wait for one another, or computes an operand in registers, and there are registers to spare.
"""

from __future__ import annotations

from ...ir.nodes import For, Kernel, Variable
from ...ir.structured import assigns
from ...ir.walk import statements, top_statements
from ..plan import Schedule
from .own_loads import several_products

ROOM_FOR_ADDRESSES = 40  # registers that a thread has beside its tiles: it takes about half of them to load ahead
LEAST_STAGES = 2


def may_load_more(kernel: Kernel, schedule: Schedule) -> bool:
    """Whether a loop of tensor copies whose products wait for small loads has some, and registers for their addresses."""
    copied = {ring.loop for ring in schedule.rings.rings if ring.kind == "tma" and not ring.own}
    if schedule.spare_registers < ROOM_FOR_ADDRESSES or not copied:
        return False
    loops = [
        list(top_statements(s.body)) for s in statements(kernel.body) if isinstance(s, For) and s.variable in copied
    ]
    computed = {key for key, dot in schedule.dots.items() if dot.fragment is not None}
    waiting = [body for body in loops if several_products(body) or not computed.isdisjoint(body)]
    return any(assigns(s, "load") for body in waiting for s in body)


def loads_more(more: Schedule, less: Schedule) -> bool:
    """Whether a plan with small loads ahead has any, and pays with nothing but stages, of which there are enough."""

    def rest(plan: Schedule) -> list[tuple[Variable, bool]]:
        return [(ring.loop, ring.stagger is not None) for ring in plan.rings.rings]

    own = [[ring.own for ring in plan.rings.rings] for plan in (more, less)]
    enough = all(ring.stages >= LEAST_STAGES for ring in more.rings.rings)
    same = rest(more) == rest(less) and more.blocks_per_multiprocessor == less.blocks_per_multiprocessor
    return same and enough and own[0] != own[1]
