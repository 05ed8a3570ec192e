"""Loops whose products are started ahead of those of the iteration before: what the multiplying warps do.

An iteration starts its first products, behind them the late one of the iteration before, waits for its own, and computes
while the other runs on (`schedule/products/stagger.py`). The first iteration has none before it, and the late product of the
last one is left for the end of the loop, so that what an iteration computes stands in a function, called at two places.

All products that are on their way are waited for within the iteration that starts them. ptxas does not keep the registers
that a product reads from being written again behind a loop's end, and if a branch leads around a product it serialises all.
It also moves a wait up across arithmetic, but not into another block of instructions: the wait for the stage, a loop, stands
between.
"""

from __future__ import annotations

from dataclasses import replace

from ...hardware import WARPGROUP, WARPGROUP_BITS
from ...ir.nodes import Assign, For, Statement, Variable
from ...ir.walk import top_statements, used_variables
from ...schedule.products.dots import is_box_read
from ...schedule.staging.ring_plan import Ring, Stagger
from ..context import Context, ctype
from ..staging.loop_bounds import ONE, compared, steps_on
from ..staging.own_stages import stage_word
from ..staging.ring_barriers import barrier_name, has, parity_of, position_name, stages_name
from ..staging.ring_loop import RingLoop
from ..staging.rings import counting
from ..text.tags import tag
from ..text.unit import Branch, Comment, Declaration, Lambda, Line, Loop, Node, const
from .dot import start_dot
from .dot_wgmma import fragments_of, pin

TURN_BARRIER = 8  # behind those of the warpgroups' stores
FIRST, LATE = "the product alone", "the product, an iteration later"


def lower_staggered_loop(context: Context, loop: RingLoop) -> tuple[Node, ...]:
    """The loop, with its first iteration before it and the last late product behind it."""
    statement, ring, bounds, stagger = loop.statement, loop.ring, loop.bounds, loop.ring.stagger
    if stagger is None:
        raise TypeError("a loop whose products are in step")
    for helper in ("mbarrier_wait", "mbarrier_arrive", "wgmma_commit", "wgmma_wait"):
        context.use_helper(helper)
    context.shared.in_functions = True
    index, start = context.names.variable(ring.loop), bounds.start.text
    first, count = (position_name(context, ring), position_name(context, ring)) if ring.counted else (start, index)
    last = f"{count} - 1" if ring.counted else f"{bounds.stop.within(12)} - 1"
    start_function, start_name = _start_function(context, ring, stagger)
    late_function, late_name = _late_function(context, ring, stagger)
    compute_function, compute_name = _compute_function(context, loop, stagger)
    done = _pins(context, stagger.ahead)
    read = _last_reading(statement, stagger.early)
    at_once = bool(stagger.early) and read is None
    free_early = [_release(context, ring, "early_empty", count)] if at_once else []
    from_second = replace(loop, bounds=replace(bounds, start=steps_on(bounds.start, ONE, bounds.step)))
    wait_turn, pass_turn = _turns(context)
    begin: list[Node] = [
        *wait_turn,
        Line(f"{start_name}({first});"),
        *pass_turn,
        Line("wgmma_wait<0>();", "the first iteration's product is complete"),
        *done,
        *([_release(context, ring, "early_empty", first)] if at_once else []),
        Line(f"{compute_name}({start}, {first});"),
        *([Line(f"++{count};")] if ring.counted else []),
    ]
    trip: list[Node] = [
        *wait_turn,
        Line(f"{start_name}({count});"),
        Line(f"{late_name}({count} - 1);"),
        *pass_turn,
        Line("wgmma_wait<1>();", "this iteration's product is complete, the late one runs on"),
        *done,
        *free_early,
        Line(f"{compute_name}({index}, {count});"),
        _release(context, ring, "empty", f"{count} - 1"),
    ]
    end: list[Node] = [
        Line(f"{late_name}({last});"),
        Line("wgmma_wait<0>();", "all products are complete"),
        *_pins(context, (stagger.late,)),
        *([_release(context, ring, "empty", last)] if ring.counted else []),
    ]
    nodes: tuple[Node, ...] = (
        *_declarations(context, stagger), *start_function, *late_function, *compute_function, *begin,
        Loop(counting(context, from_second), tuple(trip)), *end,
    )  # fmt: skip
    return (Branch(compared(statement, bounds.start, bounds.stop), nodes),)


