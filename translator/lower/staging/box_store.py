"""Stores of whole boxes: the tile goes through swizzled shared memory, and one thread starts tensor copies from there."""

from __future__ import annotations

from collections.abc import Callable

from ...hardware import SWIZZLE_ALIGNMENT, SWIZZLED_LINE_BYTES, WARPGROUP_BITS
from ...ir.nodes import Call, Effect, Expr, For, Return, Use, Variable, While
from ...ir.symbols import Name
from ...ir.tensor_names import word_of_map
from ...ir.types import Dim, ValueType
from ...ir.walk import statements, subexpressions, used_variables
from ...schedule.accesses.access import Access
from ...schedule.products.shared_tiles import SharedTile
from ...schedule.tiles.layout import REGISTER, Layout, bits_of
from ..accesses.vectors import width_name
from ..context import Context, ctype
from ..products.formats import line_elements
from ..products.operand import element_place, place_line
from ..shared.arrays import side_text, size_text
from ..shared.turns import STORES
from ..text.element import run_at
from ..text.operators import ZERO, Text, sum_text
from ..text.point import FIRST, point_of, register, vector_start
from ..text.register_loops import axis_indices, inner_index
from ..text.rounding import materialised
from ..text.unit import Assignment, Branch, Declaration, Line, Loop, Node, Shared, const, unrolled
from .matrix_store import stores_across, stores_matrices, write_across, write_matrices
from .outgoing import Outgoing, Pieces
from .rings import box_copies

BUFFERS = 2  # pieces in shared memory at once: one is written while the other is copied out


def lower_box_store(context: Context, statement: Effect) -> tuple[Node, ...]:
    """Cuts the tile into pieces of a line's width, where every thread has a part of each piece; otherwise takes it whole."""
    call = statement.call
    layout = context.schedule.statement_layouts[statement]
    prepare, variable = _in_registers(context, statement, call.args[0], layout)
    tile, pieces = _cut(context, call, layout)
    parts = context.schedule.store_parts.get(statement, 1)
    name = _buffer(context, statement, variable, tile, _word(call), parts)
    for helper in ("async_proxy_fence", "tma_store_wait"):
        context.use_helper(helper)
    own, barrier = sharing(context, parts)
    free = Branch(own, (Line("tma_store_wait<0>();"),))
    stage = ""
    body: list[Node] = []
    if tile.stages > 1:
        buffers, buffer = _buffers(context, tile), context.names.shared_index("buffer")
        stage = f"[{buffer}]"
        body.append(const("int", buffer, f"{pieces.number} % {buffers}"))
    else:
        again = pieces.count > 1 or _runs_again(context, statement) or context.shared.takes_turns(name)
        told = pieces.count == 1 and call.attribute("overwrites")  # then all copies are complete
        body += [*([] if told else [free]), *barrier("this part of shared memory has been copied out")] if again else []
    outgoing = Outgoing(variable, layout, tile, f"{name}{stage}", pieces, parts)
    body += [
        *_write(context, outgoing),
        Line("async_proxy_fence();", "tensor copies read through the asynchronous proxy"),
    ]
    if tile.stages > 1:
        body += [free, *barrier("the piece is complete, and the other buffer has been copied out")]
    else:
        body += barrier("the piece is complete")
    body.append(Branch(own, _copy(context, outgoing, call)))
    first = _earlier_stores(context, call, own)
    if tile.stages > 1 and context.shared.takes_turns(name):
        first = (*first, free, *barrier("what other stores have in this memory has been copied out"))
    nodes: tuple[Node, ...] = tuple(body)
    if pieces.count > 1:
        header = f"for (int {pieces.number} = 0; {pieces.number} < {pieces.name}; ++{pieces.number})"
        nodes = (Loop(header, nodes, unroll=True),)
        if tile.stages > 1:  # true as sides are powers of two; of an odd number, the last piece took the first buffer
            test = f"{pieces.name} % {_buffers(context, tile)} == 0"
            nodes = (Line(f'static_assert({test}, "each store begins with the free buffer");'), *nodes)
    return (*prepare, *first, *nodes, *_at_end(context, own))


