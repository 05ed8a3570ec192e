"""Which stores of vectors the compiler makes one by word, though they are one in the text.

It takes an assignment of 16 bytes apart and puts it together again where it sees that the words are neighbours. Where an address
adds several products in 64 bits, it adds the words' places to one of the products first, and no longer does.
"""

from __future__ import annotations

from ...ir.nodes import Call, Expr, Literal, Use
from ...ir.walk import MOVES
from ..context import Context

WIDE_BITS = 64
SUMS = ("ptr_add", "add", "sub", "cast", *MOVES)


def is_taken_apart(context: Context, pointer: Expr) -> bool:
    """Whether an address is a sum in 64 bits of several products, whatever names these have."""
    products, wide = 0, False
    pending, seen = [pointer], set()
    while pending:
        part = pending.pop()
        if isinstance(part, Use) and part.variable not in seen:
            seen.add(part.variable)
            pending += _values(context, part)
        elif isinstance(part, Call) and part.op in SUMS:
            pending += part.args
            wide = wide or (part.op == "ptr_add" and _is_wide(context, part.args[1]))
        elif isinstance(part, Call) and part.op == "mul":
            products += all(_number(context, factor) != 1 for factor in part.args)
    return wide and products > 1


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
