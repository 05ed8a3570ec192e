"""Loops whose products are started an iteration ahead: the text of the multiplying warps (`schedule/stagger.py`).

Two groups of products are on their way at the end of an iteration: those of the next one, for which it waits, and behind
them the late one, which runs on under what the next iteration computes, until that touches its sum. A branch leaves out the
products of an iteration that does not come: ptxas accepts that, but for sums that are on their way from one iteration to the
next in both groups.
"""

from __future__ import annotations

from ..ir.nodes import Assign, For, Literal, Statement, Use, Variable
from ..ir.walk import statements
from ..schedule.ring_plan import Ring, Stagger
from .context import Context
from .dot import start_dot
from .dot_wgmma import pin
from .ring_barriers import barrier_name, has, position_name, stages_name
from .rings import Body, counting
from .tags import tag
from .unit import Branch, Comment, Line, Loop, Node

AHEAD = "the product, an iteration ahead"


def lower_staggered_loop(
    context: Context, statement: For, ring: Ring, bounds: tuple[str, str, str], header: str, body: Body
) -> tuple[Node, ...]:
    """The loop, with the start of its first products before it."""
    stagger = ring.stagger
    if stagger is None:
        raise TypeError("a loop without products ahead")
    for helper in ("mbarrier_wait", "mbarrier_arrive", "wgmma_commit", "wgmma_wait"):
        context.use_helper(helper)
    position, stages = position_name(context, ring), stages_name(context, ring)
    compare = ">" if statement.descending else "<"
    name = context.names.variable(ring.loop)
    start = _function_name(context, stagger)
    declared = [dot for dot in stagger.ahead if context.declares(dot, dot.target)]
    plans = context.schedule.dots
    declarations = [
        Line(f"{context.declaration(dot.target, plans[id(dot)].layout)};", "of the iteration that is computed next")
        for dot in declared
    ]
    function = _start_function(context, ring, stagger, start)
    advance = bounds[2].removeprefix("-")
    more = f"{name} {'-' if statement.descending else '+'} {advance} {compare} {bounds[1]}"
    fixed_start = isinstance(statement.start, (Literal, Use)) and statement.variable not in context.scopes.outliving
    later = f"{name} {'<' if statement.descending else '>'} {bounds[0]}"
    first: tuple[Node, ...] = ()
    if not fixed_start:
        later, first = f"{position} > first_{position}", (Line(f"const int first_{position} = {position};"),)
    around = _around(context, ring, stagger, start, more, later)
    before = context.stages.around, context.stages.started, context.stages.waited_apart
    context.stages.around = {**before[0], **around}
    context.stages.started = before[1] | {id(dot) for dot in stagger.ahead}
    context.stages.waited_apart = before[2] | {id(stagger.late)}
    context.stages.stage_of |= dict.fromkeys(ring.tiles, "stage")
    inner = body(statement.body)
    context.stages.around, context.stages.started, context.stages.waited_apart = before
    done = _pins(context, stagger.ahead)
    early = _release(context, ring, "early_empty", "stage") if stagger.early else None
    trip: list[Node] = [
        Line(f"const int stage = {position} % {stages};"),
        *([early] if early else []),
        *inner,
        Line("wgmma_wait<1>();", "the next iteration's product is there; the one behind it runs on"),
        *done,
    ]
    begin = [
        Line(f"{start}({position if ring.counted else bounds[0]});"),
        Line("wgmma_wait<0>();", "the first iteration's product is there"),
        *done,
    ]
    end: list[Node] = [Line("wgmma_wait<0>();", "all products are complete"), *_pins(context, (stagger.late,))]
    if ring.counted:
        end.append(_release(context, ring, "empty", f"({position} - 1) % {stages}"))
    some = Branch(
        f"{bounds[1]} {'<' if statement.descending else '>'} {bounds[0]}",
        (*declarations, *function, *begin, Loop(counting(context, ring, header), tuple(trip)), *end),
        comment="ptxas serialises products if a way leads around the wait for them",
    )
    return (*first, some)


def _function_name(context: Context, stagger: Stagger) -> str:
    target = stagger.ahead[0].target.name
    return context.names.shared_index(f"start_{target}" if len(stagger.ahead) == 1 else "start_products")


