"""Lines that are quoted more than once, for parts of one statement that do not follow each other.

A statement whose address is loaded from memory, for one, is quoted where that is read ahead, where the copies are started, and
where the loop would have it. What has no remark of its own says that it is a part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ...ir.nodes import Origin
from .unit import Comment, Node, every, with_blocks

REMARK = "(in part)"


def with_parts_named(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The same text, in which every quote of a line that is quoted again has a remark.

    Statements are told apart by their spans as objects: a function that is called twice has two of each.
    """
    quoted = (node.origin for node in every(nodes) if isinstance(node, Comment) and node.origin is not None)
    quotes = Counter(id(origin.span) for origin in quoted)
    again = {span for span, times in quotes.items() if times > 1}
    return tuple(_named(nodes, again)) if again else nodes


def _named(nodes: Iterable[Node], again: set[int]) -> Iterator[Node]:
    for node in nodes:
        match node:
            case Comment(remark="", origin=Origin(span=span)) if id(span) in again:
                yield replace(node, remark=REMARK)
            case _:
                yield with_blocks(node, lambda block: tuple(_named(block, again)))
