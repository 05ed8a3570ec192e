"""The constants that describe how shared tiles lie, each computed from the user's sides and the hardware's sizes."""

from __future__ import annotations

import math

from ...hardware import CHUNK_BYTES, SWIZZLED_LINE_BYTES
from ...ir.nodes import Assign, Variable
from ...schedule.products.dot_plan import DotPlan
from ...schedule.products.shared_tiles import SharedTile
from ..context import Context, ctype
from ..shared.arrays import side_text, size_text
from ..text.operators import Text, multiplied

WIDTHS = {128: "FULL", 64: "HALF", 32: "QUARTER"}  # of swizzled lines, in bytes, where there are several


def k_per_instruction(context: Context, statement: Assign, plan: DotPlan) -> str:
    """The elements of K that an instruction multiplies; of a dot of other types a number of its own, called after its sum."""
    comment, own = "elements of K per instruction", f"{context.names.variable(statement.target).upper()}_MMA_K"
    further = f"{comment} of {context.names.variable(statement.target)}"
    return context.constants.named(
        "MMA_K", plan.instruction.k, comment, topic="operands", others=(own,), further=further
    )


def pieces_per_warp(context: Context, statement: Assign, name: str, count: int, comment: str) -> str:
    """The constant that counts a warp's pieces along a side of a sum; of another sum with other pieces one of its own."""
    target = context.names.variable(statement.target)
    others, further = (f"{target.upper()}_{name}",), f"{comment}, of {target}"
    return context.constants.named(name, count, comment, others=others, further=further)


def line_elements(context: Context, tile: SharedTile, variable: Variable, word: str) -> Text:
    """The elements of a line of a box: the tile's side where that is one line."""
    if tile.boxes == 1:
        return side_text(context, tile.shape[tile.fast])
    text, comment = (
        f"{SWIZZLED_LINE_BYTES} / sizeof({ctype(variable.type)})",
        "elements of 128 bytes, the width of a box",
    )
    further = f"{comment} of {word.lower()}"
    return Text(
        context.constants.named("LINE", tile.line, comment, text, "operands", (f"{word}_LINE",), further=further)
    )


def box_elements(context: Context, tile: SharedTile, variable: Variable, word: str) -> str:
    """The elements of a box."""
    lines = side_text(context, tile.shape[tile.slow])
    text = multiplied((lines, line_elements(context, tile, variable, word))).text
    return context.constants.named(
        f"{word}_BOX", tile.lines * tile.line, f"elements of a box of {word.lower()}", text, "operands"
    )


def box_count(context: Context, tile: SharedTile, variable: Variable, word: str) -> str:
    """The boxes side by side in a tile."""
    line = line_elements(context, tile, variable, word)
    text = f"{side_text(context, tile.shape[tile.fast]).within(13)} / {line.within(14)}"
    return context.constants.named(
        f"{word}_BOXES", tile.boxes, f"boxes of {word.lower()} side by side", text, "operands"
    )


def swizzle_bytes(context: Context, tile: SharedTile, word: str) -> str:
    """The bytes of a line, over which the swizzle goes."""
    name = "SWIZZLE"
    others = [f"{one}_{name}" for one in (WIDTHS.get(tile.swizzle, word), word)]
    comment, further = "bytes of a swizzled line", f"bytes of a swizzled line of {word.lower()}"
    return context.constants.named(name, tile.swizzle, comment, topic="operands", others=others, further=further)


def pattern_bytes(context: Context) -> str:
    """The bytes of 8 lines of one chunk each, which no swizzle exchanges."""
    return context.constants.named("PATTERN_BYTES", 8 * CHUNK_BYTES, "8 lines of 16 bytes", topic="operands")


def box_bytes(context: Context, tile: SharedTile, word: str) -> str:
    """The bytes of a box."""
    text = f"{side_text(context, tile.shape[tile.slow]).within(13)} * {swizzle_bytes(context, tile, word)}"
    value = tile.lines * tile.line * tile.itemsize
    return context.constants.named(
        f"{word}_BOX_BYTES", value, f"from a box of {word.lower()} to the next", text, "operands"
    )


def chunk_elements(context: Context, tile: SharedTile, variable: Variable, word: str) -> str:
    """The elements of 16 bytes."""
    text = f"{CHUNK_BYTES} / sizeof({ctype(variable.type)})"
    comment = "elements of 16 bytes, a descriptor's unit"
    return context.constants.named("CHUNK", tile.chunk, comment, text, "operands", (f"{word}_CHUNK",))


def line_chunks(context: Context, tile: SharedTile, word: str) -> str:
    """The 16-byte chunks of a line."""
    name, comment = "LINE_CHUNKS", "16-byte chunks of a line"
    if not tile.swizzle:
        return context.constants.named(name, tile.chunks, comment, topic="operands", others=(f"{word}_{name}",))
    swizzle = swizzle_bytes(context, tile, word)
    own = swizzle.replace("SWIZZLE", name)  # of lines as wide as those, under the same word
    said = comment if own == name else f"{comment} of {word.lower()}"
    return context.constants.named(
        own, tile.chunks, said, f"{swizzle} / {CHUNK_BYTES}", "operands", (f"{word}_{name}",)
    )


def box_chunks(context: Context, tile: SharedTile, word: str) -> str:
    """The 16-byte chunks of a box."""
    text = f"{side_text(context, tile.shape[tile.slow]).within(13)} * {line_chunks(context, tile, word)}"
    comment = f"16-byte chunks of a box of {word.lower()}"
    return context.constants.named(f"{word}_BOX_CHUNKS", tile.lines * tile.chunks, comment, text, "operands")


def stage_bytes(
    context: Context, tiles: tuple[Variable, ...], name: str = "STAGE_BYTES", what: str = "all tiles"
) -> str:
    """The bytes of one stage of some tiles."""
    total = sum(context.schedule.staged[tile].stage_bytes for tile in tiles)
    counts: dict[str, list[Text]] = {}
    for tile in tiles:
        counts.setdefault(ctype(tile.type), []).append(size_text(context, tile.type.shape))
    terms = [
        f"({' + '.join(one.within(12) for one in sizes)}) * sizeof({element})"
        if len(sizes) > 1
        else f"{sizes[0].within(13)} * sizeof({element})"
        for element, sizes in counts.items()
    ]
    return context.constants.named(name, total, f"bytes of {what} of a stage", " + ".join(terms), "stages")


def part_elements(context: Context, tile: SharedTile, variable: Variable, word: str, axis: int, parts: int) -> str:
    """The elements from one warpgroup's part of a tile to the next one's, along an axis of which each has a share."""
    share = f"{side_text(context, tile.shape[axis]).within(13)} / {parts}"
    other = side_text(context, tile.shape[tile.slow])
    if axis == tile.slow:
        other = line_elements(context, tile, variable, word)
    value = math.prod(tile.shape) // parts if axis == tile.fast else tile.shape[axis] // parts * tile.line
    comment = f"elements of {variable.name} per warpgroup"
    return context.constants.named(f"{word}_PART", value, comment, f"{share} * {other.within(14)}", "operands")
