"""`return`: the end of a program, or the value of a function, which several returns may share.

In an inlined function, what follows an `if` with a `return` becomes part of its branches (`to_the_end`): the rest of its
own block, then the rests of the blocks around it, which `Builder.following` keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import libcst as cst

from ..diagnostics import DTypeError, Span, UnsupportedLanguageConstruct
from ..ir.nodes import Assign, Return, Use, Variable
from .aggregates import form_of, is_run_time, parts_of, with_parts
from .builder import Builder
from .shapes import to_expr
from .values import Const, Value

MOST_WAYS = 64  # through an inlined function to one of its statements


def visit_return(builder: Builder, node: Any) -> None:
    """`return`: ends the program, or gives a function's value."""
    from .expressions import evaluate

    value = evaluate(builder, node.value) if node.value is not None else Const(None)
    if builder.result is not None:
        if in_loop(builder) and not builder.is_straight:
            raise _return_in_loop(builder, node)
        builder.result.give(builder, value, builder.source.span(node))
        return
    if builder.scalar_only:
        builder.returned.append(value)
        expr = to_expr(value, builder.source.span(node))
        builder.statements.append(Return(builder.here, expr))
        return
    if builder.loop_depth:
        raise _return_in_loop(builder, node)
    builder.statements.append(Return(builder.here))


def _return_in_loop(builder: Builder, node: Any) -> UnsupportedLanguageConstruct:
    return UnsupportedLanguageConstruct(
        "Cannot have `return` statements inside `while` or `for` statements in triton",
        builder.source.span(node),
        "set a flag and test it after the loop",
        builder.calls,
    )


def in_loop(builder: Builder) -> bool:
    """Whether a loop of the function itself, not one around its call, stands around the statement."""
    outside = builder.parent.loop_depth if builder.parent is not None else 0
    return builder.loop_depth > outside or builder.unrolled > 0


def to_the_end(builder: Builder, first: Callable[[], bool], following: tuple[Sequence[Any], ...], span: Span) -> None:
    """Translates one way through an inlined function: `first`, then what follows, innermost first, until it returns.

    Args:
      builder: the function's builder.
      first: translates a branch; True when it certainly returns.
      following: the statements behind the `if`, and behind the blocks that it stands in, outermost first.
      span: the `if`'s condition.
    """
    from .statements import visit_block

    kept = builder.following
    for position in reversed(range(len(following) + 1)):
        builder.following = following[:position]
        here = following[position : position + 1]
        _count(builder, here, span)
        if visit_block(builder, cst.IndentedBlock(list(here[0]))) if here else first():
            break
    else:
        builder.result.give(builder, Const(None), span)
    builder.following = kept


def _count(builder: Builder, here: tuple[Sequence[Any], ...], span: Span) -> None:
    """Counts how often statements are written out, which each `if` that only may return doubles.

    Raises:
      UnsupportedLanguageConstruct: for more than anybody would read or compile.
    """
    for first in (statements[0] for statements in here if statements):
        times = builder.written_out[id(first)] = builder.written_out.get(id(first), 0) + 1
        if times > MOST_WAYS:
            raise UnsupportedLanguageConstruct(
                f"more than {MOST_WAYS} ways lead through {builder.source.function.__name__} to line "
                f"{builder.source.span(first).line}, for each of which what follows would be written out",
                span,
                "assign the result in the branches, and return it once at the end",
                builder.calls,
            )


class Result:
    """Where an inlined function's returns put its value."""

    def __init__(self, name: str) -> None:
        """`name` is given to the result when several returns share it."""
        self.name = name
        self.value: Value | None = None
        self.variables: tuple[Variable, ...] = ()

    def give(self, builder: Builder, value: Value, span: Span) -> None:
        """One `return value`."""
        if builder.block == self.home:
            self.value = value
            return
        if self.value is not None and form_of(value) != form_of(self.value):
            raise self._mismatch(builder, "values of different forms", span)
        parts = parts_of(value, self.name)
        exprs = [to_expr(part.value, span) for part in parts if is_run_time(part.value)]
        if self.value is None:
            self.variables = tuple(
                builder.variable(part.name, expr.type)
                for part, expr in zip([part for part in parts if is_run_time(part.value)], exprs, strict=True)
            )
            uses = iter(Use(variable.type, variable) for variable in self.variables)
            self.value = with_parts(value, [next(uses) if is_run_time(part.value) else part.value for part in parts])
        if len(exprs) != len(self.variables):
            raise self._mismatch(builder, "a value on some ways and none on others", span)
        for variable, expr in zip(self.variables, exprs, strict=True):
            if variable.type != expr.type:
                raise DTypeError(
                    f"Return type mismatch: {variable.type} and {expr.type}", span, "cast one of them", builder.calls
                )
            builder.statements.append(Assign(builder.here, (variable,), expr))

    def _mismatch(self, builder: Builder, what: str, span: Span) -> DTypeError:
        name = builder.source.function.__name__
        return DTypeError(f"{name} returns {what}", span, "end every way with a return of one type", builder.calls)

    home = 0
