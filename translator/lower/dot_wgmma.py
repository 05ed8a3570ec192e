"""Dots with wgmma: a warpgroup multiplies straight from shared memory, 64 rows at a time."""

from __future__ import annotations

from ..ir.nodes import Assign
from ..schedule.dots import DotPlan
from ..schedule.instructions import WARPGROUP_BITS
from ..schedule.shared_tiles import CHUNK_BYTES
from .context import Context
from .operand import OperandPlace
from .shared import side_text
from .unit import Line, Loop, Node

ROWS = 64  # of one instruction


def lower_wgmma(
    context: Context, statement: Assign, plan: DotPlan, a: OperandPlace, b: OperandPlace
) -> tuple[Node, ...]:
    """Starts all steps of K; whether it waits for them is `context.dots_in_flight`'s to say."""
    layout, instruction = plan.layout, plan.instruction
    name = context.names.variable(statement.target)
    tiles, n = layout.registers(0) // 2, 4 * layout.registers(1)
    step = context.constant("MMA_K", instruction.k, "elements of K per instruction")
    wgmma = _helper(context, plan, n, a, b)
    kk, m = context.names.shared_index("kk"), context.names.shared_index("m")
    rows = _warpgroup_offset(context, layout.axes[0], "rows of a warpgroup")
    columns = _warpgroup_offset(context, layout.axes[1], "columns of a warpgroup")
    nodes: list[Node] = [
        _descriptor(context, statement, a, "a", rows),
        _descriptor(context, statement, b, "b", columns),
        *fence(context, statement, name, context.count(layout.axes[0]), instruction.accumulator),
    ]
    a_text = f"{_tile_name(context, statement, a, 'a')}{_k_step(context, a, 'A', kk)}"
    b_text = f"{_tile_name(context, statement, b, 'b')}{_k_step(context, b, 'B', kk)}"
    if tiles == 1:
        multiply: Node = Line(f"{wgmma}({name}[0], {name}[1], {a_text}, {b_text});")
    else:
        moved = _mn_bytes(a, ROWS) // CHUNK_BYTES
        a_text += f" + {m} * {context.constant('A_ROWS_STEP', moved, 'chunks from 64 rows of a to the next')}"
        line = Line(f"{wgmma}({name}[2 * {m}], {name}[2 * {m} + 1], {a_text}, {b_text});")
        count = context.constant("MMA_ROWS", tiles, "pieces of 64 rows per warpgroup")
        multiply = Loop(f"for (int {m} = 0; {m} < {count}; ++{m})", (line,), unroll=True)
    side = side_text(context, a.side_of_k())
    nodes.append(Loop(f"for (int {kk} = 0; {kk} < {side}; {kk} += {step})", (multiply,), unroll=True))
    return (*nodes, *after(context, statement, name, context.count(layout.axes[0]), instruction.accumulator))


def fence(context: Context, statement: Assign, name: str, count: str, accumulator: str) -> tuple[Node, ...]:
    """What must stand between ordinary uses of the accumulator and the first instruction."""
    context.use_helper("wgmma_fence")
    if id(statement) in context.in_flight:  # earlier products may be on their way: the registers are not to be touched
        return (Line("wgmma_fence();"),)
    return (pin(context, name, count, accumulator), Line("wgmma_fence();"))


def pin(context: Context, name: str, count: str, accumulator: str) -> Node:
    """Keeps uses of the accumulator on their side of this line."""
    helper = context.distinct_helper("wgmma_pin", "wgmma_pin", {"acc": accumulator})
    r = context.names.shared_index("r")
    return Loop(f"for (int {r} = 0; {r} < {count}; ++{r})", (Line(f"{helper}({name}[{r}]);"),), unroll=True)


def after(context: Context, statement: Assign, name: str, count: str, accumulator: str) -> tuple[Node, ...]:
    """Closes the group and waits, unless the loop does that for all its dots."""
    if id(statement) in context.in_flight:
        return ()
    for helper in ("wgmma_commit", "wgmma_wait"):
        context.use_helper(helper)
    return (
        Line("wgmma_commit();"),
        Line("wgmma_wait<0>();", "the sum is complete"),
        pin(context, name, count, accumulator),
    )


