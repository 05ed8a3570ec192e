"""The user's comments at the parameters of a function: beside one, and on lines of their own above one.

In: the LibCST tree of a `def`. Out: a `ParameterComments` for each parameter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import libcst as cst

from ..ir.nodes import ParameterComments

TOOLS = ("fmt:", "noqa", "type:", "yapf:", "pylint:", "ruff:", "isort:")  # what these say is for tools, not for readers


def parameter_comments(definition: cst.FunctionDef) -> Mapping[str, ParameterComments]:
    """The comments by parameter, in order; nothing where there is none.

    One on a line of its own is about the parameter below it, behind the last parameter about that one.
    """
    given = definition.params
    parameters = [*given.posonly_params, *given.params, *given.kwonly_params]
    first, lines = _of(definition.whitespace_before_params)
    above, begins = tuple(filter(None, (first, *lines))), True
    found: dict[str, ParameterComments] = {}
    for number, parameter in enumerate(parameters):
        beside, below = _behind(parameter)
        if number == len(parameters) - 1:
            beside, below = " ".join(filter(None, (beside, *below))), ()
        found[parameter.name.value] = ParameterComments(above, beside, begins)
        above, behind = below, getattr(parameter.comma, "whitespace_after", None)
        begins = isinstance(behind, cst.ParenthesizedWhitespace)
    return found if any(one.above or one.beside for one in found.values()) else {}


def _behind(parameter: cst.Param) -> tuple[str, tuple[str, ...]]:
    """(what stands behind a parameter in its line, the comments below it)."""
    found = [_of(parameter.whitespace_after_param)]
    if isinstance(parameter.comma, cst.Comma):
        found += [_of(parameter.comma.whitespace_before), _of(parameter.comma.whitespace_after)]
    return " ".join(filter(None, (beside for beside, _ in found))), tuple(line for _, below in found for line in below)


def _of(whitespace: Any) -> tuple[str, tuple[str, ...]]:
    """(the comment that ends a line, those on the lines of their own behind it)."""
    if not isinstance(whitespace, cst.ParenthesizedWhitespace):
        return "", ()
    beside = next(_texts([whitespace.first_line]), "")
    return beside, tuple(_texts(whitespace.empty_lines))


def _texts(lines: Any) -> Iterator[str]:
    for line in lines:
        text = line.comment.value.lstrip("#").strip() if line.comment is not None else ""
        if text and not text.startswith(TOOLS):
            yield text
