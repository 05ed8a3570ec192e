"""What the lowering of a kernel starts from: names that are taken, where variables are declared, arrays that are known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from ..analysis.facts import Facts
from ..analysis.origins import Origins
from ..analysis.overflow import wrapping_calls
from ..ir.c_names import MATH_NAMES
from ..ir.nodes import Assign, Call, For, Kernel, Note, Statement, Variable
from ..ir.walk import all_expressions, expressions, readers_of, statements
from ..ops.registry import OPS
from ..schedule.accesses.agreed_loads import agreed_loads
from ..schedule.accesses.common_tests import loads_with_common_tests
from ..schedule.accesses.pointers import lasting_loads, read_only_pointers
from ..schedule.plan import Schedule
from ..schedule.tiles.layout import Layout
from .accesses.named_masks import Spelling
from .context import Context
from .given_names import given_names
from .known import Known, MemoryFacts
from .shared.memory import SharedMemory
from .shared.turns import Sharing, Turns, find_turns
from .text.axis_names import UNNAMED_TILE, AxisNames
from .text.includes import dtypes_of
from .text.names import Names, entry_name
from .text.needs import Needs
from .text.scopes import Scopes, find_scopes
from .text.spell import Arithmetic
from .text.unit import Shared
from .text.user_constants import doubles, named_values
from .versions import versions_of_one_array


def first_context(
    kernel: Kernel, facts: Facts, schedule: Schedule, sharing: Sharing, named_masks: Mapping[Variable, Spelling]
) -> Context:
    """What a lowering starts from: the names that are taken, the arrays that are known, the masks that have names."""
    entry = entry_name(kernel.name, named_values(kernel))
    names = Names([entry, *named_values(kernel), *_variable_names(kernel)], _called(kernel))
    axis_names = AxisNames(
        _layouts(kernel, schedule), names, schedule.options.num_warps, schedule.rings.has_producer, schedule.rings.teams
    )
    scopes = _scopes(kernel, facts, schedule, names)
    given = given_names(kernel, facts, schedule, scopes)
    names.results.update(_results(kernel))
    _take_names(names, kernel, schedule, given)
    names.array_of.update(versions_of_one_array(kernel, facts, schedule, scopes, {*given, *given.values()}))
    known = Known(
        kernel,
        facts,
        schedule,
        readers=readers_of(kernel.body),
        arithmetic=Arithmetic(
            wrapping_calls(kernel, facts.definitions), doubles(kernel), schedule.small_offsets.offsets
        ),
        memory=_memory(kernel, facts),
        given=frozenset(given.values()),
        named_masks=named_masks,
    )
    shared = SharedMemory(names, _turns(kernel, facts, schedule, sharing))
    context = Context(known, scopes, names, axis_names, shared, Needs(names))
    for variable in sorted(schedule.in_shared, key=lambda v: v.key):
        context.shared.arrays[variable, "tile"] = _tile_in_shared(context, variable)
    return context


def _memory(kernel: Kernel, facts: Facts) -> MemoryFacts:
    return MemoryFacts(
        read_only_pointers(kernel),
        Origins(kernel.body),
        lasting_loads(kernel),
        agreed_loads(kernel),
        loads_with_common_tests(kernel, facts),
    )


def _turns(kernel: Kernel, facts: Facts, schedule: Schedule, sharing: Sharing) -> Turns | None:
    """The turns of arrays: of staged tiles, and of what threads load ahead for themselves.

    Beside tensor copies there are none: the loading warpgroup loads for the next loop while this one is under way.
    """
    rings = schedule.rings.rings
    ahead = {tile for ring in rings if ring.kind == "tma" for tile in ring.tiles}
    tiles = [tile for tile in schedule.staged if tile not in ahead]
    own = [tile for ring in rings if ring.kind != "tma" for tile in ring.own]
    return find_turns(kernel, facts, (*tiles, *own), rings, sharing)


def _take_names(names: Names, kernel: Kernel, schedule: Schedule, given: dict[Variable, Variable]) -> None:
    """Has what the file shows to others keep its names, and what others are written under have theirs."""
    for name in named_values(kernel):
        names.reserve(name)
    for tensor_map in schedule.rings.maps:
        names.reserve(tensor_map.name)
    for parameter in kernel.parameters:
        names.variable(parameter.variable)
    for tile, first in schedule.rings.twins.items():
        if tile.name == first.name:
            names.share(tile, first)
    for result, target in given.items():
        names.share(result, target)


def _results(kernel: Kernel) -> dict[Variable, str]:
    """What reductions assign, each with a word for how: a user may well call the sum of `x` x again."""
    found: dict[Variable, str] = {}
    for statement in statements(kernel.body):
        if isinstance(statement, Assign) and isinstance(statement.value, Call) and statement.value.op == "reduce":
            combine = statement.value.attribute("combine")
            ops = [op for op, _ in combine.parts] or [combine.op or "reduced"] * len(statement.targets)
            found |= dict(zip(statement.targets, ops, strict=True))
    return found


def _called(kernel: Kernel) -> frozenset[str]:
    """The functions of CUDA's that a kernel's operations are spelled with."""
    found = set(MATH_NAMES) if any(dtype.name == "fp64" for dtype in dtypes_of(kernel)) else set()
    for part in all_expressions(kernel):
        if isinstance(part, Call) and part.op in OPS:
            found.update(re.findall(r"\b([A-Za-z]\w*)\(", OPS[part.op].spelling(part.args[0].type.element)))
    return frozenset(found)


def _scopes(kernel: Kernel, facts: Facts, schedule: Schedule, names: Names) -> Scopes:
    """Where variables are declared; `names` learns which of them may share one: not those of arrays in shared memory."""
    scopes = find_scopes(kernel.body, {variable: facts.definitions[variable] for variable in facts.absorbed})
    around = {one.variable for one in schedule.rings.ahead}  # declared in front of the loop that assigns them
    scopes = replace(scopes, blocks={v: path[:-1] if v in around else path for v, path in scopes.blocks.items()})
    registers = set(scopes.blocks) - set(schedule.staged) - set(schedule.in_shared)
    names.apart = lambda one, other: {one, other} <= registers and scopes.apart(one, other)
    return scopes


def _variable_names(kernel: Kernel) -> list[str]:
    names = [p.variable.name for p in kernel.parameters]
    for statement in statements(kernel.body):
        names += [variable.name for variable in getattr(statement, "targets", ())]
        names += [statement.variable.name] if isinstance(statement, For) else []
        names += [statement.trip.loop.name] if isinstance(statement, Note) and statement.trip is not None else []
    return names


def _layouts(kernel: Kernel, schedule: Schedule) -> list[tuple[Layout, tuple[int, ...], str]]:
    """Every layout of the schedule with a tile that has it, in source order.

    Behind them stand those of loads for a next iteration, and of indices that are tiles of several axes.
    """
    found: list[tuple[Layout, tuple[int, ...], str]] = []
    of_indices: list[tuple[Layout, tuple[int, ...], str]] = []
    loads = [s for s in statements(kernel.body) if isinstance(s, Assign) and s.targets[0] in schedule.rings.for_next]
    early = set(loads)
    for statement in (*(s for s in statements(kernel.body) if s not in early), *loads):
        for target in getattr(statement, "targets", ()):
            for layout in schedule.index_layouts.get(target, ()):
                (found if layout.rank == 1 else of_indices).append((layout, target.type.shape, target.name))
            if target in schedule.layouts:
                layout = schedule.layouts[target]
                found.append((layout, target.type.shape, _user_name(target, layout, schedule)))
            copy = schedule.warp_copies.get(target) or schedule.block_copies.get(target)
            if copy is not None:
                found.append((copy.layout, target.type.shape, f"{target.stem}_ahead"))
        own = schedule.statement_layouts.get(statement)
        if own is not None:
            found.append((own, _tile_shape(statement), UNNAMED_TILE))
        for conversion in schedule.conversions.get(statement, ()):
            found.append((conversion.layout, conversion.variable.type.shape, conversion.variable.name))
    return found + of_indices


def _user_name(tile: Variable, layout: Layout, schedule: Schedule) -> str:
    """What a layout is called after: of a tile as it was loaded, the user's name, if the user's tile has the same layout."""
    same = {schedule.layouts[other] for other in schedule.layouts if other.name == tile.stem}
    return tile.stem if same == {layout} else tile.name


def _tile_shape(statement: Statement) -> tuple[int, ...]:
    for expr in expressions(statement):
        for arg in expr.args if isinstance(expr, Call) else ():
            if arg.type.is_tile:
                return arg.type.shape
    return ()


def _tile_in_shared(context: Context, variable: Variable) -> Shared:
    """The array of a tile that the registers have no room for."""
    layout = context.schedule.layouts[variable]
    count = 1
    for registers in layout.register_shape():
        count *= registers
    size = count * context.schedule.num_threads * variable.type.dtype.itemsize
    comment = "no room in registers: each thread has a column of its own"
    dimensions = f"{context.dimensions(layout)}[NUM_THREADS]"
    return Shared(context.names.variable(variable), context.element_ctype(variable), dimensions, size, comment)
