"""Masks that the text calls by the user's name: of several comparisons, and wanted so often that each time in full is noise.

A mask has no registers; its expression stands where it is used. A stencil would have `y[r] < H && x[0] < W` at each of its
loads, beside what one of them asks for itself. How often a text would spell a mask is known once it is written, so a kernel
with such masks is written a second time, in which each is computed where the user assigns it:

  bool inside[ROWS];
  for (int r = 0; r < ROWS; ++r) inside[r] = y[r] < H && x[0] < W;

What would be spelled otherwise, for other elements, still is. A function in place of the array cost up to 16 instructions more
than the comparisons, as the compiler makes other code of branches around calls; the array costs registers in no text that was
compared, and saves some in most.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING

from ...analysis.facts import Facts
from ...analysis.masks import conjuncts
from ...frozen import frozen
from ...ir.c_tokens import identifiers
from ...ir.nodes import Call, Expr, Origin, Variable
from ...ir.walk import subexpressions
from ..text.operators import Text, conjunction
from ..text.point import Point
from ..text.unit import Assignment, Declaration, Node, unrolled

if TYPE_CHECKING:
    from ..context import Context

COMPARISONS = frozenset(("lt", "le", "gt", "ge", "eq", "ne"))
SAVED = 6  # comparisons that need not be read again, which are worth a name
MOST = 8  # answers of a thread: more would be registers, where a comparison is one instruction


@frozen
class Spelling:
    """How a mask is spelled at one element.

    Attributes:
      parts: what must hold.
      loops: the variables of loops that these mention, each with the word for how many answers there are and their number.
    """

    parts: tuple[Text, ...]
    loops: tuple[tuple[str, str, int], ...]


class NamedMasks:
    """The masks of a kernel that may have names, how often each is spelled, and which do have them."""

    def __init__(self, facts: Facts, named: Mapping[Variable, Spelling]) -> None:
        self.named = named
        masks = (v for v in facts.absorbed if v.type.is_tile and not v.type.is_pointer and v.type.dtype.is_bool())
        parts = {mask: tuple(dict.fromkeys(conjuncts(facts.definitions[mask], facts))) for mask in masks}
        several = ((mask, some) for mask, some in parts.items() if _comparisons(some) > 1)
        self._parts = dict(sorted(several, key=lambda one: (-len(one[1]), one[0].key)))
        self._visible: set[Variable] = set()  # those that have been assigned, in this block or one around
        self._spelled: dict[tuple[Variable, Spelling], set[tuple[object, ...]]] = {}
        self._reader: tuple[object, ...] = ()

    @contextmanager
    def block(self) -> Iterator[None]:
        """What is assigned meanwhile is visible to nothing behind it."""
        before = set(self._visible)
        yield
        self._visible = before

    def reading(self, origin: Origin) -> None:
        """What is spelled from here on belongs to a line. The trips of a loop that stays one have the same line."""
        self._reader = (origin.file, origin.span.line, origin.span.column, origin.trip)

    def spelled(self, context: Context, tests: Sequence[Expr], point: Point) -> list[Text]:
        """The texts of conditions that must all hold, those that make up a mask with a name by that."""
        texts: dict[Expr | Variable, Text] = {test: context.speller.spell(test, point) for test in tests}
        for mask, parts in self._parts.items():
            if mask not in self._visible or not texts.keys() >= set(parts):
                continue
            name = self._name(context, mask, tuple(texts[part] for part in parts), point)
            if name is not None:
                kept = ((test, text) for test, text in texts.items() if test == parts[0] or test not in parts)
                texts = {mask if test == parts[0] else test: text for test, text in kept} | {mask: name}
        return [*texts.values()]

    def called(self, context: Context, mask: Variable, point: Point) -> Text | None:
        """What stands for a mask by itself; None where it is spelled."""
        if mask not in self._parts or mask not in self._visible:
            return None
        return self._name(context, mask, tuple(context.speller.spell(part, point) for part in self._parts[mask]), point)

    def _name(self, context: Context, mask: Variable, parts: tuple[Text, ...], point: Point) -> Text | None:
        loops = _loops(context, point, parts)
        if loops is None or prod(number for _, _, number in loops) > MOST:
            return None
        spelling = Spelling(parts, loops)
        self._spelled.setdefault((mask, spelling), set()).add(self._reader)
        if self.named.get(mask) != spelling:
            return None
        return Text(context.names.variable(mask) + "".join(f"[{counter}]" for counter, _, _ in loops))

    def definition(self, context: Context, mask: Variable) -> tuple[Node, ...]:
        """What stands where a mask is assigned: its answers, if it has a name."""
        self._visible.add(mask)
        if mask not in self.named:
            return ()
        spelling, name = self.named[mask], context.names.variable(mask)
        value = conjunction([*spelling.parts])
        text = value.text if value else "true"
        if not spelling.loops:
            return (Declaration("bool", name, text, constant=True),)
        place = name + "".join(f"[{counter}]" for counter, _, _ in spelling.loops)
        nodes: tuple[Node, ...] = (Assignment(place, text),)
        for counter, count, _ in reversed(spelling.loops):
            nodes = (unrolled(counter, count, nodes),)
        return (Declaration("bool", name, sides="".join(f"[{count}]" for _, count, _ in spelling.loops)), *nodes)

    def worth_naming(self) -> dict[Variable, Spelling]:
        """The masks that would be spelled so often that they should have names."""
        found: dict[Variable, Spelling] = {}
        settled: set[tuple[object, ...]] = set()  # who reads a mask that has a name, of which others are parts
        for mask, parts in self._parts.items():
            spellings = {s: readers - settled for (one, s), readers in self._spelled.items() if one is mask}
            most = max(spellings, key=lambda one: len(spellings[one]), default=None)
            if most is not None and _comparisons(parts) * (len(spellings[most]) - 1) >= SAVED:
                found[mask] = most
                settled |= spellings[most]
        return found


def _comparisons(parts: tuple[Expr, ...]) -> int:
    return sum(isinstance(one, Call) and one.op in COMPARISONS for part in parts for one in subexpressions(part))


def _loops(context: Context, point: Point, parts: tuple[Text, ...]) -> tuple[tuple[str, str, int], ...] | None:
    """The loops over what is mentioned, in the order of the axes; None where an index is computed from some."""
    mentioned = {word for part in parts for word in identifiers(part.text)}
    found: list[tuple[str, str, int]] = []
    for axis, index in enumerate(point.indices):
        counter = (index.vector or index.whole).text
        if mentioned.isdisjoint(identifiers(counter)):
            continue
        named = context.axis_names.find(point.layout.axes[axis])
        if index.vector is None:
            count, number = context.count(point.layout.axes[axis]), point.layout.registers(axis)
        elif named is not None and index.width == named.vector:
            count, number = named.vectors, named.num_registers // named.run
        else:
            return None
        if not counter.isidentifier() or index.step != 1:
            return None
        found.append((counter, count, number))
    return tuple(found)
