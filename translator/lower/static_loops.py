"""Loops of `tl.static_range` whose trips have one text: written as loops, where the lowering has written trip after trip.

What one trip declares, the next ones assign, or declare under names of their own. So before trips are compared,
declarations are taken out; names that nothing outside of the loop mentions may differ, as long as each stands for one of
the first trip's everywhere; and in the end every declaration stands in the smallest block around all that mention its name.
Shared arrays that each trip has of its own become the rows of one. Equal texts that mention the trip's number by its word
mean the same, whatever was decided on the way: no trip needs to be looked at by itself.

Example, two trips of `for k in tl.static_range(2)`:
  float x = x_ptr[trip0_of_loop0λ];  sum += x;  float x_next = x_ptr[trip1_of_loop0λ];  sum += x_next;
become
  for (int k = 0; k < 2; ++k) { const float x = x_ptr[k];  sum += x; }
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace

from ..frozen import frozen
from ..ir.c_tokens import identifiers, pieces
from ..ir.static_loops import StaticLoop, Trip
from .text.names import Names
from .text.unit import (
    Assignment,
    Blank,
    Branch,
    Comment,
    Declaration,
    IndexTile,
    Lambda,
    Line,
    Loop,
    Mark,
    Node,
    Place,
    Shared,
    Spelled,
    blocks_of,
    declared_name,
    every,
    texts_of,
    with_blocks,
    with_text,
)

EXPLAINS = "//"  # in front of the words of a comment, which code has not
MOST_LOADS = 128  # of a thread that the compiler may start ahead of their uses


@frozen
class Rolled:
    """Code with loops in place of equal trips.

    Attributes:
      body: that code.
      shared: the shared arrays by name, those of all trips of a loop as one.
      unequal: the loops whose trips are not the same; then the others are of no use.
    """

    body: tuple[Node, ...]
    shared: Mapping[str, Shared]
    unequal: frozenset[StaticLoop]


def rolled(nodes: Sequence[Node], names: Names, shared: Iterable[Shared] = ()) -> Rolled:
    """The same code with loops in place of equal trips; `shared` are the arrays that it uses."""
    loops = {node.trip.loop: None for node in every(nodes) if isinstance(node, Mark)}
    arrays, unequal = {array.name: array for array in shared}, set[StaticLoop]()
    found = tuple(nodes)
    if loops:
        found = _with_loops(found, _Kernel(Counter(_mentions(found)), arrays, unequal))
    depths = dict.fromkeys(loops, 0)
    _note_depths(found, {loop.serial: loop for loop in loops}, (), depths)
    for loop, depth in depths.items():
        found = _respelled(found, loop.word, names.counter(loop.name, depth))
    return Rolled(found, arrays, frozenset(unequal))


def _note_depths(
    nodes: Iterable[Node], loops: Mapping[int, StaticLoop], around: tuple[str, ...], depths: dict[StaticLoop, int]
) -> None:
    """Notes for each of some loops, by serial numbers, in how many others it is whose variables are called as its own."""
    for node in nodes:
        loop = loops[node.static] if isinstance(node, Loop) and node.static is not None else None
        if loop is not None:
            depths[loop] = max(depths[loop], around.count(loop.name))
        inner = (*around, loop.name) if loop is not None else around
        for block in blocks_of(node):
            _note_depths(block, loops, inner, depths)


@frozen
class _Kernel:
    """What all blocks know: how often each name is mentioned; they change the shared arrays and add to unequal loops."""

    mentions: Counter[str]
    shared: dict[str, Shared]
    unequal: set[StaticLoop]


def _with_loops(nodes: tuple[Node, ...], kernel: _Kernel) -> tuple[Node, ...]:
    """A block and those inside of it with all their loops."""
    block = _Block(kernel)
    return block.with_declarations(block.with_loops(nodes))


class _Block:
    """The loops in a block, and the declarations that were taken out of their trips."""

    def __init__(self, kernel: _Kernel) -> None:
        self.kernel, self.shared, self.unequal = kernel, kernel.shared, kernel.unequal
        self.made: set[int] = set()  # the serial numbers of its loops
        self.declared: dict[str, Declaration] = {}
        self.own: frozenset[str] = frozenset()  # names that nothing outside of the outermost loop mentions

    def with_loops(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        """The block with its loops, inner ones first."""
        found: list[Node] = []
        around: list[tuple[StaticLoop, list[list[Node]]]] = []  # loops that have begun, with their trips so far
        loads = 0  # before the outermost one
        for place, node in enumerate(nodes):
            here = around[-1][1][-1] if around else found
            if not isinstance(node, Mark):
                here.append(with_blocks(node, lambda block: _with_loops(block, self.kernel)))
                continue
            loop, number = node.trip.loop, node.trip.number
            if number == 0:
                if not around:
                    self.own, loads = self._own_names(nodes, place, loop), node.loads
                around.append((loop, [[]]))
            elif not around or around[-1][0] != loop or len(around[-1][1]) != number:
                self.unequal.add(loop)
            elif number < loop.trips:
                around[-1][1].append([])
            else:
                trips = around.pop()[1]
                made = self._loop(loop, trips)
                (around[-1][1][-1] if around else found).extend(
                    [made] if around else self._outermost(made, node.loads - loads)
                )
        self.unequal.update(loop for loop, _ in around)  # a trip has returned
        return tuple(found)

    def _loop(self, loop: StaticLoop, trips: list[list[Node]]) -> Loop:
        texts = [self._without_declarations(_with_word(trip, loop, number)) for number, trip in enumerate(trips)]
        names = [self._names_for(texts[0], text) for text in texts[1:]]
        self.made.add(loop.serial)
        if None in names or not _declared(texts[0]) <= self.own:
            self.unequal.add(loop)
            return Loop(loop.header, texts[0], static=loop.serial)
        body = self._with_joint_arrays(texts[0], loop, names)  # type: ignore[arg-type]
        return Loop(loop.header, body, unroll=True, static=loop.serial)

    def _with_joint_arrays(
        self, body: tuple[Node, ...], loop: StaticLoop, names: list[dict[str, str]]
    ) -> tuple[Node, ...]:
        """A trip in which the shared arrays that every trip has of its own are the rows of one; `names` are the others'."""
        for name in sorted(_words(body) & self.own & self.shared.keys()):
            array, others = self.shared[name], [other[name] for other in names]
            if set(others) == {name}:
                continue
            rows = [replace(self.shared[other], name=name) for other in others]
            if len({name, *others}) <= len(others) or {*rows} != {array} or array.turn or array.size % array.alignment:
                self.unequal.add(loop)
                continue
            for other in others:
                del self.shared[other]
            sides, size = f"[{loop.count}]{array.dimensions}", array.size * loop.trips
            self.shared[name] = replace(array, dimensions=sides, size=size)
            body = _respelled(body, name, f"{name}[{loop.index}]")
        return body

    def _outermost(self, loop: Loop, loads: int) -> tuple[Node, ...]:
        """A loop with no other of these around it; where all its loads would be too many, its trips are not written out.

        That is for loops around others, and for those whose trips exchange tiles: there nothing of one trip is for the next.
        """
        around_others = any(isinstance(node, Loop) and node.static in self.made for node in every(loop.body))
        exchanges = not self.shared.keys().isdisjoint(_words(loop.body))
        if loads <= MOST_LOADS or not (around_others or exchanges):
            return (loop,)
        why = Comment(f"One iteration at a time: registers have no room for {loads} loads that are under way at once.")
        return why, replace(loop, factor=1)

    def _without_declarations(self, trip: tuple[Node, ...]) -> tuple[Node, ...]:
        """A trip that only assigns its variables."""
        kept: list[Node] = []
        for node in trip:
            if not isinstance(node, Declaration) or node.type == "auto" or (node.sides and node.value):
                kept.append(node)
                continue
            self.declared.setdefault(node.name, node)
            if node.value is not None:
                kept.append(Assignment(node.name, node.value, comment=node.comment))
        return tuple(kept)

    def _names_for(self, first: tuple[Node, ...], other: tuple[Node, ...]) -> dict[str, str] | None:
        """What another trip, of the same text but for own names, calls what the first one has; None for another text."""
        own, others = list(_pieces(first)), list(_pieces(other))
        if len(own) != len(others):
            return None
        called: dict[str, str] = {}
        for piece, found in zip(own, others, strict=True):
            if piece.startswith(EXPLAINS):
                if piece == found:  # a word like any other, even if an array is called "stored"
                    continue
                piece, found = piece.removeprefix(EXPLAINS), found.removeprefix(EXPLAINS)
            if piece in self.own:
                if called.setdefault(piece, found) != found or not self._has_type_of(piece, found):
                    return None
            elif piece != found:
                return None
        return called if len(set(called.values())) == len(called) and self.own.issuperset(called.values()) else None

    def _has_type_of(self, name: str, other: str) -> bool:
        one, two = self.declared.get(name), self.declared.get(other)
        if one is None or two is None:
            return one is two and (name in self.shared) == (other in self.shared)
        return (one.type, one.sides) == (two.type, two.sides)

    def _own_names(self, nodes: Sequence[Node], start: int, loop: StaticLoop) -> frozenset[str]:
        """What the trips of a loop that begins at a place declare or have in shared memory, and nothing else mentions."""
        ends = (place for place in range(start, len(nodes)) if _ends(nodes[place], loop))
        inside, outside = nodes[start : (end := next(ends, len(nodes)))], (*nodes[:start], *nodes[end:])
        counts = Counter(_mentions(inside))
        arrays = {name for name in self.shared if 0 < counts[name] == self.kernel.mentions[name]}
        return frozenset(arrays | _declared(every(inside)) - _words(outside))

    def with_declarations(self, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
        """The block with every declaration in the innermost of its loops around all that mention the name."""
        for name in self.declared:
            nodes = self._with_declaration(nodes, name)
        return nodes

    def _with_declaration(self, nodes: tuple[Node, ...], name: str) -> tuple[Node, ...]:
        users = [place for place, node in enumerate(nodes) if name in _words([node])]
        if not users:
            return nodes
        place, node, declared = users[0], nodes[users[0]], self.declared[name]
        if len(users) == 1 and isinstance(node, Loop) and node.static in self.made:
            here: tuple[Node, ...] = (with_blocks(node, lambda block: self._with_declaration(block, name)),)
        elif isinstance(node, Assignment) and node.target == name and not node.operator:
            constant = _is_assigned_once(nodes, name) and not declared.is_pointer
            here = (replace(declared, value=node.value, constant=constant, comment=node.comment),)
        else:
            here = (replace(declared, value=None, constant=False, comment=""), node)
        return (*nodes[:place], *here, *nodes[place + 1 :])


def _with_word(trip: list[Node], loop: StaticLoop, number: int) -> tuple[Node, ...]:
    return _respelled(trip, loop.word_of(number), loop.word)


def _respelled(nodes: Iterable[Node], word: str, other: str) -> tuple[Node, ...]:
    """The same lines with another word in place of one, in index tiles too."""
    pattern = re.compile(rf"\b{word}\b")

    def ways(node: Node) -> Node:
        if not isinstance(node, IndexTile):
            return node
        whole, first, starts = block(node.whole), block(node.first), block(node.starts)
        return replace(node, whole=whole, first=first, starts=starts, nothing=block(node.nothing))

    def block(inner: Iterable[Node]) -> tuple[Node, ...]:
        return tuple(with_text(with_blocks(ways(node), block), lambda text: pattern.sub(other, text)) for node in inner)

    return block(nodes)


def _declared(nodes: Iterable[Node]) -> set[str]:
    """The names that a block declares itself."""
    return {name for node in nodes if (name := declared_name(node)) is not None}


def _ends(node: Node, loop: StaticLoop) -> bool:
    return isinstance(node, Mark) and node.trip == Trip(loop, loop.trips)


def _pieces(value: object) -> Iterator[str]:
    """The words of some lines of code and what stands between them; strings are the same or they are not."""
    match value:
        case str():
            yield from pieces(value)
        case Comment():
            # What the last trip carries on, nothing reads: the remark of the first says what it is for.
            yield repr(replace(value, remark=""))
        case tuple() | list():
            yield "("
            for part in value:
                yield from _pieces(part)
            yield ")"
        case Mapping():
            yield from _pieces(tuple(value.items()))
        case (
            Line()
            | Declaration()
            | Assignment()
            | Spelled()
            | Loop()
            | Lambda()
            | Branch()
            | IndexTile()
            | Place()
            | Blank()
        ):
            yield type(value).__name__
            for field in fields(value):
                own = _pieces(getattr(value, field.name))
                yield from (EXPLAINS + piece for piece in own) if field.name == "comment" else own
        case _:
            yield repr(value)


def _words(nodes: Iterable[Node]) -> set[str]:
    """The identifiers in some lines of code, comments and strings left out."""
    return set(_mentions(nodes))


def _mentions(nodes: Iterable[Node]) -> Iterator[str]:
    """The same, each as often as it is there, in index tiles too."""
    for node in every(nodes):
        for text in texts_of(node):
            yield from identifiers(text)
        for way in (node.whole, node.first, node.starts, node.nothing) if isinstance(node, IndexTile) else ():
            yield from _mentions(way)


def _is_assigned_once(nodes: tuple[Node, ...], name: str) -> bool:
    """Whether nothing but one line changes a variable, as far as the text tells."""
    in_place = re.compile(rf"&{name}\b|(?:\+\+|--){name}\b|\b{name} (?:[-+*/%&|^]|<<|>>)?= ")
    count = 0
    for node in every(nodes):
        if isinstance(node, Assignment):
            count += identifiers(node.target)[:1] == [name]
        elif isinstance(node, Declaration):
            count += node.name == name and node.value is not None
        elif isinstance(node, Spelled):
            count += 2 * (name in identifiers(str(node.values.get("target"))))
        if not isinstance(node, (Assignment, Declaration)):
            count += sum(len(in_place.findall(text)) for text in texts_of(node))
    return count == 1
