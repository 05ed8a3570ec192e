"""Block pointers and tensor descriptors: making, moving, reading and writing them."""

from __future__ import annotations

from typing import Any

from ..diagnostics import ArgumentError, CompilationError, DTypeError, ShapeError, Span
from ..hardware import TENSOR_ALIGNMENT
from ..ir.nodes import Call, Expr, Literal, Use
from ..ir.tiles import broadcast_to
from ..language.dtypes import DType, int32, int64
from ..language.hints import no_integer
from ..ops.blocks import (
    check_descriptor,
    check_order,
    check_padding,
    check_ranks,
    check_rows,
    checked_axes,
    pointee_of,
)
from .blocks import along, block_access, block_indices, index_type, inside, padding_value, pointers
from .builder import Builder
from .builtins_memory import HANDLERS as MEMORY
from .operators import binary
from .shapes import cast_to, describe, placed, to_expr
from .tf32 import rounded_to_tf32
from .values import BlockPointer, Const, Descriptor, Tuple, Value

Arguments = dict[str, Value]
NONE = Const(None)


def _items(value: Value) -> tuple[Value, ...]:
    return value.items if isinstance(value, Tuple) else (value,)


def _integer(builder: Builder, value: Value, what: str, span: Span) -> Value:
    """An integer scalar, as it is.

    Raises:
      DTypeError: for anything else.
    """
    if isinstance(value, Const) and isinstance(value.value, int):
        return value
    if isinstance(value, Expr) and not value.type.is_tile and not value.type.is_pointer and value.type.dtype.is_int():
        return value
    cause, remedy = no_integer(what, describe(value))
    raise DTypeError(cause, span, remedy, builder.calls)


def _as_type(value: Value, dtype: DType, span: Span) -> Value:
    """An integer in another width; compile-time values stay what they are."""
    return value if isinstance(value, Const) and dtype == int32 else cast_to(to_expr(value, span), dtype, span)


def _base(builder: Builder, value: Value, name: str, span: Span) -> tuple[Expr, DType]:
    element = value.type.element if isinstance(value, Expr) and not value.type.is_tile else None
    pointee = pointee_of(element, name, describe(value))
    if not isinstance(value, Expr):
        raise DTypeError(f"tl.{name}: expected a pointer, got {describe(value)}", span, "pass an array", builder.calls)
    return value, pointee


# ----------------------------------------------------------------------------------------------------- block pointers


def _make_block_ptr(builder: Builder, a: Arguments, span: Span) -> Value:
    builder.not_elementwise()
    base, _ = _base(builder, a["base"], "make_block_ptr", span)
    shape, strides, offsets = (
        tuple(_integer(builder, one, f"an entry of {name}", span) for one in _items(a[name]))
        for name in ("shape", "strides", "offsets")
    )
    block_shape = builder.shape(a["block_shape"], span)
    rank = check_ranks("make_block_ptr", shape=shape, strides=strides, offsets=offsets, block_shape=block_shape)
    check_order(builder.constant(a["order"], "order", span), rank)
    starts = tuple(_as_type(one, index_type(size), span) for one, size in zip(offsets, shape, strict=True))
    return BlockPointer(base, shape, strides, starts, block_shape)


def _advance(builder: Builder, a: Arguments, span: Span) -> Value:
    pointer = a["base"]
    if not isinstance(pointer, BlockPointer):
        raise ArgumentError(
            f"tl.advance moves block pointers, not {describe(pointer)}", span, "add to a pointer with +", builder.calls
        )
    steps = [_integer(builder, one, "an offset", span) for one in _items(a["offsets"])]
    check_ranks("advance", offsets=steps, block_shape=pointer.block_shape)
    offsets = []
    for offset, step, size in zip(pointer.offsets, steps, pointer.shape, strict=True):
        moved = offset if isinstance(step, Const) and step.value == 0 else binary(builder, "Add", offset, step, span)
        offsets.append(_as_type(moved, index_type(size), span))
    return BlockPointer(pointer.base, pointer.shape, pointer.strides, tuple(offsets), pointer.block_shape)


