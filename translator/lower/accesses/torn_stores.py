"""Which stores of vectors the compiler makes one by word, though they are one in the text.

It takes an assignment of 16 bytes apart and puts it together again where it sees that the words are neighbours. Where an address
adds several products in 64 bits, it adds the words' places to one of the products first, and no longer does.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...ir.nodes import Call, Expr, Literal, Use, Variable
from ...ir.walk import MOVES
from ..context import Context

WIDE_BITS = 64
SUMS = ("ptr_add", "add", "sub", "cast", *MOVES)


def is_taken_apart(context: Context, pointer: Expr) -> bool:
    """Whether an address is a sum in 64 bits of several products, whatever names these have."""
    parts = list(_parts(context, pointer, set()))
    wide = any(part.op == "ptr_add" and _is_wide(context, part.args[1]) for part in parts)
    return wide and sum(_products(context, part) for part in parts) > 1


def _parts(context: Context, expr: Expr, seen: set[Variable]) -> Iterator[Call]:
    """The operations that add an expression up, and what they add; of a name that is met again, nothing more."""
    if isinstance(expr, Use) and expr.variable not in seen:
        seen.add(expr.variable)
        for value in _values(context, expr):
            yield from _parts(context, value, seen)
    elif isinstance(expr, Call):
        yield expr
        for arg in expr.args if expr.op in SUMS else ():
            yield from _parts(context, arg, seen)


def _products(context: Context, part: Call) -> int:
    """How many products a part of a sum is: the terms of a sum times a number are multiplied one by one."""
    if part.op != "mul":
        return 0
    numbers = [_number(context, factor) for factor in part.args]
    if 1 in numbers:
        return 0
    sums = [factor for factor, number in zip(part.args, numbers, strict=True) if number is None]
    if len(sums) != 1:
        return 1
    return max(
        len(list(_terms(context, sums[0]))), sum(_products(context, inner) for inner in _parts(context, sums[0], set()))
    )


def _terms(context: Context, expr: Expr) -> Iterator[Expr]:
    """What is added up, without numbers."""
    if isinstance(expr, Call) and expr.op in MOVES:
        yield from _terms(context, expr.args[0])
    elif isinstance(expr, Call) and expr.op in ("add", "sub"):
        for arg in expr.args:
            yield from _terms(context, arg)
    elif _number(context, expr) is None:
        yield expr


def _values(context: Context, use: Use) -> tuple[Expr, ...]:
    """What a name stands for: all that a scalar is ever set to; of tiles that have names, those in 64 bits and products."""
    if use.variable in context.speller.written_out:
        return (context.speller.written_out[use.variable],)
    if use.variable in context.facts.index:
        value = context.facts.definitions[use.variable]
        is_product = use.type.rank > 1 and isinstance(value, Call) and value.op == "mul"
        return (value,) if is_product or use.type.dtype.bits == WIDE_BITS else ()
    return () if use.type.is_tile else context.scalar_values.get(use.variable, ())


def _is_wide(context: Context, offset: Expr) -> bool:
    return offset.type.dtype.bits == WIDE_BITS or context.speller.offset_is_wide(offset)


def _number(context: Context, expr: Expr) -> float | None:
    """What a factor is, where that is a number: 1 of a contiguous axis."""
    while not isinstance(expr, Literal):
        if isinstance(expr, Use) and expr.variable in context.facts.definitions:
            expr = context.facts.definitions[expr.variable]
        elif isinstance(expr, Call) and expr.op in (*MOVES, "cast"):
            expr = expr.args[0]
        else:
            return None
    return expr.value