def first_turn(context: Context) -> tuple[Node, ...]:
    """What lets the first warpgroup begin, where several take turns to start products."""
    if all(ring.stagger is None for ring in context.schedule.rings.rings):
        return ()
    warpgroups, barrier, threads = _turn_barriers(context)
    if warpgroups == 1:
        return ()
    context.use_helper("named_barrier_arrive")
    number = _warpgroup(context, warpgroups)
    arrive = Line(f"named_barrier_arrive({barrier}, {threads});")
    comment = "as at the end of its turn: the first warpgroup may start products"
    return (Branch(f"{number} == {warpgroups - 1}", (arrive,), comment=comment),)


def _turns(context: Context) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """The wait for this warpgroup's turn to start products, and what passes the turn on.

    One warpgroup then computes while another's products run. Without an order both would do the same at the same time.
    """
    warpgroups, barrier, threads = _turn_barriers(context)
    if warpgroups == 1:
        return (), ()
    for helper in ("named_barrier_sync", "named_barrier_arrive"):
        context.use_helper(helper)
    number = _warpgroup(context, warpgroups)
    wait = Line(f"named_barrier_sync({barrier} + {number}, {threads});", "this warpgroup's turn to multiply")
    after = f"({number} + 1) % {warpgroups}"
    return (wait,), (Line(f"named_barrier_arrive({barrier} + {after}, {threads});", "the next one's"),)


def _turn_barriers(context: Context) -> tuple[int, str, str]:
    """How many warpgroups multiply; the first of their barriers, and the threads that meet at each."""
    warpgroups = context.schedule.num_threads // WARPGROUP
    if warpgroups == 1:
        return 1, "", ""
    comment = "the first of those at which warpgroups take turns"
    barrier = context.constants.named("TURN_BARRIER", TURN_BARRIER, comment, topic="threads")
    threads = context.constants.named(
        "TURN_THREADS",
        2 * WARPGROUP,
        "one warpgroup waits, another arrives",
        f"2 * {context.axis_names.warpgroup_size()}",
        "threads",
    )
    return warpgroups, barrier, threads


def _warpgroup(context: Context, warpgroups: int) -> str:
    return context.axis_names.warpgroup(list(range(WARPGROUP_BITS, WARPGROUP_BITS + warpgroups.bit_length() - 1)))


def _declarations(context: Context, stagger: Stagger) -> tuple[Node, ...]:
    """The sums of the first products, and the registers that the late one reads."""
    plans = context.schedule.dots
    nodes: list[Node] = []
    for dot in stagger.ahead:
        nodes += [context.declaration(dot.target, plans[dot].layout) for _ in range(context.declares(dot, dot.target))]
    if plans[stagger.late].rows_in_registers:
        declaration = fragments_of(context, stagger.late, plans[stagger.late]).declaration
        nodes.append(replace(declaration, comment=f"what the product for {stagger.late.target.name} reads"))
    return tuple(nodes)


def _stage(context: Context, ring: Ring, count: str) -> Declaration:
    """The stage of an iteration, where the tiles of the ring are read from."""
    word = stage_word(context, ring)
    context.ahead.stage_of |= dict.fromkeys(ring.tiles, word)
    return const("int", word, f"{count} % {stages_name(context, ring)}")


def _arrival(context: Context, ring: Ring, word: str, tiles: tuple[Variable, ...], count: str, stage: str) -> Line:
    """The wait for some tiles of an iteration."""
    words, full = " and ".join(tile.name for tile in tiles), barrier_name(context, ring, word)
    text = f"mbarrier_wait(&{full}[{stage}], {parity_of(count, stages_name(context, ring))});"
    return Line(text, f"{words} {has(words)} arrived")


def _start_function(context: Context, ring: Ring, stagger: Stagger) -> tuple[tuple[Node, Node], str]:
    """The function that starts the first products of a turn, and its name."""
    name = _name(context, "start", stagger.ahead)
    turn, others = context.names.shared_index("turn"), _others(ring, stagger)
    nodes: list[Node] = [_stage(context, ring, turn)]
    for word, tiles in (("early_full", stagger.early), ("full", others)):
        if _reads(context, stagger, tiles):
            nodes.append(_arrival(context, ring, word, tiles, turn, stage_word(context, ring)))
    for dot in stagger.ahead:
        nodes += [*tag(dot.origin, FIRST, True, again=True), *start_dot(context, dot, from_zero=True)]
    nodes.append(Line("wgmma_commit();"))
    what = "Starts what an iteration multiplies first, as soon as its tiles are there."
    return (Comment(what), Lambda(name, f"int {turn}", tuple(nodes))), name


