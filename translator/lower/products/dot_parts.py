"""Dots of floats in parts with wgmma: the parts lie in shared memory, where threads have written them for all warps.

The floats of a tile stay where they have arrived. Of TF32 they are the highest parts themselves, since tensor cores do not
read the last bits, and only what these bits hold is written, at the same places of a second tile; but where the tile is not
contiguous along K, both are, as wgmma reads them. Parts of 16 bits are tiles of their own. The products of a tile are summed
apart, those of the highest parts and the others, and added in fp32: the tensor cores' own sums are truncated, and what an
infinity leaves for the lower parts is no number.
"""

from __future__ import annotations

from dataclasses import replace

from ...frozen import frozen
from ...hardware import SWIZZLE_ALIGNMENT
from ...ir.nodes import Assign
from ...ir.types import ValueType
from ...ir.walk import statements, top_statements
from ...language.dtypes import uint16
from ...schedule.products.dot_plan import DotPlan, Operand
from ...schedule.products.shared_tiles import SharedTile
from ..context import Context
from ..shared.arrays import side_text, size_text
from ..staging.loop_bounds import ONE, compared, steps_on
from ..staging.own_stages import stage_word
from ..staging.ring_barriers import barrier_name, parity_of, position_name, stages_name
from ..staging.ring_loop import RingLoop
from ..text.element import indexed
from ..text.operators import Text, multiplied
from ..text.point import Point
from ..text.register_loops import each_register
from ..text.unit import Branch, Comment, Lambda, Line, Node, Shared, const, unrolled
from .dot_wgmma import descriptor, k_step, pin, rows_step, tile_name, warpgroup_offset, wgmma_helper
from .formats import k_per_instruction
from .operand import OperandPlace, operand_place

ARRIVED = "the tiles have arrived"
PART_STAGES = 2
PARTS = {2: ("high", "low"), 3: ("high", "middle", "low")}


@frozen
class PartsAhead:
    """The parts of the tiles of a loop's next iteration, which are written under the products of this one.

    Attributes:
      dot: that multiplies them.
      function: what writes those of a turn.
      start: the call that writes the first ones.
      next: what writes the next ones, if there is a next iteration.
      count: what counts the iterations.
    """

    dot: Assign
    function: tuple[Node, ...]
    start: Line
    next: Branch
    count: str


def parts_ahead(context: Context, loop: RingLoop) -> PartsAhead | None:
    """How the parts of a loop's tiles are written ahead; None where its dots are others, or arrays take turns."""
    plans, ring, bounds, body = context.schedule.dots, loop.ring, loop.bounds, loop.statement.body
    dots = [s for s in statements(body) if s in plans]
    if len(dots) != 1 or context.shared.in_turns or not _is_of_parts(plans[dots[0]]):
        return None
    (dot,) = dots
    plan = plans[dot]
    if not isinstance(dot, Assign) or not {plan.a.variable, plan.b.variable} <= set(ring.tiles):
        return None
    if dot not in top_statements(body):
        return None
    name, turn = context.names.shared_index("write_parts"), context.names.shared_index("turn")
    stage, stages = stage_word(context, ring), stages_name(context, ring)
    context.ahead.stage_of |= dict.fromkeys(ring.tiles, stage)
    nodes: list[Node] = [
        const("int", stage, f"{turn} % {stages}"),
        Line(f"mbarrier_wait(&{barrier_name(context, ring, 'full')}[{stage}], {parity_of(turn, stages)});", ARRIVED),
    ]
    for operand in plan.operands:
        _, place = operand_place(context, dot, operand, plan.instruction)
        code, _ = write_parts(context, dot, plan, place, turn)
        nodes += code
    context.shared.in_functions = True
    context.use_helper("async_proxy_fence")
    nodes.append(Line("async_proxy_fence();", "the tensor cores read through the asynchronous proxy"))
    function = (
        Comment("Writes the parts of the tiles of a turn, as soon as these are there."),
        Lambda(name, f"int {turn}", tuple(nodes)),
    )
    position, following = (
        position_name(context, ring),
        steps_on(Text(context.names.variable(ring.loop)), ONE, bounds.step),
    )
    more = compared(loop.statement, following, bounds.stop)
    return PartsAhead(
        dot, function, Line(f"{name}({position if ring.counted else bounds.start.text});"),
        Branch(more, (Line(f"{name}({position} + 1);"),)), position,
    )  # fmt: skip


