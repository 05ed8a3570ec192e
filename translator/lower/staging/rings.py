"""Loops that load ahead by tensor copies: the text of their protocol, the same for every kernel.

A ring of stages passes between those who fill and those who use: `full[stage]` completes when the bytes of a stage have
arrived, `empty[stage]` when every multiplying warp is done with it; use number n of a stage waits for parity n % 2 of
`full`, and its refill for the parity before. `ring_copies.py` has the ring in which all threads do both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from ...hardware import BOX_COORDINATES
from ...ir.nodes import Assign, Call, Expr, For, Literal, Use, Variable
from ...ir.walk import (
    assigned_variables,
    expressions,
    read_variables,
    statements,
    subexpressions,
    top_statements,
    used_variables,
)
from ...schedule.products.shared_tiles import SharedTile
from ..context import Context, ctype
from ..products.dot_parts import parts_ahead
from ..products.dot_wgmma import pin
from ..products.formats import box_count, box_elements, line_elements, stage_bytes
from ..products.operand import shared_array
from ..shared.arrays import side_text
from ..text.operators import Text
from ..text.unit import Branch, Comment, Line, Loop, Node, const, unrolled
from .copies import tile_comment
from .loop_bounds import for_header, has_trips, if_any_trip
from .own_stages import copies_ahead, stage_word
from .ring_barriers import barrier_name, barrier_of, position_name, stage_lines, stages_name
from .ring_loop import RingLoop
from .teams import turn_of_products


def lower_producer_loop(context: Context, loop: RingLoop) -> tuple[Node, ...]:
    """The loading thread's part of a loop."""
    statement, ring = loop.statement, loop.ring
    word, (stage, parity, parity_name) = stage_word(context, ring), stage_lines(context, ring)
    for helper in ("mbarrier_wait", "mbarrier_arrive_expect"):
        context.use_helper(helper)
    fixed = _fixed_starts(context, statement)
    early = ring.stagger.early if ring.stagger else ()
    opening: dict[Variable, tuple[Node, ...]] = {}
    for tiles in (early, tuple(tile for tile in ring.tiles if tile not in early)):
        if tiles:
            full, empty = barrier_of(context, ring, tiles[0], "full"), barrier_of(context, ring, tiles[0], "empty")
            words = (" and ".join(tile.name for tile in tiles),) if early else ()
            size = stage_bytes(context, tiles, "EARLY_BYTES" if tiles is early else "STAGE_BYTES", *words)
            opening[tiles[0]] = (
                Line(f"mbarrier_wait(&{empty}[{word}], {parity_name} ^ 1);", "the stage is free again"),
                Line(f"mbarrier_arrive_expect(&{full}[{word}], {size});", "what the copies below will bring"),
            )
    first = () if early else opening.pop(ring.tiles[0])
    context.box_copies.opening |= opening
    places = _loads_before_copies(statement)
    nodes: list[Node] = [
        *(loop.body(statement.body[:places]) if places else ()),
        stage,
        parity,
        *first,
        *loop.lowered(context, statement.body[places:]),
    ]
    return (*fixed, Loop(counting(context, loop), tuple(nodes)))


def _loads_before_copies(loop: For) -> int:
    """How many statements of the loading thread end in the last load of a number that boxes start at; 0 without one.

    Such loads are under way while the thread waits for a stage.
    """
    kinds = [
        {s.value.op for s in statements((one,)) if isinstance(s, Assign) and isinstance(s.value, Call)}
        for one in loop.body
    ]
    copies = next((place for place, ops in enumerate(kinds) if "box_load" in ops), 0)
    return max((place + 1 for place, ops in enumerate(kinds[:copies]) if "load" in ops), default=0)


def counting(context: Context, loop: RingLoop) -> str:
    """The header of a loop that advances the count of its ring's stages too."""
    header = for_header(loop.statement, context.names.variable(loop.ring.loop), loop.bounds)
    return f"{header[:-1]}, ++{position_name(context, loop.ring)})" if loop.ring.counted else header


def _is_short(expr: Expr) -> bool:
    """Whether an expression is one operation at most, which needs no name."""
    operands = expr.args if isinstance(expr, Call) else ()
    return all(isinstance(operand, (Literal, Use)) for operand in operands)


def _fixed_starts(context: Context, loop: For) -> tuple[Node, ...]:
    """The longer coordinates of boxes that are the same in every trip of a loop, computed before it."""
    changed = {v for s in (loop, *statements(loop.body)) for v in assigned_variables(s)}
    nodes: list[Node] = []
    for statement in top_statements(loop.body):
        if (
            not isinstance(statement, Assign)
            or not isinstance(statement.value, Call)
            or statement.value.op != "box_load"
        ):
            continue
        args = statement.value.args
        for number, arg in enumerate(args):
            if _is_short(arg) or changed & set(used_variables(arg)):
                continue
            word = BOX_COORDINATES[number - len(args)]
            key = ("start", statement.target, number)
            name = context.names.once(f"{statement.target.name}_{word}", key)
            context.box_copies.fixed_starts[statement.target, number] = name
            nodes.append(const(ctype(arg.type), name, context.speller.text(arg)))
    return tuple(nodes)