def _helper(context: Context, plan: DotPlan, n: int, a: OperandPlace, b: OperandPlace) -> str:
    instruction = plan.instruction
    values: dict[str, object] = {
        "n": n,
        "k": instruction.k,
        "a_type": instruction.a_type,
        "b_type": instruction.b_type,
        "acc": instruction.accumulator,
        "a_registers": False,
        "a_transposed": not a.k_fast,
        "b_transposed": not b.k_fast,
    }
    return context.distinct_helper("wgmma", f"wgmma_m64n{n}k{instruction.k}", values)


def _warpgroup_offset(context: Context, axis: tuple[int, ...], comment: str) -> tuple[str, int]:
    """(text of the warpgroup's number along an axis, coordinates per warpgroup); ("0", …) where there is one."""
    bits = [bit for bit in axis if bit >= WARPGROUP_BITS]
    size = 1 << (len(axis) - len(bits))
    if not bits:
        return "0", size
    return context.warpgroup(bits), size


def _mn_bytes(place: OperandPlace, count: int) -> int:
    """Bytes from one row (of M or N) to the one `count` further, whole boxes when these are contiguous."""
    tile = place.tile
    line_bytes = tile.line * tile.itemsize
    return count * line_bytes if place.k_fast else count // tile.line * tile.lines * line_bytes


def _tile_name(context: Context, statement: Assign, place: OperandPlace, word: str) -> str:
    """The name of an operand's descriptor."""
    name, target = place.variable.name, statement.target.name
    key = ("descriptor", id(statement), word)
    return context.names.once(f"{name}_operand", key, f"{name}_operand_of_{target}", f"{target}_{word}_operand")


def _descriptor(context: Context, statement: Assign, place: OperandPlace, word: str, part: tuple[str, int]) -> Node:
    """The descriptor of the warpgroup's part of an operand (PTX ISA, "Shared memory matrix layout" of wgmma)."""
    tile = place.tile
    line_bytes = tile.line * tile.itemsize
    number, size = part
    start = place.base
    if number != "0":
        elements = _mn_bytes(place, size) // tile.itemsize
        name = context.constant(f"{word.upper()}_PART", elements, f"elements of {place.variable.name} per warpgroup")
        start = f"{place.base} + {number} * {name}"
    pattern = 8 * line_bytes  # from 8 lines to the next 8
    box = tile.lines * line_bytes  # from one box to the next along M or N
    leading = 16 if place.k_fast or tile.boxes == 1 else box
    if not place.k_fast and not tile.swizzle:  # without a swizzle the strides along K and along M or N change roles
        leading = pattern
    helper = context.use_helper("wgmma_descriptor")
    tile_name = _tile_name(context, statement, place, word)
    swizzle = context.constant(f"{word.upper()}_SWIZZLE", tile.swizzle, "bytes of its swizzle pattern")
    leading_name = context.constant(f"{word.upper()}_BOX_BYTES", leading, "") if leading != 16 else "16"
    stride_name = context.constant(f"{word.upper()}_PATTERN_BYTES", pattern, f"8 lines of {place.variable.name}")
    return Line(f"const unsigned long long {tile_name} = {helper}<{swizzle}>({start}, {leading_name}, {stride_name});")


def _k_step(context: Context, place: OperandPlace, word: str, kk: str) -> str:
    """What K steps add to a descriptor, in units of 16 bytes."""
    tile = place.tile
    if not place.k_fast:
        chunks = context.constant(f"{word}_LINE_CHUNKS", tile.chunks, "16-byte chunks of a line")
        return f" + {kk} * {chunks}"
    chunk = context.constant(f"{word}_CHUNK", tile.chunk, "elements of 16 bytes")
    if tile.boxes == 1:
        return f" + {kk} / {chunk}"
    line = context.constant(f"{word}_LINE", tile.line, f"elements of a line of {place.variable.name}")
    box = context.constant(f"{word}_BOX_CHUNKS", tile.lines * tile.chunks, "16-byte chunks of a box")
    return f" + {kk} / {line} * {box} + {kk} % {line} / {chunk}"
