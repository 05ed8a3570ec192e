"""The arithmetic of tensor maps and guards, evaluated with the arguments of a launch.

In: text such as "(M + 127) % 128 == 0" or "stride_am * 2" and the integer arguments. Out: integers. The text is Python's
and C++'s at once: names, integers, `+ - * // %`, parentheses and comparisons, nothing else. For the launch path texts
become one Python function over a launch's values, so that a guard costs as much as its arithmetic. Conditions may have the
sides of the grid, too, under their names in `GRID_SIDES`.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tilewright.artifact import GRID_SIDES
from tilewright.diagnostics import HostExpressionError

_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Mod, ast.FloorDiv)
_COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)

# Names and where their values stand among a launch's values.
Places = tuple[tuple[str, int], ...]
Known = Mapping[str, tuple[str, int]]  # of a name: the sequence that has its value, and where


def evaluate(text: str, values: Mapping[str, int]) -> int:
    """The value of `text`; a comparison gives 0 or 1.

    Raises:
      HostExpressionError: for anything but the arithmetic above, an unknown name or a division by zero.
    """
    places = tuple((name, number) for number, name in enumerate(values))
    return int(evaluator((text,), places)(tuple(map(int, values.values())))[0])


@functools.lru_cache(maxsize=1024)
def evaluator(texts: tuple[str, ...], places: Places) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """A function from a launch's values to the values of all texts.

    Raises:
      HostExpressionError: for anything but the arithmetic above and for an unknown name; from the function itself, for a
        division by zero.
    """
    known = _subscripts(places)
    parts = (f"{_in_places(text, known)}," for text in texts)
    function: Callable[[Sequence[Any]], tuple[Any, ...]] = _function(f"({' '.join(parts)})", texts, places)
    return function


@functools.lru_cache(maxsize=1024)
def condition(texts: tuple[str, ...], places: Places) -> Callable[[Sequence[Any], Sequence[int]], bool]:
    """A function from a launch's values and its grid to whether all texts hold; the errors of `evaluator`."""
    known = _subscripts(places) | {name: ("grid", axis) for axis, name in enumerate(GRID_SIDES)}
    parts = (_in_places(text, known) for text in texts)
    function: Callable[[Sequence[Any], Sequence[int]], bool] = _function(" and ".join(parts), texts, places)
    return function


def names_in(texts: Iterable[str]) -> tuple[str, ...]:
    """The names that texts mention, each once, in order."""
    found = (node.id for text in texts for node in ast.walk(_parsed(text)) if isinstance(node, ast.Name))
    return tuple(dict.fromkeys(found))


def _subscripts(places: Places) -> dict[str, tuple[str, int]]:
    return {name: ("v", place) for name, place in places}


def _function(body: str, texts: tuple[str, ...], places: Places) -> Any:
    def divided_by_zero(values: Sequence[Any]) -> HostExpressionError:
        shown = {name: values[place] for name, place in places}
        return HostExpressionError(f"{', '.join(map(repr, texts))} divides by zero with {shown}")

    lines = (
        "def function(v, grid=()):",
        " try:",
        f"  return {body}",
        " except ZeroDivisionError:",
        "  raise fail(v) from None",
    )
    source = "\n".join(lines)
    scope = {"fail": divided_by_zero}
    exec(source, scope)
    return scope["function"]


def _in_places(text: str, known: Known) -> str:
    """The text with every name replaced by its place, in parentheses."""
    try:
        return f"({ast.unparse(_checked(_parsed(text), known))})"
    except _Unsupported as reason:
        raise HostExpressionError(
            f"{text!r} cannot be evaluated at launch: {reason}; it may have integers, names of integer arguments "
            f"({', '.join(sorted(known)) or 'there are none'}), + - * // %, parentheses and comparisons"
        ) from None


class _Unsupported(Exception):  # noqa: N818 (never leaves this file)
    """Why an expression is not one of ours."""


def _parsed(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise _Unsupported(f"it does not parse ({error.msg})") from None


def _checked(node: ast.expr, known: Known) -> ast.expr:
    match node:
        case ast.Constant(value=int()):
            return node
        case ast.Name(id=name):
            if name not in known:
                raise _Unsupported(f"{name} is no integer argument")
            sequence, place = known[name]
            return ast.Subscript(ast.Name(sequence, ast.Load()), ast.Constant(place), ast.Load())
        case ast.UnaryOp(op=ast.USub() as sign, operand=operand):
            return ast.UnaryOp(sign, _checked(operand, known))
        case ast.BinOp(left=left, op=operator, right=right) if isinstance(operator, _OPERATORS):
            return ast.BinOp(_checked(left, known), operator, _checked(right, known))
        case ast.Compare(left=left, ops=[operator], comparators=[right]) if isinstance(operator, _COMPARISONS):
            return ast.Compare(_checked(left, known), [operator], [_checked(right, known)])
    raise _Unsupported(f"{ast.unparse(node)} is no such arithmetic")