def _through_blocks(name: str):  # type: ignore[no-untyped-def]
    """`tl.load` and `tl.store`, of which the first argument may be a block pointer."""

    def handler(builder: Builder, a: Arguments, span: Span) -> Value:
        pointer = a["pointer"]
        if isinstance(pointer, BlockPointer):
            builder.not_elementwise()
            a = _as_pointers(builder, pointer, a, name, span)
        elif any(builder.constant(a.get(word, NONE), word, span) for word in ("boundary_check", "padding_option")):
            raise ArgumentError(
                f"boundary_check and padding_option of tl.{name} need a block pointer, not {describe(pointer)}",
                span,
                "pass mask= and other=, or make a block pointer with tl.make_block_ptr",
                builder.calls,
            )
        result: Value = MEMORY[name](builder, a, span)
        return result

    return handler


def _as_pointers(builder: Builder, pointer: BlockPointer, a: Arguments, name: str, span: Span) -> Arguments:
    if any(a.get(word, NONE) != NONE for word in ("mask", "other")):
        raise ArgumentError(
            f"mask and other of tl.{name} cannot be given with a block pointer",
            span,
            "use boundary_check and padding_option",
            builder.calls,
        )
    axes = checked_axes(builder.constant(a["boundary_check"], "boundary_check", span) or (), len(pointer.shape))
    tiles, mask = block_access(builder, pointer, pointer.offsets, axes, span)
    changed = {**a, "pointer": tiles, "mask": mask if mask is not None else NONE, "boundary_check": Tuple(())}
    if name == "load":
        dtype = pointee_of(pointer.base.type.element, name)
        word = builder.constant(a["padding_option"], "padding_option", span)
        other = padding_value(check_padding(word, dtype, ("", "zero", "nan")), dtype)
        changed |= {"other": other if mask is not None else NONE, "padding_option": Const("")}
    return changed


# -------------------------------------------------------------------------------------------------------- descriptors


