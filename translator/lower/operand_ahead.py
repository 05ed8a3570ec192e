"""Loops that compute an operand of the next iteration's products under those of this one: what the multiplying warps do.

An iteration starts its products, computes what the next one multiplies into registers of its own, and waits then
(`schedule/operands_ahead.py`). What it computes stands in a function, called before the loop for the first iteration.
"""

from __future__ import annotations

from ..ir.nodes import Assign, For
from ..schedule.ring_plan import Ring
from .context import Context, ctype
from .dot import start_dot
from .dot_wgmma import Fragments, fragments_of, pin
from .own_stages import copies_ahead, lower_body, stage_word
from .ring_barriers import barrier_name, position_name, stage_lines, stages_name
from .rings import Body, counting
from .tags import tag
from .unit import Branch, Comment, Line, Loop, Node

PRODUCTS = "the products"


def lower_loop_with_operand_ahead(
    context: Context, statement: For, ring: Ring, bounds: tuple[str, str, str], header: str, body: Body
) -> tuple[Node, ...]:
    """The loop, and what computes the operand of its first iteration before it."""
    dot = ring.ahead_of
    if dot is None:
        raise TypeError("a loop that computes nothing ahead")
    for helper in ("mbarrier_wait", "mbarrier_arrive", "wgmma_commit", "wgmma_wait"):
        context.use_helper(helper)
    context.shared.in_functions = True
    plan, name = context.schedule.dots[id(dot)], context.names.variable(dot.target)
    fragments = fragments_of(context, dot, plan)
    following = context.names.once(f"next_{fragments.name}", ("next fragments", id(dot)))
    index, position, (start, stop, step) = context.names.variable(ring.loop), position_name(context, ring), bounds
    stages = stages_name(context, ring)
    copies = copies_ahead(context, statement, ring, bounds, stages, position if ring.counted else "")
    function, compute = _function(context, statement, ring, dot, fragments, copies.arrival, body)
    compare, sign = (">", "-") if statement.descending else ("<", "+")
    next_one = f"{index} {sign} {step.removeprefix('-')}"
    word, (stage, _) = stage_word(context, ring), stage_lines(context, ring)
    empty = barrier_name(context, ring, "empty")
    trip: list[Node] = [
        stage,
        *tag(dot.origin, PRODUCTS, True, again=True),
        *start_dot(context, dot, from_zero=False),
        Line("wgmma_commit();"),
        Branch(f"{next_one} {compare} {stop}", (Line(f"{compute}({next_one}, {position} + 1, {following});"),)),
        Line("wgmma_wait<0>();", "the sum is complete, and what it was computed from is free"),
        pin(context, name, plan.instruction.accumulator),
        Line(f"memcpy({fragments.name}, {following}, sizeof {following});"),
        Branch(f"{context.lane()} == 0", (Line(f"mbarrier_arrive(&{empty}[{word}]);"),)),
    ]
    registers = fragments.declaration.replace(fragments.name, "{}", 1)
    nodes: tuple[Node, ...] = (
        Line(f"{fragments.declaration};", "what this iteration multiplies"),
        Line(f"{registers.format(following)};", "what the next one does"),
        Line(f"{compute}({start}, {position if ring.counted else start}, {fragments.name});"),
        Loop(counting(context, ring, header), tuple(trip)),
    )
    return (*copies.functions, *copies.first, *function, Branch(f"{start} {compare} {stop}", nodes))


def _function(
    context: Context,
    statement: For,
    ring: Ring,
    dot: Assign,
    fragments: Fragments,
    arrival: tuple[Node, ...],
    body: Body,
) -> tuple[tuple[Node, Node], str]:
    """The function that computes what an iteration multiplies, and its name."""
    name, turn = context.names.shared_index("compute"), context.names.shared_index("turn")
    stage, stages, full = stage_word(context, ring), stages_name(context, ring), barrier_name(context, ring, "full")
    context.stages.stage_of |= dict.fromkeys(ring.tiles, stage)
    before = context.stages.postponed
    context.stages.postponed = before | {id(dot)}
    inner = lower_body(context, statement, body)
    context.stages.postponed = before
    index = f"{ctype(statement.variable.type)} {context.names.variable(ring.loop)}"
    registers = fragments.declaration.replace(fragments.name, f"(&{fragments.name})", 1)
    nodes: tuple[Node, ...] = (
        Line(f"const int {stage} = {turn} % {stages};"),
        Line(f"mbarrier_wait(&{full}[{stage}], {turn} / {stages} % 2);", "the tiles have arrived"),
        *arrival,
        *inner,
        Line("__syncwarp();", "every lane has read what it computes with"),
    )
    header = f"const auto {name} = [&]({index}, int {turn}, {registers})"
    what = "Computes what an iteration multiplies, as soon as its tiles are there."
    return (Comment(what), Loop(header, nodes, closing="};")), name
