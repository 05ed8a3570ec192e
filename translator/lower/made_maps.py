"""Tensor maps that the kernel makes of what it loads from memory: who makes them, where they lie, when one may change.

Every thread that starts copies makes the maps that it uses, in a slot of global memory of its own, so that nobody waits for
anybody. Before a map is made anew, and before the slot is given back, the thread waits until no copy of its own reads it.
"""

from __future__ import annotations

from ..analysis.settled import path_to
from ..artifact import TensorMap
from ..ir.nodes import Assign, Call, Effect, For, Statement, While
from ..ir.walk import statements
from ..schedule.producer import makes_load_map
from .box_store import sharing
from .context import Context
from .rings import barrier_name, position_name, stages_name
from .unit import Branch, Comment, Line, Loop, Node

# The element types of tensor maps as PTX numbers them (PTX ISA, tensormap.replace); everything else is copied as bytes.
ELEMENTS = {"u16": 1, "i16": 1, "u32": 2, "i32": 3, "u64": 4, "i64": 5, "fp16": 6, "fp32": 7, "fp64": 9, "bf16": 10}
BYTES = 0
MULTIPROCESSORS = 144  # of the largest GPU that has these instructions
THREADS_AT_ONCE = 2048  # on a multiprocessor
SHARED_AT_ONCE, RESERVED = 233472, 1024  # bytes of shared memory on a multiprocessor, and what each block costs besides
SPARE = 4  # slots for each that is taken at once


def begin_maps(context: Context, loads: bool) -> tuple[Node, ...]:
    """What a role begins with that makes maps for its loads or for its stores: a slot, and the names of the maps in it."""
    maps = _maps_of(context, loads)
    if not maps:
        return ()
    for helper in ("take_map_slot", "free_map_slot"):
        context.use_helper(helper)
    context.use_helper("made_maps", maps=[one.name for one in context.schedule.rings.made])
    slot = context.names.once("map_slot", "map slot")
    take = "take_map_slot()"
    take = take if loads else f"{_storing(context, maps)} ? {take} : 0"
    context.before_return = _end(context, loads)
    return (
        Line(f"const int {slot} = {take};", "" if loads else "of those that start copies"),
        *(Line(f"TensorMap& {one.name} = made_maps[{slot}].{one.name};") for one in maps),
    )


def end_maps(context: Context, loads: bool) -> tuple[Node, ...]:
    """What the role ends with."""
    context.before_return = ()
    return _end(context, loads)


def _end(context: Context, loads: bool) -> tuple[Node, ...]:
    maps = _maps_of(context, loads)
    if not maps:
        return ()
    free = Line(f"free_map_slot({context.names.once('map_slot', 'map slot')});")
    if loads:
        return (*_loads_complete(context), free)
    context.use_helper("tma_store_complete")
    return (
        Branch(_storing(context, maps), (Line("tma_store_complete<0>();", "no copy reads its map any more"), free)),
    )


def lower_make_map(context: Context, statement: Effect) -> tuple[Node, ...]:
    """Makes a map where the last of what it is made of has become known."""
    call, rings = statement.call, context.schedule.rings
    one = next(made for made in rings.made if made.name == call.attribute("map"))
    loads = bool(call.attribute("loads"))
    helper = context.use_helper("make_tensor_map_2d")
    box = ", ".join(map(str, reversed(one.box)))
    operands = ", ".join(context.speller.text(arg) for arg in call.args)
    make = Line(f"{helper}<{_element(context, one)}, {one.swizzle}>({one.name}, {operands}, {box});")
    again = rings.persistent or _in_loop(context, statement)
    if loads:
        return (*(_loads_complete(context) if again and _is_first(context, statement) else ()), make)
    complete = Line("tma_store_complete<0>();", "no copy reads the map any more")
    if again:
        context.use_helper("tma_store_complete")
    return (Branch(_storing(context, (one,)), ((complete, make) if again else (make,))),)


def count_map_slots(context: Context, dynamic_bytes: int) -> None:
    """Defines how many slots there are, once it is known how many blocks a multiprocessor can have at once."""
    rings = context.schedule.rings
    if not rings.made:
        return
    makers = context.schedule.launch_threads // 128
    blocks = THREADS_AT_ONCE // context.schedule.launch_threads
    if dynamic_bytes:
        blocks = min(blocks, SHARED_AT_ONCE // (dynamic_bytes + RESERVED))
    name = context.constant("MAP_MAKERS", makers, "of a block at most, each of a warpgroup of its own", topic="stages")
    text = f"{SPARE} * {MULTIPROCESSORS} * {blocks} * {name}"
    comment = "with room to spare, multiprocessors, blocks on each, makers"
    context.constant("MAP_SLOTS", SPARE * MULTIPROCESSORS * blocks * makers, comment, text, "stages")


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
    number = ELEMENTS.get(one.element.name, BYTES)
    word = one.element.name.upper() if number else "BYTE"
    return context.constant(
        f"{word}_MAP", number, "type of elements of a tensor map, as PTX numbers it", topic="stages"
    )


def _storing(context: Context, maps: tuple[TensorMap, ...]) -> str:
    """The condition for the threads that start copies of stores through one of some maps."""
    names = {one.name for one in maps}
    stores = (s for s in statements(context.kernel.body) if isinstance(s, Effect) and s.call.op == "box_store")
    parts = [context.schedule.store_parts.get(id(s), 1) for s in stores if s.call.attribute("map") in names]
    own, _ = sharing(context, max(parts))
    return own


def _loads_complete(context: Context) -> tuple[Node, ...]:
    """The loading thread's wait for all its copies."""
    nodes: list[Node] = []
    for ring in context.schedule.rings.rings:
        if ring.kind != "tma" or not ring.counted:
            continue
        context.use_helper("mbarrier_wait")
        position, stages, full = (
            position_name(context, ring),
            stages_name(context, ring),
            barrier_name(context, ring, "full"),
        )
        fill = context.names.once("fill", ("loads complete", ring.loop))
        header = f"for (int {fill} = max({position} - {stages}, 0); {fill} < {position}; ++{fill})"
        nodes.append(Loop(header, (Line(f"mbarrier_wait(&{full}[{fill} % {stages}], {fill} / {stages} % 2);"),)))
    return (Comment("No copy may read a map that changes."), *nodes) if nodes else ()


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
        if any(
            isinstance(s, Assign) and isinstance(s.value, Call) and s.value.op == "box_load"
            for s in statements((before,))
        ):
            return True
    return True