def _runs_again(context: Context, statement: Effect) -> bool:
    """Whether a block comes to a statement more than once."""
    loops = [loop for loop in statements(context.kernel.body) if isinstance(loop, (For, While))]
    inside = any(statement in statements(loop.body) for loop in loops)
    return inside or bool(context.schedule.rings.program_axes)


def _cut(context: Context, call: Call, layout: Layout) -> tuple[SharedTile, Pieces]:
    """The part of a tile that lies in shared memory at once, and which of how many it is."""
    shape = call.args[0].type.shape
    fast = [axis for axis in call.attribute("axes") if axis is not None][-1]
    whole = SharedTile(shape, fast, call.args[0].type.dtype.itemsize)
    count = whole.boxes if _by_registers(layout, fast, bits_of(whole.boxes)) else 1
    side = _piece_side(context, whole, call.args[0].type, _word(call)) if count > 1 else shape[fast]
    sides = tuple(side if axis == fast else other for axis, other in enumerate(shape))
    number = context.names.shared_index("piece") if count > 1 else "0"
    text = f"{side_text(context, shape[fast]).within(13)} / {side_text(context, side).within(14)}"
    name = context.constants.named("STORE_PIECES", count, f"pieces of {_word(call)}, stored one by one", text, "stores")
    buffers = 1 if context.shared.in_turns else min(count, BUFFERS)  # there is no room to spare
    return SharedTile(sides, fast, whole.itemsize, buffers), Pieces(number, count, name)


def _earlier_stores(context: Context, call: Call, own: str) -> tuple[Node, ...]:
    """The wait for earlier stores to the same place, where there may be some."""
    if not call.attribute("overwrites"):
        return ()
    context.use_helper("tma_store_complete")
    return (Branch(own, (Line("tma_store_complete<0>();", "an earlier store to the same place comes first"),)),)


def _at_end(context: Context, own: str) -> tuple[Node, ...]:
    """The last wait, here where the kernel may return; otherwise the role owes it at its end."""
    last = Branch(own, (Line("tma_store_wait<0>();"),), (), "shared memory must outlive the copies")
    if any(isinstance(s, Return) for s in statements(context.kernel.body)):
        return (last,)
    if last not in context.role.at_end:
        context.role.at_end.append(last)
    return ()


def sharing(context: Context, parts: int) -> tuple[str, Callable[[str], tuple[Node, ...]]]:
    """(whether a thread starts copies, the barrier before it does): of all threads, or of each warpgroup for itself."""
    tid = context.axis_names.tid
    if parts == 1:
        return f"{tid} == 0", context.barrier
    size, number = context.axis_names.warpgroup_size(), context.axis_names.warpgroup(_warpgroup_bits(parts))
    barrier = context.constants.named("STORE_BARRIER", 2, "the first of the warpgroups' own barriers", topic="threads")
    context.use_helper("named_barrier_sync")
    return f"{tid} % {size} == 0", lambda reason: (Line(f"named_barrier_sync({barrier} + {number}, {size});", reason),)


def _warpgroup_bits(parts: int) -> list[int]:
    """The thread bits that number so many warpgroups."""
    return list(range(WARPGROUP_BITS, WARPGROUP_BITS + bits_of(parts)))


def _in_registers(
    context: Context, statement: Effect, value: Expr, layout: Layout
) -> tuple[tuple[Node, ...], Variable]:
    """The tile as a register array: its own, or one computed for the store."""
    in_registers = isinstance(value, Use) and value.variable not in context.schedule.in_shared
    if isinstance(value, Use) and in_registers and context.schedule.layouts.get(value.variable) == layout:
        return (), value.variable
    variable, prepare = materialised(context, statement, value, layout, _word(statement.call))
    return prepare, variable


