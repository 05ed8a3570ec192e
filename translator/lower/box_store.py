"""Stores of whole boxes: the tile goes through swizzled shared memory, and one thread starts tensor copies from there."""

from __future__ import annotations

from ..ir.nodes import Call, Effect, Expr, Use, Variable
from ..schedule.layout import REGISTER, Layout, bits_of
from ..schedule.shared_tiles import ALIGNMENT, SharedTile
from .access import Access
from .context import Context, ctype
from .memory import indexed, width_name
from .operand import element_place
from .point import Index, Point, point_of
from .rings import box_copies
from .unit import Branch, Line, Loop, Node, Shared, Spelled

BUFFERS = 2  # pieces in shared memory at once: one is written while the other is copied out


def lower_box_store(context: Context, statement: Effect) -> tuple[Node, ...]:
    """Cuts the tile into pieces of a line's width, where every thread has a part of each piece; otherwise takes it whole."""
    call = statement.call
    value = call.args[0]
    layout = context.schedule.statement_layouts[id(statement)]
    prepare, variable = _in_registers(context, statement, value, layout)
    shape = tuple(map(int, value.type.shape))
    fast = [axis for axis in call.attribute("axes") if axis is not None][-1]
    whole = SharedTile(shape, fast, value.type.dtype.itemsize)
    pieces = whole.boxes if _by_registers(layout, fast, bits_of(whole.boxes)) else 1
    sides = tuple(side // pieces if axis == fast else side for axis, side in enumerate(shape))
    tile = SharedTile(sides, fast, whole.itemsize, min(pieces, BUFFERS))
    array = _buffer(context, statement, variable, tile)
    for helper in ("async_proxy_fence", "tma_store_commit", "tma_store_wait"):
        context.use_helper(helper)
    tid = context.roles.tid
    number = context.names.shared_index("piece") if pieces > 1 else "0"
    stage = f"[{number} % {context.constant('STORE_BUFFERS', tile.stages, 'pieces in shared memory at once')}]"
    stage = stage if tile.stages > 1 else ""
    pending = f"{context.constant('STORE_BUFFERS', tile.stages, '')} - 1" if tile.stages > 1 else "0"
    body: list[Node] = [
        Branch(f"{tid} == 0", (Line(f"tma_store_wait<{pending}>();"),)),
        *context.barrier("this part of shared memory has been copied out"),
        *_write(context, variable, layout, tile, f"{array}{stage}", number, pieces),
        Line("async_proxy_fence();", "tensor copies read through the asynchronous proxy"),
        *context.barrier("the piece is complete"),
        Branch(
            f"{tid} == 0", (*_copy(context, call, tile, f"{array}{stage}", number, pieces), Line("tma_store_commit();"))
        ),
    ]
    nodes: tuple[Node, ...] = tuple(body)
    first: tuple[Node, ...] = ()
    if call.attribute("repeated"):
        context.use_helper("tma_store_complete")
        wait = Line("tma_store_complete<0>();", "an earlier store to the same place comes first")
        first = (Branch(f"{tid} == 0", (wait,)),)
    if pieces > 1:
        count = context.constant("STORE_PIECES", pieces, "pieces of a tile, each as wide as a line of 128 bytes")
        nodes = (Loop(f"for (int {number} = 0; {number} < {count}; ++{number})", nodes, unroll=True),)
    last = Branch(f"{tid} == 0", (Line("tma_store_wait<0>();"),), (), "shared memory must outlive the copies out of it")
    if not context.schedule.rings.persistent:
        return (*prepare, *first, *nodes, last)
    context.at_end = [last]
    return (*prepare, *first, *nodes)


def _in_registers(
    context: Context, statement: Effect, value: Expr, layout: Layout
) -> tuple[tuple[Node, ...], Variable]:
    """The tile as a register array: its own, or one computed for the store."""
    in_registers = isinstance(value, Use) and value.variable not in context.schedule.in_shared
    if isinstance(value, Use) and in_registers and context.schedule.layouts.get(value.variable) == layout:
        return (), value.variable
    variable = context.temporary(id(statement), "stored", value.type)
    name = context.names.variable(variable)

    def one(point: Point) -> tuple[Node, ...]:
        text = context.speller.text(value, point)
        return (Spelled("assign", {"target": indexed(context, name, variable, point), "value": text}),)

    return (Line(f"{context.declaration(variable, layout, name)};"), *context.each_register(layout, one)), variable


def _by_registers(layout: Layout, fast: int, bits: int) -> bool:
    """Whether every thread holds a part of each piece: the piece's number is made of register bits."""
    axis = layout.axes[fast]
    return bits > 0 and all(source == REGISTER for source in axis[len(axis) - bits :])


def _buffer(context: Context, statement: Effect, variable: Variable, tile: SharedTile) -> str:
    name = context.scratch_name(id(statement), "store", f"{variable.name}_shared")
    dimensions = (
        f"[{context.constant('STORE_BUFFERS', tile.stages, 'pieces in shared memory at once')}]"
        if tile.stages > 1
        else ""
    )
    size = context.constant(
        f"{variable.name.upper()}_PIECE", tile.size, f"elements of {variable.name} that are stored at once"
    )
    comment = f"{variable.name} on its way out, {tile.swizzle}-byte swizzle"
    context.scratch(
        id(statement), "store",
        Shared(name, ctype(variable.type), f"{dimensions}[{size}]", tile.stage_bytes * tile.stages, comment, ALIGNMENT),
    )  # fmt: skip
    return name


def _write(
    context: Context, variable: Variable, layout: Layout, tile: SharedTile, array: str, number: str, pieces: int
) -> tuple[Node, ...]:
    """This thread's part of a piece, consecutive elements at once."""
    fast, slow = tile.fast, tile.slow
    name = context.names.variable(variable)
    width = min(layout.vector(fast), tile.chunk)
    access = Access(fast, width, (), ())
    width_text = width_name(context, layout, access) if width > 1 else "1"
    per_piece = layout.registers(fast) // pieces
    vectors = per_piece // width
    names = context.axis_indices(layout)
    v, r = context.names.shared_index("v"), names[slow]
    rows = layout.registers(slow)
    inside = Index(f"{v} * {width_text}", v, width_text) if width > 1 else Index(v)
    inside = inside if vectors > 1 else Index("0", "0", width_text)
    row = Index(r if rows > 1 else "0")
    at = point_of(layout, (inside, row) if fast == 0 else (row, inside))
    place = element_place(context, tile, at)
    v_text = v if vectors > 1 else "0"
    element = f"{v_text} * {width_text}" if width > 1 and v_text != "0" else v_text
    if pieces > 1:
        count = context.constant("PIECE_ELEMS", per_piece, "elements of a row of a piece per thread")
        element = f"{number} * {count} + {element}" if element != "0" else f"{number} * {count}"
    subscripts = {slow: f"[{row.text}]" if rows > 1 else "", fast: f"[{element}]" if layout.registers(fast) > 1 else ""}
    source = name + "".join(subscripts[axis] for axis in layout.array_axes())
    if width > 1:
        context.packets |= {width * tile.itemsize}
        helper = context.use_helper("store_vec", "store_vec", kind="", modifier="")
        line: Node = Line(f"{helper}<{width_text}>(&{array}[{place}], &{source});")
    else:
        line = Line(f"{array}[{place}] = {source};")
    nodes: tuple[Node, ...] = (line,)
    if vectors > 1:
        limit = f"PIECE_ELEMS / {width_text}" if pieces > 1 and width > 1 else str(vectors)
        limit = (
            context.constant("PIECE_VECS", vectors, "accesses of a thread per row of a piece")
            if "/" not in limit
            else limit
        )
        nodes = (Loop(f"for (int {v} = 0; {v} < {limit}; ++{v})", nodes, unroll=True),)
    if rows > 1:
        nodes = (Loop(f"for (int {r} = 0; {r} < {context.count(layout.axes[slow])}; ++{r})", nodes, unroll=True),)
    return nodes


def _copy(context: Context, call: Call, tile: SharedTile, array: str, number: str, pieces: int) -> tuple[Node, ...]:
    """The tensor copies of a piece, box by box."""
    rank = len(call.args) - 1
    helper = context.use_helper("tma_store", f"tma_store_{rank}d", rank=rank)
    starts = [context.speller.text(arg) for arg in call.args[1:]]
    if pieces > 1:
        fast = list(call.attribute("axes")).index(tile.fast)
        line = context.constant("STORE_LINE", tile.line, "elements of a line of a piece")
        moved = f"{number} * {line}"
        starts[fast] = moved if starts[fast] == "0" else f"{starts[fast]} + {moved}"
    return box_copies(
        context, tile, call, starts, array,
        lambda place, at: Line(f"{helper}({call.attribute('map')}, {', '.join(at)}, {place});"),
    )  # fmt: skip
