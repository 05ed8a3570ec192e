"""Where shared arrays lie: static ones while they fit, otherwise one struct in dynamic shared memory.

Arrays that only one statement needs, such as the copy of a dot's operand, can take turns: those of each statement lie side by
side, and all statements have theirs in the same place. Before a statement writes there, everyone has read what was there
(`Context.before_write`). It is done where the kernel has no room otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..diagnostics import OutOfResources
from .context import Context
from .unit import Line, Node, Shared


def plan_shared(context: Context) -> tuple[tuple[Shared, ...], tuple[Shared, ...], int]:
    """(static arrays, arrays of the struct, bytes of the struct).

    Raises:
      OutOfResources: when the arrays do not fit in either.
    """
    arrays = tuple(sorted(context.shared.values(), key=lambda array: -array.align))
    target = context.schedule.target
    total = bytes_of(arrays)
    if total <= target.max_static_shared_bytes and not any(array.turn for array in arrays):
        return arrays, (), 0
    if total > target.max_dynamic_shared_bytes:
        detail = "\n".join(f"  {array.name}: {array.size} bytes, {array.comment}" for array in arrays)
        raise OutOfResources(total, target.max_dynamic_shared_bytes, "shared memory", detail)
    lasting = tuple(array for array in arrays if not array.turn)
    first = max((array.align for array in arrays if array.turn), default=0) > shared_alignment(lasting)
    taking_turns = tuple(array for _, group in turns(arrays) for array in group)
    return (), (*taking_turns, *lasting) if first else (*lasting, *taking_turns), total


def shared_alignment(arrays: Iterable[Shared]) -> int:
    """Bytes to which a struct of shared arrays is aligned."""
    return max((array.align for array in arrays), default=16)


def bytes_of(arrays: Iterable[Shared]) -> int:
    """Bytes of the struct: lasting arrays one after the other, and once the most that any turn needs."""
    every = tuple(arrays)
    shared = [_side_by_side((array.size, array.align) for array in group) for _, group in turns(every)]
    once = (max((size for size, _ in shared), default=0), max((align for _, align in shared), default=16))
    lasting = [(array.size, array.align) for array in every if not array.turn]
    return _side_by_side(sorted([*lasting, once], key=lambda part: -part[1]))[0]


def turns(arrays: Iterable[Shared]) -> list[tuple[str, list[Shared]]]:
    """The arrays that take turns, by turn, in the order in which turns are first named."""
    found: dict[str, list[Shared]] = {}
    for array in arrays:
        if array.turn:
            found.setdefault(array.turn, []).append(array)
    return list(found.items())


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
    loads_in_lambdas = any(ring.kind != "tma" for ring in context.schedule.rings.rings)
    if not loads_in_lambdas and not any(array.turn for array in arrays):
        return [Line(f"auto& [{', '.join(array.name for array in arrays)}] = {cast}")]
    several = {array.name for _, group in turns(arrays) if len(group) > 1 for array in group}
    places = {array.name: f"{array.turn}.{array.name}" if array.name in several else array.name for array in arrays}
    return [
        Line(f"SharedArrays& shared = {cast}"),
        *(Line(f"auto& {name} = shared.{place};") for name, place in places.items()),
    ]
