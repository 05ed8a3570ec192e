"""Tiles of a loop whose elements are always all the same become one number.

In: a typed kernel. Out: the same kernel; of `weight = tl.zeros([BLOCK])`, to which each trip adds 1, a scalar is left. A thread
would keep and count up as many registers as it has elements, and whatever divides by them would be computed for each: the
compiler does not see that they stay equal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from ...ir.nodes import Assign, Call, Effect, Expr, Kernel, Literal, Statement, Use, Variable
from ...ir.rewrite import substituted_in, with_replaced
from ...ir.structured import is_elementwise
from ...ir.types import ValueType
from ...ir.walk import (
    MOVES,
    assigned_variables,
    assignment_counts,
    in_loops,
    next_key,
    only_values,
    statements,
    used_variables,
)
from ...ops.registry import OPS

READERS = ("reduce", "store")  # structured operations that take a number for all elements as well as a tile


def with_uniform_tiles(kernel: Kernel) -> Kernel:
    """See the module docstring."""
    repeated = {v for statement in in_loops(kernel.body) for v in assigned_variables(statement)}
    if not repeated:
        return kernel
    times = assignment_counts(kernel.body)
    settled = _settled(only_values(kernel.body), times)
    read_whole = _read_whole(kernel)
    uniform = _uniform(kernel, {v for v in times if v not in read_whole or v in settled}) - read_whole
    chosen = _with_neighbours(kernel, {v for v in uniform & repeated if times[v] > 1}, uniform)
    if not chosen:
        return kernel
    first = next_key(kernel)
    numbers = {
        v: Variable(v.name, ValueType(v.type.element), first + place)
        for place, v in enumerate(sorted(chosen, key=_key))
    }
    replaced: dict[Statement, Statement] = {}
    for statement in statements(kernel.body):
        if isinstance(statement, Assign) and not chosen.isdisjoint(statement.targets):
            value = _number(statement.value, numbers, settled)
            replaced[statement] = replace(statement, targets=(numbers[statement.target],), value=value)
    tiles = {v: Call(v.type, "broadcast", (Use(number.type, number),)) for v, number in numbers.items()}
    return replace(kernel, body=substituted_in(with_replaced(kernel.body, replaced), tiles))


def _key(variable: Variable) -> int:
    return variable.key


def _settled(definitions: Mapping[Variable, Expr], times: Mapping[Variable, int]) -> dict[Variable, Expr]:
    """The values that are the same wherever they are written: nothing that they come from is assigned twice."""
    found: dict[Variable, Expr] = {}
    for variable, value in definitions.items():
        if all(times.get(v, 0) <= 1 and (v not in definitions or v in found) for v in used_variables(value)):
            found[variable] = value
    return found


def _read_whole(kernel: Kernel) -> set[Variable]:
    """The tiles that structured operations read for which a number is no tile, such as addresses and masks of loads."""
    found: set[Variable] = set()
    for statement in statements(kernel.body):
        call = statement.call if isinstance(statement, Effect) else getattr(statement, "value", None)
        if isinstance(call, Call) and not is_elementwise(call) and call.op not in READERS:
            found.update(used_variables(call))
    return found


def _uniform(kernel: Kernel, among: set[Variable]) -> set[Variable]:
    """The tiles `among` some to which nothing is assigned but what is one number for all elements."""
    values: dict[Variable, list[Expr]] = {}
    others: set[Variable] = set()
    for statement in statements(kernel.body):
        if isinstance(statement, Assign) and is_elementwise(statement.value):
            values.setdefault(statement.target, []).append(statement.value)
        else:
            others.update(assigned_variables(statement))
    found = {v for v in values if v in among and v not in others and v.type.is_tile and not v.type.is_pointer}

    def same(expr: Expr) -> bool:
        match expr:
            case _ if not expr.type.is_tile or isinstance(expr, Literal):
                return True
            case Use(variable=variable):
                return variable in found
            case Call(op="arange"):
                return math.prod(expr.type.shape) == 1
            case Call(op=op, args=args):
                return (op in MOVES or op in OPS) and all(map(same, args))
        return False

    size = -1
    while size != len(found):
        size = len(found)
        for variable, assigned in values.items():
            if variable in found and not all(map(same, assigned)):
                found.discard(variable)
    return found


def _with_neighbours(kernel: Kernel, carried: set[Variable], uniform: set[Variable]) -> set[Variable]:
    """Some tiles, those that they are computed from, and those that follow from them, where a number can stand for these."""
    chosen, size = set(carried), -1
    while size != len(chosen):
        size = len(chosen)
        for statement in statements(kernel.body):
            if not isinstance(statement, Assign):
                continue
            read = set(used_variables(statement.value))
            if not chosen.isdisjoint(read):
                chosen.update(uniform.intersection(statement.targets))
            if not chosen.isdisjoint(statement.targets):
                chosen.update(uniform & read)
    return chosen


def _number(expr: Expr, numbers: Mapping[Variable, Variable], settled: Mapping[Variable, Expr]) -> Expr:
    """The number that all elements of a tile are."""
    type_ = ValueType(expr.type.element)
    if not expr.type.is_tile:
        return expr
    match expr:
        case Literal():
            return replace(expr, type=type_)
        case Use(variable=variable) if variable in numbers:
            return Use(type_, numbers[variable], span=expr.span)
        case Use(variable=variable):
            return _number(settled[variable], numbers, settled)
        case Call(op="arange"):
            return Literal(type_, expr.attribute("start", 0))
        case Call(op=op, args=args) if op in MOVES:
            return _number(args[0], numbers, settled)
        case Call(args=args):
            return replace(expr, type=type_, args=tuple(_number(arg, numbers, settled) for arg in args))
    return expr