def stored_box(context: Context, statement: Effect) -> tuple[SharedTile, str, str]:
    """A stored tile, and the sides of the boxes in which it is copied out."""
    value = statement.call.args[0]
    fast = [axis for axis in statement.call.attribute("axes") if axis is not None][-1]
    tile, parts = (
        SharedTile(value.type.shape, fast, value.type.dtype.itemsize),
        context.schedule.store_parts.get(statement, 1),
    )
    rows = _store_rows(context, tile, parts) if parts > 1 else side_text(context, tile.shape[tile.slow]).text
    cols = tile.shape[fast] if tile.boxes == 1 else _piece_side(context, tile, value.type, _word(statement.call))
    return tile, rows, side_text(context, cols).text


def _store_rows(context: Context, tile: SharedTile, parts: int) -> str:
    """The constant that counts the rows of a warpgroup's part."""
    lines = f"{side_text(context, tile.shape[tile.slow]).within(13)} / {parts}"
    return context.constants.named(
        "STORE_ROWS", tile.lines // parts, "rows that a warpgroup copies out", lines, "stores"
    )


def _by_registers(layout: Layout, fast: int, bits: int) -> bool:
    """Whether every thread holds a part of each piece: the piece's number is made of register bits."""
    axis = layout.axes[fast]
    return bits > 0 and all(source == REGISTER for source in axis[len(axis) - bits :])


def _buffer(context: Context, statement: Effect, variable: Variable, tile: SharedTile, word: str, parts: int) -> str:
    """The array that copies start from; one thread starts those of all stores that take turns, and waits for them."""
    choices = f"{word}_shared", _called_after_value(statement.call.args[0], word)
    name = context.shared.scratch_name(statement, "store", *choices, lasting=parts > 1, area=STORES)
    dimensions = f"[{_buffers(context, tile)}]" if tile.stages > 1 else ""
    size = size_text(context, tile.shape).text
    comment = f"{word} on its way out, {tile.swizzle}-byte swizzle"
    stages = tile.stage_bytes * tile.stages
    shared = Shared(name, ctype(variable.type), f"{dimensions}[{size}]", stages, comment, SWIZZLE_ALIGNMENT)
    context.shared.scratch(statement, "store", shared)
    return name


def _called_after_value(value: Expr, word: str) -> str:
    """What the array of a tensor's second store is called, where one variable is what it stores."""
    stored = set(used_variables(value))
    name = stored.pop().name if len(stored) == 1 else word
    turned = any(isinstance(part, Call) and part.op == "permute" for part in subexpressions(value))
    return f"{name}_turned" if turned else f"{name}_out"


def _word(call: Call) -> str:
    """What the stored tensor is called."""
    return word_of_map(call.attribute("map"))


def _buffers(context: Context, tile: SharedTile) -> str:
    return context.constants.named(
        "STORE_BUFFERS", tile.stages, "pieces: one is written, one copied out", topic="stores"
    )


def _piece_side(context: Context, whole: SharedTile, type_: ValueType, word: str) -> Dim:
    """The width of a piece: a line of the widest swizzle."""
    text = f"{SWIZZLED_LINE_BYTES} / sizeof({ctype(type_)})"
    name = context.constants.named(
        "PIECE_WIDTH", whole.line, f"columns of a piece of {word}: 128 bytes", text, "stores"
    )
    return Dim(whole.line, Name(name))


