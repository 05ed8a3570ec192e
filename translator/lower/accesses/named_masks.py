"""Masks that the text calls by the user's name: of several comparisons, and wanted so often that each time in full is noise.

A mask has no registers; its expression stands where it is used. A stencil would have `y[r] < H && x[0] < W` at each of its
loads, beside what one of them asks for itself. How often a text would spell a mask is known once it is written, so a kernel
with such masks is written a second time, in which each is a function of the register's index, or a `bool` if a thread has one:

  const auto inside = [&](int r) { return y[r] < H && x[0] < W; };

Only what would be spelled as that function spells it calls it, and of that what chooses between two values: the machine code is
the same. Around a store, a call in place of the comparisons made other code of it, with up to 16 instructions more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...analysis.facts import Facts
from ...analysis.masks import conjuncts
from ...frozen import frozen
from ...ir.c_tokens import identifiers
from ...ir.nodes import Call, Expr, Origin, Variable
from ...ir.walk import subexpressions
from ..text.operators import Text, conjunction
from ..text.point import Point
from ..text.unit import Declaration, Lambda, Line, Node

if TYPE_CHECKING:
    from ..context import Context

COMPARISONS = frozenset(("lt", "le", "gt", "ge", "eq", "ne"))
SAVED = 6  # comparisons that need not be read again, which are worth a name
ONE_LINE = 80  # columns of a function that stands in one line


@frozen
class Spelling:
    """How a mask is spelled at one element: its parts, and the loop variables that these mention."""

    parts: tuple[Text, ...]
    parameters: tuple[str, ...]


@frozen
class NamedMask:
    """A mask that gets a name: its spelling, and whether all parts are computed before any decides."""

    spelling: Spelling
    at_once: bool


class NamedMasks:
    """The masks of a kernel that may have names, how often each is spelled, and which do have them."""

    def __init__(self, facts: Facts, named: Mapping[Variable, NamedMask]) -> None:
        self.named = named
        masks = (v for v in facts.absorbed if v.type.is_tile and not v.type.is_pointer and v.type.dtype.is_bool())
        parts = {mask: tuple(dict.fromkeys(conjuncts(facts.definitions[mask], facts))) for mask in masks}
        several = ((mask, some) for mask, some in parts.items() if _comparisons(some) > 1)
        self._parts = dict(sorted(several, key=lambda one: (-len(one[1]), one[0].key)))
        self._visible: set[Variable] = set()  # those that have been assigned, in this block or one around
        self._spelled: dict[tuple[Variable, Spelling], set[tuple[object, ...]]] = {}
        self._at_once: set[Variable] = set()
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

    def spelled(self, context: Context, tests: Sequence[Expr], point: Point, at_once: bool = False) -> list[Text]:
        """The texts of conditions that must all hold, those that make up a mask with a name by that."""
        texts: dict[Expr | Variable, Text] = {test: context.speller.spell(test, point) for test in tests}
        for mask, parts in self._parts.items():
            if mask not in self._visible or not texts.keys() >= set(parts):
                continue
            call = self._call(context, mask, tuple(texts[part] for part in parts), point, at_once)
            if call is not None:
                kept = ((test, text) for test, text in texts.items() if test == parts[0] or test not in parts)
                texts = {mask if test == parts[0] else test: text for test, text in kept} | {mask: call}
        return [*texts.values()]

    def called(self, context: Context, mask: Variable, point: Point) -> Text | None:
        """The call that stands for a mask by itself; None where it is spelled."""
        if mask not in self._parts or mask not in self._visible:
            return None
        parts = tuple(context.speller.spell(part, point) for part in self._parts[mask])
        return self._call(context, mask, parts, point, False)

    def _call(
        self, context: Context, mask: Variable, parts: tuple[Text, ...], point: Point, at_once: bool
    ) -> Text | None:
        parameters = _parameters(point, parts)
        if parameters is None:
            return None
        spelling = Spelling(parts, parameters)
        self._spelled.setdefault((mask, spelling), set()).add(self._reader)
        self._at_once |= {mask} if at_once else set()
        if mask not in self.named or self.named[mask].spelling != spelling:
            return None
        name = context.names.variable(mask)
        return Text(f"{name}({', '.join(parameters)})" if parameters else name)

    def definition(self, context: Context, mask: Variable) -> tuple[Node, ...]:
        """What stands where a mask is assigned: its function, if it has one."""
        self._visible.add(mask)
        if mask not in self.named:
            return ()
        found, name = self.named[mask], context.names.variable(mask)
        value = conjunction([*found.spelling.parts], found.at_once)
        text = value.text if value else "true"
        if not found.spelling.parameters:
            return (Declaration("bool", name, text, constant=True),)
        parameters = ", ".join(f"int {parameter}" for parameter in found.spelling.parameters)
        whole = Lambda(name, parameters, (Line(f"return {text};"),), is_short=True)
        is_short = len(whole.header) + len(text) <= ONE_LINE
        return (Lambda(name, parameters, whole.body, is_short=is_short),)

    def worth_naming(self) -> dict[Variable, NamedMask]:
        """The masks that would be spelled so often that they should have names."""
        found: dict[Variable, NamedMask] = {}
        settled: set[tuple[object, ...]] = set()  # who reads a mask that has a name, of which others are parts
        for mask, parts in self._parts.items():
            spellings = {s: readers - settled for (one, s), readers in self._spelled.items() if one is mask}
            most = max(spellings, key=lambda one: len(spellings[one]), default=None)
            if most is not None and _comparisons(parts) * (len(spellings[most]) - 1) >= SAVED:
                found[mask] = NamedMask(most, mask in self._at_once)
                settled |= spellings[most]
        return found


def _comparisons(parts: tuple[Expr, ...]) -> int:
    return sum(isinstance(one, Call) and one.op in COMPARISONS for part in parts for one in subexpressions(part))


def _parameters(point: Point, parts: tuple[Text, ...]) -> tuple[str, ...] | None:
    """The loop variables that are mentioned, in the order of the axes; None where an index is computed from some."""
    mentioned = {word for part in parts for word in identifiers(part.text)}
    found: list[str] = []
    for index in point.indices:
        counter = (index.vector or index.whole).text
        if counter.isidentifier():
            found.append(counter)
        elif not counter.isdigit() and not mentioned.isdisjoint(identifiers(counter)):
            return None
    return tuple(dict.fromkeys(one for one in found if one in mentioned))
