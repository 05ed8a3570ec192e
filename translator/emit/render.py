"""Writes a `Unit` through the templates: the `.cu` text, and which of its lines came from which Python line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from typing import Any

from ..ir.c_tokens import code_of, has_comment, identifiers, split_comment
from ..lower.text.unit import (
    Assignment,
    Blank,
    Branch,
    Comment,
    Declaration,
    Function,
    Lambda,
    Line,
    Loop,
    Node,
    Place,
    PythonLine,
    Shared,
    Spelled,
    Unit,
)
from .ascii_code import ascii_code
from .constants import constant_lines, used_constants, values_in_code
from .helpers import order_helpers
from .signature import plain_signature, signature_lines
from .templates import environment, filled
from .used import used_helpers
from .wrap import WIDTH, closed, field_lines, wrap_code, wrap_comment

Rendered = tuple[str, PythonLine | None]  # a line of text and what it came from
INDENT = 4


def render(unit: Unit) -> tuple[str, tuple[tuple[int, str, int], ...]]:
    """The text of a unit, and (line of the text, Python line) for every line that came from a statement."""
    body = _render_body(unit)
    functions = [_render_function(function) for function in unit.functions]
    chosen = [(template, _with_text(values)) for template, values in order_helpers(unit.helpers, unit.packets)]
    shared = "\n".join(f"{array.ctype} {array.dimensions}" for array in (*unit.static_shared, *unit.dynamic_shared))
    own = "\n".join((*functions, "\n".join(line for line, _ in body), shared, unit.bounds))
    mentioned = set(identifiers(own))
    rendered = {_render_helper(*one): one for one in chosen}
    helpers = used_helpers(list(rendered), mentioned.union(*map(identifiers, plain_signature(unit))))
    values = values_in_code([rendered[helper] for helper in helpers], helpers)
    used = used_constants(unit.constants, mentioned.union(values), helpers)
    text = (
        environment()
        .get_template("kernel.cu.j2")
        .render(
            unit=unit,
            prints="printf" in mentioned,
            asserts="assert" in mentioned,
            title=wrap_comment(unit.title, 0),
            comments=wrap_comment(unit.docstring, 0) if unit.docstring else (),
            header=[line for field in unit.header for line in field_lines(field.word, field.lines)],
            constants=[line for constant in used for line in constant_lines(constant)],
            helpers=_under_one_comment(helpers),
            dynamic_shared=_struct_lines(unit.dynamic_shared),
            static_shared=[line for array in _together(unit.static_shared) for line in _shared_lines(array, True)],
            functions=functions,
            signature="\n".join(signature_lines(unit)),
            body="\n".join(line for line, _ in body),
        )
    )
    return ascii_code(text) + "\n", _line_map(text, body)


def _render_body(unit: Unit) -> list[Rendered]:
    """The kernel's statements, without places of threads that nothing mentions."""
    parts: list[tuple[Node, list[Rendered]]] = []
    source: PythonLine | None = None
    for node in unit.body:
        source = getattr(node, "source", None) or source
        parts.append((node, _render_nodes((node,), INDENT, source)))
    mentioned = {
        word for node, lines in parts if not isinstance(node, Place) for text, _ in lines for word in identifiers(text)
    }
    kept: list[tuple[Node, list[Rendered]]] = []
    for node, lines in reversed(parts):  # a place is made of those above it
        if isinstance(node, Place):
            if node.name not in mentioned:
                continue
            mentioned.update(identifiers(node.value))
        kept.insert(0, (node, lines))
    found: list[Rendered] = []
    for subject, group in groupby(kept, key=lambda part: part[0].subject if isinstance(part[0], Place) else id(part)):
        nodes = list(group)
        together = ", ".join(f"{node.name} = {node.value}" for node, _ in nodes if isinstance(node, Place))
        line = f"{' ' * INDENT}const int {together};   // {subject}"
        if len(nodes) > 1 and subject and len(line) <= WIDTH:
            found.append((line, None))
        else:
            found += [line for _, lines in nodes for line in lines]
    return found


def _line_map(text: str, body: list[Rendered]) -> tuple[tuple[int, str, int], ...]:
    """The body is the end of the file, before the closing brace."""
    first = text.count("\n") + 1 - len(body)
    return tuple((first + number, *source) for number, (_, source) in enumerate(body) if source)


# ----------------------------------------------------------------------------------------------------- statements


def _render_nodes(nodes: Iterable[Node], indent: int, source: PythonLine | None = None) -> list[Rendered]:
    """Lines of text with the Python line that each came from."""
    lines: list[Rendered] = []
    for node in nodes:
        if isinstance(node, Comment) and node.source:
            source = node.source
        lines += [(text, inner or source) for text, inner in _render_node(node, indent, source)]
    return lines


