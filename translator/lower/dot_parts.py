"""Dots of floats in parts with wgmma: the parts lie in shared memory, where threads have written them for all warps.

The floats of a tile stay where they have arrived. Of TF32 they are the highest parts themselves, since tensor cores do not
read the last bits, and only what these bits hold is written, at the same places of a second tile. Parts of 16 bits are tiles
of their own. The products of a tile are summed apart and added in fp32, the smallest first: the tensor cores' own sums are
truncated, and what an infinity leaves for the lower parts is no number.
"""

from __future__ import annotations

from ..ir.nodes import Assign
from ..ir.types import ValueType
from ..language.dtypes import uint16
from ..schedule.dots import DotPlan, Operand
from ..schedule.shared_tiles import ALIGNMENT, SharedTile
from .context import Context
from .dot_wgmma import ROWS, descriptor, k_step, mn_bytes, pin, tile_name, warpgroup_offset, wgmma_helper
from .element import indexed
from .operand import OperandPlace
from .point import Point
from .shared import side_text
from .unit import Comment, Line, Loop, Node, Shared

PARTS = {2: ("high", "low"), 3: ("high", "middle", "low")}


def write_parts(
    context: Context, statement: Assign, plan: DotPlan, whole: OperandPlace, is_a: bool
) -> tuple[tuple[Node, ...], tuple[OperandPlace, ...]]:
    """What writes the parts of an operand that has arrived in shared memory, and where they lie, the highest first."""
    split, operand = plan.instruction.split, plan.a if is_a else plan.b
    if split is None:
        raise TypeError("not a dot of parts")
    tile, name = whole.tile, whole.variable.name
    sides = [side_text(context, side) for side in tile.shape]
    if split.type == "tf32":
        rest, before = _array(
            context, statement, operand, SharedTile(tile.shape, tile.fast, tile.itemsize), is_a, "rest"
        )
        helper = context.use_helper("rest_of_tf32")
        return (*before, Line(f"{helper}<{' * '.join(sides)}>({rest.base}, {whole.base});")), (whole, rest)
    places: list[OperandPlace] = []
    nodes: list[Node] = []
    for word in PARTS[split.parts]:
        place, before = _array(
            context, statement, operand, SharedTile(tile.shape, tile.fast, uint16.itemsize), is_a, word
        )
        places.append(place)
        nodes += before
    context.use_helper("swizzled")
    helper = context.use_helper("split_tile", parts=list(PARTS[split.parts]))
    targets = ", ".join(place.base for place in places)
    line = Line(f"{helper}<{sides[tile.fast]}, {sides[tile.slow]}>({whole.base}, {targets});", f"{name} in parts")
    return (*nodes, line), tuple(places)


def _array(
    context: Context, statement: Assign, operand: Operand, tile: SharedTile, is_a: bool, word: str
) -> tuple[OperandPlace, tuple[Node, ...]]:
    """The place of a part, and the barrier, if any, before it is written."""
    variable = operand.variable
    element = variable.type.dtype if tile.itemsize == variable.type.dtype.itemsize else uint16
    purpose = f"{'a' if is_a else 'b'} {word}"
    part = context.temporary(id(statement), f"{variable.name}_{word}", ValueType(element, variable.type.shape))
    name = context.shared.scratch_name(id(statement), purpose, part.name)
    before = context.before_write(name)
    sides = " * ".join(side_text(context, side) for side in tile.shape)
    comment = (
        f"what {variable.name} has besides TF32" if word == "rest" else f"the {word} part of {variable.name}, bfloat16s"
    )
    alignment = ALIGNMENT if tile.swizzle else 16
    context.shared.scratch(
        id(statement), purpose, Shared(name, element.cuda, f"[{sides}]", tile.stage_bytes, comment, alignment)
    )
    return OperandPlace(name, tile, Operand(part, operand.swapped), is_a), before


def lower_wgmma_parts(
    context: Context, statement: Assign, plan: DotPlan, a: tuple[OperandPlace, ...], b: tuple[OperandPlace, ...]
) -> tuple[Node, ...]:
    """All products of the parts, summed apart and added to the target."""
    layout, instruction, split = plan.layout, plan.instruction, plan.instruction.split
    if split is None:
        raise TypeError("not a dot of parts")
    target = context.names.variable(statement.target)
    name = context.names.once(f"{target}_of_tile", ("products", id(statement)))
    tiles, n = layout.registers(0) // 2, 4 * layout.registers(1)
    step = context.constant("MMA_K", instruction.k, "elements of K per instruction", topic="operands")
    count = context.constant("MMA_ROWS", tiles, "pieces of 64 rows per warpgroup") if tiles > 1 else ""
    kk, m = context.names.shared_index("kk"), context.names.shared_index("m")
    wgmma = wgmma_helper(context, plan, n, a[0], b[0])
    offsets = warpgroup_offset(context, layout.axes[0]), warpgroup_offset(context, layout.axes[1])
    nodes: list[Node] = [Line(f"{context.declaration(statement.target, layout, name)} = {{}};")]
    for word, places, offset in (("a", a, offsets[0]), ("b", b, offsets[1])):
        nodes += [descriptor(context, statement, place, f"{word}{part}", offset) for part, place in enumerate(places)]

    def product(part_a: int, part_b: int) -> Node:
        place_a, place_b = a[part_a], b[part_b]
        a_text = f"{tile_name(context, statement, place_a, f'a{part_a}')}{k_step(context, place_a, kk)}"
        if count:
            moved = mn_bytes(place_a, ROWS) // 16
            a_text += f" + {m} * {context.constant('A_ROWS_STEP', moved, 'chunks from 64 rows of a to the next')}"
        b_text = f"{tile_name(context, statement, place_b, f'b{part_b}')}{k_step(context, place_b, kk)}"
        line: Node = Line(f"{wgmma}({f'&{name}[2 * {m}]' if count else name}, {a_text}, {b_text});")
        return Loop(f"for (int {m} = 0; {m} < {count}; ++{m})", (line,), unroll=True) if count else line

    side = a[0].depth(context, instruction)
    for helper in ("wgmma_fence", "wgmma_commit", "wgmma_wait"):
        context.use_helper(helper)

    def sums(products: tuple[tuple[int, int], ...], done: str) -> list[Node]:
        each = tuple(product(*parts) for parts in products)
        return [
            pin(context, name, instruction.accumulator),
            Line("wgmma_fence();"),
            Loop(f"for (int {kk} = 0; {kk} < {side}; {kk} += {step})", each, unroll=True),
            Line("wgmma_commit();"),
            Line("wgmma_wait<0>();", done),
            pin(context, name, instruction.accumulator),
        ]

    def number(point: Point) -> tuple[Node, ...]:
        text = indexed(context, name, statement.target, point)
        return (Line(f"{text} = {text} == {text} ? {text} : 0.0f;"),)

    def add(point: Point) -> tuple[Node, ...]:
        at = indexed(context, target, statement.target, point)
        return (Line(f"{at} += {indexed(context, name, statement.target, point)};"),)

    return (
        *nodes,
        *sums(split.products[:-1], "the products of lower parts are complete"),
        Comment("What an infinity leaves for the lower parts is no number; the highest parts alone have the result."),
        *context.each_register(layout, number),
        *sums(split.products[-1:], "those of the highest parts are, too"),
        *context.each_register(layout, add),
    )
