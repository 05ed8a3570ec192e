"""Tensor maps that the kernel makes of what it loads from memory: who makes them, where they lie, when one may change.

Every thread that starts copies makes the maps that it uses, in a slot of global memory of its own, so that nobody waits for
anybody. Before a map is made anew, and before the slot is given back, the thread waits until no copy of its own reads it.
"""

from __future__ import annotations

from ...artifact import TensorMap
from ...hardware import MAP_BYTES, WARPGROUP
from ...ir.nodes import Assign, Call, Effect, For, Statement, While
from ...ir.structured import assigns
from ...ir.tensor_names import word_of_map
from ...ir.walk import path_to, statements
from ...schedule.products.shared_tiles import SharedTile
from ...schedule.staging.producer import makes_load_map
from ..context import Context
from ..products.formats import line_elements, swizzle_bytes
from ..shared.arrays import side_text
from ..text.unit import Branch, Comment, Line, Loop, Node, Shared, const
from .box_store import sharing, stored_box
from .ring_barriers import barrier_name, parity_of, position_name, stages_name

# The element types of tensor maps as PTX numbers them (PTX ISA, tensormap.replace); everything else is copied as bytes.
ELEMENTS = {"u16": 1, "i16": 1, "u32": 2, "i32": 3, "u64": 4, "i64": 5, "fp16": 6, "fp32": 7, "fp64": 9, "bf16": 10}
BYTES = 0
MULTIPROCESSORS = 144  # of the largest GPU that has these instructions
SPARE = 4  # slots for each that is taken at once


def announce_maps(context: Context) -> None:
    """Asks for what the file says of maps that the kernel makes."""
    if context.schedule.rings.made:
        context.use_helper("tensor_map", made=True)


def begin_maps(context: Context, loads: bool) -> tuple[Node, ...]:
    """What a role begins with that makes maps for its loads or for its stores: a slot, and the names of the maps in it."""
    maps = _maps_of(context, loads)
    if not maps:
        return ()
    slot = context.names.once("map_slot", "map slot")
    take = "take_map_slot()" if loads else f"{_storing(context, maps)} ? take_map_slot() : 0"
    context.role.before_return = _given_back(context, maps, loads)
    return (
        const("int", slot, take, "" if loads else "of those that start copies"),
        *(Line(f"TensorMap& {one.name} = made_maps[{slot}].{one.name};") for one in maps),
    )


def end_maps(context: Context, loads: bool) -> tuple[Node, ...]:
    """What the role ends with, and what it owes besides."""
    owed, context.role.before_return = ([] if loads else context.role.at_end), ()
    maps = _maps_of(context, loads)
    if not maps:
        return tuple(owed)
    back = _given_back(context, maps, loads)
    return (*(node for node in owed if not _same_threads(node, back[0])), *back)


def _same_threads(one: Node, other: Node) -> bool:
    """Whether the same threads wait for some of their stores, and for all of them."""
    return isinstance(one, Branch) and isinstance(other, Branch) and one.condition == other.condition


def _given_back(context: Context, maps: tuple[TensorMap, ...], loads: bool) -> tuple[Node, ...]:
    free = Line(f"free_map_slot({context.names.once('map_slot', 'map slot')});")
    if loads:
        return (*_loads_complete(context, "No copy may read a map whose slot is another's."), free)
    context.use_helper("tma_store_complete")
    complete = Line("tma_store_complete<0>();", "no copy reads a map or shared memory any more")
    return (Branch(_storing(context, maps), (complete, free)),)


def lower_make_map(context: Context, statement: Effect) -> tuple[Node, ...]:
    """Makes a map where the last of what it is made of has become known."""
    call, rings = statement.call, context.schedule.rings
    one = next(made for made in rings.made if made.name == call.attribute("map"))
    loads = bool(call.attribute("loads"))
    makers, group = _makers(context), context.axis_names.warpgroup_size()
    helper = context.use_helper("make_tensor_map_2d", makers=makers, group=group)
    swizzle, box = _box(context, one)
    operands = ", ".join((one.name, _drafts(context), *(context.speller.text(arg) for arg in call.args), *box))
    make = Line(f"{helper}<{_element(context, one)}, {swizzle}>({operands});")
    again = rings.persistent or _in_loop(context, statement)
    if loads:
        wait = again and _is_first(context, statement)
        return (*(_loads_complete(context, "No copy may read a map that changes.") if wait else ()), make)
    if not again:
        return (Branch(_storing(context, (one,)), (make,)),)
    context.use_helper("tma_store_complete")
    complete = Line("tma_store_complete<0>();", "no copy reads the map any more")
    return (Branch(_storing(context, (one,)), (complete, make)),)


def _box(context: Context, one: TensorMap) -> tuple[str, tuple[str, str]]:
    """The swizzle of a map in bytes, and the sides of its box in elements."""
    for statement in statements(context.kernel.body):
        if _copies_through(statement, one) and isinstance(statement, Effect):
            tile, rows, cols = stored_box(context, statement)
            return _swizzle(context, tile, word_of_map(one.name)), (rows, cols)
        if _copies_through(statement, one) and isinstance(statement, Assign):
            tile, word = context.schedule.staged[statement.target], statement.target.name
            rows = side_text(context, tile.shape[tile.slow]).text
            line = line_elements(context, tile, statement.target, word.upper()).text
            return _swizzle(context, tile, word), (rows, line)
    raise LookupError(f"nothing is copied through {one.name}")