def _render_node(node: Node, indent: int, source: PythonLine | None) -> list[Rendered]:
    match node:
        case Blank():
            return [("", None)]
        case Comment(text=""):
            return []
        case Comment():
            if node.source:
                return [(text, source) for text in _quote(node, indent)]
            return [(text, source) for text in wrap_comment(node.text, indent)]
        case Line() | Declaration() | Assignment():
            return [(line, source) for line in wrap_code(node.text, indent, node.comment)]
        case Place():
            text = f"const int {node.name} = {node.value};"
            return [(line, source) for line in wrap_code(text, indent, node.comment)]
        case Spelled():
            rendered = environment().get_template(f"statements/{node.template}.cu.j2").render(**node.values)
            return [(line, source) for part in rendered.splitlines() for line in wrap_code(part, indent)]
        case Loop():
            return _render_loop(node, indent, source)
        case Lambda():
            return _render_lambda(node, indent, source)
        case Branch():
            return _render_branch(node, indent, source)
    raise TypeError(f"cannot render {type(node).__name__}")


def _quote(quote: Comment, indent: int) -> list[str]:
    """A quoted line; where its remark has no room beside it, the remark stands below, further in."""
    beside = f"{quote.text}    {quote.remark}" if quote.remark else quote.text
    if not quote.remark or indent + 3 + len(beside) <= WIDTH:
        return wrap_comment(beside, indent, "// ", "//     ")
    below = "//" + " " * 9
    return [*wrap_comment(quote.text, indent, "// ", "//     "), *wrap_comment(quote.remark, indent, below, below)]


def _render_loop(loop: Loop, indent: int, source: PythonLine | None) -> list[Rendered]:
    pad = " " * indent
    pragma = "#pragma unroll" if loop.factor is None else f"#pragma unroll {loop.factor}"
    pragma += f"   // {loop.why}" if loop.why else ""
    lines = [(pad + pragma, source)] if loop.unroll else []
    inner = _render_nodes(loop.body, indent + INDENT, source)
    if loop.unroll and len(inner) == 1 and not has_comment(inner[0][0]):
        one = f"{pad}{loop.header} {inner[0][0].strip()}"
        if len(one) <= WIDTH:
            return [*lines, (one, source)]
    head = wrap_code(f"{loop.header} {{", indent)
    return [*lines, *((line, source) for line in head), *inner, (f"{pad}}}", source)]


def _render_lambda(function: Lambda, indent: int, source: PythonLine | None) -> list[Rendered]:
    inner = _render_nodes(function.body, indent + INDENT, source)
    if function.is_short:
        text = " ".join(line.strip() for line, _ in inner)
        return [(line, source) for line in wrap_code(f"{function.header} {{ {text} }};", indent)]
    head = wrap_code(f"{function.header} {{", indent)
    return [*((line, source) for line in head), *inner, (f"{' ' * indent}}};", source)]


def _render_branch(branch: Branch, indent: int, source: PythonLine | None, lead: str = "") -> list[Rendered]:
    pad = " " * indent
    inner = _render_nodes(branch.then, indent + INDENT, source)
    if not branch.otherwise and len(inner) == 1 and not has_comment(inner[0][0]):
        one = f"{pad}{lead}if ({branch.condition}) {inner[0][0].strip()}{_remark(branch.comment)}"
        if len(one) <= WIDTH and "if (" not in code_of(inner[0][0]):
            return [(one, source)]
    head = wrap_code(f"{lead}if ({branch.condition}) {{", indent, branch.comment)
    lines = [*((line, source) for line in head), *inner]
    remarks = [node for node in branch.otherwise[:-1] if isinstance(node, Comment)]
    last = branch.otherwise[-1] if len(remarks) + 1 == len(branch.otherwise) and not branch.else_comment else None
    if isinstance(last, Branch):
        follows = replace(last, then=(*remarks, *last.then))  # of an elif, whose line is quoted inside of its block
        quoted = [remark.source for remark in remarks if remark.source]
        return [*lines, *_render_branch(follows, indent, quoted[0] if quoted else source, "} else ")]
    if branch.otherwise:
        lines += [
            (f"{pad}}} else {{{_remark(branch.else_comment)}", source),
            *_render_nodes(branch.otherwise, indent + INDENT, source),
        ]
    return [*lines, (f"{pad}}}", source)]


def _remark(comment: str) -> str:
    return closed(f"   // {comment}") if comment else ""


