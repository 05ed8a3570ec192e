"""Where shared arrays lie: static ones while they fit and all threads have the same, otherwise one struct in dynamic memory.

Where the kernel has no room otherwise, arrays take turns (`turns.py`). Those of one turn lie side by side, and all turns of an
area have theirs in the same place. Before an array is written, everyone has read what was there (`Context.before_write`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace

from ...diagnostics import OutOfResources, Span
from ...ir.nodes import Kernel
from ...ir.walk import assigned_variables, statements
from ..context import Context
from ..text.unit import PLAIN_ALIGNMENT, Line, Node, Shared
from .turns import NESTED, Turn


def plan_shared(context: Context, kernel: Kernel) -> tuple[tuple[Shared, ...], tuple[Shared, ...], int]:
    """(static arrays, arrays of the struct, bytes of the struct).

    Raises:
      OutOfResources: when the arrays do not fit in either.
    """
    every = _nested(tuple(dict.fromkeys(_of_teams(context))), context.shared.turn_of)
    arrays = tuple(sorted(_with_areas(every), key=lambda array: -array.alignment))
    target = context.schedule.target
    total = bytes_of(arrays)
    if total <= target.max_static_shared_bytes and not any(array.area or array.of_teams for array in arrays):
        return arrays, (), 0
    if total > target.max_dynamic_shared_bytes:
        detail = "\n".join(f"  {array.name}: {array.size} bytes, {array.comment}" for array in arrays)
        place = _place_of(max(arrays, key=lambda array: array.size), context, kernel)
        raise OutOfResources(total, target.max_dynamic_shared_bytes, "shared memory", detail, place)
    return (), _in_order(arrays), total


def _of_teams(context: Context) -> Iterable[Shared]:
    """All arrays; where teams take turns at programs, as many of each as there are teams, but for those of the ring."""
    rings, teams = context.schedule.rings.rings, context.schedule.rings.teams
    of_rings = {owner for ring in rings for owner in (ring.loop, *ring.tiles)}
    for (owner, _), array in context.shared.arrays.items():
        if teams == 1 or owner in of_rings:
            yield array
        else:
            dimensions = f"[{context.num_teams()}]{array.dimensions}"
            yield replace(array, dimensions=dimensions, size=teams * array.size, of_teams=True)


def _place_of(array: Shared, context: Context, kernel: Kernel) -> Span | None:
    """The statement that needs an array: its owner, or what makes the tile that lies in it."""
    owners = [owner for (owner, _), one in context.shared.arrays.items() if one.name == array.name]
    for statement in statements(kernel.body):
        if statement in owners or not {*assigned_variables(statement)}.isdisjoint(owners):
            return statement.origin.span
    return None


def _in_order(arrays: tuple[Shared, ...], depth: int = 0) -> tuple[Shared, ...]:
    """The arrays of a struct as it has them: what must be aligned the most comes first, be it an array or an area."""
    parts: list[tuple[Shared, ...]] = [(array,) for array in arrays if len(array.turn) == depth]
    for area in _areas(arrays, depth):
        parts.append(tuple(one for turn in turns_of(arrays, area, depth) for one in _in_order(turn, depth + 1)))
    parts.sort(key=lambda part: -shared_alignment(part))
    return tuple(array for part in parts for array in part)


def shared_alignment(arrays: Iterable[Shared]) -> int:
    """Bytes to which a struct of shared arrays is aligned."""
    return max((array.alignment for array in arrays), default=PLAIN_ALIGNMENT)


def bytes_of(arrays: Iterable[Shared]) -> int:
    """Bytes of the struct: lasting arrays one after the other, and of every area once the most that any turn needs."""
    return _layout(tuple(arrays), 0)[0]


def _layout(arrays: tuple[Shared, ...], depth: int) -> tuple[int, int]:
    """(bytes, alignment) of the struct of a turn, or of all arrays where the depth is 0."""
    parts = [(array.size, array.alignment) for array in arrays if len(array.turn) == depth]
    for area in _areas(arrays, depth):
        turns = [_layout(turn, depth + 1) for turn in turns_of(arrays, area, depth)]
        align = max(align for _, align in turns)
        parts.append((-(-max(size for size, _ in turns) // align) * align, align))
    return _side_by_side(sorted(parts, key=lambda part: -part[1]))


def _nested(arrays: tuple[Shared, ...], turn_of: Mapping[str, Turn]) -> tuple[Shared, ...]:
    """The arrays; those of nested turns within the turns that hold theirs."""
    turns = {turn_of[array.name]: array.turn for array in arrays if array.area == NESTED}
    places = _places(tuple(turns), ())
    found: list[Shared] = []
    for array in arrays:
        if array.area == NESTED:
            turn = tuple(name for one in places[turn_of[array.name]] for name in turns[one])
            array = replace(array, turn=turn, area=NESTED if turn else "")
        found.append(array)
    return tuple(found)


def _places(turns: tuple[Turn, ...], around: tuple[Turn, ...]) -> dict[Turn, tuple[Turn, ...]]:
    """The structs of turns that an array of each turn lies within; one beside which there is no other needs none."""
    outer = [turn for turn in turns if not any(turn != other and other.holds(turn) for other in turns)]
    found: dict[Turn, tuple[Turn, ...]] = {}
    for turn in outer:
        found[turn] = around if len(outer) == 1 else (*around, turn)
        found |= _places(tuple(one for one in turns if one != turn and turn.holds(one)), found[turn])
    return found


def _with_areas(arrays: Iterable[Shared]) -> list[Shared]:
    """The arrays, those of an area with a single turn as lasting ones."""
    every = tuple(arrays)
    alone = {area for area in _areas(every) if len(turns_of(every, area)) == 1}
    return [replace(array, area="", turn=()) if array.area in alone else array for array in every]


def _areas(arrays: Iterable[Shared], depth: int = 0) -> list[str]:
    """The areas in a struct of turns so deep."""
    return list(dict.fromkeys(array.area for array in arrays if len(array.turn) > depth))


def turns_of(arrays: Iterable[Shared], area: str, depth: int = 0) -> list[tuple[Shared, ...]]:
    """The arrays of an area by turn, in the order in which turns are first named."""
    found: dict[str, list[Shared]] = {}
    for array in arrays:
        if array.area == area and len(array.turn) > depth:
            found.setdefault(array.turn[depth], []).append(array)
    return [tuple(turn) for turn in found.values()]


def _side_by_side(parts: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """(bytes, alignment) of parts, each given so, in a struct."""
    total, widest = 0, 16
    for size, align in parts:
        total = -(-total // align) * align + size
        widest = max(widest, align)
    return -(-total // widest) * widest, widest


def names_of_arrays(context: Context, arrays: tuple[Shared, ...]) -> list[Node]:
    """The arrays of the struct under their own names; lambdas cannot capture a structured binding before C++20.

    Those of teams follow where a thread knows its team (`names_of_own_arrays`).
    """
    cast = "*reinterpret_cast<SharedArrays*>(shared_bytes);"
    in_lambdas = any(ring.kind != "tma" or ring.own for ring in context.schedule.rings.rings)
    in_lambdas |= context.shared.in_functions or bool(
        context.schedule.in_shared
    )  # tiles are read wherever they are used
    if not in_lambdas and not any(array.area or array.of_teams for array in arrays):
        return [Line(f"auto& [{', '.join(array.name for array in arrays)}] = {cast}")]
    turns = Counter(array.turn[:depth] for array in arrays for depth in range(1, len(array.turn) + 1))
    structs = {turn for turn, count in turns.items() if count > 1}
    places = {array.name: ".".join((*_structs(array, structs), array.name)) for array in arrays}
    shared = context.names.shared_index("shared")
    return [
        Line(f"SharedArrays& {shared} = {cast}"),
        *(Line(f"auto& {one.name} = {shared}.{places[one.name]};") for one in arrays if not one.of_teams),
    ]


def names_of_own_arrays(context: Context, arrays: tuple[Shared, ...]) -> list[Node]:
    """The arrays that each team has of its own, under their names; the threads that load name some team's, and use none."""
    shared, team = context.names.shared_index("shared"), context.axis_names.team
    own = [array for array in arrays if array.of_teams]
    comment = "this team's; those that load use none"
    return [Line(f"auto& {one.name} = {shared}.{one.name}[{team} % {context.num_teams()}];", comment) for one in own]


def _structs(array: Shared, structs: Container[tuple[str, ...]]) -> tuple[str, ...]:
    """The structs that an array lies within; a turn of a single array has none."""
    return tuple(name for depth, name in enumerate(array.turn, 1) if array.turn[:depth] in structs)
