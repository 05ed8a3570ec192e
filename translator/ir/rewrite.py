"""Blocks and expressions with some of their parts replaced."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any, TypeVar

from .nodes import Assign, Call, CallFunction, Expr, For, If, Inlined, Statement, Use, Variable, While
from .walk import statements

T = TypeVar("T")


def with_replaced(
    block: tuple[Statement, ...],
    replaced: Mapping[int, Statement],
    added: Mapping[tuple[int, bool], Sequence[Statement]] = MappingProxyType({}),
) -> tuple[Statement, ...]:
    """The block with some statements, at any depth, replaced by others, and with others `added`.

    `replaced` goes by `id` of the statement as it was, `added` by that and by whether they stand behind it or in front.
    """

    def inside(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        return with_replaced(body, replaced, added)

    result: list[Statement] = []
    for before in block:
        statement = replaced.get(id(before), before)
        match statement:
            case If():
                statement = replace(statement, then=inside(statement.then), otherwise=inside(statement.otherwise))
            case For() | Inlined():
                statement = replace(statement, body=inside(statement.body))
            case While():
                statement = replace(statement, prelude=inside(statement.prelude), body=inside(statement.body))
        result += [*added.get((id(before), False), ()), statement, *added.get((id(before), True), ())]
    return tuple(result)


def substituted(expr: Expr, values: Mapping[Variable, Expr]) -> Expr:
    """The expression with other expressions in the place of some variables."""
    if isinstance(expr, Use):
        return values.get(expr.variable, expr)
    if isinstance(expr, (Call, CallFunction)):
        args = tuple(substituted(arg, values) for arg in expr.args)
        return expr if all(a is b for a, b in zip(args, expr.args, strict=True)) else replace(expr, args=args)
    return expr


def substituted_in(part: T, values: Mapping[Variable, Expr]) -> T:
    """A block, or any part of it, in which every expression has others in the place of some variables."""
    return mapped_in(part, lambda expr: substituted(expr, values))


def mapped_in(part: T, change: Callable[[Expr], Expr]) -> T:
    """A block, or any part of it, in which every expression of a statement is changed as a whole."""
    found: Any = part
    if isinstance(part, Expr):
        found = change(part)
    elif isinstance(part, Statement):
        found = replace(part, **{f.name: mapped_in(getattr(part, f.name), change) for f in fields(part)})
    elif isinstance(part, tuple):
        found = tuple(mapped_in(item, change) for item in part)
    return found  # type: ignore[no-any-return]


def renamed(block: tuple[Statement, ...], old: Variable, new: Variable) -> tuple[Statement, ...]:
    """The block with one variable in the place of another, where it is read and where it is assigned."""
    result = substituted_in(block, {old: Use(new.type, new)})
    targets: dict[int, Statement] = {}
    for statement in statements(result):
        if isinstance(statement, Assign) and old in statement.targets:
            assigned = tuple(new if target is old else target for target in statement.targets)
            targets[id(statement)] = replace(statement, targets=assigned)
    return with_replaced(result, targets)
