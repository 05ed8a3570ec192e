"""Loads of the fields of records, `x[3 * i]`, `x[3 * i + 1]` and `x[3 * i + 2]`, which fill each other's gaps.

In: a kernel, its facts, the layouts. Out: a window for each such group of loads. Red, green and blue of a picture's points, or
the coordinates of atoms, are stored so. Each load by itself takes element by element what is apart; all fields of the records
that a thread holds side by side are one run of memory, which aligned vectors bring. It is loaded where the first of the loads
stands: up to the last nothing else touches memory, or changes what they depend on. All have the same mask, so that no other
element is touched.

Two fields lie between each other as the elements of one tile do (`rewrites/interleaved.py`), which has a layout of its own.

Example, three bytes to a record, runs of 8 records:
  window[i] = p[3 * offs[0] + i], for i < 24, by three vectors of 8;  then, of the load at 3 * offs + 1:  v[e] = window[3 * e + 1]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from math import gcd

from ...analysis.axis_info import AxisInfo, axis_info, power_of_two_divisor
from ...analysis.doubled_tiles import Count, Doubling, known_number
from ...analysis.facts import Facts
from ...analysis.masks import conjuncts
from ...frozen import frozen
from ...hardware import ACCESS_BYTES
from ...ir.nodes import Assign, Kernel, Statement, Variable
from ...ir.structured import assigns, is_quiet
from ...ir.walk import assigned_variables, blocks, used_variables
from ..tiles.layout import Layout
from .access import load_operands, of_width
from .trip_loads import is_plain
from .window import MOST_REGISTERS, Window


@frozen
class Field:
    """A load of one field: where it stands in its block, and how its addresses count."""

    load: Assign
    place: int
    count: Count


def windows_of_records(
    kernel: Kernel, facts: Facts, layouts: Mapping[Variable, Layout]
) -> Iterator[tuple[dict[Statement, int], Window]]:
    """For each group of loads its window, and at which element of this each load begins."""
    counting = Doubling(kernel)
    for block in blocks(kernel.body):
        for together in loads_together(block, facts, counting):
            for fields in _side_by_side(together, block):
                layout = layouts.get(fields[0].load.target)
                if layout is None or any(layouts.get(one.load.target) != layout for one in fields):
                    continue
                window = _window(fields, layout, facts)
                if window is not None and window.registers(layout) <= MOST_REGISTERS:
                    first = fields[0].count.number
                    in_order = sorted(fields, key=lambda one: one.place)
                    yield {one.load: one.count.number - first for one in in_order}, window


def loads_together(
    block: Sequence[Statement], facts: Facts, counting: Doubling, under_one_mask: bool = True
) -> Iterator[list[Field]]:
    """Loads that count alike from one place on, in the order in which they stand, between other accesses."""
    found: dict[object, list[Field]] = {}
    for place, statement in enumerate(block):
        if not assigns(statement, "load") and not is_quiet(statement):
            yield from found.values()
            found = {}
        elif assigns(statement, "load") and statement.target not in facts.unused:
            pointer, mask, _ = load_operands(statement)
            plain = pointer.type.is_tile and is_plain(statement.value)  # type: ignore[arg-type]
            count = counting.count(pointer) if plain else None
            if count is not None and count.step > 0:
                count = _with_known_numbers(count)
                parts = frozenset(Counter(count.parts).items())  # in whatever order they are added
                key = (statement.target.type, pointer.type, under_one_mask and mask, count.step, parts)
                found.setdefault(key, []).append(Field(statement, place, count))
    yield from found.values()


def _with_known_numbers(count: Count) -> Count:
    """The same count, in which numbers that have names are numbers as well, unless each trip has its own."""
    values = [(part, known_number(part)) for part in count.parts]
    number = count.number + sum(value for _, value in values if value is not None)
    return replace(count, number=number, parts=tuple(part for part, value in values if value is None))


def _side_by_side(fields: list[Field], block: Sequence[Statement]) -> Iterator[list[Field]]:
    """Those that can be loaded where the first stands and follow each other in memory, in that order."""
    moved: dict[int, Field] = {}
    for one in fields:
        read = (*one.load.value.args, *one.count.parts)  # type: ignore[attr-defined]
        changed = changed_between(fields[0], one, block)
        if changed.isdisjoint(variable for part in read for variable in used_variables(part)):
            moved.setdefault(one.count.number, one)
    for _, run in groupby(enumerate(sorted(moved)), key=lambda item: item[1] - item[0]):
        if len(numbers := [number for _, number in run]) > 1:
            yield [moved[number] for number in numbers]


def changed_between(first: Field, later: Field, block: Sequence[Statement]) -> set[Variable]:
    """What is assigned from one load on until another."""
    return {variable for statement in block[first.place : later.place] for variable in assigned_variables(statement)}


def _window(fields: list[Field], layout: Layout, facts: Facts) -> Window | None:
    """The window of the fields: all of a thread's run, or those of each record; None where no vector brings several elements."""
    start, last, axis = fields[0], fields[-1], layout.rank - 1
    stride, span = start.count.step, last.count.number - start.count.number
    first = min(fields, key=lambda one: one.place).load
    pointer, mask, _ = load_operands(start.load)
    other = Counter(load_operands(one.load)[2] for one in fields).most_common(1)[0][0]
    known, itemsize = facts.environments[first], first.target.type.dtype.itemsize
    for run in {layout.run(axis) if span + 1 == stride else 1: None, 1: None}:
        access = of_width(axis, run, conjuncts(mask, facts), facts.at(first))
        elements = run * (span + 1)
        alignment = gcd(_divisor(start.count, itemsize, known), stride * run * itemsize)
        vector = gcd(elements, max(power_of_two_divisor(alignment) // itemsize, 1), ACCESS_BYTES // itemsize)
        if access is not None and vector > 1:
            window = Window(first, axis, run, span, pointer, access, (), None)
            return replace(window, stride=stride, vector=vector, other=other)
    return None


def _divisor(count: Count, itemsize: int, known: Mapping[Variable, AxisInfo]) -> int:
    """What divides the address, in bytes, of the first element of all."""
    found = count.number * itemsize
    for part in count.parts:
        info = axis_info(part, known)
        divisor = max(info.everywhere(axis) for axis in range(len(info.constancy)))
        found = gcd(found, divisor if part.type.is_pointer else divisor * itemsize)
    return found