def _write(context: Context, outgoing: Outgoing) -> tuple[Node, ...]:
    """This thread's part of a piece, consecutive elements at once."""
    variable, layout, tile, pieces = outgoing.variable, outgoing.layout, outgoing.tile, outgoing.pieces
    fast, slow = tile.fast, tile.slow
    width = min(layout.run(fast), tile.chunk)
    width_text = width_name(context, layout, Access(fast, width, (), ())) if width > 1 else "1"
    per_piece = layout.registers(fast) // pieces.count
    vectors, rows = per_piece // width, layout.registers(slow)
    cut = pieces.count > 1
    own = _piece_elements(context, layout.axes[fast], per_piece, pieces.name) if cut else ""
    if stores_matrices(layout, tile, per_piece):
        limit = own or context.count(layout.axes[fast])
        return write_matrices(context, outgoing, own and f"{pieces.number} * {own}", limit)
    if stores_across(layout, tile) and not cut:
        return write_across(context, outgoing)
    v, r = context.names.shared_index("v"), axis_indices(context, layout)[slow]
    inside = vector_start(Text(v), width_text) if width > 1 else register(v)
    inside = inside if vectors > 1 else vector_start(ZERO, width_text)
    row = register(r) if rows > 1 else FIRST
    at = point_of(layout, (inside, row) if fast == 0 else (row, inside))
    place = element_place(context, tile, variable, at)
    naming, place = place_line(context, place, variable.name, vectors > 1 or rows > 1)
    element = sum_text(f"{pieces.number} * {own}" if cut else "", inside.text)

    def register_at(index: str) -> str:
        subscripts = {slow: row.text, fast: index}
        return context.names.variable(variable) + "".join(f"[{subscripts[axis]}]" for axis in layout.array_axes())

    source = register_at(element)
    line: Node = Assignment(f"{outgoing.array}[{place}]", source)
    if width > 1:
        context.needs.packets |= {width * tile.itemsize}
        helper = context.use_helper("store_vec", "store_vec", kind="", modifier="", bools=False)
        run = run_at(source)
        if layout.vector(fast) < width:  # neighbours in memory, not in the thread's array
            run, i = context.names.shared_index("run"), inner_index(context, "i", layout)
            gather = unrolled(i, width_text, (Assignment(f"{run}[{i}]", register_at(sum_text(element, i))),))
            naming = (*naming, Declaration(ctype(variable.type), run, sides=f"[{width_text}]"), gather)
        line = Line(f"{helper}<{width_text}>(&{outgoing.array}[{place}], {run});")
    nodes: tuple[Node, ...] = (*naming, line)
    if vectors > 1:
        comment = "accesses of a thread per line of a piece"
        limit = (
            f"{own} / {width_text}"
            if cut and width > 1
            else context.constants.named("PIECE_VECS", vectors, comment, topic="stores")
        )
        nodes = (unrolled(v, limit, nodes),)
    if rows > 1:
        nodes = (unrolled(r, context.count(layout.axes[slow]), nodes),)
    return nodes


def _piece_elements(context: Context, axis: tuple[int, ...], per_piece: int, all_pieces: str) -> str:
    """The constant that counts a thread's elements of a piece along its contiguous axis."""
    text = f"{context.count(axis)} / {all_pieces}"
    return context.constants.named("PIECE_ELEMS", per_piece, "elements of a piece in a thread's row", text, "stores")


def _copy(context: Context, outgoing: Outgoing, call: Call) -> tuple[Node, ...]:
    """The tensor copies of a piece, box by box."""
    variable, tile, array, pieces = outgoing.variable, outgoing.tile, outgoing.array, outgoing.pieces
    rank = len(call.args) - 1
    helper = context.use_helper("tma_store", f"tma_store_{rank}d", rank=rank)
    starts = [context.speller.text(arg) for arg in call.args[1:]]
    if pieces.count > 1:
        fast = list(call.attribute("axes")).index(tile.fast)
        moved = f"{pieces.number} * {side_text(context, tile.shape[tile.fast]).within(14)}"
        starts[fast] = moved if starts[fast] == "0" else f"{starts[fast]} + {moved}"
    if outgoing.parts > 1:
        rows = _store_rows(context, tile, outgoing.parts)
        slow = list(call.attribute("axes")).index(tile.slow)
        moved = f"{context.axis_names.warpgroup(_warpgroup_bits(outgoing.parts))} * {rows}"
        starts[slow] = moved if starts[slow] == "0" else f"{starts[slow]} + {moved}"
        array += f" + {moved} * {line_elements(context, tile, variable, variable.name.upper()).within(14)}"
    return box_copies(
        context, variable, tile, call, starts, array,
        lambda place, at: Line(f"{helper}({call.attribute('map')}, {', '.join(at)}, {place});"),
    )  # fmt: skip