def _make_tensor_descriptor(builder: Builder, a: Arguments, span: Span) -> Value:
    builder.not_elementwise()
    base, dtype = _base(builder, a["base"], "make_tensor_descriptor", span)
    shape, strides = (
        tuple(_integer(builder, one, f"an entry of {name}", span) for one in _items(a[name]))
        for name in ("shape", "strides")
    )
    block_shape = builder.shape(a["block_shape"], span)
    check_ranks("make_tensor_descriptor", shape=shape, strides=strides, block_shape=block_shape)
    check_descriptor(strides[-1].value if isinstance(strides[-1], Const) else None, block_shape, dtype)
    padding = check_padding(builder.constant(a["padding_option"], "padding_option", span), dtype, ("zero", "nan"))
    sizes = tuple(_as_type(one, int32, span) for one in shape)
    steps = tuple(one if isinstance(one, Const) else _as_type(one, int64, span) for one in strides[:-1])
    aligned = tuple(_aligned(builder, one, TENSOR_ALIGNMENT // dtype.itemsize, span) for one in steps)
    return Descriptor(_aligned(builder, base, TENSOR_ALIGNMENT, span), sizes, aligned, block_shape, padding)


def _aligned(builder: Builder, value: Any, divisor: int, span: Span) -> Any:
    """A base or stride with what descriptors ask of it: multiples of 16 bytes. Of parameters, specialisation and guards know."""
    root = value.args[0] if isinstance(value, Call) and value.op == "cast" else value
    known = isinstance(root, Use) and root.variable in builder.protected
    if not isinstance(root, Expr) or known or isinstance(root, Literal):
        return value
    return Call(value.type, "hint", (value,), (("kind", "multiple_of"), ("values", (divisor,))), span=span)


def _descriptor(builder: Builder, value: Value, span: Span) -> Descriptor:
    if isinstance(value, Descriptor):
        return value
    raise DTypeError(
        f"expected a tensor descriptor, got {describe(value)}",
        span,
        "make one with tl.make_tensor_descriptor, or pass a TensorDescriptor to the kernel",
        builder.calls,
    )


def _offset(builder: Builder, value: Value, span: Span) -> Value:
    offset = _integer(builder, value, "an offset of a block", span)
    if isinstance(offset, Expr) and (offset.type.dtype.bits == 64 or offset.type.dtype.short == "u32"):
        raise DTypeError(
            f"offsets of a tensor descriptor are int32, not {offset.type}",
            span,
            "cast with .to(tl.int32)",
            builder.calls,
        )
    return _as_type(offset, int32, span)


def _block_of(builder: Builder, a: Arguments, span: Span) -> Arguments:
    """Pointers, mask and padding of the block that a method of a descriptor accesses."""
    builder.not_elementwise()
    desc = _descriptor(builder, a["desc"], span)
    offsets = [_offset(builder, one, span) for one in _items(a["offsets"])]
    check_ranks("tensor_descriptor", offsets=offsets, block_shape=desc.block_shape)
    tiles, mask = block_access(builder, desc, offsets, range(len(offsets)), span)
    return {"pointer": tiles, "mask": mask if mask is not None else NONE} | _padding(desc)


def _padding(desc: Descriptor) -> Arguments:
    return {"other": padding_value(desc.padding, pointee_of(desc.base.type.element, "load"))}


def _rows_of(builder: Builder, a: Arguments, span: Span) -> Arguments:
    """The same for `gather` and `scatter`: rows from a tile of indices."""
    builder.not_elementwise()
    desc = _descriptor(builder, a["desc"], span)
    rows = to_expr(a["x_offsets"], span)
    check_rows(desc.block_shape, None if rows.type.is_pointer else rows.type.dtype, rows.type.rank)
    column = _offset(builder, a["y_offset"], span)
    steps = block_indices(column, desc.block_shape[1], span)
    indices = (along(cast_to(rows, int32, span), 0, 2, span), along(steps, 1, 2, span))
    mask = inside(builder, desc, indices, (rows, column), (0, 1), span)
    tiles = pointers(builder, desc, indices, span)
    return {"pointer": tiles, "mask": mask if mask is not None else NONE} | _padding(desc)


HINTS: Arguments = {
    "boundary_check": Tuple(()),
    "padding_option": Const(""),
    "cache_modifier": Const(""),
    "eviction_policy": Const(""),
    "volatile": Const(False),
    "sem": NONE,
    "scope": NONE,
}


def _value(builder: Builder, a: Arguments, access: Arguments, span: Span) -> Expr:
    value, pointer = to_expr(a["value"], span), access["pointer"]
    shape = pointer.type.shape if isinstance(pointer, Expr) else ()
    if value.type.is_tile and value.type.shape != shape:
        raise ShapeError(
            f"the value has the type {value.type}, the descriptor's blocks the shape {[int(side) for side in shape]}",
            span,
            "reshape it, or make a descriptor with another block_shape",
            builder.calls,
        )
    return broadcast_to(value, shape, span)


def _method(name: str, rows: bool = False):  # type: ignore[no-untyped-def]
    def handler(builder: Builder, a: Arguments, span: Span) -> Value:
        access = HINTS | (_rows_of(builder, a, span) if rows else _block_of(builder, a, span))
        if name == "load":
            block: Value = MEMORY["load"](builder, access, span)
            return (
                rounded_to_tf32(to_expr(block, span), span)
                if _descriptor(builder, a["desc"], span).rounds_to_tf32
                else block
            )
        value = _value(builder, a, access, span)
        MEMORY[name](builder, access | {"value": value, "val": value}, span)
        return NONE

    return handler


def _checked(handler: Any) -> Any:
    """Places the errors of the shared checks."""

    def checked(builder: Builder, a: Arguments, span: Span) -> Value:
        try:
            found: Value = handler(builder, a, span)
            return found
        except CompilationError as error:
            if error.span is not None:
                raise
            raise placed(error, span) from None

    return checked


_ATOMICS = ("atomic_add", "atomic_min", "atomic_max", "atomic_and", "atomic_or", "atomic_xor")
HANDLERS = {
    name: _checked(handler)
    for name, handler in {
        "load": _through_blocks("load"),
        "store": _through_blocks("store"),
        "make_block_ptr": _make_block_ptr,
        "advance": _advance,
        "make_tensor_descriptor": _make_tensor_descriptor,
        "load_tensor_descriptor": _method("load"),
        "store_tensor_descriptor": _method("store"),
        "tensor_descriptor.load": _method("load"),
        "tensor_descriptor.store": _method("store"),
        "tensor_descriptor.gather": _method("load", rows=True),
        "tensor_descriptor.scatter": _method("store", rows=True),
        **{f"tensor_descriptor.{name}": _method(name) for name in _ATOMICS},
    }.items()
}
