"""Blocks and expressions with some of their parts replaced; what is not changed stays the same object."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from types import MappingProxyType
from typing import Any, TypeVar

from .nodes import Assign, Call, CallFunction, Expr, Statement, Use, Variable
from .walk import BLOCKS, statements

T = TypeVar("T")
AnyStatement = TypeVar("AnyStatement", bound=Statement)


def with_bodies(
    statement: AnyStatement, change: Callable[[tuple[Statement, ...]], tuple[Statement, ...]]
) -> AnyStatement:
    """The statement with the blocks inside of it changed, in the order in which they run; itself where none is."""
    return _with_fields(statement, BLOCKS.get(type(statement), ()), change)


def _with_fields(statement: AnyStatement, names: Iterable[str], change: Callable[[Any], Any]) -> AnyStatement:
    own = {name: getattr(statement, name) for name in names}
    changed = {name: new for name, before in own.items() if (new := change(before)) is not before}
    return replace(statement, **changed) if changed else statement


def with_statements(block: tuple[T, ...], statements: Iterable[T]) -> tuple[T, ...]:
    """The block with other statements; itself where they are its own, so that who asks for changes by identity sees none."""
    found = tuple(statements)
    return block if len(found) == len(block) and all(map(operator.is_, found, block)) else found


def with_replaced(
    block: tuple[Statement, ...],
    replaced: Mapping[Statement, Statement | None],
    added: Mapping[tuple[Statement, bool], Sequence[Statement]] = MappingProxyType({}),
) -> tuple[Statement, ...]:
    """The block with some statements, at any depth, replaced by others or, by None, left out, and with others `added`.

    `replaced` goes by the statement as it was, `added` by that and by whether they stand behind it or in front.
    """
    result: list[Statement] = []
    for before in block:
        changed = replaced.get(before, before)
        kept = () if changed is None else (with_bodies(changed, lambda body: with_replaced(body, replaced, added)),)
        result += [*added.get((before, False), ()), *kept, *added.get((before, True), ())]
    return with_statements(block, result)


def substituted(expr: Expr, values: Mapping[Variable, Expr]) -> Expr:
    """The expression with other expressions in the place of some variables."""
    if isinstance(expr, Use):
        return values.get(expr.variable, expr)
    if isinstance(expr, (Call, CallFunction)):
        return with_operands(expr, tuple(substituted(arg, values) for arg in expr.args))
    return expr


def with_operands(expr: Call | CallFunction, args: tuple[Expr, ...]) -> Expr:
    """The call with other operands; itself where they are its own, so that who asks for changes by identity sees none."""
    return expr if with_statements(expr.args, args) is expr.args else replace(expr, args=args)


def substituted_in(part: T, values: Mapping[Variable, Expr]) -> T:
    """A block, or any part of it, in which every expression has others in the place of some variables."""
    return mapped_in(part, lambda expr: substituted(expr, values))


def mapped_in(part: T, change: Callable[[Expr], Expr]) -> T:
    """A block, or any part of it, in which every expression of a statement is changed as a whole."""
    found: Any = part
    if isinstance(part, Expr):
        found = change(part)
    elif isinstance(part, Statement):
        found = _with_fields(part, (field.name for field in fields(part)), lambda own: mapped_in(own, change))
    elif isinstance(part, tuple):
        found = with_statements(part, (mapped_in(item, change) for item in part))
    return found  # type: ignore[no-any-return]


def renamed(block: tuple[Statement, ...], names: Mapping[Variable, Variable]) -> tuple[Statement, ...]:
    """The block with other variables in the place of some, where these are read and where they are assigned."""
    result = substituted_in(block, {old: Use(new.type, new) for old, new in names.items()})
    targets: dict[Statement, Statement] = {}
    for statement in statements(result):
        if isinstance(statement, Assign) and not names.keys().isdisjoint(statement.targets):
            assigned = tuple(names.get(target, target) for target in statement.targets)
            targets[statement] = replace(statement, targets=assigned)
    return with_replaced(result, targets)
