"""Lines that are quoted more than once, for parts of one statement that do not follow each other.

A statement whose address is loaded from memory, for one, is quoted where that is read ahead, where the copies are started, and
where the loop would have it. What has no remark of its own says that it is a part: the rest, where all others stand above and say
which parts they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from ...ir.nodes import Origin
from .unit import Comment, Node, every, with_blocks

PART, REST = "(in part)", "(the rest)"


def with_parts_named(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The same text, in which every quote of a line that is quoted again has a remark.

    Statements are told apart by their spans as objects: a function that is called twice has two of each.
    """
    quotes: dict[int, list[Comment]] = {}
    for node in every(nodes):
        if isinstance(node, Comment) and node.origin is not None:
            quotes.setdefault(id(node.origin.span), []).append(node)
    remarks = {span: _remark(found) for span, found in quotes.items() if len(found) > 1}
    return tuple(_named(nodes, remarks)) if remarks else nodes


def _remark(quotes: list[Comment]) -> str:
    """What the quotes of one line that have no remark get, given all of them in the order of the text."""
    return PART if quotes[-1].remark or sum(not quote.remark for quote in quotes) > 1 else REST


def _named(nodes: Iterable[Node], remarks: Mapping[int, str]) -> Iterator[Node]:
    for node in nodes:
        match node:
            case Comment(remark="", origin=Origin(span=span)) if id(span) in remarks:
                yield replace(node, remark=remarks[id(span)])
            case _:
                yield with_blocks(node, lambda block: tuple(_named(block, remarks)))
