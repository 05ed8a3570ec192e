"""Index tiles, in as many elements as the text turns out to use.

Loads and stores of vectors ask for the index of their first element only. Whether anything asks for the others is known when
everything is written: a tile of which only element 0 is used becomes a scalar, one of which only the starts of vectors are
used an array of these, and one that nothing asks for, such as the index in a mask that copies have seen to, goes. Further
index tiles that are computed from it are looked at first. So are tiles whose elements are equal for a thread: what reads them
asks for the first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from ...ir.c_tokens import NAME, identifiers
from ...ir.nodes import Expr, Variable
from ...schedule.tiles.layout import Layout
from ..context import Context, ctype
from ..text.operators import Text
from ..text.point import FIRST, Index, point_of, vector_start
from ..text.unit import (
    Assignment,
    Declaration,
    IndexTile,
    Node,
    const,
    every,
    texts_of,
    unrolled,
    with_blocks,
    with_text,
)

USE = re.compile(rf"(&?)({NAME})(?:\[([^\[\]]*)\])?")
OTHER = ""  # a use of another kind than one element's index


def index_tile(
    context: Context,
    target: Variable,
    value: Expr,
    layout: Layout,
    name: str,
    whole: tuple[Node, ...],
    said: str,
) -> tuple[Node, ...]:
    """The array of an index tile, with the shorter ways to have it; `whole` is all of it, where that is the only way.

    `said` explains what the scalar is that may stand for it.
    """
    axes = layout.array_axes()
    if not axes:
        return (IndexTile(name, "", whole, whole, ()),)
    if len(axes) != 1:
        return whole
    (axis,) = axes
    kind, named = ctype(target.type), context.axis_names.find(layout.axes[axis])

    def at(index: Index) -> str:
        return context.speller.text(
            value, point_of(layout, tuple(index if a == axis else FIRST for a in range(layout.rank)))
        )

    first = (const(kind, name, at(FIRST), said),)
    if named is None or not 1 < named.run < named.num_registers:
        return (IndexTile(name, "", whole, first, ()),)
    v = context.names.shared_index("v")
    start = Assignment(f"{name}[{v}]", at(vector_start(Text(v), named.vector)))
    starts = (
        Declaration(kind, name, sides=f"[{named.vectors}]", comment="the first of each vector"),
        unrolled(v, named.vectors, (start,)),
    )
    return (IndexTile(name, named.vector, whole, first, starts),)


def settle_index_tiles(body: tuple[Node, ...], alone: Callable[[str], bool]) -> tuple[Node, ...]:
    """The body with every index tile written as short as its uses allow; `alone` is whether a name is an index tile's only."""
    tiles: dict[str, list[IndexTile]] = {}
    for node in every(body):
        if isinstance(node, IndexTile):
            tiles.setdefault(node.name, []).append(node)
    if not tiles:
        return body
    uses: dict[str, Counter[str]] = {name: Counter() for name in tiles}
    _count(uses, body, 1)
    chosen: dict[str, tuple[str, str]] = {}
    for name in reversed(tiles):
        group = tiles[name]
        way = _shortest(group, uses[name]) if alone(name) else "whole"
        chosen[name] = way, group[0].vector
        for tile in group if way != "whole" else ():
            _count(uses, tile.whole, -1)
            _count(uses, getattr(tile, way), 1)
    return _written(body, chosen)


def _shortest(group: list[IndexTile], uses: Counter[str]) -> str:
    """How much of a tile its uses ask for: "nothing", "first", "starts" of vectors, or the "whole"."""
    own: Counter[str] = Counter()
    for tile in group:
        _count({tile.name: own}, tile.whole, 1)
    asked = {index for index, count in (uses - own).items() if count > 0}
    if asked <= {"0"}:
        return "first" if asked else "nothing"
    vector = group[0].vector
    if vector and all(tile.vector == vector for tile in group) and all(_vector_of(index, vector) for index in asked):
        return "starts"
    return "whole"


def _vector_of(index: str, vector: str) -> str:
    """The number of the vector that starts at an index; "" where none does."""
    found = re.fullmatch(rf"(\w+)(?: / {vector})? \* {vector}", index)
    if index == "0" or found is None:
        return "0" if index == "0" else ""
    return index.removesuffix(f" * {vector}")


def _texts(nodes: Iterable[Node]) -> Iterator[str]:
    """The code in some nodes; of index tiles, all of their elements'."""
    for node in every(nodes):
        yield from _texts(node.whole) if isinstance(node, IndexTile) else texts_of(node)


def _count(uses: dict[str, Counter[str]], nodes: Iterable[Node], sign: int) -> None:
    for text in _texts(nodes):
        for address, name, index in USE.findall(text):
            if name in uses:
                uses[name][OTHER if address else index] += sign
            for inner in identifiers(index):  # such as the index of this thread's only element
                if inner in uses:
                    uses[inner][OTHER] += sign


def _written(nodes: Iterable[Node], chosen: dict[str, tuple[str, str]], own: str = "") -> tuple[Node, ...]:
    """The nodes with every index tile as `chosen`: the way, and the constant that its vectors have as many elements as."""

    def one(match: re.Match[str]) -> str:
        way, vector = chosen.get(match[2], ("whole", ""))
        if way == "whole" or match[2] == own or match[3] is None:
            return match[0]
        return match[2] if way == "first" else f"{match[2]}[{_vector_of(match[3], vector)}]"

    def text(code: str) -> str:
        return USE.sub(one, code)

    found: list[Node] = []
    for node in nodes:
        if isinstance(node, IndexTile):
            found += _written(getattr(node, chosen[node.name][0]), chosen, node.name)
        else:
            found.append(with_blocks(with_text(node, text), lambda block: _written(block, chosen, own)))
    return tuple(found)