def lower_consumer_loop(context: Context, loop: RingLoop) -> tuple[Node, ...]:
    """The multiplying warps' part of a loop."""
    statement, ring = loop.statement, loop.ring
    word, (stage, parity, parity_name) = stage_word(context, ring), stage_lines(context, ring)
    position, stages = position_name(context, ring), stages_name(context, ring)
    full, empty = barrier_name(context, ring, "full"), barrier_name(context, ring, "empty")
    for helper in ("mbarrier_wait", "mbarrier_arrive"):
        context.use_helper(helper)
    lane = context.axis_names.lane()
    sums = products_in(context, statement) if ring.overlapped else ()
    in_flight = context.around.in_flight | set(sums)
    context.ahead.stage_of |= dict.fromkeys(ring.tiles, word)
    around = replace(context.around, in_flight=in_flight, trip_count=position if ring.overlapped else "")
    with context.inside(around):
        copies = copies_ahead(context, loop, stages, position if ring.counted else "")
        parts = parts_ahead(context, loop)
        order, being_read = context.order.snapshot(), set(context.shared.being_read)
        with context.inside(replace(around, parts_ahead=parts)):
            inner = loop.lowered(context, statement.body)
    nodes: list[Node] = [
        stage,
        *([] if parts else [parity, Line(f"mbarrier_wait(&{full}[{word}], {parity_name});", "the tiles have arrived")]),
        *copies.arrival,
        *inner,
    ]
    if not ring.overlapped:
        done = Line(f"mbarrier_arrive(&{empty}[{word}]);")
        nodes.append(Line("__syncwarp();", "every lane is done with the stage"))
        nodes.append(Branch(f"{lane} == 0", (done,), (), ""))
        if parts is not None:
            nodes += context.barrier("the next tile's parts are there, and nobody reads these any more")
        trips = Loop(counting(context, loop), tuple(nodes))
        if parts is None:
            return (*copies.functions, *copies.first, trips)
        first = (parts.start, *context.barrier("the parts of the first tile are there"), trips)
        context.order.merge(order)  # there may be no trip, and no barrier
        context.shared.being_read |= being_read
        some = if_any_trip(statement, loop.bounds, first)
        return (*copies.functions, *copies.first, *parts.function, *some)
    return (*copies.functions, *copies.first, *_running_on(context, loop, nodes, sums))


def _running_on(context: Context, loop: RingLoop, trip: list[Node], sums: tuple[Assign, ...]) -> tuple[Node, ...]:
    """A loop whose products run on into the next trip: that frees their stage, or the end of the loop."""
    statement, ring, bounds = loop.statement, loop.ring, loop.bounds
    position, stages = position_name(context, ring), stages_name(context, ring)
    empty, lane = barrier_name(context, ring, "empty"), context.axis_names.lane()
    for helper in ("wgmma_commit", "wgmma_wait"):
        context.use_helper(helper)
    fixed_start = isinstance(statement.start, (Literal, Use)) and statement.variable not in context.scopes.outliving
    later = has_trips(statement, bounds.start, Text(context.names.variable(ring.loop)))
    first = context.names.once(f"first_{position}", ("first", ring.loop))
    later = later if fixed_start else f"{position} > {first}"
    release = Line(f"mbarrier_arrive(&{empty}[({position} - 1) % {stages}]);")
    trip = [
        *trip,
        Line("wgmma_commit();"),
        Line("wgmma_wait<1>();", "the products before these are complete, and their stage is free"),
        Branch(f"{later} && {lane} == 0", (release,)),
    ]
    start: list[Node] = []
    end = list(products_complete(context, sums))
    if ring.counted:
        start += [] if fixed_start else [const("int", first, position)]
        end.append(Branch(f"{lane} == 0", (release,)))
    trips = (Loop(counting(context, loop), tuple(trip)), *end)
    why = "ptxas serialises products if a path bypasses the wait for them"
    own_turn, next_turn = turn_of_products(context)
    return (*own_turn, *start, *if_any_trip(statement, bounds, trips, why), *next_turn)


def products_in(context: Context, loop: For) -> tuple[Assign, ...]:
    """The dots of a loop."""
    return tuple(s for s in statements(loop.body) if isinstance(s, Assign) and s in context.schedule.dots)


def only_sums(context: Context, loop: For) -> bool:
    """Whether nothing in a loop but its dots touches their sums."""
    dots = products_in(context, loop)
    sums = {dot.target for dot in dots}
    others = [s for s in statements(loop.body) if s not in dots]
    return not any(sums & {*assigned_variables(s), *read_variables(s)} for s in others)


