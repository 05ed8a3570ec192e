"""What block pointers and tensor descriptors may be: the checks that the frontend and the interpreter share."""

from __future__ import annotations

from typing import Any

from ..diagnostics import ArgumentError, DTypeError, NotConstexprError
from ..hardware import MAX_RANK
from ..language.dtypes import DType, Element, PointerType
from ..language.hints import shown

MIN_ROW_BYTES = 16


def check_ranks(name: str, **tuples: Any) -> int:
    """The common rank of tuples.

    Raises:
      ArgumentError: when their lengths differ.
    """
    lengths = {what: len(items) for what, items in tuples.items()}
    if len(set(lengths.values())) != 1:
        found = ", ".join(f"{what} has {length}" for what, length in lengths.items())
        raise ArgumentError(f"tl.{name}: one entry per axis is expected, but {found}", None, "write each as (row, 0)")
    return next(iter(lengths.values()))


def pointee_of(element: Element | None, name: str, given: str = "") -> DType:
    """The element type behind the scalar pointer `base`; `given` says what stands in its place.

    Raises:
      DTypeError: for anything else.
    """
    if not isinstance(element, PointerType):
        got = f", got {given}" if given else ""
        cause = f"tl.{name}: expected `base` to be a pointer to the tensor's first element{got}"
        raise DTypeError(cause, None, "pass the kernel's parameter, plus a scalar offset if need be")
    return element.element_ty


def check_order(order: Any, rank: int) -> None:
    """Rejects what is no permutation of the axes.

    Raises:
      ArgumentError: says what is expected.
    """
    axes = list(order) if isinstance(order, (tuple, list)) else [order]
    if any(type(axis) is not int for axis in axes) or sorted(axes) != list(range(rank)):
        cause = f"Expected a permutation of (0, ..., {rank - 1}) in order, got {shown(axes)}"
        raise ArgumentError(cause, None, f"write the contiguous axis first, as {tuple(reversed(range(rank)))}")


def checked_axes(boundary_check: Any, rank: int) -> tuple[int, ...]:
    """The axes that `boundary_check` names, in order.

    Raises:
      ArgumentError: for axes that do not exist or stand twice.
    """
    axes = boundary_check if isinstance(boundary_check, (tuple, list)) else (boundary_check,)
    for axis in axes:
        if isinstance(axis, bool) or not isinstance(axis, int) or not -rank <= axis < rank:
            cause = f"boundary_check names axis {shown(axis)} of a block of rank {rank}"
            raise ArgumentError(cause, None, f"its axes are {', '.join(map(str, range(rank)))}")
    found = tuple(sorted(axis % rank for axis in axes))
    if len(set(found)) != len(found):
        raise ArgumentError("Duplicate dimension in `boundary_check`", None, "name each axis once")
    return found


def check_padding(padding: Any, dtype: DType, allowed: tuple[str, ...]) -> str:
    """A padding option.

    Raises:
      ArgumentError: for words that are none, and for NaN among integers.
    """
    word = padding or allowed[0]
    if word not in allowed:
        raise ArgumentError(f"Padding option {shown(padding)} not supported", None, "it is 'zero' or 'nan'")
    if word == "nan" and not dtype.is_floating():
        raise ArgumentError("Padding option `nan` is not supported for integer block pointers", None, "use 'zero'")
    return str(word)


def check_descriptor(last_stride: Any, block_shape: tuple[int, ...], dtype: DType) -> None:
    """The rules of descriptors that the hardware imposes.

    Raises:
      ArgumentError, NotConstexprError: say which does not hold.
    """
    rank = len(block_shape)
    if not 1 <= rank <= MAX_RANK:
        raise ArgumentError(
            f"Expected 1 <= ndim <= {MAX_RANK} but got {rank} dimensions", None, "write a side for each axis"
        )
    if last_stride is None:
        raise NotConstexprError(
            "Tensor descriptor last dim must be 1, known when the kernel is translated", None, "write 1 as last stride"
        )
    if last_stride != 1:
        raise ArgumentError(f"Tensor descriptor last dim must be 1 but got {last_stride}", None, "transpose the tensor")
    size = block_shape[-1] * dtype.itemsize
    if size < MIN_ROW_BYTES:
        raise ArgumentError(
            f"Descriptor block shape must have at least {MIN_ROW_BYTES} bytes in the last dimension, but got "
            f"{int(block_shape[-1])} * {dtype.itemsize} = {size} bytes",
            None,
            f"make the last side of the block {MIN_ROW_BYTES // dtype.itemsize} or more",
        )


def check_rows(block_shape: tuple[int, ...], indices: DType | None, rank_of_indices: int) -> None:
    """The rules of `gather` and `scatter`.

    Raises:
      ArgumentError: says which does not hold.
    """
    if len(block_shape) != 2 or block_shape[0] != 1:
        raise ArgumentError(
            f"gather and scatter need a descriptor of a matrix with blocks of 1 row, not {[int(s) for s in block_shape]}",
            None,
            "make one with the block shape [1, columns]",
        )
    if indices is None or indices.short not in ("i16", "i32") or rank_of_indices != 1:
        raise ArgumentError(
            "x_offsets must be a tile of int32 (or int16) of one axis", None, "cast them, as x_offsets.to(tl.int32)"
        )
