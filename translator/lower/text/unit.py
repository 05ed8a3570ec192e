"""The render model: the generated file as plain values, nested as the text is nested.

`lower/` builds a `Unit`, `emit/` writes it through the templates. Nothing here knows about tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any

from ...frozen import frozen
from ...ir.c_tokens import code_of, identifiers, in_code
from ...ir.nodes import Origin, ParameterComments
from ...ir.static_loops import StaticLoop, Trip

PythonLine = tuple[str, int]  # the name of its file, "" where that is the kernel's, and its number


@frozen
class Spelled:
    """A statement that the template `statements/<template>.cu.j2` writes from `values`."""

    template: str
    values: Mapping[str, Any] = field(default_factory=dict)


@frozen
class Line:
    """One line of code; `comment` explains it at its end."""

    text: str
    comment: str = ""


@frozen
class Declaration:
    """`const <type> <name><sides> = <value>;   // <comment>`: one variable, or an array.

    Attributes:
      type: of an element; that what is pointed to is constant belongs to it. "auto" where the value tells.
      name: the variable's.
      value: what it begins with, None for nothing.
      sides: an array's in brackets, "" for none.
      constant: whether nothing else is assigned to it; that is said only of what has a value.
      comment: explains it at the end of the line.
    """

    type: str
    name: str
    value: str | None = None
    sides: str = ""
    constant: bool = False
    comment: str = ""

    @property
    def text(self) -> str:
        """The line of code."""
        value = "" if self.value is None else f" = {self.value}"
        return f"{'const ' if self.constant else ''}{self.declarator}{value};"

    @property
    def declarator(self) -> str:
        """Type, name and sides, as parameters have them."""
        return f"{self.type} {self.name}{self.sides}"

    @property
    def is_pointer(self) -> bool:
        """Whether it declares a pointer."""
        return "*" in self.type

    def with_value(self, value: str) -> Declaration:
        """The same with the only value that it gets; of a pointer, `const` would speak of what it points to."""
        return replace(self, value=value, constant=not self.is_pointer)


def const(type_: str, name: str, value: str, comment: str = "") -> Declaration:
    """The declaration of a variable that nothing else is assigned to."""
    return Declaration(type_, name, value, constant=True, comment=comment)


@frozen
class Assignment:
    """`<target> <operator>= <value>;   // <comment>`."""

    target: str
    value: str
    operator: str = ""
    comment: str = ""

    @property
    def text(self) -> str:
        """The line of code."""
        return f"{self.target} {self.operator}= {self.value};"


@frozen
class Lambda:
    """`const auto <name> = [&](<parameters>) { <body> };`: a function within the kernel.

    It stands in one line where it `is_short`; then its body is one line, too.
    """

    name: str
    parameters: str
    body: tuple[Node, ...]
    is_short: bool = False

    @property
    def header(self) -> str:
        """What stands in front of the body."""
        return f"const auto {self.name} = [&]({self.parameters})"


@frozen
class Place:
    """`const int <name> = <value>;   // <comment>`: where a thread stands, as far as anything mentions it.

    Places that follow each other and have one `subject` share a line, which it explains.
    """

    name: str
    value: str
    comment: str = ""
    subject: str = ""


@frozen
class Comment:
    """A comment line.

    With an empty text it is not written: it only says which Python line the code that follows came from.

    Attributes:
      source: the Python line that it quotes, None for an explanation.
      remark: in brackets, what the translator has to say about the line.
      origin: of the last line of a quoted statement, that statement.
    """

    text: str
    source: PythonLine | None = None
    remark: str = ""
    origin: Origin | None = None


@frozen
class Blank:
    """An empty line."""


@frozen
class Loop:
    """`for`/`while` with its header; `unroll` puts `#pragma unroll` above it, with the `factor` that the user gave.

    `why` stands beside the pragma. `static` is the serial number of the `StaticLoop` that it is, if it is one.
    """

    header: str
    body: tuple[Node, ...]
    unroll: bool = False
    factor: int | None = None
    why: str = ""
    static: int | None = None


def unrolled(index: str, count: str | int, body: tuple[Node, ...], start: str | int = 0, step: str | int = 1) -> Loop:
    """The loop that counts in `index` from `start` up to `count`, written out by the compiler: registers have no index."""
    advance = f"++{index}" if step == 1 else f"{index} += {step}"
    return Loop(f"for (int {index} = {start}; {index} < {count}; {advance})", body, unroll=True)


def unrolled_from_behind(index: str, count: str | int, body: tuple[Node, ...]) -> Loop:
    """The same from the last one down to the first, which has the last word."""
    return Loop(f"for (int {index} = {count} - 1; {index} >= 0; --{index})", body, unroll=True)


@frozen
class Branch:
    """`if (condition) { then } else { otherwise }`, with comments that explain the two parts."""

    condition: str
    then: tuple[Node, ...]
    otherwise: tuple[Node, ...] = ()
    comment: str = ""
    else_comment: str = ""


@frozen
class Mark:
    """Where a trip of a static loop begins, or its last one ends; gone when the loops are written.

    `loads` are those of a thread so far: how often it asks memory.
    """

    trip: Trip
    loads: int = 0


@frozen
class IndexTile:
    """The array of an index tile before its uses are known: all of it, its first element, the starts of vectors, nothing.

    `vector` is the constant that counts the elements of a vector, "" where there is one vector or none.
    """

    name: str
    vector: str
    whole: tuple[Node, ...]
    first: tuple[Node, ...]
    starts: tuple[Node, ...]
    nothing: tuple[Node, ...] = ()


Node = Spelled | Line | Declaration | Assignment | Place | Comment | Blank | Loop | Lambda | Branch | IndexTile | Mark
LINES = (Line, Declaration, Assignment)  # what is one line of code, its `text`, with a `comment` beside it


def blocks_of(node: Node) -> tuple[tuple[Node, ...], ...]:
    """The blocks inside of a node that are written whatever its uses are."""
    match node:
        case Loop(body=body) | Lambda(body=body):
            return (body,)
        case Branch(then=then, otherwise=otherwise):
            return (then, otherwise)
    return ()


def every(nodes: Iterable[Node]) -> Iterator[Node]:
    """The nodes and those inside of them, in the order of the text."""
    waiting = [*nodes][::-1]
    while waiting:
        node = waiting.pop()
        yield node
        for block in reversed(blocks_of(node)):
            waiting += reversed(block)


def texts_of(node: Node) -> Iterator[str]:
    """The pieces of code in a node itself, comments and strings left out."""
    match node:
        case Line() | Declaration() | Assignment():
            yield code_of(node.text)
        case Place(name=name, value=value):
            yield from (name, value)
        case Loop() | Lambda():
            yield code_of(node.header)
        case Branch(condition=condition):
            yield code_of(condition)
        case Spelled(values=values):
            yield from (code_of(str(value)) for value in values.values())


def declared_name(node: Node) -> str | None:
    """The name that a node declares itself."""
    return node.name if isinstance(node, (Declaration, Lambda, IndexTile, Place)) else None


def words(nodes: Iterable[Node]) -> frozenset[str]:
    """The identifiers in some lines of code, comments and strings left out."""
    return frozenset(word for node in every(nodes) for text in texts_of(node) for word in identifiers(text))


def with_blocks(node: Node, change: Callable[[tuple[Node, ...]], tuple[Node, ...]]) -> Node:
    """The node with the blocks inside of it changed."""
    match node:
        case Loop() | Lambda():
            return replace(node, body=change(node.body))
        case Branch():
            return replace(node, then=change(node.then), otherwise=change(node.otherwise))
    return node


def with_text(node: Node, text: Callable[[str], str]) -> Node:
    """The node with every piece of code in itself changed, comments and strings left as they are."""
    match node:
        case Line():
            return replace(node, text=in_code(node.text, text))
        case Declaration():
            value = None if node.value is None else in_code(node.value, text)
            return replace(node, type=text(node.type), name=text(node.name), sides=text(node.sides), value=value)
        case Assignment():
            return replace(node, target=in_code(node.target, text), value=in_code(node.value, text))
        case Lambda():
            return replace(node, name=text(node.name), parameters=text(node.parameters))
        case Loop():
            return replace(node, header=in_code(node.header, text))
        case Branch():
            return replace(node, condition=in_code(node.condition, text))
        case Spelled():
            values = {k: in_code(one, text) if isinstance(one, str) else one for k, one in node.values.items()}
            return replace(node, values=values)
    return node


def rewritten(nodes: Iterable[Node], text: Callable[[str], str]) -> tuple[Node, ...]:
    """The same lines of code with every piece of text changed, comments and strings left as they are."""
    return tuple(with_blocks(with_text(node, text), lambda block: rewritten(block, text)) for node in nodes)


COMMENT_ROOM = 43  # columns for the comment beside a constant
PLAIN_ALIGNMENT = 16  # bytes, of arrays in a struct: any element fits
TOPICS = ("user", "threads", "tiles", "stages", "operands", "stores")


@frozen
class Constant:
    """`constexpr <ctype> <name> = <value>;   // <comment>`, below lines of comment. Constants of a topic stand together.

    Topics come in the order of `TOPICS`.
    """

    name: str
    value: str
    comment: str = ""
    ctype: str = "int"
    topic: str = "tiles"
    above: tuple[str, ...] = ()


@frozen
class Helper:
    """A helper template under `templates/helpers` with its values; `name` orders and identifies it."""

    template: str
    name: str
    values: Mapping[str, Any] = field(default_factory=dict)


@frozen
class Shared:
    """A shared array: `<ctype> <name><dimensions>`, with the sentence that explains it. `size` is in bytes.

    `align` is what accesses of several elements at once rely on, in bytes; None where each is of one element. Arrays of one
    `turn` lie side by side, in the memory that their `area` has for all its turns: see `lower/shared/plan.py`. A turn is the
    struct that stands for it in a union, behind those of the turns around it. Arrays `of_teams` are as many as there are teams.
    """

    name: str
    ctype: str
    dimensions: str
    size: int
    comment: str = ""
    align: int | None = None
    turn: tuple[str, ...] = ()
    area: str = ""
    of_teams: bool = False

    @property
    def alignment(self) -> int:
        """Bytes to which the array is aligned among others."""
        return self.align or PLAIN_ALIGNMENT


@frozen
class Function:
    """A device function that a called jit function became."""

    signature: str
    comments: tuple[str, ...]
    body: tuple[Node, ...]


@frozen
class HeaderField:
    """A field of the header block: a word and its lines."""

    word: str
    lines: tuple[str, ...]


@frozen
class Unit:
    """A generated file.

    Attributes:
      title: the first line of the header block.
      docstring: the first line of the user's, or "".
      header: its fields.
      includes: CUDA's headers, without brackets.
      constants, helpers, functions: in the order in which they are written.
      dynamic_shared: the arrays of the struct in dynamic shared memory; empty when `static_shared` is enough.
      dynamic_bytes, dynamic_alignment: the size and the alignment of that struct.
      static_shared: arrays declared `__shared__` in the kernel.
      packets: sizes of vector accesses, in bytes.
      name, parameters, bounds: of the kernel; the last is the qualifier that bounds its threads or their registers.
      threads: the number of threads that the qualifier has, "" where it has none.
      parameter_comments: the user's, of the first of the parameters; launching adds others behind them.
      body: its statements.
      needs: the first architecture that has its instructions; of "sm_90a" it is the only one.
      proxy_reads: whether it has shared memory read through the asynchronous proxy.
      unequal: static loops that could not be written as loops, since their trips differ.
    """

    title: str
    docstring: str
    header: tuple[HeaderField, ...]
    includes: tuple[str, ...]
    constants: tuple[Constant, ...]
    helpers: tuple[Helper, ...]
    functions: tuple[Function, ...]
    dynamic_shared: tuple[Shared, ...]
    dynamic_bytes: int
    dynamic_alignment: int
    static_shared: tuple[Shared, ...]
    packets: tuple[int, ...]
    name: str
    parameters: tuple[str, ...]
    bounds: str
    threads: str
    body: tuple[Node, ...]
    needs: str = "sm_80"
    proxy_reads: bool = False
    unequal: frozenset[StaticLoop] = frozenset()
    parameter_comments: tuple[ParameterComments, ...] = ()

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block, in bytes."""
        return self.dynamic_bytes + sum(array.size for array in self.static_shared)