def _late_function(context: Context, ring: Ring, stagger: Stagger) -> tuple[tuple[Node, Node], str]:
    """The function that starts the late product of a turn, and its name."""
    name, turn = _name(context, "add_to", (stagger.late,)), context.names.shared_index("turn")
    nodes = (
        _stage(context, ring, turn),
        *tag(stagger.late.origin, LATE, True, again=True),
        *start_dot(context, stagger.late, from_zero=False),
        Line("wgmma_commit();"),
    )
    what = (
        "Starts what an iteration multiplies last, behind the first products of the next one: the tensor cores are busy "
        "with it while that is computed."
    )
    return (Comment(what), Lambda(name, f"int {turn}", nodes)), name


def _compute_function(context: Context, loop: RingLoop, stagger: Stagger) -> tuple[tuple[Node, Node], str]:
    """The function with all else that an iteration does, and its name."""
    statement, ring = loop.statement, loop.ring
    name, turn = context.names.shared_index("compute"), context.names.shared_index("turn")
    stage = f"{turn} % {stages_name(context, ring)}"
    settled: tuple[Node, ...] = (
        _arrival(context, ring, "full", _others(ring, stagger), turn, stage),
        Line("wgmma_wait<0>();", "the late product of the last iteration is complete, too"),
        *_pins(context, (stagger.late,)),
    )
    naming = [_stage(context, ring, turn)] if _last_reading(statement, ring.tiles) else []
    if (read := _last_reading(statement, stagger.early)) is not None:
        context.notes.after[read] = (
            Line("__syncwarp();", "every lane has read its part"),
            _release(context, ring, "early_empty", turn),
        )
    context.notes.before[stagger.settled] = settled
    nodes = (*naming, *loop.lowered(context, statement.body))
    index = f"{ctype(statement.variable.type)} {context.names.variable(ring.loop)}"
    return (Comment("What an iteration computes."), Lambda(name, f"{index}, int {turn}", nodes)), name


def _last_reading(loop: For, tiles: tuple[Variable, ...]) -> Statement | None:
    """The last statement of a loop that takes one of some tiles to registers; None where they are multiplied alone."""
    last = None
    for statement in top_statements(loop.body):
        if isinstance(statement, Assign) and is_box_read(statement) and {*used_variables(statement.value)} & {*tiles}:
            last = statement
    return last


def _name(context: Context, word: str, dots: tuple[Assign, ...]) -> str:
    return context.names.shared_index(f"{word}_{dots[0].target.name}" if len(dots) == 1 else f"{word}_products")


def _others(ring: Ring, stagger: Stagger) -> tuple[Variable, ...]:
    """The tiles of a ring that are not early."""
    return tuple(tile for tile in ring.tiles if tile not in stagger.early)


def _reads(context: Context, stagger: Stagger, tiles: tuple[Variable, ...]) -> bool:
    """Whether a dot ahead reads one of some tiles."""
    plans = [context.schedule.dots[dot] for dot in stagger.ahead]
    return any(operand.variable in tiles for plan in plans for operand in plan.operands)


def _release(context: Context, ring: Ring, word: str, count: str) -> Branch:
    """What tells the loading thread that the tiles of an iteration are no longer needed."""
    stage = (
        f"{count} % {stages_name(context, ring)}"
        if count.isidentifier()
        else f"({count}) % {stages_name(context, ring)}"
    )
    arrive = Line(f"mbarrier_arrive(&{barrier_name(context, ring, word)}[{stage}]);")
    return Branch(f"{context.axis_names.lane()} == 0", (arrive,))


def _pins(context: Context, dots: tuple[Assign, ...]) -> tuple[Node, ...]:
    """Makes the sums of dots ordinary registers again."""
    plans, names = context.schedule.dots, context.names
    return tuple(pin(context, names.variable(dot.target), plans[dot].instruction.accumulator) for dot in dots)
