"""What the elements of a thread's vector have in common, found once at its start: an answer of a mask, a quotient."""

from __future__ import annotations

from dataclasses import replace

from ...analysis.axis_info import axis_info
from ...analysis.facts import Facts
from ...analysis.long_computations import is_power_of_two
from ...ir.nodes import Call, Variable
from ...schedule.tiles.layout import Layout
from ..text.axis_names import AxisNames
from ..text.operators import ZERO, Text, infix
from ..text.point import Index, Point, point_of, vector_start


def coarser(axis_names: AxisNames, facts: Facts, variable: Variable, point: Point) -> Point:
    """The point at which to test a mask, or to read a tile: the start of the vector, where the whole vector is equal.

    An element of an array is read there only where it is the thread's only vector: others would be harder to name.
    """
    if variable.type.is_pointer or variable not in facts.definitions or point.layout.rank != variable.type.rank:
        return point
    test = variable.type.dtype.is_bool() and variable in facts.absorbed
    if not test and point.apart is not None:
        return point
    constancy = axis_info(facts.definitions[variable], facts.known).constancy
    own = point_of(point.layout, point.indices).axes
    for axis in range(len(point.indices)):
        here = point.axes[axis] == own[axis]  # not along an axis that has been moved
        if here and (test or _is_only_vector(axis_names, point.layout, axis)):
            point = _start(axis_names, point, axis, constancy[axis]) or point
    return point


def is_one_value(axis_names: AxisNames, facts: Facts, variable: Variable, layout: Layout) -> bool:
    """Whether all of a thread's elements of a tile are equal, along the one axis on which it has several."""
    axes = layout.array_axes()
    if variable not in facts.definitions or variable.type.is_pointer or len(axes) != 1:
        return False
    (axis,) = axes
    named, info = axis_names.find(layout.axes[axis]), axis_info(facts.definitions[variable], facts.known)
    return named is not None and _is_only_vector(axis_names, layout, axis) and info.constancy[axis] % named.run == 0


def _is_only_vector(axis_names: AxisNames, layout: Layout, axis: int) -> bool:
    """Whether a thread has a single vector along an axis."""
    named = axis_names.find(layout.axes[axis])
    return named is not None and named.num_registers == named.run > 1


def first_of_vector(axis_names: AxisNames, facts: Facts, call: Call, point: Point) -> tuple[Point, str] | None:
    """Where to divide or compare for a whole vector, or for a part of it that has one quotient.

    Returns the point at its start, and what an element's remainder is greater by.

    Neighbours that are aligned as the divisor is have one quotient, and remainders that go up by one; those aligned as a bound
    is lie on one side of it. The compiler does not know what indices are aligned to.
    """
    if point.apart is not None or point.axes != point_of(point.layout, point.indices).axes:
        return None
    info = axis_info(call, facts.known)
    for axis, index in enumerate(point.indices):
        remainder = call.op in ("mod", "and") and info.constancy[axis] == 1
        start = _start(axis_names, point, axis, info.contiguity[axis] if remainder else info.constancy[axis])
        named = axis_names.find(point.layout.axes[axis])
        if start is None and call.op in ("floordiv", "shr"):
            start = _start_of_run(axis_names, point, axis, info.constancy[axis])
        if start is None or named is None:
            continue
        alone = named.num_registers == named.run  # a thread's only vector
        if remainder and alone:
            return start, "" if index.text == "0" else index.text
        if remainder:  # one by a power of two is cheaper than to say where a vector starts
            cheap = call.op == "and" or is_power_of_two(call.args[1])
            return None if cheap else (start, f"{index.text} % {named.vector}")
        return start, ""
    return None


def _start(axis_names: AxisNames, point: Point, axis: int, run: int) -> Point | None:
    """The point at the start of its vector along an axis, where the vector lies in a run of so many elements."""
    named, index = axis_names.find(point.layout.axes[axis]), point.indices[axis]
    if named is None or named.run < 2 or run % named.run or index.step % named.run == 0:
        return None
    start = vector_start(ZERO, named.vector)
    if named.num_registers != named.run:
        if index.text != named.index:
            return None
        start = vector_start(infix(index.whole, "/", Text(named.vector)), named.vector)
    return replace(point, indices=(*point.indices[:axis], start, *point.indices[axis + 1 :]))


def _start_of_run(axis_names: AxisNames, point: Point, axis: int, run: int) -> Point | None:
    """The same for a run that is a part of a vector."""
    named, index = axis_names.find(point.layout.axes[axis]), point.indices[axis]
    if named is None or not 1 < run < named.run or named.run % run or index.text != named.index:
        return None
    width = Text(str(run))
    start = Index(infix(infix(index.whole, "/", width), "*", width))
    return replace(point, indices=(*point.indices[:axis], start, *point.indices[axis + 1 :]))
