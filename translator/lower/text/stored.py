"""Arrays of what is stored: one takes after another what stores of the same shape have computed, as nothing else reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set

from ...ir.c_tokens import IDENTIFIER
from .unit import Declaration, Node, rewritten, with_blocks

Shape = tuple[str, str]  # the type of the elements, and the array's sides


def with_arrays_in_common(nodes: tuple[Node, ...], arrays: Set[str]) -> tuple[Node, ...]:
    """The same text, in which a store's array is the one that an earlier store of a block around it has declared.

    `arrays` are the names of those of stores.
    """
    names: dict[str, str] = {}
    kept = tuple(_declared_once(nodes, arrays, {}, names))
    return rewritten(kept, lambda text: IDENTIFIER.sub(lambda m: names.get(m[0], m[0]), text)) if names else nodes


def _declared_once(
    nodes: Iterable[Node], arrays: Set[str], around: Mapping[Shape, str], names: dict[str, str]
) -> Iterator[Node]:
    """A block without the declarations of arrays for which there is one `around`; `names` learns by what these go."""
    known = dict(around)
    for node in nodes:
        if isinstance(node, Declaration) and node.name in arrays:
            shape = node.type, node.sides
            if shape in known:
                names[node.name] = known[shape]
                continue
            known[shape] = node.name
        yield with_blocks(node, lambda block: tuple(_declared_once(block, arrays, known, names)))
