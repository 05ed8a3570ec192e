"""Blocks with some of their statements replaced."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from .nodes import For, If, Inlined, Statement, While


def with_replaced(block: tuple[Statement, ...], replaced: Mapping[int, Statement]) -> tuple[Statement, ...]:
    """The block with some statements, at any depth, replaced by others; `replaced` goes by `id` of the statement."""
    result: list[Statement] = []
    for statement in block:
        statement = replaced.get(id(statement), statement)
        match statement:
            case If():
                then, otherwise = (with_replaced(body, replaced) for body in (statement.then, statement.otherwise))
                statement = replace(statement, then=then, otherwise=otherwise)
            case For() | Inlined():
                statement = replace(statement, body=with_replaced(statement.body, replaced))
            case While():
                prelude, body = (with_replaced(part, replaced) for part in (statement.prelude, statement.body))
                statement = replace(statement, prelude=prelude, body=body)
        result.append(statement)
    return tuple(result)
