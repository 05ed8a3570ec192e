"""Declarations of one variable, as lines of the text have them: written here, and read back by who moves them.

`const int x = y + 1;` declares `x` of the type `int`, with a value that does not change. What is pointed to may be constant,
too: that belongs to the type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...frozen import frozen
from .unit import IndexTile, Line, Loop, Node, Place

LINE = re.compile(
    r"(?:const (?![\w ]+\*))?(?P<type>(?:const )?[A-Za-z_][\w:<>]*(?: (?:char|short|int|long))*\**) (?P<name>[A-Za-z_]\w*)"
    r"(?P<sides>(?:\[[^\]]*\])*)(?: = (?P<value>.*))?;"
)
TYPED_BY_VALUE = re.compile(r"const auto ([A-Za-z_]\w*) = ")
FURTHER = re.compile(r", \w+ = ")  # declares another variable in the same line
NO_TYPE = frozenset({"auto", "return"})


@frozen
class Declaration:
    """One variable's; `sides` are an array's in brackets, "" for none, `value` what it begins with, None for nothing."""

    type: str
    name: str
    sides: str = ""
    value: str | None = None

    @property
    def is_pointer(self) -> bool:
        """Whether it declares a pointer."""
        return "*" in self.type

    def line(self, constant: bool = False) -> Line:
        """The declaration as a line of code, of a variable that is assigned nothing else where it is `constant`."""
        value = "" if self.value is None else f" = {self.value}"
        return Line(f"{'const ' if constant else ''}{self.type} {self.name}{self.sides}{value};")


def declaration_of(node: Node) -> Declaration | None:
    """What a line declares, if it is one variable of a type that has a name."""
    found = LINE.fullmatch(node.text) if isinstance(node, Line) else None
    if found is None or found["type"] in NO_TYPE or FURTHER.search(found["value"] or ""):
        return None
    return Declaration(found["type"], found["name"], found["sides"], found["value"])


def declared_names(node: Node) -> Iterator[str]:
    """The names that a node declares itself, also by the type of a value, and those of functions of the kernel's own."""
    if isinstance(node, (IndexTile, Place)):
        yield node.name
    elif (declaration := declaration_of(node)) is not None:
        yield declaration.name
    elif isinstance(node, (Line, Loop)):
        first_line = node.text if isinstance(node, Line) else node.header
        if named := TYPED_BY_VALUE.match(first_line):
            yield named[1]
