"""Boxes whose rows are not aligned: rows are copied as they lie in memory, and shifted into their tiles behind that.

Every such tile has two arrays. `b_rows` holds rows as `cp.async` brings them, a chunk of 16 bytes longer than a row of the
tile, because a row may start anywhere in its first chunk; as many stages as iterations are on their way. `b` holds what the
dots read, in their format: one stage is in use while the next is written.
"""

from __future__ import annotations

from ...hardware import CHUNK_BYTES, SWIZZLE_ALIGNMENT
from ...ir.nodes import Assign, Call, Expr, For, Variable
from ...ir.structured import assigns
from ...schedule.staging.ring_plan import ALIGNED_STAGES, Ring
from ..context import Context, ctype
from ..products.formats import chunk_elements
from ..shared.arrays import side_text
from ..text.operators import multiplied
from ..text.unit import Comment, Lambda, Line, Node, Shared
from .copies import tile_comment
from .ring_barriers import stages_name


def is_row_load(statement: Assign) -> bool:
    """Whether a load copies rows as they lie."""
    return assigns(statement, "row_load")


def lower_row_load(context: Context, statement: Assign) -> tuple[Node, ...]:
    """Nothing: the loop around it has loaded it."""
    return ()


def declare_rows(context: Context, statement: Assign) -> str:
    """Asks for the arrays of a tile; returns the tile's name."""
    target = statement.target
    tile = context.schedule.staged[target]
    element, name = ctype(target.type), context.shared.tile_name(target)
    lines, width = (side_text(context, tile.shape[axis]) for axis in (tile.slow, tile.fast))
    count = aligned_stages(context)
    size = tile.stage_bytes * tile.stages
    alignment = SWIZZLE_ALIGNMENT if tile.swizzle else CHUNK_BYTES
    shared = Shared(name, element, f"[{count}][{multiplied((lines, width)).text}]", size, tile_comment(tile), alignment)
    context.shared.scratch(target, "staged", shared)
    chunk = chunk_elements(context, tile, target, name.upper())
    dimensions = f"[{row_stages(context, target)}][{lines.within(13)} * ({width.within(12)} + {chunk})]"
    size = (_ring(context, target).stages - 1) * tile.rows_bytes
    rows = Shared(
        context.shared.of_tile(rows_name(context, statement), target),
        element,
        dimensions,
        size,
        "as they lie in memory",
        CHUNK_BYTES,
    )
    context.shared.scratch(target, "rows", rows)
    return name


def rows_note(context: Context, variable: Variable) -> str:
    """What the header says of a tile whose rows are not aligned; "" for others."""
    ring = next((ring for ring in context.schedule.rings.rings if variable in ring.rows), None)
    if ring is None:
        return ""
    size = context.schedule.staged[variable].rows_bytes
    return f"; {ring.stages - 1} of {size} bytes for rows as they lie in memory"


def aligned_stages(context: Context) -> str:
    """The constant that counts the stages of aligned tiles."""
    comment = "of tiles with unaligned rows: one is read while the next is written"
    return context.constants.named("ALIGNED_STAGES", ALIGNED_STAGES, comment, topic="stages")


def row_stages(context: Context, variable: Variable) -> str:
    """The constant that counts the stages of a tile's rows: an iteration whose tile is aligned needs none."""
    ring = _ring(context, variable)
    text = f"{stages_name(context, ring)} - 1"
    return context.constants.named(
        "ROW_STAGES", ring.stages - 1, "of unaligned rows, on their way or waiting", text, "stages"
    )


def rows_name(context: Context, statement: Assign) -> str:
    """The array in which a tile's rows lie as they do in memory."""
    return context.names.once(f"{statement.target.name}_rows", ("rows", statement.target))


def tile_stage(context: Context, count: str) -> str:
    """The stage that the dots of an iteration read, given the text that counts the iterations."""
    return f"{count} % {aligned_stages(context)}"


def indexed(context: Context, statement: Assign, loop: For) -> tuple[str, tuple[Node, ...]]:
    """(name of the function that says where an iteration's tile starts in memory, its definition)."""
    word, counter = statement.target.name, context.names.variable(loop.variable)
    name = context.names.once(f"{word}_first", ("first", statement.target))
    text = context.speller.text(_args(statement)[0])
    parameters = f"{ctype(loop.variable.type)} {counter}"
    comment = Comment(f"Where {word} starts in memory in the iteration at `{counter}`.")
    return name, (comment, Lambda(name, parameters, (Line(f"return {text};"),)))


def copy_rows(context: Context, statement: Assign, first: str, count: str) -> Line:
    """Starts this thread's copies of the rows of a tile; `count` counts the iterations."""
    context.use_helper("cp_async", "cp_async_16", bytes=CHUNK_BYTES)
    helper = context.use_helper("copy_rows")
    _, stride, rows, cols = map(context.speller.text, _args(statement))
    place = f"{rows_name(context, statement)}[{count} % {row_stages(context, statement.target)}]"
    return Line(f"{helper}<{_sides(context, statement)}>({place}, {first}, {stride}, {rows}, {cols});")


def align_rows(context: Context, statement: Assign, first: str, count: str) -> Line:
    """Shifts this thread's share of arrived rows into their tile; `count` counts the iterations."""
    context.use_helper("swizzled")
    helper = context.use_helper("align_rows")
    stride = context.speller.text(_args(statement)[1])
    target = f"{context.names.variable(statement.target)}[{tile_stage(context, count)}]"
    rows = f"{rows_name(context, statement)}[{count} % {row_stages(context, statement.target)}]"
    return Line(f"{helper}<{_sides(context, statement)}>({target}, {rows}, {first}, {stride});")


def _ring(context: Context, variable: Variable) -> Ring:
    return next(ring for ring in context.schedule.rings.rings if variable in ring.rows)


def _sides(context: Context, statement: Assign) -> str:
    tile = context.schedule.staged[statement.target]
    return ", ".join(side_text(context, tile.shape[axis]).text for axis in (tile.slow, tile.fast))


def _args(statement: Assign) -> tuple[Expr, ...]:
    if not isinstance(statement.value, Call):
        raise TypeError("not a load")
    return statement.value.args
