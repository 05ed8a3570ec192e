"""Arrays of what is stored: one takes after another what stores of the same shape have computed, as nothing else reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ...ir.c_tokens import IDENTIFIER
from .unit import Line, Node, rewritten, with_blocks


def with_arrays_in_common(nodes: tuple[Node, ...], arrays: Mapping[str, tuple[str, str]]) -> tuple[Node, ...]:
    """The same text, in which a store's array is the one that an earlier store of a block around it has declared.

    `arrays` are those of stores: what declares each, its name and its shape.
    """
    names: dict[str, str] = {}
    kept = tuple(_declared_once(nodes, arrays, {}, names))
    return rewritten(kept, lambda text: IDENTIFIER.sub(lambda m: names.get(m[0], m[0]), text)) if names else nodes


def _declared_once(
    nodes: Iterable[Node], arrays: Mapping[str, tuple[str, str]], around: Mapping[str, str], names: dict[str, str]
) -> Iterator[Node]:
    """A block without the declarations of arrays for which there is one `around`; `names` learns by what these go."""
    known = dict(around)  # by shape
    for node in nodes:
        if isinstance(node, Line) and node.text in arrays:
            name, shape = arrays[node.text]
            if shape in known:
                names[name] = known[shape]
                continue
            known[shape] = name
        yield with_blocks(node, lambda block: tuple(_declared_once(block, arrays, known, names)))
