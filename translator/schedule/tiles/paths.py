"""How the bits of a tile's coordinates reach the operands of an operation that moves elements.

In: an elementwise call and, per axis of its result, the bits that make up a coordinate (thread bits, register bits, or
whatever the caller follows). Out: the same for an operand. `None` where no permutation of bits does it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ...ir.nodes import Call, Expr
from ...ir.reshapes import keeps_places
from .layout import REGISTER, bits_of

Bit = TypeVar("Bit")
Axes = tuple[tuple[Bit, ...], ...]


def operand_axes(
    call: Expr, operand: Expr, axes: Axes[Bit], known: Callable[[int], Bit] | None = None
) -> Axes[Bit] | None:
    """The coordinate bits of `operand` at the element whose coordinate bits in the result of `call` are `axes`.

    `known` makes a bit of a value that is known (of a layout, that is a register); None where the bits are sources.
    """
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
        case "select":
            index, count = call.attribute("index"), bits_of(operand.type.shape[-1])
            bits = [known(index >> bit & 1) if known else REGISTER for bit in range(count)]
            return (*axes, tuple(bits))  # type: ignore[arg-type]
    return axes


def result_axes(call: Expr, operand: Expr, axes: Axes[Bit]) -> Axes[Bit] | None:
    """The inverse of `operand_axes`, where the operand determines the whole result; None elsewhere.

    Of two tiles that are joined a thread holds both.
    """
    if not isinstance(call, Call):
        return axes
    match call.op:
        case "broadcast":
            joined = (*axes[:-1], (REGISTER,)) if is_join(call, operand) else None
            return axes if call.type.shape == operand.type.shape else joined  # type: ignore[return-value]
        case "expand_dims":
            axis = call.attribute("axis")
            return (*axes[:axis], (), *axes[axis:])
        case "permute":
            return tuple(axes[axis] for axis in call.attribute("order"))
        case "reshape":
            return regroup(axes, operand.type.shape, call.type.shape)
        case "select":  # only a thread that has all of them has the same elements of every one
            return axes[:-1] if all(bit == REGISTER for bit in axes[-1]) else None
    return axes


def is_join(call: Expr, operand: Expr) -> bool:
    """Whether a tile is repeated along a last axis of two, as for `tl.join`."""
    return (
        isinstance(call, Call)
        and call.op == "broadcast"
        and operand.type.is_tile
        and call.type.shape == (*operand.type.shape[:-1], 2)
        and operand.type.shape[-1] == 1
    )


def regroup(axes: Axes[Bit], shape: tuple[int, ...], new_shape: tuple[int, ...]) -> Axes[Bit] | None:
    """The bits of a row-major reshape; None where padding of sides that are no powers of two would move elements."""
    if shape == new_shape:
        return axes
    if not keeps_places(shape, new_shape):
        return None
    flat = [bit for axis in reversed(axes) for bit in axis]
    result: list[tuple[Bit, ...]] = []
    for side in reversed(new_shape):
        count = bits_of(side)
        result.append(tuple(flat[:count]))
        flat = flat[count:]
    return tuple(reversed(result))
