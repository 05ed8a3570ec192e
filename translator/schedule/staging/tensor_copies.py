"""Loads and stores of boxes as tensor copies: the maps that they need, and the operations that take their place.

In: the plan of a kernel's rings. Out: statements for `RingPlan.replaced`, maps and guards in the plan.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeGuard

from ...analysis.box_dimensions import BoxDim, BoxKind
from ...analysis.boxes import Box, NotABox, find_box, parameter_text
from ...analysis.induction import Induction
from ...analysis.meeting import Places, Trips
from ...analysis.settled import Place, place_of_making
from ...artifact import TensorMap
from ...ir.nodes import Assign, Call, Effect, Expr, For, If, Literal, Note, Statement, Use, Variable, While
from ...ir.structured import is_atomic
from ...ir.tensor_names import map_name, tensor_word
from ...ir.types import ValueType
from ...ir.walk import expressions, nested, statements
from ...language.dtypes import PointerType, int32, void
from ..accesses.pointers import roots_of
from ..products.dots import dot_statements
from ..products.instructions import whole_pieces
from ..products.shared_tiles import SharedTile, fits
from .persistence import programs_are_apart
from .read_once import boxes_across
from .ring_plan import RingFacts, RingPlan

UNBOUNDED = str(1 << 31)  # the size of a dimension that the kernel does not bound
MADE_RANK = 2  # dimensions of maps that the kernel makes
LOOPS_THAT_PAY = 1  # for which a map is made once, besides the one that loads ahead: for a tile alone it costs more
LARGE_SUM = 128 * 256  # elements of a tile whose products take long enough to make the next one's map meanwhile
SHORT_ROWS = "rows end within 16 bytes, which a tensor copy writes whole"
NO_BOUND = (1 << 31) - 1  # the same where the kernel makes the map, of sizes that are ints


def boxed_tile(plan: RingPlan, variable: Variable, box: Box) -> SharedTile:
    """The format of a tile that is a box: contiguous as the tensor is."""
    tile = plan.dots.staged[variable]
    return replace(tile, fast=box.dims[0].axis if box.dims[0].axis is not None else tile.fast)


def why_not_copied(plan: RingPlan, box: Box, assumed: SharedTile, tile: SharedTile) -> str:
    """Why a box cannot be copied to (or from) a shared tile; "" when it can."""
    if (
        not _holds_without_guards(box) and not plan.given.options.guards
    ):  # any box needs sizes and strides that are not zero
        return f"needs {parameter_text(box.guards[0]) if box.guards else 'sizes and strides above zero'}"
    if box.base not in plan.given.read_only:
        return f"{box.base.name} is written by the kernel"
    other = tile.fast != assumed.fast and (tile.itemsize != 2 or not fits(tile.shape, tile.fast, tile.itemsize))
    if box.dims[0].axis != tile.fast or other:
        return "not contiguous along the axis that the instruction needs"
    return ""


def _holds_without_guards(box: Box) -> bool:
    """Whether a box is right whatever the arguments are: maps that the kernel makes may be of empty tensors."""
    return bool(box.made_of) and not box.guards


def find_any_box(
    plan: RingPlan,
    statement: Assign | Effect,
    loop: For | None,
    shared: bool = False,
    induction: Induction | None = None,
) -> Box | NotABox:
    """The box of a load or store: of a map that the launcher encodes, or else of one that the kernel makes.

    Neighbours may have `shared` elements where the reader of the box spreads them. The `induction` may know more than the plan's.
    """
    induction = induction or plan.given.induction
    box = find_box(statement, plan.given.kernel, plan.given.facts, induction, BoxKind(shared=shared))
    changed = plan.given.induction.changed[loop] if loop else frozenset()
    fixed = plan.given.settled - changed
    if isinstance(box, Box) or not fixed:
        return box
    made = find_box(statement, plan.given.kernel, plan.given.facts, induction, BoxKind(fixed=fixed, shared=shared))
    if not isinstance(made, Box) or len(made.dims) != MADE_RANK or made.made_of & changed:
        return box
    if any(plan.given.facts.assignments[variable] != 1 for variable in made.made_of):
        return box
    place = _place(plan, made, statement)
    if place is not None and place.loops - (loop is not None) < LOOPS_THAT_PAY and not _tile_pays(plan):
        return NotABox("its tensor map, made in the kernel, would serve one tile")
    return box if place is None else made


def _tile_pays(plan: RingPlan) -> bool:
    """Whether even a map for one tile pays: it is made under the products of the tile before, and these take long enough."""
    loops = [s for s in statements(plan.given.kernel.body) if isinstance(s, (For, While))]
    largest = max((math.prod(call.type.shape) for _, call in dot_statements(plan.given.kernel)), default=0)
    return len(loops) == 1 and largest >= LARGE_SUM and programs_are_apart(plan.given)


def _place(plan: RingPlan, box: Box, statement: Statement) -> Place | None:
    """Where the kernel can make the map of a box."""
    line = box.place.span.line if box.place is not None and box.place.span is not None else 0
    return place_of_making(plan.given.kernel, box.made_of, line, statement)


def box_load(
    plan: RingPlan, statement: Assign, box: Box, tile: SharedTile, loop: Variable, target: Variable
) -> Statement:
    """The tensor copy that takes the place of a load in a ring's loop, whose variable is `loop`, and brings the `target`."""
    name = _map(plan, box, tile, statement)
    starts = tuple(dim.start for dim in reversed(box.dims))
    axes = tuple(dim.axis for dim in reversed(box.dims))
    call = Call(
        target.type,
        "box_load",
        starts,
        (("map", name), ("base", box.base), ("axes", axes), *_eviction(plan, statement, box, loop)),
        span=statement.value.span,
    )
    return replace(statement, targets=(target,), value=call)


