"""Which loops load ahead of their dots, and how.

In: a typed kernel with prepared dots. Out: the kernel in which such loads say where their elements lie in terms of the
loop's variable alone, so that any iteration's loads can be started from any other, and a `Ring` per loop:

- "tma": one thread of a warpgroup of its own starts tensor copies of whole boxes; the others wait for bytes, not threads.
  For loads that are boxes of a tensor (analysis/boxes.py), however the program spells them; on sm_90 with wgmma.
- "cp_async": every thread starts its share of the copies, `stages - 1` iterations ahead.

A load that depends on what an iteration computes is in no ring: it is made when its turn comes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ..analysis.boxes import Box, NotABox, find_box, parameter_text
from ..analysis.facts import Facts, find_facts
from ..analysis.induction import Induction, closed_forms
from ..artifact import Options, Target, TensorMap
from ..ir.nodes import (
    Assign,
    Call,
    CallFunction,
    Effect,
    Expr,
    For,
    If,
    Inlined,
    Kernel,
    Literal,
    Return,
    Statement,
    Use,
    Variable,
    While,
)
from ..ir.types import ValueType
from ..ir.walk import assigned_variables, bodies, expressions, statements, used_variables
from ..language.dtypes import PointerType, void
from .dots import Dots, dot_statements, operand_of, plan_dots
from .instructions import WGMMA_CAPABILITY, whole_pieces
from .pointers import read_only_pointers, roots_of, roots_written
from .producer import producible
from .shared_tiles import SharedTile, fits

UNBOUNDED = str(1 << 31)  # the size of a dimension that the kernel does not bound
MOST_STAGES = 8  # of tensor copies: more do not hide more latency


@dataclass(frozen=True, slots=True)
class Ring:
    """The tiles that a loop loads ahead.

    Attributes:
      loop: the loop's variable.
      kind: "tma" or "cp_async".
      tiles: the staged variables, in the order of their loads.
      stages: tiles of each that are in shared memory at once.
      counted: whether the stage follows from a running count, because the loop runs more than once or not from 0 by 1;
        otherwise from the loop's variable.
      overlapped: whether a dot may still run while the next iteration starts.
    """

    loop: Variable
    kind: str
    tiles: tuple[Variable, ...]
    stages: int
    counted: bool
    overlapped: bool


@dataclass(frozen=True, slots=True)
class Rings:
    """All rings of a kernel, the tensor maps that its copies use, and the conditions under which they are right."""

    rings: tuple[Ring, ...] = ()
    maps: tuple[TensorMap, ...] = ()
    guards: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()  # why loads are not tensor copies, for the header
    persistent: bool = False  # whether a block runs one program after another
    folded: frozenset[Variable] = frozenset()  # what the places of loads and stores were computed from

    def of(self, loop: Variable) -> Ring | None:
        """The ring of the loop with this variable."""
        return next((ring for ring in self.rings if ring.loop is loop), None)

    @property
    def has_producer(self) -> bool:
        """Whether a warpgroup of its own loads."""
        return any(ring.kind == "tma" for ring in self.rings)


@dataclass(slots=True)
class _Plan:
    """What has been decided so far."""

    kernel: Kernel
    facts: Facts
    dots: Dots
    induction: Induction
    options: Options
    target: Target
    read_only: frozenset[Variable]
    replaced: dict[int, Statement]
    rings: list[Ring]
    maps: dict[tuple[object, ...], TensorMap]
    guards: dict[str, None]
    reasons: dict[str, None]


def plan_rings(kernel: Kernel, options: Options, target: Target, most_stages: int) -> tuple[Kernel, Rings]:
    """See the module docstring; `most_stages` bounds every ring."""
    if not any(True for _ in dot_statements(kernel)) or most_stages < 2:
        return kernel, Rings()
    facts = find_facts(kernel)
    plan = _Plan(
        kernel, facts, plan_dots(kernel, facts, options, target), closed_forms(kernel, facts), options, target,
        read_only_pointers(kernel), {}, [], {}, {}, {},
    )  # fmt: skip
    loops = list(_loops(kernel.body, False))
    for loop, nested in loops:
        _plan_loop(plan, loop, nested, most_stages)
    if any(ring.kind == "tma" for ring in plan.rings):
        _box_stores(plan)
    repeated = sum(ring.kind == "tma" for ring in plan.rings) > 1
    persistent = _can_persist(kernel, loops, plan)
    rings = tuple(replace(ring, counted=ring.counted or repeated or persistent) for ring in plan.rings)
    body = _with(kernel.body, plan.replaced)
    folded = _sources(kernel, [s for s in statements(kernel.body) if id(s) in plan.replaced])
    found = Rings(
        rings, tuple(plan.maps.values()), tuple(plan.guards), tuple(plan.reasons), persistent, frozenset(folded)
    )
    return replace(kernel, body=body), found


def _can_persist(kernel: Kernel, loops: list[tuple[For, bool]], plan: _Plan) -> bool:
    """Whether a block may run one program after another, and gains by it: the next one's loads start under this one's end.

    Programs must not talk to each other: no atomics, and no loads of what is stored. Kernels that loop over programs
    themselves, or end early, stay as they are.
    """
    rings = [nested for loop, nested in loops if any(r.loop is loop.variable and r.kind == "tma" for r in plan.rings)]
    if len(rings) != 1 or rings[0]:
        return False
    stored = {v for v in roots_written(kernel)}
    for statement in statements(kernel.body):
        if isinstance(statement, Return):
            return False
        for expr in expressions(statement):
            if isinstance(expr, Call) and (expr.op.startswith("atomic_") or expr.op in ("device_assert", "barrier")):
                return False
            if isinstance(expr, Call) and expr.op == "load" and stored & roots_of(kernel, expr.args[0]):
                return False
    return True


def _sources(kernel: Kernel, replaced: list[Statement]) -> set[Variable]:
    """The variables that the operands of some statements were computed from."""
    found = {v for s in replaced for expr in expressions(s) for v in used_variables(expr)}
    changed = True
    while changed:
        changed = False
        for statement in statements(kernel.body):
            if isinstance(statement, Assign) and found & set(statement.targets):
                read = set(used_variables(statement.value))
                changed |= not read <= found
                found |= read
    return found


def with_stages(dots: Dots, rings: Rings) -> Dots:
    """The dots with as many stages of every staged tile as its ring has."""
    stages = {tile: ring.stages for ring in rings.rings for tile in ring.tiles}
    staged = {v: replace(tile, stages=stages.get(v, 1)) for v, tile in dots.staged.items()}
    return replace(dots, staged=staged)


def _loops(block: tuple[Statement, ...], inside: bool) -> Iterator[tuple[For, bool]]:
    for statement in block:
        match statement:
            case For():
                yield statement, inside
                yield from _loops(statement.body, True)
            case While():
                yield from _loops(statement.body, True)
            case If():
                yield from _loops(statement.then, inside)
                yield from _loops(statement.otherwise, inside)
            case Inlined():
                yield from _loops(statement.body, inside)


def top_statements(block: tuple[Statement, ...]) -> Iterator[Statement]:
    """The statements that every run of a block passes once: inlined functions are part of it."""
    for statement in block:
        if isinstance(statement, Inlined):
            yield from top_statements(statement.body)
        else:
            yield statement


def _plan_loop(plan: _Plan, loop: For, nested: bool, most_stages: int) -> None:
    loads = [s for s in top_statements(loop.body) if isinstance(s, Assign) and _is_staged_load(plan, s)]
    outside = _read_outside(plan, loop)
    loads = [statement for statement in loads if statement.target not in outside]
    if not loads or plan.options.num_stages < 2 or loop.variable in outside:
        return
    plain = isinstance(loop.start, Literal) and loop.start.value == 0
    plain = plain and isinstance(loop.step, Literal) and loop.step.value == 1
    boxes = _boxes(plan, loop, loads)
    if boxes is not None:
        for statement, box in zip(loads, boxes, strict=True):
            plan.replaced[id(statement)] = _box_load(plan, statement, box, _boxed_tile(plan, statement.target, box))
        tiles = tuple(statement.target for statement in loads)
        stages = min(_wanted_stages(plan, tiles), most_stages)
        counted = nested or not plain
        plan.rings.append(Ring(loop.variable, "tma", tiles, stages, counted, _overlapped(plan, loop, tiles)))
        return
    moved = []
    for statement in loads:
        if not roots_of(plan.kernel, statement.value.args[0]) <= plan.read_only:  # type: ignore[attr-defined]
            continue  # an earlier trip may store what this one loads
        call = _in_any_trip(plan, statement, loop)
        if call is not None:
            plan.replaced[id(statement)] = replace(statement, value=call)
            moved.append(statement.target)
    if moved:
        stages = min(plan.options.num_stages, most_stages)
        plan.rings.append(Ring(loop.variable, "cp_async", tuple(moved), stages, not plain, False))


def _is_staged_load(plan: _Plan, statement: Statement) -> bool:
    if not isinstance(statement, Assign) or statement.target not in plan.dots.staged:
        return False
    return isinstance(statement.value, Call) and statement.value.op == "load"


def _read_outside(plan: _Plan, loop: For) -> set[Variable]:
    """The variables that are read outside of a loop's body: they outlive a trip."""
    inside = {id(statement) for statement in statements(loop.body)}
    pending = [
        v for s in statements(plan.kernel.body) if id(s) not in inside for expr in expressions(s) for v in used_variables(expr)
    ]  # fmt: skip
    found: set[Variable] = set()
    while pending:
        variable = pending.pop()
        if variable not in found:
            found.add(variable)
            if variable in plan.facts.absorbed:  # spelled where it is used
                pending += used_variables(plan.facts.definitions[variable])
    return found


