"""`return`: the end of a program, or the value of a function, which several returns may share."""

from __future__ import annotations

from typing import Any

from ..diagnostics import DTypeError, Span, UnsupportedLanguageConstruct
from ..ir.nodes import Assign, Return, Use, Variable
from .aggregates import form_of, is_run_time, parts_of, with_parts
from .builder import Builder
from .shapes import to_expr
from .values import Const, Value


def visit_return(builder: Builder, node: Any) -> None:
    """`return`: ends the program, or gives a function's value."""
    from .expressions import evaluate

    value = evaluate(builder, node.value) if node.value is not None else Const(None)
    if builder.result is not None:
        builder.result.give(builder, value, builder.source.span(node))
        return
    if builder.scalar_only:
        builder.returned.append(value)
        expr = to_expr(value, builder.source.span(node))
        builder.statements.append(Return(builder.here, expr))
        return
    if builder.loop_depth:
        raise UnsupportedLanguageConstruct(
            "Cannot have `return` statements inside `while` or `for` statements in triton",
            builder.source.span(node),
            "set a flag and test it after the loop",
            builder.calls,
        )
    builder.statements.append(Return(builder.here))


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
            raise DTypeError("this return gives another form than one before", span, "return one form", builder.calls)
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
            raise DTypeError("this return gives None, another one a value", span, "return one type", builder.calls)
        for variable, expr in zip(self.variables, exprs, strict=True):
            if variable.type != expr.type:
                raise DTypeError(
                    f"Return type mismatch: {variable.type} and {expr.type}", span, "cast one of them", builder.calls
                )
            builder.statements.append(Assign(builder.here, (variable,), expr))

    home = 0