def products_complete(context: Context, dots: tuple[Assign, ...]) -> tuple[Node, ...]:
    """The wait for all products, and for their sums to be ordinary registers again."""
    nodes: list[Node] = [Line("wgmma_wait<0>();", "all products are complete")] if dots else []
    for variable in dict.fromkeys(dot.target for dot in dots):
        plan = next(context.schedule.dots[dot] for dot in dots if dot.target is variable)
        nodes.append(pin(context, context.names.variable(variable), plan.instruction.accumulator))
    return tuple(nodes)


def l2_policies(context: Context, copies: Mapping[Variable, Call]) -> tuple[Node, ...]:
    """How long L2 keeps what copies bring, where something is known of any of them."""
    told = {target: _read_once(context, target, call) for target, call in copies.items()}
    if not any(told.values()):
        return ()
    nodes: list[Node] = [Comment("L2 need not keep what only one program reads.")]
    for target, text in told.items():
        name = context.box_copies.policies[target] = context.names.once(f"{target.name}_policy", ("policy", target))
        why = "" if text else "several may read it"
        nodes.append(const("auto", name, f"{context.use_helper('l2_policy')}({text or 'false'})", why))
    return tuple(nodes)


def _read_once(context: Context, tile: Variable, call: Call) -> str:
    """The condition under which no two programs read the same boxes; "" where nothing is known."""
    if not call.attribute("across"):
        return "true" if call.attribute("eviction_policy") == "evict_first" else ""
    calls = [part for s in statements(context.kernel.body) for expr in expressions(s) for part in subexpressions(expr)]
    axes = {int(part.attribute("axis")) for part in calls if isinstance(part, Call) and part.op == "program_id"}
    programs = " * ".join(context.launch_word("num_programs", axis) for axis in sorted(axes))
    boxes = [_boxes_across(context, tile, size, axis) for size, axis in call.attribute("across")]
    return f"{programs} <= {' * '.join(f'({text})' for text in boxes) if len(boxes) > 1 else boxes[0]}"


def _boxes_across(context: Context, tile: Variable, size: Expr, axis: int | None) -> str:
    """How many boxes of a tile lie along a dimension."""
    elements = context.speller.spell(size)
    if axis is None:
        return elements.text
    side = side_text(context, tile.type.shape[axis])
    boxes = f"({elements.within(12, '+')} + {side.within(12)} - 1) / {side.within(14)}"
    return context.role.known_scalars.get(boxes, boxes)


def lower_box_load(context: Context, statement: Assign) -> tuple[Node, ...]:
    """A tensor copy, for the thread that starts it; the others have waited for it at the top of the loop."""
    target = statement.target
    tile = context.schedule.staged[target]
    name = context.names.variable(target)
    owner = context.schedule.rings.twins.get(target, target)
    shared_array(context, owner, "staged", name, target, tile, tile_comment(tile))
    if context.role.name != "producer" or not isinstance(statement.value, Call):
        return ()
    ring = next(ring for ring in context.schedule.rings.rings if target in ring.tiles)
    call = statement.value
    rank, policy = len(call.args), context.box_copies.policies.get(target, "")
    helper = context.use_helper("tma_load", f"tma_load_{rank}d", rank=rank, hinted=bool(policy))
    starts = [
        context.box_copies.fixed_starts.get((target, number)) or context.speller.text(arg)
        for number, arg in enumerate(call.args)
    ]
    stage = stage_word(context, ring)
    last = f"&{barrier_of(context, ring, target, 'full')}[{stage}]{policy and f', {policy}'}"
    copies = box_copies(
        context, target, tile, call, starts, f"{name}[{stage}]",
        lambda place, at: Line(f"{helper}({place}, {call.attribute('map')}, {', '.join(at)}, {last});"),
    )  # fmt: skip
    return (*context.box_copies.opening.get(target, ()), *copies)


def box_copies(
    context: Context,
    variable: Variable,
    tile: SharedTile,
    call: Call,
    starts: list[str],
    array: str,
    copy: Callable[[str, list[str]], Line],
) -> tuple[Node, ...]:
    """One copy per box of a tile, side by side along the contiguous axis."""
    if tile.boxes == 1:
        return (copy(array, starts),)
    word = variable.name.upper()
    elements = box_elements(context, tile, variable, word)
    line = line_elements(context, tile, variable, word).within(14)
    boxes = box_count(context, tile, variable, word)
    at = list(starts)
    fast = list(call.attribute("axes")).index(tile.fast)
    box = context.names.shared_index("box")
    at[fast] = f"{box} * {line}" if at[fast] == "0" else f"{at[fast]} + {box} * {line}"
    each = copy(f"{array} + {box} * {elements}", at)
    return (unrolled(box, boxes, (each,)),)