def _eviction(plan: RingPlan, statement: Assign, box: Box, loop: Variable) -> tuple[tuple[str, object], ...]:
    """What is known of how long L2 should keep a loaded tile: by the program's own word, or by who else reads it."""
    policy = statement.value.attribute("eviction_policy") if isinstance(statement.value, Call) else ""
    across = () if policy or box.made_of else boxes_across(plan.given, box, loop)  # sizes that are not known beforehand
    return (("eviction_policy", policy), ("across", across))


def _map(plan: RingPlan, box: Box, tile: SharedTile, statement: Assign | Effect) -> str:
    """The tensor map of a box that a statement copies, one for all boxes that can share it."""
    element = box.base.type.element
    if not isinstance(element, PointerType):
        raise TypeError("not a pointer")
    itemsize = element.element_ty.itemsize
    sides = {tile.fast: tile.line, tile.slow: tile.lines}
    lengths = tuple(sides.get(dim.axis, 1) if dim.axis is not None else 1 for dim in box.dims)
    place = _place(plan, box, statement) if box.made_of else None
    sizes, strides = _in_parameters(box, itemsize) if place is None else ((), ())
    key: tuple[object, ...] = (box.base, lengths, sizes, strides, tile.swizzle)
    if place is not None:
        described = tuple((dim.size, dim.stride) for dim in box.dims)
        key = (box.place, lengths, described, tile.swizzle, place.statement, place.behind)
    if key not in plan.maps:
        word, known = tensor_word(box.base.name), {one.name for one in plan.maps.values()}
        endings = itertools.chain(("", "_other"), ("_further" * count for count in itertools.count(1)))
        name = next(choice for ending in endings if (choice := map_name(word + ending)) not in known)
        made = place is not None
        one = TensorMap(name, element.element_ty, box.base.name, sizes, strides, lengths, tile.swizzle, made)
        plan.maps[key] = one
        if place is not None:
            _add_making(plan, one, box, isinstance(statement, Assign), place)
    for guard in box.guards:
        plan.guards.setdefault(parameter_text(guard))
    return plan.maps[key].name


def _add_making(plan: RingPlan, one: TensorMap, box: Box, loads: bool, place: Place) -> None:
    """Adds the statement that makes a map, as part of the line that it stands beside."""
    beside, origin = place.statement, replace(place.statement.origin, note="")
    if isinstance(beside, Note):  # that line became no code; now it does
        plan.replaced[beside] = Note(origin)
    sizes = (dim.size or Literal(ValueType(int32), NO_BOUND) for dim in reversed(box.dims))
    strides = (dim.stride for dim in reversed(box.dims[1:]))
    args = (box.place or Use(box.base.type, box.base), *sizes, *strides)
    call = Call(ValueType(void), "make_map", args, (("map", one.name), ("loads", loads)))
    add = plan.add_behind if place.behind else plan.add_before
    add(beside, Effect(origin, call))


