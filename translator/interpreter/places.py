"""Where in the user's source the interpreter is: for messages, and for errors that do not say it themselves.

A frame is the user's when its globals hold `SUPPORT`, the name under which rewritten kernels find their helpers.
"""

from __future__ import annotations

import ast
import re
import sys
from types import FrameType, TracebackType
from typing import Any

from ..diagnostics import (
    CompilationError,
    Span,
    UndefinedVariableError,
    UnknownNameError,
    UnsupportedLanguageConstruct,
    warn_at,
)
from ..kernel_function import KernelFunction, normalised
from ..language.constexpr import plain
from ..language.member_hints import NO_SUCH_ITEM, instead_of_member, instead_of_tiles_member
from ..language.values import tensor
from ..outside import is_ours

SUPPORT = "__tilewright__"
KERNEL = f"{SUPPORT}kernel"  # the name of the `KernelFunction` beside it
CALLS_PYTHON = "_at_compile_time"  # of `support.py`: the frame between a kernel and a function of Python
OURS = re.compile(r"'(Tile|Known|constexpr)'")  # the classes that Python names in its messages
# What Python raises for a kernel that asks for something that is not there. Others (a debugger's exit, an interrupt, an
# exception that a kernel raises on purpose) pass through.
PYTHON_ERRORS = (
    NameError,
    AttributeError,
    TypeError,
    ValueError,
    LookupError,
    ArithmeticError,
    SyntaxError,
    RecursionError,
)


def user_line() -> str:
    """The innermost line of a kernel that is running, as `file:line`."""
    frame = _user_frame()
    return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else "an unknown line"


def warn(text: str) -> None:
    """A warning at the innermost line of a kernel that is running."""
    if (frame := _user_frame()) is not None:
        warn_at(frame.f_code.co_filename, frame.f_lineno, text)


def user_variables() -> dict[str, Any]:
    """The variables of the innermost function of a kernel that is running, and what it was given to remember for `SUPPORT`."""
    frame = _user_frame()
    return frame.f_locals if frame else {}  # type: ignore[return-value]


def _user_frame() -> FrameType | None:
    frame: FrameType | None = sys._getframe()
    while frame is not None and SUPPORT not in frame.f_globals:
        frame = frame.f_back
    return frame


def placed(error: Exception) -> CompilationError:
    """An error of the language, or of Python, as an error of ours that shows the line and the calls that led to it."""
    spans = _user_spans(error.__traceback__)
    span, calls = (spans[-1], tuple(spans[:-1])) if spans else (None, ())
    if isinstance(error, CompilationError):
        if error.span is None:
            error.span, error.calls = span, calls
        else:
            error.calls = (*spans, *error.calls)
        return error
    if isinstance(error, NameError):
        from .bound import why_gone

        name = re.search(r"'(\w+)'", str(error))
        why = why_gone(name[1], _variables(error.__traceback__)) if name else None
        if why is not None:
            return UndefinedVariableError(why[0], span, why[1], calls)
        return UndefinedVariableError(str(error), span, "assign it before this line", calls)
    if isinstance(error, AttributeError):
        return UnknownNameError(_in_words(error), span, _instead_of(error), calls)
    if isinstance(error, RecursionError):
        cause, remedy = "functions call each other without an end", "end the recursion by a compile-time condition"
        return UnsupportedLanguageConstruct(cause, span, remedy, calls)
    cause, remedy = f"{type(error).__name__}: {_in_words(error)}", ""
    function = _function_outside(error.__traceback__)
    if function is not None:
        code = function.tb_frame.f_code
        cause = f"{code.co_name} failed at compile time: {cause}"
        remedy = f"it is a function of Python, and failed at {code.co_filename}:{function.tb_lineno}"
    elif isinstance(error, ArithmeticError):
        cause, remedy = f"cannot compute this at compile time: {cause}", "test the numbers first, with tl.static_assert"
    elif isinstance(error, IndexError):
        remedy = NO_SUCH_ITEM
    return UnsupportedLanguageConstruct(cause, span, remedy, calls)


def _function_outside(traceback: TracebackType | None) -> TracebackType | None:
    """The frame of a function of Python that the innermost kernel's line called, where the error came from one; else None."""
    found, is_called = None, False
    while traceback is not None:
        frame = traceback.tb_frame
        if SUPPORT in frame.f_globals:
            found, is_called = None, True
        elif frame.f_code.co_name != CALLS_PYTHON:
            found = traceback if is_called and not is_ours(str(frame.f_globals.get("__name__"))) else found
            is_called = False
        traceback = traceback.tb_next
    return found


def _instead_of(error: AttributeError) -> str:
    """What to write instead of a member that is not there."""
    if error.name is None:  # raised by hand, without a place
        return ""
    is_tile = isinstance(error.obj, tensor)
    return instead_of_tiles_member(error.name) if is_tile else instead_of_member(plain(error.obj), error.name)


def _in_words(error: Exception) -> str:
    """What Python says, with our classes under the names that users know."""
    return re.sub(OURS, lambda name: "'tl.constexpr'" if name[1] == "constexpr" else "'tl.tensor'", str(error))


def _variables(traceback: TracebackType | None) -> dict[str, Any]:
    """The variables of the user's innermost frame."""
    found: dict[str, Any] = {}
    while traceback is not None:
        if SUPPORT in traceback.tb_frame.f_globals:
            found = traceback.tb_frame.f_locals
        traceback = traceback.tb_next
    return found


def _user_spans(traceback: TracebackType | None) -> list[Span]:
    """The places of a traceback's frames that are the user's, outermost first."""
    spans = []
    while traceback is not None:
        if SUPPORT in traceback.tb_frame.f_globals:
            spans.append(_span(traceback))
        traceback = traceback.tb_next
    return spans


def _span(traceback: TracebackType) -> Span:
    """The expression that was being evaluated; the whole line where Python (3.10) does not record expressions."""
    code, line = traceback.tb_frame.f_code, traceback.tb_lineno
    function = traceback.tb_frame.f_globals[KERNEL]
    lines = function.raw_src.split("\n")  # the file may be another one by now
    text = lines[line - function.first_line]
    column, end_line, end_column = len(text) - len(text.lstrip()), line, len(text)
    if hasattr(code, "co_positions"):
        start, stop, first, last = list(code.co_positions())[traceback.tb_lasti // 2]
        if start == line and None not in (stop, first, last):
            column, end_line = _characters(text, first), stop
            end_column = _characters(lines[stop - function.first_line], last)
    return Span(code.co_filename, line, column, end_line, end_column, text)


def parameter_span(function: KernelFunction, written: ast.arguments, name: str, above: int) -> Span:
    """Where a parameter stands in the user's file, in which there are so many lines `above` those that were parsed."""
    node = next(one for one in ast.walk(written) if isinstance(one, ast.arg) and normalised(one.arg) == name)
    line = node.lineno + above
    text = function.raw_src.split("\n")[line - function.first_line]
    column = _characters(text, node.col_offset)
    return Span(function.path, line, column, line, column + len(name), text)


def _characters(text: str, count: int) -> int:
    """How many characters the first bytes of a line are, in which Python counts columns."""
    return len(text.encode()[:count].decode(errors="ignore"))
