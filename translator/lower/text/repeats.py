"""Lines that are quoted more than once, for parts of one statement that do not follow each other.

A statement whose address is loaded from memory, for one, is quoted where that is read ahead, where the copies are started, and
where the loop would have it. What has no remark of its own says that it is a part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from ...ir.nodes import Origin
from .unit import Branch, Comment, Loop, Node

REMARK = "(in part)"


def with_parts_named(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The same text, in which every quote of a line that is quoted again has a remark.

    Statements are told apart by their spans as objects: a function that is called twice has two of each.
    """
    quotes = Counter(id(comment.origin.span) for comment in _comments(nodes) if comment.origin is not None)
    again = {span for span, times in quotes.items() if times > 1}
    return tuple(_named(nodes, again)) if again else nodes


def _comments(nodes: Iterable[Node]) -> Iterator[Comment]:
    for node in nodes:
        match node:
            case Comment():
                yield node
            case Loop():
                yield from _comments(node.body)
            case Branch():
                yield from _comments((*node.then, *node.otherwise))


def _named(nodes: Iterable[Node], again: set[int]) -> Iterator[Node]:
    for node in nodes:
        match node:
            case Comment(remark="", origin=Origin(span=span)) if id(span) in again:
                yield replace(node, remark=REMARK)
            case Loop():
                yield replace(node, body=tuple(_named(node.body, again)))
            case Branch():
                then, otherwise = tuple(_named(node.then, again)), tuple(_named(node.otherwise, again))
                yield replace(node, then=then, otherwise=otherwise)
            case _:
                yield node
