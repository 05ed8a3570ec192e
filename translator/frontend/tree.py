"""Walks over LibCST's trees. Its visitors take a tree apart and together again, which takes ten times as long.

Kinds of nodes are compared here and not asked for with `isinstance`, which abstract classes answer slowly.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import libcst as cst

# What of a node is only layout, besides its whitespace.
LAYOUT = frozenset(
    ("lpar", "rpar", "lbracket", "rbracket", "comma", "semicolon", "leading_lines", "lines_after_decorators", "header", "footer")
)  # fmt: skip


@functools.cache
def _parts(kind: type[Any]) -> tuple[str, ...]:
    """The attributes of a kind of node that can hold nodes of the program."""
    names = (field.name for field in fields(kind))
    return tuple(name for name in names if name not in LAYOUT and "whitespace" not in name)


@functools.cache
def _is_node(kind: type[Any]) -> bool:
    return cst.CSTNode in kind.__mro__  # issubclass asks every class that the abstract one knows


def children(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The nodes directly below a node, without those that are only layout, in the order of evaluation of statements."""
    found: list[cst.CSTNode] = []
    for name in _parts(type(node)):
        value = getattr(node, name)
        if isinstance(value, (tuple, list)):
            found += [one for one in value if _is_node(one.__class__)]
        elif _is_node(value.__class__):
            found.append(value)
    return found


def below(node: cst.CSTNode) -> Iterator[Any]:
    """A node and all nodes below it, each in front of its children."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        waiting += reversed(children(one))
