"""What the elements of a thread's vector have in common, found once at its start: an answer of a mask, a quotient."""

from __future__ import annotations

from dataclasses import replace

from ...analysis.axis_info import axis_info
from ...analysis.facts import Facts
from ...ir.nodes import Call, Variable
from ..text.point import Index, Point, point_of
from ..text.roles import Roles


def coarser(roles: Roles, facts: Facts, variable: Variable, point: Point) -> Point:
    """The point at which to test a mask: the start of the vector, where the whole vector shares the answer."""
    if variable.type.is_pointer or not variable.type.dtype.is_bool() or point.layout.rank != variable.type.rank:
        return point
    constancy = axis_info(facts.definitions[variable], facts.known).constancy
    for axis in range(len(point.indices)):
        point = _start(roles, point, axis, constancy[axis]) or point
    return point


def first_of_vector(roles: Roles, facts: Facts, call: Call, point: Point) -> tuple[Point, str] | None:
    """Where to divide or compare for a whole vector: (the point at its start, what an element's remainder is greater by).

    Neighbours that are aligned as the divisor is have one quotient, and remainders that go up by one; those aligned as a bound
    is lie on one side of it. The compiler does not know what indices are aligned to.
    """
    if point.apart is not None or point.axes != point_of(point.layout, point.indices).axes:
        return None
    info = axis_info(call, facts.known)
    for axis, index in enumerate(point.indices):
        remainder = call.op == "mod" and info.constancy[axis] == 1
        start = _start(roles, point, axis, info.contiguity[axis] if remainder else info.constancy[axis])
        role = roles.find(point.layout.axes[axis])
        if start is None or role is None:
            continue
        alone = role.num_registers == role.run  # a thread's only vector
        if remainder:
            return start, index.text if alone else f"{index.text} % {role.vector}"
        if alone or call.op in ("floordiv", "mod"):  # a comparison is cheaper than to say where a vector starts
            return start, ""
    return None


def _start(roles: Roles, point: Point, axis: int, run: int) -> Point | None:
    """The point at the start of its vector along an axis, where the vector lies in a run of so many elements."""
    role, index = roles.find(point.layout.axes[axis]), point.indices[axis]
    if role is None or role.run < 2 or run % role.run or index.text != role.index:
        return None
    start = Index("0", "0", role.vector)
    if role.num_registers != role.run:
        number = f"{index.text} / {role.vector}"
        start = Index(f"{number} * {role.vector}", number, role.vector)
    return replace(point, indices=(*point.indices[:axis], start, *point.indices[axis + 1 :]))