def _is_of_parts(plan: DotPlan) -> bool:
    return plan.instruction.kind == "wgmma" and plan.instruction.split is not None


def write_parts(
    context: Context, statement: Assign, plan: DotPlan, whole: OperandPlace, count: str = ""
) -> tuple[tuple[Node, ...], tuple[OperandPlace, ...]]:
    """What writes the parts of an operand that has arrived in shared memory, and where they lie, the highest first.

    With a `count` of the iterations they lie in two places by turns.
    """
    split, operand = plan.instruction.split, whole.operand
    if split is None:
        raise TypeError("not a dot of parts")
    tile, name = whole.tile, whole.variable.name
    sides = [side_text(context, side) for side in tile.shape]
    fast = operand.k_axis if split.itemsize == tile.itemsize else tile.fast  # wgmma reads 32 bits along K only
    if split.itemsize == tile.itemsize and fast == tile.fast:
        own = SharedTile(tile.shape, tile.fast, tile.itemsize)
        rest, before = _array(context, statement, operand, own, "rest", count)
        helper = context.use_helper("rest_of_tf32")
        return (*before, Line(f"{helper}<{multiplied(sides).text}>({rest.base}, {whole.base});")), (whole, rest)
    places: list[OperandPlace] = []
    nodes: list[Node] = []
    for word in PARTS[split.parts]:
        own = SharedTile(tile.shape, fast, split.itemsize)
        place, before = _array(context, statement, operand, own, word, count)
        places.append(place)
        nodes += before
    context.use_helper("swizzled")
    if fast != tile.fast:
        helper = context.use_helper("split_across")
    else:
        helper = context.use_helper("split_tile", parts=list(PARTS[split.parts]))
    targets = ", ".join(place.base for place in places)
    line = Line(
        f"{helper}<{sides[tile.fast].text}, {sides[tile.slow].text}>({whole.base}, {targets});", f"{name} in parts"
    )
    return (*nodes, line), tuple(places)


def _array(
    context: Context, statement: Assign, operand: Operand, tile: SharedTile, word: str, count: str
) -> tuple[OperandPlace, tuple[Node, ...]]:
    """The place of a part, and the barrier, if any, before it is written."""
    variable = operand.variable
    element = variable.type.dtype if tile.itemsize == variable.type.dtype.itemsize else uint16
    purpose = f"{operand.side.value} {word}"
    part = context.beside(statement, variable, word, ValueType(element, variable.type.shape))
    name = context.shared.scratch_name(statement, purpose, part.name)
    before = () if count else context.before_write(name)
    sides = size_text(context, tile.shape).text
    type_ = "bfloat16s" if element is uint16 else "TF32"
    comment = (
        f"what {variable.name} has besides TF32" if word == "rest" else f"the {word} part of {variable.name}, {type_}"
    )
    alignment, places, stages = SWIZZLE_ALIGNMENT if tile.swizzle else 16, "", 1
    if count:
        stages, comment_of = PART_STAGES, "of tiles in parts: one is multiplied while the next is written"
        places = f"[{context.constants.named('PART_STAGES', PART_STAGES, comment_of, topic='stages')}]"
    array = Shared(name, element.cuda, f"{places}[{sides}]", stages * tile.stage_bytes, comment, alignment)
    context.shared.scratch(statement, purpose, array)
    base = f"{name}[{count} % {places[1:-1]}]" if count else name
    return OperandPlace(base, tile, replace(operand, variable=part)), before


