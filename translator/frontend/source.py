"""The function's own text as a LibCST tree with places, and the `Origin` of each statement.

In: a `KernelFunction`. Out: a `Source`, which answers where a node stands and which comments belong to a statement.
"""

from __future__ import annotations

import functools
import re
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from ..diagnostics import NoSourceError, Span
from ..ir.nodes import Origin
from ..kernel_function import KernelFunction, normalised
from .assigned import AssignedByIfs, assigned_names, names_assigned_once, names_read_outside_their_loops
from .tree import below


@functools.lru_cache(maxsize=2)
def _parsed(text: str) -> cst.Module:
    """The tree of a text; kept for the second try of a translation that needs a larger stack."""
    return cst.parse_module(text)


def _without_form_feeds(text: str) -> str:
    """The text without form feeds in front of statements, which Python passes over and LibCST does not."""
    return re.sub(r"^[ \t]*\f+(?=[ \t]*\S)", "", text, flags=re.MULTILINE)


class _Positions(MetadataWrapper):
    """Resolves positions without a walk over the tree for visitors that there are none of."""

    def visit_batched(self, visitors: Any, *around: Any) -> cst.CSTNode:
        return super().visit_batched(visitors, *around) if visitors else self.module


class Source:
    """A parsed function. `definition` is its `def`, `docstring` the first line of its docstring.

    `names` are those of its variables, `assigned_once` those that a single statement of it assigns, `assigned_by` those
    that an `if` of it does.
    """

    def __init__(self, function: KernelFunction) -> None:
        """Parses the text.

        Raises:
          NoSourceError: when it holds no function.
        """
        self.function = function
        text = function.raw_src
        if "\f" in text:
            text = _without_form_feeds(text)
        self._indented = text[:1] in (" ", "\t")
        self.lines = text.split("\n")  # splitlines would break at form feeds and in strings as well
        module = self._parse(f"if True:\n{text}" if self._indented else text)
        self._positions: Any = _Positions(module, unsafe_skip_copy=True).resolve(PositionProvider)
        self._module = module
        if not text.isascii():
            for node in below(module):
                if isinstance(node, cst.Name):
                    object.__setattr__(node, "value", normalised(node.value))
        self.definition = self._find(module.body)
        self._offset = function.first_line - 1 - (1 if self._indented else 0)
        self.line = self.span(self.definition.name).line
        self.names = frozenset((*assigned_names(self.definition), *function.arg_names))
        self.assigned_by = AssignedByIfs()
        self.assigned_once = names_assigned_once(self.definition)
        self.read_outside_their_loops = names_read_outside_their_loops(self.definition.body)
        self.docstring = (self.definition.get_docstring() or "").strip().split("\n")[0]

    def _parse(self, text: str) -> cst.Module:
        try:
            return _parsed(text)
        except cst.ParserSyntaxError as error:
            line = error.raw_line + self.function.first_line - 1 - (1 if self._indented else 0)
            shown = self._line(error.raw_line)
            column = min(error.raw_column, len(shown))
            raise NoSourceError(
                "this is no Python that kernels can be written in: LibCST, which reads it, does not know it",
                Span(self.function.path, line, column, line, column + 1, shown),
                "write it in simpler words",
            ) from None

    def _find(self, body: Any) -> cst.FunctionDef:
        for node in body:
            if isinstance(node, cst.FunctionDef):
                return node
            if isinstance(node, cst.If) and isinstance(node.body, cst.IndentedBlock):
                return self._find(node.body.body)
        raise NoSourceError(f"the source of {self.function.__name__} holds no function definition", None, "write a def")

    def check_parameters(self, calls: tuple[Span, ...] = ()) -> None:
        """Rejects parameters that contradict what the decorator says of them; `calls` led to the function.

        Raises:
          ArgumentError: at the parameter.
        """
        for parameter in self.function.params:
            parameter.check(functools.partial(self._parameter_span, parameter.name), calls)

    def _parameter_span(self, name: str) -> Span:
        written = (node for node in below(self.definition.params) if isinstance(node, cst.Param))
        return self.span(next(node.name for node in written if node.name.value == name))

    def span(self, node: cst.CSTNode) -> Span:
        """Where a node stands in the user's file."""
        position = self._positions[node]
        text = self._line(position.start.line)
        return Span(
            self.function.path,
            position.start.line + self._offset,
            position.start.column,
            position.end.line + self._offset,
            position.end.column,
            text,
        )

    def _line(self, number: int) -> str:
        index = number - 1 - (1 if self._indented else 0)
        return self.lines[index] if 0 <= index < len(self.lines) else ""

    def code(self, node: cst.CSTNode) -> str:
        """The text of a node."""
        return self._module.code_for_node(node)

    def origin(self, statement: Any, inner: Any = None, trip: str = "", file: str = "") -> Origin:
        """The origin of a statement; `inner` is the small statement of a line that holds several."""
        start = self._positions[statement].start.line
        compound = isinstance(statement, (cst.BaseCompoundStatement, cst.Else))
        end = self._header_end(statement) if compound else self._positions[statement].end.line
        text = "\n".join(self._line(number).strip() for number in range(start, end + 1))
        comments, blank = [], False
        is_first = inner is None or inner is statement.body[0]  # of several on a line, the first has the comments
        for line in getattr(statement, "leading_lines", ()) if is_first else ():
            if line.comment is not None:
                comments.append(line.comment.value.lstrip("#").strip())
            elif not comments:
                blank = True
        return Origin(
            self.span(inner if inner is not None else statement), text, tuple(comments), blank, trip, file=file
        )

    def _header_end(self, statement: Any) -> int:
        """The line that ends a compound statement's header: the one before its body."""
        body = getattr(statement, "body", None)  # `match` has none
        if isinstance(body, cst.IndentedBlock) and body.body:
            first = body.body[0]
            above = len(getattr(first, "leading_lines", ()))
            return int(max(self._positions[first].start.line - 1 - above, self._positions[statement].start.line))
        return int(self._positions[statement].start.line)

    def footer(self, block: Any) -> tuple[str, ...]:
        """Comments at the end of a block, after its last statement."""
        lines = getattr(block, "footer", ())
        return tuple(line.comment.value.lstrip("#").strip() for line in lines if line.comment is not None)
