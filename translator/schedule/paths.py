"""How the bits of a tile's coordinates reach the operands of an operation that moves elements.

In: an elementwise call and, per axis of its result, the bits that make up a coordinate (thread bits, register bits, or
whatever the caller follows). Out: the same for an operand. `None` where no permutation of bits does it.
"""

from __future__ import annotations

from typing import TypeVar

from ..ir.nodes import Call, Expr
from .layout import bits_of, padded

Bit = TypeVar("Bit")
Axes = tuple[tuple[Bit, ...], ...]


def operand_axes(call: Expr, operand: Expr, axes: Axes[Bit]) -> Axes[Bit] | None:
    """The coordinate bits of `operand` at the element whose coordinate bits in the result of `call` are `axes`."""
    if not operand.type.is_tile:
        return ()
    if not isinstance(call, Call):
        return axes
    match call.op:
        case "broadcast":
            return tuple(
                () if side == 1 else bits for side, bits in zip(operand.type.shape, axes, strict=True)
            )  # fmt: skip
        case "expand_dims":
            axis = call.attribute("axis")
            return axes[:axis] + axes[axis + 1 :]
        case "permute":
            order = call.attribute("order")
            return tuple(axes[order.index(axis)] for axis in range(len(order)))
        case "reshape":
            return regroup(axes, call.type.shape, operand.type.shape)
    return axes


def result_axes(call: Expr, operand: Expr, axes: Axes[Bit]) -> Axes[Bit] | None:
    """The inverse of `operand_axes`, where the operand determines the whole result; None elsewhere."""
    if not isinstance(call, Call):
        return axes
    match call.op:
        case "broadcast":
            return axes if call.type.shape == operand.type.shape else None
        case "expand_dims":
            axis = call.attribute("axis")
            return (*axes[:axis], (), *axes[axis:])
        case "permute":
            return tuple(axes[axis] for axis in call.attribute("order"))
        case "reshape":
            return regroup(axes, operand.type.shape, call.type.shape)
    return axes


def regroup(axes: Axes[Bit], shape: tuple[int, ...], new_shape: tuple[int, ...]) -> Axes[Bit] | None:
    """The bits of a row-major reshape; None where a side is no power of two, since padding would move elements."""
    if shape == new_shape:
        return axes
    if any(padded(side) != side for side in (*shape, *new_shape)):
        return None
    flat = [bit for axis in reversed(axes) for bit in axis]
    result: list[tuple[Bit, ...]] = []
    for side in reversed(new_shape):
        count = bits_of(side)
        result.append(tuple(flat[:count]))
        flat = flat[count:]
    return tuple(reversed(result))
