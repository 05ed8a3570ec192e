"""The lines of a kernel's name and parameters, with the comments that the user has given these."""

from __future__ import annotations

from ..ir.nodes import NO_COMMENTS, ParameterComments
from ..lower.text.unit import Unit
from .wrap import WIDTH, wrap_code, wrap_comment

INDENT = 4
OF_LAUNCH = ParameterComments(("What the launch adds",))  # above the first parameter that is none of the user's


def plain_signature(unit: Unit) -> list[str]:
    """The name and the parameters, as many in a line as it takes."""
    return wrap_code(f"{unit.name}({', '.join(unit.parameters)})", 0)


def signature_lines(unit: Unit) -> list[str]:
    """The same; where the user has commented parameters, in the lines of the source."""
    if not any(one.above or one.beside for one in unit.parameter_comments):
        return plain_signature(unit)
    lines, last = [f"{unit.name}("], len(unit.parameters) - 1
    together: list[str] = []
    comments = [*unit.parameter_comments, *([OF_LAUNCH] if len(unit.parameter_comments) <= last else [])]
    for number, text in enumerate(unit.parameters):
        here = comments[number] if number < len(comments) else NO_COMMENTS
        if here.begins_line or here.above:
            lines += [*_filled(together), *(line for comment in here.above for line in wrap_comment(comment, INDENT))]
            together = []
        together.append(f"{text})" if number == last else f"{text},")
        if here.beside:
            *before, own = _filled(together)
            together = []
            lines += [*before, *wrap_code(own.strip(), INDENT, here.beside)]
    return [*lines, *_filled(together)]


def _filled(parameters: list[str]) -> list[str]:
    """Parameters in lines, as many in each as it takes."""
    lines: list[str] = []
    for text in parameters:
        if lines and len(lines[-1]) + 1 + len(text) <= WIDTH:
            lines[-1] += f" {text}"
        else:
            lines.append(" " * INDENT + text)
    return lines