def _copies_through(statement: Statement, one: TensorMap) -> bool:
    call = statement.value if isinstance(statement, Assign) else getattr(statement, "call", None)
    copies = isinstance(call, Call) and call.op in ("box_load", "box_store")
    return copies and call.attribute("map") == one.name  # type: ignore[union-attr]


def _swizzle(context: Context, tile: SharedTile, word: str) -> str:
    return swizzle_bytes(context, tile, word.upper()) if tile.swizzle else "0"


def count_map_slots(context: Context, dynamic_bytes: int) -> None:
    """Defines the slots, once it is known how many blocks a multiprocessor can have at once."""
    maps = [one.name for one in context.schedule.rings.made]
    if not maps:
        return
    threads, target = context.schedule.launch_threads, context.schedule.target
    blocks = target.resident_blocks(threads)
    if dynamic_bytes:
        blocks = min(blocks, target.blocks_by_shared(dynamic_bytes))
    makers, group = _makers(context), context.axis_names.warpgroup_size()
    counts = [str(SPARE), str(MULTIPROCESSORS), *([str(blocks)] if blocks > 1 else []), makers]
    several = f" of {blocks} blocks" if blocks > 1 else ""
    comment = f"makers{several} on {MULTIPROCESSORS} multiprocessors, {SPARE} times"
    count = SPARE * MULTIPROCESSORS * blocks * threads // WARPGROUP
    slots = context.constants.named("MAP_SLOTS", count, comment, " * ".join(counts), "stages")
    context.use_helper("made_maps", maps=maps, slots=slots)
    context.use_helper("take_map_slot", slots=slots, makers=makers, group=group)
    context.use_helper("free_map_slot")


def _drafts(context: Context) -> str:
    """The shared array in which each maker of a block puts its maps together."""
    name = context.names.once("map_drafts", "map drafts")
    size = MAP_BYTES * context.schedule.launch_threads // WARPGROUP
    comment = "tensor maps before they are copied to global memory"
    shared = Shared(name, "TensorMap", f"[{_makers(context)}]", size, comment, MAP_BYTES)
    return context.shared.scratch(None, "map drafts", shared).name


def _makers(context: Context) -> str:
    """The constant that counts the threads of a block that may make maps."""
    count, comment = context.schedule.launch_threads // WARPGROUP, "of a block at most, threads that make maps"
    return context.constants.named("MAP_MAKERS", count, comment, topic="stages")


def line_of_making(context: Context, one: TensorMap) -> int:
    """The source line under which a map is made."""
    return next(s.origin.span.line for s in _makings(context) if s.call.attribute("map") == one.name)


def _makings(context: Context) -> list[Effect]:
    return [s for s in statements(context.kernel.body) if isinstance(s, Effect) and s.call.op == "make_map"]


def _maps_of(context: Context, loads: bool) -> tuple[TensorMap, ...]:
    """The maps that the kernel makes for its loads, or for its stores."""
    calls = [statement.call for statement in _makings(context)]
    names = {call.attribute("map") for call in calls if bool(call.attribute("loads")) == loads}
    return tuple(one for one in context.schedule.rings.made if one.name in names)


def _element(context: Context, one: TensorMap) -> str:
    """The constant for the type of a map's elements."""
    number = ELEMENTS.get(one.element.short, BYTES)
    word = one.element.short.upper() if number else "BYTE"
    return context.constants.named(f"{word}_MAP", number, "type of elements, as PTX numbers it", topic="stages")


def _storing(context: Context, maps: tuple[TensorMap, ...]) -> str:
    """The condition for the threads that start copies of stores through one of some maps."""
    names = {one.name for one in maps}
    stores = (s for s in statements(context.kernel.body) if isinstance(s, Effect) and s.call.op == "box_store")
    parts = [context.schedule.store_parts.get(s, 1) for s in stores if s.call.attribute("map") in names]
    own, _ = sharing(context, max(parts))
    return own


def _loads_complete(context: Context, reason: str) -> tuple[Node, ...]:
    """The loading thread's wait for all its copies."""
    nodes: list[Node] = []
    for ring in context.schedule.rings.rings:
        if ring.kind != "tma" or not ring.counted or ring.like is not None:
            continue
        context.use_helper("mbarrier_wait")
        position, stages, full = (
            position_name(context, ring),
            stages_name(context, ring),
            barrier_name(context, ring, "full"),
        )
        fill = context.names.once("fill", ("loads complete", ring.loop))
        header = f"for (int {fill} = max({position} - {stages}, 0); {fill} < {position}; ++{fill})"
        nodes.append(Loop(header, (Line(f"mbarrier_wait(&{full}[{fill} % {stages}], {parity_of(fill, stages)});"),)))
    return (Comment(reason), *nodes) if nodes else ()


def _in_loop(context: Context, statement: Statement) -> bool:
    path = path_to(context.kernel.body, statement) or []
    return any(isinstance(block[place], (For, While)) for block, place in path[:-1])


def _is_first(context: Context, statement: Statement) -> bool:
    """Whether copies may have been started since the map before this one in its block was made."""
    path = path_to(context.kernel.body, statement)
    block, place = path[-1] if path else ((), 0)
    for before in reversed(block[:place]):
        if makes_load_map(before):
            return False
        if any(assigns(s, "box_load") for s in statements((before,))):
            return True
    return True