def _product(
    context: Context, statement: Assign, plan: DotPlan, places: tuple[tuple[OperandPlace, ...], tuple[OperandPlace, ...]],
    parts: tuple[int, int], name: str,
) -> Node:  # fmt: skip
    """A step of the products of two parts, whose descriptors are there, added to `name`."""
    tiles, n = plan.layout.registers(0) // 2, 4 * plan.layout.registers(1)
    count = context.constants.named("MMA_ROWS", tiles, "pieces of 64 rows per warpgroup") if tiles > 1 else ""
    kk, m = context.names.shared_index("kk"), context.names.shared_index("m")
    wgmma = wgmma_helper(context, plan, n, places[0][0], places[1][0])
    place_a, place_b = (of_operand[part] for of_operand, part in zip(places, parts, strict=True))
    a_text = f"{tile_name(context, statement, place_a, f'a{parts[0]}')}{k_step(context, place_a, kk)}"
    if count:
        a_text += rows_step(context, place_a, m)
    b_text = f"{tile_name(context, statement, place_b, f'b{parts[1]}')}{k_step(context, place_b, kk)}"
    line: Node = Line(f"{wgmma}({f'&{name}[2 * {m}]' if count else name}, {a_text}, {b_text});")
    return unrolled(m, count, (line,)) if count else line


def lower_wgmma_parts(
    context: Context,
    statement: Assign,
    plan: DotPlan,
    a: tuple[OperandPlace, ...],
    b: tuple[OperandPlace, ...],
    meanwhile: tuple[Node, ...] = (),
) -> tuple[Node, ...]:
    """All products of the parts, summed apart and added to the target; `meanwhile` is done under them.

    The highest parts' sum is apart from the others', which an infinity makes no numbers.
    """
    layout, instruction, split = plan.layout, plan.instruction, plan.instruction.split
    if split is None:
        raise TypeError("not a dot of parts")
    target = context.names.variable(statement.target)
    name, rest = (
        context.names.once(f"{target}_of_{word}", (word, statement)) for word in ("highest_parts", "lower_parts")
    )
    step = k_per_instruction(context, statement, plan)
    kk = context.names.shared_index("kk")
    offsets = warpgroup_offset(context, layout.axes[0]), warpgroup_offset(context, layout.axes[1])
    nodes: list[Node] = [
        replace(context.declaration(statement.target, layout, sums), value="{}") for sums in (name, rest)
    ]
    for word, places, offset in (("a", a, offsets[0]), ("b", b, offsets[1])):
        nodes += [descriptor(context, statement, place, f"{word}{part}", offset) for part, place in enumerate(places)]
    for helper in ("wgmma_fence", "wgmma_commit", "wgmma_wait"):
        context.use_helper(helper)
    side = a[0].depth(context, instruction)

    def products(parts: tuple[tuple[int, int], ...], sums: str) -> Node:
        each = tuple(_product(context, statement, plan, (a, b), pair, sums) for pair in parts)
        return unrolled(kk, side, each, step=step)

    def add(point: Point) -> tuple[Node, ...]:
        at, highest, lower = (indexed(context, sums, statement.target, point) for sums in (target, name, rest))
        return (Line(f"{at} += {highest} + ({lower} == {lower} ? {lower} : 0.0f);"),)

    pins = tuple(pin(context, sums, instruction.accumulator) for sums in (name, rest))
    return (
        *nodes,
        *pins,
        Line("wgmma_fence();"),
        products(split.products[:-1], rest),
        products(split.products[-1:], name),
        Line("wgmma_commit();"),
        *meanwhile,
        Line("wgmma_wait<0>();", "all products of the tile are complete"),
        *pins,
        Comment("What an infinity leaves for the lower parts is no number; the highest parts alone have the result."),
        *each_register(context, layout, add),
    )
