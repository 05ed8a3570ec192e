"""Where in the user's program a call of ours stands: of an error that has no place in a kernel, the line and the argument."""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Callable, Sequence
from types import CodeType, FrameType

from tilewright.diagnostics import Span

Extent = tuple[int, int, int, int]  # first line, last line, columns in bytes of UTF-8

# Modules of which some function lies between a user's call and the one that says what is wrong with it. What calls from
# elsewhere in tilewright is no user: it gets an error without a place, and says itself what it was doing.
BETWEEN = tuple(
    f"tilewright.runtime.{name}" for name in ("jit", "launching", "kernel_interface", "tracebacks", "keywords")
)


def place_of_call(is_of_others: Callable[[FrameType], bool], about: str, names: Sequence[str]) -> Span | None:
    """The user's call that is running, or its argument `about`; None where none of the user's called.

    `names` are the parameters in order, by which arguments without a keyword are found; "grid" is the index of a launch.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and (frame.f_globals.get("__name__") or "").startswith(BETWEEN):
        frame = frame.f_back
    if frame is None or not is_of_others(frame):
        return None
    file, line = frame.f_code.co_filename, frame.f_lineno
    text = linecache.getline(file, line, frame.f_globals).rstrip("\r\n")
    extent = _extent(frame.f_code, frame.f_lasti)
    if extent is None:
        start = len(text) - len(text.lstrip())
        return Span(file, line, start, line, len(text), text)
    lines = linecache.getlines(file, frame.f_globals)[extent[0] - 1 : extent[1]]
    first, last, start, end = _argument(lines, extent, about, names) or extent
    shown = [lines[number - extent[0]].rstrip("\r\n") if lines else "" for number in (first, last)]
    return Span(file, first, _letters(shown[0], start), last, _letters(shown[1], end), shown[0])


def _extent(code: CodeType, instruction: int) -> Extent | None:
    """Where the expression stands that an instruction is part of; None on Python 3.10, which does not know."""
    if sys.version_info < (3, 11):
        return None
    first, last, start, end = list(code.co_positions())[instruction // 2]
    if first is None or last is None or start is None or end is None:
        return None
    return first, last, start, end


def _letters(text: str, column: int) -> int:
    return len(text.encode()[:column].decode(errors="ignore"))


def _argument(lines: list[str], extent: Extent, about: str, names: Sequence[str]) -> Extent | None:
    """Where an argument of the call at `extent` stands; None where it cannot be told."""
    if not about or not lines:
        return None
    first, _, start, end = extent
    encoded = [line.encode() for line in lines]
    encoded[-1] = encoded[-1][:end]
    encoded[0] = encoded[0][start:]
    try:
        call = ast.parse(b"(" + b"".join(encoded) + b")").body[0]
    except SyntaxError:
        return None
    value = _value(call.value, about, names) if isinstance(call, ast.Expr) else None
    if value is None or value.end_lineno is None or value.end_col_offset is None:
        return None
    places = (value.lineno, value.col_offset), (value.end_lineno, value.end_col_offset)
    columns = [column + start - 1 if line == 1 else column for line, column in places]
    return first + value.lineno - 1, first + value.end_lineno - 1, columns[0], columns[1]


def _value(call: ast.expr, about: str, names: Sequence[str]) -> ast.expr | ast.keyword | None:
    if not isinstance(call, ast.Call):
        return None
    for keyword in call.keywords:
        if keyword.arg == about:
            return keyword
    if about == "grid":
        return call.func.slice if isinstance(call.func, ast.Subscript) else None
    if isinstance(call.func, ast.Call):  # of what makes a decorator
        return _value(call.func, about, names)
    if about not in names:
        return None
    before = call.args[: list(names).index(about) + 1]
    is_there = len(before) > list(names).index(about) and not any(isinstance(one, ast.Starred) for one in before)
    return before[-1] if is_there else None
