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
    DTypeError,
    Span,
    UndefinedVariableError,
    UnknownNameError,
    UnsupportedLanguageConstruct,
    warn_at,
)
from ..kernel_function import KernelFunction, normalised
from ..language.constexpr import plain
from ..language.member_hints import (
    FAILED,
    NO_SUCH_ITEM,
    NO_SUCH_KEY,
    instead_of_member,
    instead_of_tiles_member,
    not_defined,
)
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
        cause, remedy = _undefined(error)
        return UndefinedVariableError(cause, span, remedy, calls)
    if isinstance(error, AttributeError):
        return UnknownNameError(_in_words(error), span, _instead_of(error), calls)
    if isinstance(error, RecursionError):
        cause, remedy = "functions call each other without an end", "end the recursion by a compile-time condition"
        return UnsupportedLanguageConstruct(cause, span, remedy, calls)
    function = _function_outside(error.__traceback__)
    if function is None and isinstance(error, LookupError):
        is_key = isinstance(error, KeyError)
        cause, remedy = (f"there is no key {error}", NO_SUCH_KEY) if is_key else (str(error), NO_SUCH_ITEM)
        return DTypeError(cause, span, remedy, calls)
    cause, remedy = f"{type(error).__name__}: {_in_words(error)}", ""
    if function is not None:
        code = function.tb_frame.f_code
        cause = f"{code.co_name} failed at compile time: {cause}"
        remedy = f"it is a function of Python, and failed at {code.co_filename}:{function.tb_lineno}"
    elif isinstance(error, ArithmeticError):
        cause = f"cannot compute this at compile time: {error}"
        return DTypeError(cause, span, "test the numbers first, with tl.static_assert", calls)
    elif (called := _called(error.__traceback__)) is not None:
        cause, remedy = f"{getattr(called, '__name__', called)} failed at compile time: {_in_words(error)}", FAILED
    return UnsupportedLanguageConstruct(cause, span, remedy, calls)


def _undefined(error: NameError) -> tuple[str, str]:
    """What is wrong with a name, and what to do about it."""
    from .bound import why_gone

    frame = _innermost(error.__traceback__)
    quoted = re.search(r"'(\w+)'", str(error))  # of a local variable, Python keeps no name beside the text
    if frame is None or quoted is None:
        return str(error), "define it before this line"
    name, variables = quoted[1], frame.f_locals
    known = [one for one in (*variables, *frame.f_globals) if not one.startswith(SUPPORT)]
    return why_gone(name, variables) or not_defined(name, known, frame.f_code.co_varnames)


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


def _called(traceback: TracebackType | None) -> Any:
    """The function in C that the innermost kernel's line called, where the error came from one; else None."""
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    is_called = traceback is not None and traceback.tb_frame.f_code.co_name == CALLS_PYTHON
    return traceback.tb_frame.f_locals["function"] if traceback is not None and is_called else None


def _instead_of(error: AttributeError) -> str:
    """What to write instead of a member that is not there."""
    if error.name is None:  # raised by hand, without a place
        return ""
    is_tile = isinstance(error.obj, tensor)
    return instead_of_tiles_member(error.name) if is_tile else instead_of_member(plain(error.obj), error.name)


def _in_words(error: Exception) -> str:
    """What Python says, with our classes under the names that users know."""
    return re.sub(OURS, lambda name: "'tl.constexpr'" if name[1] == "constexpr" else "'tl.tensor'", str(error))


def _innermost(traceback: TracebackType | None) -> FrameType | None:
    """The user's innermost frame."""
    found = None
    while traceback is not None:
        if SUPPORT in traceback.tb_frame.f_globals:
            found = traceback.tb_frame
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