def _start_function(context: Context, ring: Ring, stagger: Stagger, name: str) -> tuple[Node, Node]:
    """The function that starts the products ahead, of the stage that a count stands for."""
    turn, stages = context.names.shared_index("turn"), stages_name(context, ring)
    others = tuple(tile for tile in ring.tiles if tile not in stagger.early)
    nodes: list[Node] = [Line(f"const int stage = {turn} % {stages};")]
    for word, tiles in (("early_full", stagger.early), ("full", others if _reads(context, stagger, others) else ())):
        if tiles:
            full, words = barrier_name(context, ring, word), " and ".join(tile.name for tile in tiles)
            comment = f"{words} {has(words)} arrived"
            nodes.append(Line(f"mbarrier_wait(&{full}[stage], {turn} / {stages} % 2);", comment))
    context.stages.stage_of |= dict.fromkeys(ring.tiles, "stage")
    before = context.stages.waited_apart
    context.stages.waited_apart = before | {id(dot) for dot in stagger.ahead}
    for dot in stagger.ahead:
        nodes += [*tag(dot.origin, AHEAD, True, again=True), *start_dot(context, dot)]
    context.stages.waited_apart = before
    nodes.append(Line("wgmma_commit();"))
    late = stagger.late.target.name
    what = (
        f"Starts what an iteration multiplies first, as soon as its tiles are there: the tensor cores have it and then "
        f"the product of {late} to do while the warps compute."
    )
    return Comment(what), Loop(f"const auto {name} = [&](int {turn})", tuple(nodes), closing="};")


def _reads(context: Context, stagger: Stagger, tiles: tuple[Variable, ...]) -> bool:
    """Whether a dot ahead reads one of some tiles."""
    plans = [context.schedule.dots[id(dot)] for dot in stagger.ahead]
    return any(operand.variable in tiles for plan in plans for operand in (plan.a, plan.b))


def _around(
    context: Context, ring: Ring, stagger: Stagger, start: str, more: str, later: str
) -> dict[int, tuple[tuple[Node, ...], tuple[Node, ...]]]:
    """What stands before and behind statements of the body: waits, the next products, the end of the late one's group."""
    position, stages = position_name(context, ring), stages_name(context, ring)
    release = _release(context, ring, "empty", f"({position} - 1) % {stages}", f"{later} && ")
    found: dict[int, tuple[list[Node], list[Node]]] = {}

    def at(statement: Statement) -> tuple[list[Node], list[Node]]:
        return found.setdefault(id(statement), ([], []))

    at(stagger.first_touch)[0].extend([
        Line("wgmma_wait<0>();", "the last iteration's products are complete, and their stage is free"),
        *_pins(context, (stagger.late,)), release,
    ])  # fmt: skip
    at(stagger.late)[0].append(Branch(more, (Line(f"{start}({position} + 1);"),)))
    at(stagger.late)[1].append(Line("wgmma_commit();"))
    if not _reads(context, stagger, tuple(tile for tile in ring.tiles if tile not in stagger.early)):
        loop = next(s for s in statements(context.kernel.body) if isinstance(s, For) and s.variable is ring.loop)
        ahead = {id(dot) for dot in stagger.ahead}
        others = (s for s in statements(loop.body) if id(s) in context.schedule.dots and id(s) not in ahead)
        full = barrier_name(context, ring, "full")
        arrived = Line(f"mbarrier_wait(&{full}[stage], {position} / {stages} % 2);", "the other tiles have arrived")
        at(next(others))[0].append(arrived)
    return {key: (tuple(before), tuple(after)) for key, (before, after) in found.items()}


def _release(context: Context, ring: Ring, word: str, stage: str, condition: str = "") -> Branch:
    arrive = Line(f"mbarrier_arrive(&{barrier_name(context, ring, word)}[{stage}]);")
    return Branch(f"{condition}{context.lane()} == 0", (arrive,))


def _pins(context: Context, dots: tuple[Assign, ...]) -> tuple[Node, ...]:
    """Makes the sums of dots ordinary registers again."""
    plans, names = context.schedule.dots, context.names
    return tuple(pin(context, names.variable(dot.target), plans[id(dot)].instruction.accumulator) for dot in dots)
