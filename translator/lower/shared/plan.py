"""Where shared arrays lie: static ones while they fit, otherwise one struct in dynamic shared memory.

Where the kernel has no room otherwise, arrays take turns in two areas. Those that only one statement needs, such as the copy
of a dot's operand, lie side by side, and all statements have theirs in the same place; so do tiles that only one of several
loops needs. Before an array is written, everyone has read what was there (`Context.before_write`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ...analysis.facts import Facts
from ...diagnostics import OutOfResources
from ...ir.nodes import Expr, Kernel, Variable
from ...ir.walk import assigned_variables, bodies, expressions, statements, top_statements, used_variables
from ..context import Context
from ..text.unit import PLAIN_ALIGNMENT, Line, Node, Shared
from .memory import LOOPS, PARTS


def loops_of_tiles(kernel: Kernel, facts: Facts, tiles: Iterable[Variable]) -> dict[int, tuple[str, int]]:
    """The tiles, by key, that can take turns: (their area, which turn).

    Those that stand in one loop, or one other block, of the kernel alone have the turn of that loop; of the others, those
    that are needed at the same time have theirs together.
    """
    places: dict[Variable, set[int]] = {tile: set() for tile in tiles}
    own: set[int] = set()
    for number, statement in enumerate(top_statements(kernel.body)):
        if bodies(statement):
            own.add(number)
        for inner in statements((statement,)):
            mentioned = set(assigned_variables(inner))
            for expr in expressions(inner):
                mentioned |= _read(expr, facts)
            for variable in mentioned & places.keys():
                places[variable].add(number)
    alone = {tile for tile, found in places.items() if len(found) == 1 and found <= own}
    turns = {tile.key: (LOOPS, min(places[tile])) for tile in alone}
    first = last = -1
    for tile in sorted((t for t, found in places.items() if found and t not in alone), key=lambda t: min(places[t])):
        if min(places[tile]) > last:
            first = min(places[tile])
        last = max(last, *places[tile])
        turns[tile.key] = (PARTS, first)
    return turns


def _read(expr: Expr, facts: Facts) -> set[Variable]:
    """The variables that an expression reads, through those that stand for expressions."""
    found: set[Variable] = set()
    for variable in used_variables(expr):
        found |= {variable} | (_read(facts.definitions[variable], facts) if variable in facts.absorbed else set())
    return found


def plan_shared(context: Context) -> tuple[tuple[Shared, ...], tuple[Shared, ...], int]:
    """(static arrays, arrays of the struct, bytes of the struct).

    Raises:
      OutOfResources: when the arrays do not fit in either.
    """
    arrays = tuple(
        sorted(_with_areas(dict.fromkeys(context.shared.arrays.values())), key=lambda array: -array.alignment)
    )
    target = context.schedule.target
    total = bytes_of(arrays)
    if total <= target.max_static_shared_bytes and not any(array.area for array in arrays):
        return arrays, (), 0
    if total > target.max_dynamic_shared_bytes:
        detail = "\n".join(f"  {array.name}: {array.size} bytes, {array.comment}" for array in arrays)
        raise OutOfResources(total, target.max_dynamic_shared_bytes, "shared memory", detail)
    parts: list[tuple[Shared, ...]] = [(array,) for array in arrays if not array.area]
    parts += [tuple(one for turn in turns_of(arrays, area) for one in turn) for area in _areas(arrays)]
    parts.sort(key=lambda part: -shared_alignment(part))
    return (), tuple(array for part in parts for array in part), total


def shared_alignment(arrays: Iterable[Shared]) -> int:
    """Bytes to which a struct of shared arrays is aligned."""
    return max((array.alignment for array in arrays), default=PLAIN_ALIGNMENT)


def bytes_of(arrays: Iterable[Shared]) -> int:
    """Bytes of the struct: lasting arrays one after the other, and of every area once the most that any turn needs."""
    every = tuple(arrays)
    parts = [(array.size, array.alignment) for array in every if not array.area]
    for area in _areas(every):
        turns = [_side_by_side((one.size, one.alignment) for one in group) for group in turns_of(every, area)]
        parts.append((max(size for size, _ in turns), max(align for _, align in turns)))
    return _side_by_side(sorted(parts, key=lambda part: -part[1]))[0]


def _with_areas(arrays: Iterable[Shared]) -> list[Shared]:
    """The arrays, those of an area with a single turn as lasting ones."""
    every = tuple(arrays)
    alone = {area for area in _areas(every) if len(turns_of(every, area)) == 1}
    return [replace(array, area="", turn="") if array.area in alone else array for array in every]


def _areas(arrays: Iterable[Shared]) -> list[str]:
    return list(dict.fromkeys(array.area for array in arrays if array.area))


def turns_of(arrays: Iterable[Shared], area: str) -> list[list[Shared]]:
    """The arrays of an area by turn, in the order in which turns are first named."""
    found: dict[str, list[Shared]] = {}
    for array in arrays:
        if array.area == area:
            found.setdefault(array.turn, []).append(array)
    return list(found.values())


def _side_by_side(parts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """(bytes, alignment) of parts, each given so, in a struct."""
    total, widest = 0, 16
    for size, align in parts:
        total = -(-total // align) * align + size
        widest = max(widest, align)
    return -(-total // widest) * widest, widest


def names_of_arrays(context: Context, arrays: tuple[Shared, ...]) -> list[Node]:
    """The arrays of the struct under their own names; lambdas cannot capture a structured binding before C++20."""
    cast = "*reinterpret_cast<SharedArrays*>(shared_bytes);"
    in_lambdas = any(ring.kind != "tma" or ring.own for ring in context.schedule.rings.rings)
    in_lambdas |= context.shared.in_functions or bool(
        context.schedule.in_shared
    )  # tiles are read wherever they are used
    if not in_lambdas and not any(array.area for array in arrays):
        return [Line(f"auto& [{', '.join(array.name for array in arrays)}] = {cast}")]
    turns = [group for area in _areas(arrays) for group in turns_of(arrays, area)]
    several = {array.name for group in turns if len(group) > 1 for array in group}
    places = {array.name: f"{array.turn}.{array.name}" if array.name in several else array.name for array in arrays}
    shared = context.names.shared_index("shared")
    return [
        Line(f"SharedArrays& {shared} = {cast}"),
        *(Line(f"auto& {name} = {shared}.{place};") for name, place in places.items()),
    ]
