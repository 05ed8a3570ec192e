"""Which loads of a loop threads make ahead for themselves: tiles that are used in registers, not by dots from shared memory.

In: the plan of a kernel's rings and a loop. Out: the loads, and how many stages pay. Every thread copies the elements that
it will hold to places of its own and reads them back where the load stands, so that nobody waits for anybody. A scalar
goes the same way: it is one element that all threads hold, and loaded where it stands it would have all of them wait for memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ...analysis.affine import NotAffineError
from ...analysis.coordinates import Reader
from ...analysis.facts import Facts
from ...artifact import Target
from ...hardware import ACCESS_BYTES, COPY_BYTES, REGISTER_STEP, WARP_SIZE, WORD_BYTES
from ...ir.nodes import Assign, Call, For, Kernel, Literal, Statement, Variable
from ...ir.structured import assigned_call, assigns, is_elementwise
from ...ir.types import padded
from ...ir.walk import statements, top_statements, used_variables
from ...language.dtypes import PointerType
from ..accesses.access import is_zero, plan_load
from ..accesses.pointers import roots_of
from ..tiles.layout import Layout, blocked
from ..tiles.recomputed import choose_recomputed, is_exchange
from ..tiles.registers import HeldTiles, blocks_that_fit, peak_registers
from .read_ahead import Found, load_in_any_trip
from .ring_plan import RingPlan, Rings

if TYPE_CHECKING:
    from ..plan import Schedule

FEW_BLOCKS = 2  # with more blocks on a multiprocessor, one loads while another computes
SHARED_FOR_REDUCTIONS = 4096  # bytes of a block that stages leave to reductions that end in one number
LARGE_BLOCK = 512  # threads of a block, of which two leave few registers beside tiles
ROOM_FOR_ADDRESSES = 40  # registers that a thread has beside its tiles: it takes about half of them to load ahead
OVERLAPS = 8  # elements of a tile for each in memory, of a table that all lines of a tile are cut from
LEAST_BYTES = 4096  # of a stage, in a loop without dots: less is on its way soon enough


def may_load_ahead(loop: For, top: list[Statement]) -> bool:
    """Whether loading ahead could pay in a loop without dots, by the sizes of its tiles alone."""
    calls = [s.value for s in top if isinstance(s, Assign) and isinstance(s.value, Call)]
    tiles = [call.type for call in calls if call.op == "load" and call.type.is_tile and not call.type.is_pointer]
    size = sum(math.prod(map(padded, type_.shape)) * type_.dtype.itemsize for type_ in tiles)
    return size >= LEAST_BYTES or (bool(tiles) and dict(loop.options).get("num_stages") is not None)


def own_loads(plan: RingPlan, loop: For, top: list[Statement]) -> list[Found]:
    """The loads among the `top` statements of a loop that can be made ahead."""
    found: list[Found] = []
    for statement in top:
        if not isinstance(statement, Assign) or not is_plain_load(plan, statement):
            continue
        if statement.target in plan.not_ahead:
            continue
        one = load_in_any_trip(plan, statement, loop, top)
        if one is None or _asks_again(one) or _is_overlapping(plan, statement):
            continue
        changing = {loop.variable, *(total.variable for total in one.totals)}
        if any(changing & set(used_variables(call.args[0])) for call in one.calls):
            found.append(one)
    return found


def loads_not_ahead(kernel: Kernel, facts: Facts, schedule: Schedule) -> frozenset[Variable]:
    """The tiles that would be loaded where they stand, from places that are known for the copies of later trips alone.

    Threads copy what they hold where `cp.async` has copies of that size, which the layouts decide; the other loads of a ring
    stay where they are. Their addresses follow from the trip, but for sums of numbers from memory (`running_totals.py`).
    """
    sums = {variable for ring in schedule.rings.rings for variable in ring.running}
    own = {variable for ring in schedule.rings.rings for variable in ring.own if variable.type.is_tile}
    loads = (s for s in statements(kernel.body) if assigns(s, "load") and s.target in own - {*schedule.block_copies})
    by_sums = [s for s in loads if sums & set(used_variables(s.value))]
    return frozenset(s.target for s in by_sums if not is_copied_whole(s, schedule.layouts, facts))


def is_copied_whole(load: Assign, layouts: Mapping[Variable, Layout], facts: Facts) -> bool:
    """Whether `cp.async` can make the copies of what a thread holds of a load."""
    return _copy_bytes(load, layouts, facts) in COPY_BYTES


def _copy_bytes(load: Assign, layouts: Mapping[Variable, Layout], facts: Facts) -> int:
    """The bytes that one access brings a thread of a load."""
    width, target = 1, load.target
    if target.type.is_tile:
        pointer, *rest = load.value.args  # type: ignore[attr-defined]
        mask = rest[0] if rest else None
        width = plan_load(pointer, mask, layouts[target], facts, facts.environments[load]).width
    return width * target.type.dtype.itemsize


def _asks_again(one: Found) -> bool:
    """Whether the iteration that reads a load needs a mask of numbers that are those of a later iteration by then.

    Copies leave zeros outside of the mask; anything else is put there when the elements are read.
    """
    _, *rest = next(one.calls).args
    numbers = {own.target for _, own in one.numbers} | {total.variable for total in one.totals}
    return len(rest) > 1 and not is_zero(rest[1]) and bool(numbers & set(used_variables(rest[0])))


def _is_overlapping(plan: RingPlan, load: Assign) -> bool:
    """Whether many elements of a tile are few of memory, such as those of a table by differences of rows and columns.

    Loaded where they stand they are in the cache, at places that have an address in common; copies would each have their own.
    """
    type_ = load.target.type
    pointer = plan.induction.value_at(load.value.args[0], load) if type_.is_tile else None  # type: ignore[attr-defined]
    if pointer is None:
        return False
    try:
        terms = Reader(numeric=True).sum(pointer)
    except NotAffineError:
        return False
    lanes = [term for term in terms if term.lane is not None]
    moving = {term.lane for term in lanes}  # along any other axis neighbours are one element, which is copied once
    if any(term.unknowns for term in lanes) or any(side > 1 and n not in moving for n, side in enumerate(type_.shape)):
        return False
    different = 1 + sum(abs(term.number) * (type_.shape[term.lane or 0] - 1) for term in lanes)
    return different * OVERLAPS < math.prod(type_.shape)


def large_loads(own: list[Found]) -> list[Found]:
    """The loads, if tiles among them are so large that it pays beside tensor copies: weights that a dot's operand is made of.

    A row of statistics is there soon enough, unless the loop has several products, which wait for one another, or computes an
    operand in registers, and there are registers to spare (`loads_more`).
    """
    return own if any(_tile_bytes(one.statement.target) >= LEAST_BYTES for one in own) else []


def several_products(block: Iterable[Statement]) -> bool:
    """Whether there is more than one dot in a block."""
    values = [s.value for s in block if isinstance(s, Assign)]
    return sum(isinstance(value, Call) and value.op == "dot" for value in values) > 1


def may_load_more(kernel: Kernel, schedule: Schedule) -> bool:
    """Whether a loop of tensor copies whose products wait for small loads has some, and registers for their addresses."""
    copied = {ring.loop for ring in schedule.rings.rings if ring.kind == "tma" and not ring.own}
    if schedule.spare_registers < ROOM_FOR_ADDRESSES or not copied:
        return False
    loops = [
        list(top_statements(s.body)) for s in statements(kernel.body) if isinstance(s, For) and s.variable in copied
    ]
    computed = {key for key, dot in schedule.dots.items() if dot.fragment is not None}
    waiting = [body for body in loops if several_products(body) or not computed.isdisjoint(body)]
    values = [s.value for body in waiting for s in body if isinstance(s, Assign)]
    return any(isinstance(value, Call) and value.op == "load" for value in values)


def loads_more(more: Schedule, less: Schedule) -> bool:
    """Whether a plan with small loads ahead has any, and pays with nothing but stages, of which there are enough."""

    def rest(plan: Schedule) -> list[tuple[Variable, bool]]:
        return [(ring.loop, ring.stagger is not None) for ring in plan.rings.rings]

    own = [[ring.own for ring in plan.rings.rings] for plan in (more, less)]
    enough = all(ring.stages >= FEW_BLOCKS for ring in more.rings.rings)
    same = rest(more) == rest(less) and more.blocks_per_multiprocessor == less.blocks_per_multiprocessor
    return same and enough and own[0] != own[1]


def _tile_bytes(variable: Variable) -> int:
    """Bytes of a tile, with its padding; none of a scalar."""
    type_ = variable.type
    return math.prod(map(padded, type_.shape)) * type_.dtype.itemsize if type_.is_tile else 0


def is_plain_load(plan: RingPlan, statement: Assign, only_value: bool = True) -> bool:
    """Whether a load brings elements into registers, from memory that the kernel does not write, without special wishes.

    As a rule it is the `only_value` of its variable, which then stands for what was copied.
    """
    call, target = statement.value, statement.targets[0]
    if not isinstance(call, Call) or call.op != "load" or target in plan.dots.staged:
        return False
    pointee = call.args[0].type.element
    if (only_value and plan.facts.assignments[target] != 1) or target in plan.facts.unused:
        return False
    if not isinstance(pointee, PointerType) or pointee.element_ty.is_bool():
        return False
    if call.attribute("volatile") or call.attribute("cache_modifier"):
        return False
    if len(call.args) > 2 and not isinstance(call.args[2], Literal):
        return False
    return roots_of(call.args[0], plan.sources) <= plan.read_only


def own_stages(plan: RingPlan, loop: For, held: tuple[Variable, ...]) -> int:
    """How many trips ahead threads load what they will hold in a loop without dots; 0 where it does not pay.

    One tile less than `num_stages` asks for: the last is in registers. Blocks hide each other's loads where several fit on
    a multiprocessor, so stages take no more than what the registers leave unused, unless the loop itself asks for them.
    """
    threads = plan.options.num_warps * WARP_SIZE
    dots = any(inner in plan.dots.plans for inner in statements(loop.body))
    asked = dict(loop.options).get("num_stages")
    bytes_of_tiles = sum(map(_tile_bytes, held))
    bytes_of_stage = bytes_of_tiles + sum(threads * v.type.dtype.itemsize for v in held if not v.type.is_tile)
    wanted = (plan.options.num_stages if asked is None else int(asked)) - 1
    plan.blocks = plan.blocks or _blocks(plan, threads)  # the same for every loop
    blocks = plan.blocks
    if not bytes_of_tiles or (asked is None and not dots and (blocks > FEW_BLOCKS or bytes_of_tiles < LEAST_BYTES)):
        return 0
    room = plan.target.max_dynamic_shared_bytes // (blocks if asked is None else 1) - SHARED_FOR_REDUCTIONS
    return max(min(wanted, room // bytes_of_stage), 0)


def blocks_beside_stages(held: HeldTiles, rings: Rings, threads: int, most_blocks: int, target: Target) -> int | None:
    """The blocks that registers leave room for as stages do; None where ptxas may decide.

    Two blocks of 512 threads have 64 registers each: for a row that takes 32, one ptxas stays there by itself and another takes
    79 or 90, and the second block is gone. Smaller blocks have registers to spare, and take more if they are told so. Widened
    elements and copies of single ones, each with an address, take more registers than is foreseen, and would spill.

    Args:
      held: the tiles in registers.
      rings: what the kernel's loops load ahead.
      threads: threads of a block.
      most_blocks: how many fit by their shared memory.
      target: the architecture.
    """
    own = {tile for ring in rings.rings for tile in ring.own if tile.type.is_tile}
    if threads < LARGE_BLOCK or not own or not own <= held.layouts.keys() or any(r.kind != "own" for r in rings.rings):
        return None
    loads = [s for s in statements(held.kernel.body) if assigns(s, "load") and s.targets[0] in own]
    widest = all(_copy_bytes(load, held.layouts, held.facts) == ACCESS_BYTES for load in loads)
    as_they_are = all(tile.type.dtype.itemsize == WORD_BYTES for tile in own)
    # Sums and extrema of a block of one row are tiles of one element, which count no more than those of a row alone.
    tiles = held.without({variable for variable in held.layouts if set(variable.type.shape) == {1}})
    fit = blocks_that_fit(peak_registers(tiles) + REGISTER_STEP, threads, target)
    return FEW_BLOCKS if widest and as_they_are and min(fit, most_blocks) >= FEW_BLOCKS else None


def _blocks(plan: RingPlan, threads: int) -> int:
    """How many blocks fit on a multiprocessor, each tile shared out evenly among the threads."""
    layouts: dict[Variable, Layout] = {}
    exchanges: list[Assign] = []
    nowhere = plan.facts.index | plan.facts.absorbed | plan.facts.unused
    for statement in statements(plan.kernel.body):
        if not isinstance(statement, Assign):
            continue
        value = statement.value
        if is_elementwise(value) or len(statement.targets) == 1:
            for target in statement.targets:
                if target.type.is_tile and target not in nowhere:
                    layouts[target] = _shared_out(target.type.shape, threads)
        reduction = assigned_call(statement, "reduce")
        if reduction is not None and is_exchange(statement, _shared_out(reduction.args[0].type.shape, threads)):
            exchanges.append(statement)
    in_loops = {inner for s in statements(plan.kernel.body) if isinstance(s, For) for inner in statements(s.body)}
    outside = any(exchange not in in_loops for exchange in exchanges)
    held = HeldTiles(plan.kernel, plan.facts, layouts)
    blocks = choose_recomputed(held, exchanges, frozenset(), plan.target).blocks or 0
    # Room is made for a block more, and has none left for addresses of stages; but loops over rows are often launched with
    # few blocks, so that a third one may never come.
    if blocks and (outside or blocks <= FEW_BLOCKS):
        return FEW_BLOCKS + 1
    return blocks_that_fit(peak_registers(held), threads, plan.target) or 1


def _shared_out(shape: tuple[int, ...], threads: int) -> Layout:
    return blocked(shape, threads, len(shape) - 1, 1)