# ---------------------------------------------------------------------------------------- functions and helpers


def _render_function(function: Function) -> str:
    body = "\n".join(line for line, _ in _render_nodes(function.body, INDENT))
    comments = [closed(comment) for comment in function.comments]
    template = environment().get_template("function.cu.j2")
    return template.render(signature=function.signature, comments=comments, body=body)


def _with_text(values: dict[str, Any]) -> dict[str, Any]:
    """A helper's values, with its body as text."""
    if not isinstance(values.get("body"), tuple):
        return values
    return {**values, "body": "\n".join(line for line, _ in _render_nodes(values["body"], 2 * INDENT))}


def _render_helper(template: str, values: dict[str, Any]) -> str:
    text = filled(f"helpers/{template}.cu.j2", {"width": WIDTH, **values}).strip("\n")
    body = values.get("body", "")
    before, found, after = text.partition(f"\n{body}\n") if body else (text, "", "")
    if found:  # its lines are what they are to be: the user's comments in it are no paragraphs of ours
        return "\n".join((_broken_anew(before), body, _broken_anew(after)))
    return _broken_anew(text)


def _broken_anew(text: str) -> str:
    """A template's text, whose lines take what room there is."""
    lines: list[str] = []
    for line in _paragraphs(text.splitlines()):
        stripped = line.lstrip(" ")
        indent = len(line) - len(stripped)
        if stripped.startswith("// "):
            lines += wrap_comment(stripped[3:], indent)
        else:
            code, comment = split_comment(stripped)
            lines += wrap_code(code, indent, comment) if code else [stripped]
    return "\n".join(lines)


def _under_one_comment(helpers: list[str]) -> list[str]:
    """The same helpers, those of one line together under the comment that they share."""
    found: list[str] = []
    for helper in helpers:
        comment, _, code = helper.partition("\n")
        together = found and found[-1].startswith(f"{comment}\n") and "\n" not in code
        if together and found[-1].count("\n") == found[-1].count("\nstruct "):
            found[-1] += f"\n{code}"
        else:
            found.append(helper)
    return found


def _paragraphs(lines: Iterable[str]) -> list[str]:
    """The same lines, but that comment lines which follow each other are one, to be broken anew."""
    joined: list[str] = []
    for line in lines:
        mark = line[: len(line) - len(line.lstrip(" "))] + "// "
        if line.startswith(mark) and joined and joined[-1].startswith(mark):
            joined[-1] += f" {line[len(mark) :]}"
        else:
            joined.append(line)
    return joined


# ----------------------------------------------------------------------------------------------------------- header


def _struct_lines(arrays: tuple[Shared, ...], depth: int = 0, indent: int = INDENT) -> list[str]:
    """The members of a struct of shared arrays: those of an area stand together, in a union of its turns."""
    lines: list[str] = []
    margin = " " * indent
    for area, members in groupby(arrays, key=lambda array: array.area if len(array.turn) > depth else ""):
        if not area:
            lines += [line for array in members for line in _shared_lines(array, False, indent)]
            continue
        lines.append(f"{margin}union {{   // one memory: no two of these are in use at the same time")
        for turn, mates in groupby(members, key=lambda array: array.turn[depth]):
            together = tuple(mates)
            if len(together) == 1:
                lines += _shared_lines(together[0], False, indent + INDENT)
                continue
            lines.append(f"{margin}{' ' * INDENT}struct {{")
            lines += _struct_lines(together, depth + 1, indent + 2 * INDENT)
            lines.append(f"{margin}{' ' * INDENT}}} {turn};")
        lines.append(f"{margin}}};")
    return lines


def _together(arrays: tuple[Shared, ...]) -> list[Shared]:
    """The same arrays; neighbours of one type that one comment explains have one declaration where there is room."""
    found: list[Shared] = []
    for array in arrays:
        last = found[-1] if found else None
        if last and (last.ctype, last.align, last.comment) == (array.ctype, array.align, array.comment):
            both = replace(last, dimensions=f"{last.dimensions}, {array.name}{array.dimensions}")
            if len(_shared_lines(both, True)) == 1:
                found[-1] = both
                continue
        found.append(array)
    return found


def _shared_lines(array: Shared, static: bool, indent: int = INDENT) -> list[str]:
    """The declaration of a shared array with the sentence that explains it."""
    align = f"alignas({array.alignment}) "
    if static:
        align = f"__shared__ __align__({array.align}) " if array.align else "__shared__ "
    return wrap_code(f"{align}{array.ctype} {array.name}{array.dimensions};", indent, array.comment)
