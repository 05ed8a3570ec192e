"""Block pointers and descriptors as tiles of pointers with masks: after this, memory is accessed in one way only.

In: a bundle of scalars and the offsets of a block. Out: `base + (offset + arange)[:, None] * stride + ...` and the tests
`0 <= offset + arange < size`, spelled as a user would.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..diagnostics import Span
from ..ir.nodes import Call, Expr
from ..ir.types import Dim, ValueType, symbol_of
from ..language.dtypes import DType, int32, int64
from .builder import Builder
from .operators import binary
from .ranges import is_nonnegative
from .shapes import cast_to, elementwise, to_expr
from .values import BlockPointer, Const, Descriptor, Value

LIMIT = 1 << 31
Tensor = BlockPointer | Descriptor


def index_type(size: Value) -> DType:
    """The type that indices along an axis of `size` elements are computed in."""
    if isinstance(size, Const):
        return int32 if abs(size.value) < LIMIT else int64
    wide = isinstance(size, Expr) and (size.type.dtype.bits == 64 or size.type.dtype.short == "u32")
    return int64 if wide else int32


def block_indices(offset: Value, side: int, span: Span) -> Expr:
    """The indices of a block along one axis: `offset + arange(0, side)`."""
    type_ = ValueType(int32, (Dim(int(side), symbol_of(side)),))
    steps = Call(type_, "arange", (), (("start", 0), ("end", int(side))), span=span)
    if isinstance(offset, Const) and offset.value == 0:
        return steps
    return elementwise("add", [offset, steps], span)


def along(index: Expr, axis: int, rank: int, span: Span) -> Expr:
    """One axis of indices as axis `axis` of a tile of `rank`."""
    for position in range(rank):
        if position != axis:
            shape = (*index.type.shape[:position], 1, *index.type.shape[position:])
            index = Call(index.type.with_shape(shape), "expand_dims", (index,), (("axis", position),), span=span)
    return index


def pointers(builder: Builder, tensor: Tensor, indices: Sequence[Expr], span: Span) -> Expr:
    """Pointers to the elements at `indices`, a tile per axis, already in place."""
    result: Value = tensor.base
    strides = (*tensor.strides, Const(1)) if isinstance(tensor, Descriptor) else tensor.strides
    for index, stride, size in zip(indices, strides, tensor.shape, strict=True):
        result = binary(builder, "Add", result, _scaled(builder, index, stride, size, span), span)
    return to_expr(result, span)


def _scaled(builder: Builder, index: Expr, stride: Value, size: Value, span: Span) -> Expr:
    """`index * stride`, in 64 bits unless the tensor is known to be small."""
    if isinstance(stride, Const) and stride.value == 1:
        return index
    known = isinstance(stride, Const) and isinstance(size, Const)
    if known and abs(stride.value * size.value) < LIMIT:  # type: ignore[union-attr]
        return elementwise("mul", [index, stride], span)
    return elementwise("mul", [cast_to(index, int64, span), cast_to(to_expr(stride, span), int64, span)], span)


def inside(
    builder: Builder, tensor: Tensor, indices: Sequence[Expr], offsets: Sequence[Value], axes: Sequence[int], span: Span
) -> Expr | None:
    """Whether the elements lie in the tensor along `axes`; None without axes.

    An index is compared with 0 only where its offset is not known to be above.
    """
    mask: Value | None = None
    for axis in axes:
        tests = [elementwise("lt", [indices[axis], tensor.shape[axis]], span)]
        if not is_nonnegative(builder, offsets[axis]):
            tests.insert(0, elementwise("ge", [indices[axis], Const(0)], span))
        for test in tests:
            mask = test if mask is None else binary(builder, "BitAnd", mask, test, span)
    return mask if isinstance(mask, Expr) else None


def block_access(
    builder: Builder, tensor: Tensor, offsets: Sequence[Value], axes: Sequence[int], span: Span
) -> tuple[Expr, Expr | None]:
    """Pointers to a block that starts at `offsets`, and whether they lie in the tensor along `axes`."""
    rank = len(tensor.block_shape)
    indices = [
        along(block_indices(offset, side, span), axis, rank, span)
        for axis, (offset, side) in enumerate(zip(offsets, tensor.block_shape, strict=True))
    ]
    return pointers(builder, tensor, indices, span), inside(builder, tensor, indices, offsets, axes, span)


def padding_value(padding: str, dtype: DType) -> Const:
    """What is read outside the tensor: nothing for "", else 0 or NaN."""
    if padding == "nan":
        return Const(float("nan"))
    if padding == "zero":
        return Const(0.0 if dtype.is_floating() else False if dtype.is_bool() else 0)
    return Const(None)
