"""Loops with a condition whose trips numbers say, such as the seven steps of a search among a hundred sorted numbers.

In: a typed kernel. Out: the same kernel; such loops say how many `trips` they have. The scalars that a kernel computes of
numbers are followed through its statements, and through the trips of a loop, as long as no number from elsewhere decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ...analysis.ranges import number_of, truth_of
from ...ir.nodes import Assign, Expr, Inlined, Kernel, Literal, Statement, Variable, While
from ...ir.rewrite import with_replaced
from ...ir.structured import is_elementwise
from ...ir.walk import assigned_variables, statements, top_statements

MOST_TRIPS = 16  # are counted: more would not be written out

Numbers = dict[Variable, Expr]


def with_counted_whiles(kernel: Kernel) -> Kernel:
    """See the module docstring."""
    found: dict[Statement, Statement] = {}
    if any(isinstance(statement, While) for statement in statements(kernel.body)):
        _follow(kernel.body, {}, found)
    return replace(kernel, body=with_replaced(kernel.body, found)) if found else kernel


def _follow(block: Iterable[Statement], numbers: Numbers, found: dict[Statement, Statement]) -> None:
    """Passes the statements of a block once, with the `numbers` that variables are; `found` gets the loops."""
    for statement in block:
        match statement:
            case Assign():
                _assign(statement, numbers)
            case Inlined():
                _follow(statement.body, numbers, found)
            case _:
                if isinstance(statement, While) and (trips := _trips(statement, dict(numbers))):
                    found[statement] = replace(statement, trips=trips)
                _forget(statement, numbers)


def _trips(loop: While, numbers: Numbers) -> int | None:
    for trip in range(MOST_TRIPS + 1):
        _pass(loop.prelude, numbers)
        goes_on = truth_of(loop.condition, numbers)
        if not goes_on:
            return None if goes_on is None else trip
        _pass(loop.body, numbers)
    return None


def _pass(block: tuple[Statement, ...], numbers: Numbers) -> None:
    for statement in top_statements(block):
        if isinstance(statement, Assign):
            _assign(statement, numbers)
        else:
            _forget(statement, numbers)


def _assign(statement: Assign, numbers: Numbers) -> None:
    value = statement.value
    number = number_of(value, numbers) if len(statement.targets) == 1 and _is_scalar(value) else None
    for target in statement.targets:
        numbers.pop(target, None)
    if number is not None:
        numbers[statement.target] = Literal(value.type, number)


def _is_scalar(value: Expr) -> bool:
    return is_elementwise(value) and not value.type.is_tile and not value.type.is_pointer


def _forget(statement: Statement, numbers: Numbers) -> None:
    for inner in statements((statement,)):
        for variable in assigned_variables(inner):
            numbers.pop(variable, None)