def _in_parameters(box: Box, itemsize: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Sizes in elements and strides in bytes, for the launcher."""
    sizes = tuple(parameter_text(dim.size) if dim.size is not None else UNBOUNDED for dim in box.dims)
    return sizes, tuple(_bytes(dim.stride, itemsize) for dim in box.dims[1:])


def _bytes(stride: Expr, itemsize: int) -> str:
    text = parameter_text(stride)
    text = text if text.isidentifier() or text.isdigit() else f"({text})"
    return f"{text} * {itemsize}" if itemsize > 1 else text


def copy_stores(plan: RingPlan) -> None:
    """Stores of tiles that are boxes become tensor copies too, where nothing else touches the tensor."""
    stores = {s: roots_of(s.call.args[0], plan.given.sources) for s in statements(plan.given.kernel.body) if _stores(s)}
    read = _read_through(plan.given)
    boxes: dict[Effect, Box] = {}
    for statement in stores:
        if statement.call.args[0].type.rank != 2:
            continue
        box = find_any_box(plan, statement, None)
        if isinstance(box, Box) and not _lies_in_shared_memory(statement.call.args[1].type, box):
            box = NotABox("a side is no power of two, or too short for whole chunks of shared memory")
        if isinstance(box, Box) and box.whole is not None and not box.made_of:
            size = parameter_text(box.dims[0].size) if box.dims[0].size is not None else ""
            box = NotABox(f"rows of {size} elements may end within 16 bytes, which a tensor copy writes whole")
        if isinstance(box, NotABox):
            plan.reasons.setdefault(f"store: {box.reason}")
        elif not (plan.given.options.guards or _holds_without_guards(box)):
            continue
        elif box.dims[0].axis is not None and box.base not in read:
            boxes[statement] = box
    places = Places(plan.given.facts.definitions, plan.given.kernel.body)
    loops = [(s, set(nested(s))) for s in statements(plan.given.kernel.body) if isinstance(s, (For, While))]
    for statement, box in boxes.items():
        of_tensor = [store for store, roots in stores.items() if box.base in roots]
        if boxes.keys() >= set(of_tensor):  # threads' own stores would overtake copies
            again = _overwrites(statement, of_tensor, boxes, loops, places)
            plan.replaced[statement] = _box_store(plan, statement, box, again)


def _overwrites(
    later: Effect,
    stores: Sequence[Effect],
    boxes: Mapping[Effect, Box],
    loops: Sequence[tuple[For | While, set[Statement]]],
    places: Places,
) -> bool:
    """Whether a store may overwrite what its tensor's `stores` have copied out: an earlier one, or one of an earlier trip."""
    for number, earlier in enumerate(stores):
        ways: list[Trips | None] = [None] if number < stores.index(later) else []
        ways += [places.trips(loop) for loop, inside in loops if {earlier, later} <= inside]
        if any(not _are_apart(boxes[earlier], boxes[later], way, places) for way in ways):
            return True
    return False


def _stores(statement: Statement) -> TypeGuard[Effect]:
    return isinstance(statement, Effect) and statement.call.op == "store"


def _read_through(given: RingFacts) -> set[Variable]:
    """The pointers through which the kernel loads, or changes what they point to by atomics."""
    exprs = (expr for s in statements(given.kernel.body) for expr in expressions(s) if isinstance(expr, Call))
    reads = (expr for expr in exprs if expr.op == "load" or is_atomic(expr))
    return {root for expr in reads for root in roots_of(expr.args[0], given.sources)}


def _lies_in_shared_memory(type_: ValueType, box: Box) -> bool:
    """Whether a tile that is to be copied out has a format there."""
    fast = box.dims[0].axis
    return fast is not None and whole_pieces(type_.shape) and fits(type_.shape, fast, type_.dtype.itemsize)


def _are_apart(one: Box, other: Box, trips: Trips | None, places: Places) -> bool:
    """Whether two boxes of a tensor do not meet along one of its dimensions, the other one some trips later."""
    if [(dim.size, dim.stride) for dim in one.dims] != [(dim.size, dim.stride) for dim in other.dims]:
        return False
    for left, right in zip(one.dims, other.dims, strict=True):
        first, second = places.of(_positions(left)), places.of(_positions(right))
        if first is not None and second is not None and places.meet(first, second, trips) is False:
            return True
    return False


def _positions(dim: BoxDim) -> Expr:
    """The coordinates of a box along a dimension."""
    type_ = ValueType(dim.start.type.element, (dim.side,))
    steps = Call(type_, "arange", (), (("start", 0), ("end", dim.side)))
    return Call(type_, "add", (Call(type_, "broadcast", (dim.start,)), steps))


def _box_store(plan: RingPlan, statement: Effect, box: Box, again: bool) -> Statement:
    value = statement.call.args[1]
    tile = SharedTile(tuple(map(int, value.type.shape)), box.dims[0].axis or 0, value.type.dtype.itemsize)
    name = _map(plan, box, tile, statement)
    starts = tuple(dim.start for dim in reversed(box.dims))
    axes = tuple(dim.axis for dim in reversed(box.dims))
    attributes = (("map", name), ("base", box.base), ("axes", axes), ("overwrites", again))
    call = Call(ValueType(void), "box_store", (value, *starts), attributes, span=statement.call.span)
    copy = replace(statement, call=call)
    if box.whole is None:
        return copy
    # Of 16 bytes that reach beyond the end of a row, hardware writes what lies behind it too.
    by_threads = replace(statement, origin=statement.origin.noted(SHORT_ROWS))
    return If(statement.origin, box.whole, (copy,), (by_threads,))
