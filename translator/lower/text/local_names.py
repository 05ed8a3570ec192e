"""Names of the translator's own in blocks of which neither stands in the other: both may have the plain one.

While a kernel is lowered, every such name is another one, as nobody knows yet in which block it will stand. Once everything is
written, `ahead_second` of a second loop is `ahead` again, if `ahead` is nowhere but in the first one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

from ...ir.c_tokens import IDENTIFIER, identifiers
from ...ir.walk import common_path
from .unit import LINES, Comment, Node, blocks_of, declared_name, texts_of, with_blocks, with_text

Path = tuple[int, ...]  # the blocks around a line, outermost first, by their numbers


def with_plain_names(nodes: tuple[Node, ...], wanted: Mapping[str, str]) -> tuple[Node, ...]:
    """The same text, in which names are what was `wanted` for them, where no line sees another thing of that name."""
    found, declared = _places(nodes)
    names: dict[str, str] = {}
    for name, plain in wanted.items():
        if name not in declared or plain not in declared:
            continue
        home = common_path(min(found[name]), max(found[name]))  # what these two share, all between them do
        local = all(any(_within(path, block) for block in declared[plain]) for path in found[plain])
        apart = not any(_within(path, home) or _within(home, path) for path in found[plain])
        if home in declared[name] and local and apart:
            names[name] = plain
            found[plain] += found[name]
            declared[plain] += declared[name]
    return _renamed(nodes, lambda match: names.get(match[0], match[0])) if names else nodes


def _places(nodes: tuple[Node, ...]) -> tuple[dict[str, list[Path]], dict[str, list[Path]]]:
    """The blocks in which each name is, and those of its declarations."""
    found: dict[str, list[Path]] = {}
    declared: dict[str, list[Path]] = {}
    for path, node in _with_paths(nodes, (), [0]):
        for text in texts_of(node):
            for name in identifiers(text):
                found.setdefault(name, []).append(path)
        if (own := declared_name(node)) is not None:
            declared.setdefault(own, []).append(path)
    return found, declared


def _with_paths(nodes: Iterable[Node], path: Path, count: list[int]) -> Iterator[tuple[Path, Node]]:
    for node in nodes:
        yield path, node
        for block in blocks_of(node):
            count[0] += 1
            yield from _with_paths(block, (*path, count[0]), count)


def _within(path: Path, block: Path) -> bool:
    return path[: len(block)] == block


def _renamed(nodes: Iterable[Node], name: Callable[[re.Match[str]], str]) -> tuple[Node, ...]:
    """The nodes with other names, in what explains the code as well."""

    def one(node: Node) -> Node:
        node = with_text(node, lambda text: IDENTIFIER.sub(name, text))
        if isinstance(node, LINES) and node.comment:
            node = replace(node, comment=IDENTIFIER.sub(name, node.comment))
        elif isinstance(node, Comment) and node.source is None:
            node = replace(node, text=IDENTIFIER.sub(name, node.text))
        return with_blocks(node, lambda block: _renamed(block, name))

    return tuple(map(one, nodes))