def _in_any_trip(plan: _Plan, statement: Assign, loop: For) -> Call | None:
    """A load whose operands are in terms of the loop's variable and of what the loop does not change; None if it cannot be."""
    changed = {v for inner in statements(loop.body) for v in assigned_variables(inner)}
    induction = replace(plan.induction, kept=plan.facts.index - changed)  # computed once, before the loop
    call = statement.value
    if not isinstance(call, Call):
        return None
    args: list[Expr] = []
    for arg in call.args:
        value = induction.value_at(arg, statement)
        while value is not None and (inside := next((v for v in used_variables(value) if v in changed), None)):
            definition = induction.definition(inside, statement)
            value = None if definition is None else _substituted(value, inside, definition)
        if value is None:
            return None
        args.append(value)
    return replace(call, args=tuple(args))


def _substituted(expr: Expr, variable: Variable, value: Expr) -> Expr:
    """An expression with a variable's value in its place."""
    if isinstance(expr, Use):
        return value if expr.variable is variable else expr
    if isinstance(expr, (Call, CallFunction)):
        return replace(expr, args=tuple(_substituted(arg, variable, value) for arg in expr.args))
    return expr


def _wanted_stages(plan: _Plan, tiles: tuple[Variable, ...]) -> int:
    """As many stages as shared memory has room for, up to what hides its latency, and at least as many as asked for.

    Warpgroups that multiply and load leave no registers for a second block, so that the memory is there to be used.
    """
    stage = sum(plan.dots.staged[tile].stage_bytes for tile in tiles)
    return max(plan.options.num_stages, min(MOST_STAGES, plan.target.max_dynamic_shared_bytes // stage))


def _boxes(plan: _Plan, loop: For, loads: list[Assign]) -> list[Box] | None:
    """The boxes of all loads of a loop; None, with the reason noted, when one is not."""
    if plan.target.capability != WGMMA_CAPABILITY or not _all_wgmma(plan, loads):
        return None
    if any(
        isinstance(s, For) and any(_is_staged_load(plan, inner) for inner in top_statements(s.body))
        for s in statements(loop.body)
    ):
        # The inner loop would wait for tiles that are loaded after it, or the other way round.
        plan.reasons.setdefault(f"{loads[0].target.name}: the loop around its load holds another one that loads ahead")
        return None
    boxes: list[Box] = []
    for statement in loads:
        box = find_box(statement, plan.kernel, plan.facts, plan.induction)
        if isinstance(box, Box):
            starts = tuple(dim.start for dim in box.dims)
            reason = _unusable(plan, box, plan.dots.staged[statement.target], _boxed_tile(plan, statement.target, box))
            if not producible(plan.kernel, loop, starts):
                reason = "its place depends on what the block computes together"
            box = NotABox(reason) if reason else box
        if isinstance(box, NotABox):
            plan.reasons.setdefault(f"{statement.target.name}: {box.reason}")
            return None
        boxes.append(box)
    return boxes


def _boxed_tile(plan: _Plan, variable: Variable, box: Box) -> SharedTile:
    """The format of a tile that is a box: contiguous as the tensor is."""
    tile = plan.dots.staged[variable]
    return replace(tile, fast=box.dims[0].axis if box.dims[0].axis is not None else tile.fast)


def _unusable(plan: _Plan, box: Box, assumed: SharedTile, tile: SharedTile) -> str:
    """Why a box cannot be copied to (or from) a shared tile; "" when it can."""
    if not plan.options.guards:  # any box needs sizes and strides that are not zero
        return f"needs {parameter_text(box.guards[0]) if box.guards else 'sizes and strides above zero'}"
    if box.base not in plan.read_only:
        return f"{box.base.name} is written by the kernel"
    other = tile.fast != assumed.fast and (tile.itemsize != 2 or not fits(tile.shape, tile.fast, tile.itemsize))
    if box.dims[0].axis != tile.fast or other:
        return "not contiguous along the axis that the instruction needs"
    return ""


def _all_wgmma(plan: _Plan, loads: list[Assign]) -> bool:
    wanted = {statement.target for statement in loads}
    for statement, call in dot_statements(plan.kernel):
        operands = {operand.variable for operand in map(operand_of, call.args[:2]) if operand}
        if operands & wanted and plan.dots.plans[id(statement)].instruction.kind != "wgmma":
            return False
    return True


def _overlapped(plan: _Plan, loop: For, tiles: tuple[Variable, ...]) -> bool:
    """Whether nothing in the loop but its dots touches their sums, and all operands are loaded by the ring."""
    dots = [(s, c) for s, c in dot_statements(plan.kernel) if any(s is other for other in statements(loop.body))]
    sums = {statement.target for statement, _ in dots}
    own = {id(statement) for statement, _ in dots}
    if not all(any(s is other for other in top_statements(loop.body)) for s, _ in dots):
        return False
    for _, call in dots:
        operands = [operand_of(arg) for arg in call.args[:2]]
        if any(operand is None or operand.variable not in tiles for operand in operands):
            return False
    for dot, call in dots:  # a copy from sum to sum would read what is on its way
        if len(call.args) < 3 or not isinstance(call.args[2], Use) or call.args[2].variable is not dot.target:
            return False
    for statement in statements(loop.body):
        if id(statement) in own:
            continue
        read = {v for expr in expressions(statement) for v in used_variables(expr)}
        if sums & (read | set(assigned_variables(statement))):
            return False
    return True


# ------------------------------------------------------------------------------------------------------ rewriting


def _box_load(plan: _Plan, statement: Assign, box: Box, tile: SharedTile) -> Statement:
    name = _map(plan, box, tile)
    starts = tuple(dim.start for dim in reversed(box.dims))
    axes = tuple(dim.axis for dim in reversed(box.dims))
    call = Call(
        statement.target.type,
        "box_load",
        starts,
        (("map", name), ("base", box.base), ("axes", axes)),
        span=statement.value.span,
    )
    return replace(statement, value=call)


def _map(plan: _Plan, box: Box, tile: SharedTile) -> str:
    """The tensor map of a box, made once for all boxes that can share it."""
    element = box.base.type.element
    if not isinstance(element, PointerType):
        raise TypeError("not a pointer")
    itemsize = element.element_ty.itemsize
    sides = {tile.fast: tile.line, tile.slow: tile.lines}
    lengths = tuple(sides.get(dim.axis, 1) if dim.axis is not None else 1 for dim in box.dims)
    sizes = tuple(parameter_text(dim.size) if dim.size is not None else UNBOUNDED for dim in box.dims)
    strides = tuple(_bytes(dim.stride, itemsize) for dim in box.dims[1:])
    key = (box.base, lengths, sizes, strides, tile.swizzle)
    if key not in plan.maps:
        stem = box.base.name.removesuffix("_ptr").removesuffix("_desc")
        names = {known.name for known in plan.maps.values()}
        words = (f"{stem}_{'further_' * count}map" for count in itertools.count())
        name = next(
            choice
            for choice in (f"{stem}_map", f"{stem}_other_map", *itertools.islice(words, 1, len(names) + 2))
            if choice not in names
        )
        base = box.base.name
        plan.maps[key] = TensorMap(name, element.element_ty, base, sizes, strides, lengths, tile.swizzle)
    for guard in box.guards:
        plan.guards.setdefault(parameter_text(guard))
    return plan.maps[key].name


def _bytes(stride: Expr, itemsize: int) -> str:
    text = parameter_text(stride)
    return f"{text if text.isidentifier() or text.isdigit() else f'({text})'} * {itemsize}"


def _box_stores(plan: _Plan) -> None:
    """Stores of tiles that are boxes become tensor copies too, where nothing else touches the tensor."""
    boxes: dict[int, tuple[Effect, Box]] = {}
    for statement in statements(plan.kernel.body):
        if not isinstance(statement, Effect) or statement.call.op != "store" or statement.call.args[0].type.rank != 2:
            continue
        box = find_box(statement, plan.kernel, plan.facts, plan.induction)
        if isinstance(box, Box) and not _lies_in_shared_memory(statement.call.args[1].type, box):
            box = NotABox("a side is no power of two, or too short for whole chunks of shared memory")
        if isinstance(box, NotABox):
            plan.reasons.setdefault(f"store: {box.reason}")
        elif plan.options.guards and box.dims[0].axis is not None and not _is_read(plan, box.base):
            boxes[id(statement)] = (statement, box)
    for statement, box in list(boxes.values()):
        if all(id(other) in boxes for other in _stores(plan, box.base)):  # threads' own stores would overtake copies
            plan.replaced[id(statement)] = _box_store(plan, statement, box)


def _lies_in_shared_memory(type_: ValueType, box: Box) -> bool:
    """Whether a tile that is to be copied out has a format there."""
    fast = box.dims[0].axis
    return fast is not None and whole_pieces(type_.shape) and fits(type_.shape, fast, type_.dtype.itemsize)


def _box_store(plan: _Plan, statement: Effect, box: Box) -> Statement:
    value = statement.call.args[1]
    tile = SharedTile(tuple(map(int, value.type.shape)), box.dims[0].axis or 0, value.type.dtype.itemsize)
    name = _map(plan, box, tile)
    starts = tuple(dim.start for dim in reversed(box.dims))
    axes = tuple(dim.axis for dim in reversed(box.dims))
    in_loop = any(
        isinstance(s, (For, While)) and any(inner is statement for body in bodies(s) for inner in statements(body))
        for s in statements(plan.kernel.body)
    )
    repeated = in_loop or len(_stores(plan, box.base)) > 1
    attributes = (("map", name), ("base", box.base), ("axes", axes), ("repeated", repeated))
    call = Call(ValueType(void), "box_store", (value, *starts), attributes, span=statement.call.span)
    return replace(statement, call=call)


def _stores(plan: _Plan, base: Variable) -> list[Effect]:
    """All stores through a pointer argument."""
    return [
        s for s in statements(plan.kernel.body)
        if isinstance(s, Effect) and s.call.op == "store" and base in roots_of(plan.kernel, s.call.args[0])
    ]  # fmt: skip


def _is_read(plan: _Plan, pointer: Variable) -> bool:
    """Whether the kernel loads through a pointer argument, or changes what it points to by atomics."""
    for statement in statements(plan.kernel.body):
        for expr in expressions(statement):
            reads = isinstance(expr, Call) and (expr.op == "load" or expr.op.startswith("atomic_"))
            if reads and pointer in roots_of(plan.kernel, expr.args[0]):  # type: ignore[attr-defined]
                return True
    return False


def _with(block: tuple[Statement, ...], replaced: Mapping[int, Statement]) -> tuple[Statement, ...]:
    """The block with some statements, at any depth, replaced by others."""
    result: list[Statement] = []
    for statement in block:
        statement = replaced.get(id(statement), statement)
        match statement:
            case If():
                then, otherwise = _with(statement.then, replaced), _with(statement.otherwise, replaced)
                statement = replace(statement, then=then, otherwise=otherwise)
            case For() | Inlined():
                statement = replace(statement, body=_with(statement.body, replaced))
            case While():
                prelude, body = _with(statement.prelude, replaced), _with(statement.body, replaced)
                statement = replace(statement, prelude=prelude, body=body)
        result.append(statement)
    return tuple(result)
