"""Signatures and documentation of the structured functions of the language. Elementwise ones come from the op table."""

from __future__ import annotations

from typing import Any

from ..host import must_use_result
from .builtin import builtin


@builtin
def program_id(axis: int) -> Any:
    """The index of this program along `axis` (0, 1 or 2), an int32 scalar."""


@builtin
def num_programs(axis: int) -> Any:
    """How many programs were launched along `axis`, an int32 scalar."""


@builtin
def arange(start: int, end: int) -> Any:
    """The integers from `start` up to, not including, `end`: an int32 tile [end - start]."""


@builtin
def full(shape: Any, value: Any, dtype: Any) -> Any:
    """A tile of one value."""


@builtin
def zeros(shape: Any, dtype: Any) -> Any:
    """A tile of zeros."""


@builtin
def zeros_like(input: Any) -> Any:
    """A tile of zeros of the shape and type of `input`."""


@builtin
def to_tensor(x: Any) -> Any:
    """A Python number as a scalar of its type."""


@builtin(method=True)
def cast(input: Any, dtype: Any, fp_downcast_rounding: Any = None, bitcast: bool = False) -> Any:
    """Converts to `dtype`; `bitcast` keeps the bits; `fp_downcast_rounding` is "rtne" or "rtz"."""


@builtin
def broadcast(input: Any, other: Any) -> Any:
    """Both operands in their common shape, as a tuple."""


@builtin(method=True)
def broadcast_to(input: Any, *shape: Any) -> Any:
    """`input` repeated along axes where its side is 1."""


@builtin(method=True)
def expand_dims(input: Any, axis: Any) -> Any:
    """New axes of side 1 at the positions `axis`."""


@builtin(method=True)
def permute(input: Any, *dims: Any) -> Any:
    """Axes in another order: axis i of the result is axis dims[i]."""


@builtin(method=True)
def trans(input: Any, *dims: Any) -> Any:
    """`permute`; without `dims`, the last two axes are exchanged."""


@builtin(method=True)
def reshape(input: Any, *shape: Any, can_reorder: bool = False) -> Any:
    """The same elements, in row-major order, in another shape."""


@builtin(method=True)
def view(input: Any, *shape: Any) -> Any:
    """`reshape`; the name is deprecated."""


@builtin(method=True)
def ravel(x: Any, can_reorder: bool = False) -> Any:
    """The elements in one axis."""


@builtin
def join(a: Any, b: Any) -> Any:
    """Both tiles along a new last axis of side 2."""


@builtin(method=True)
def split(a: Any) -> Any:
    """The two tiles of which `join` would make `a`; two scalars when it has one axis."""


@builtin
def interleave(a: Any, b: Any) -> Any:
    """The elements of both tiles in turns along the last axis."""


@builtin
def cat(input: Any, other: Any, can_reorder: bool = False, dim: int = 0) -> Any:
    """Both tiles one after the other along `dim`."""


@builtin
def squeeze(x: Any, dim: int) -> Any:
    """Without the axis `dim`, whose side is 1."""


@builtin
def unsqueeze(x: Any, dim: int) -> Any:
    """With a new axis of side 1."""


@builtin(method=True)
def item(input: Any) -> Any:
    """The only element of a tile, as a scalar."""


@builtin
def swizzle2d(i: Any, j: Any, size_i: Any, size_j: Any, size_g: Any) -> Any:
    """Maps row-major program indices (i, j) to groups of `size_g` rows; returns the new pair."""


@builtin
def load(
    pointer: Any,
    mask: Any = None,
    other: Any = None,
    boundary_check: Any = (),
    padding_option: str = "",
    cache_modifier: str = "",
    eviction_policy: str = "",
    volatile: bool = False,
) -> Any:
    """The elements that `pointer` points to; where `mask` is false nothing is read and the result is `other`."""


@builtin(method=True)
def store(
    pointer: Any,
    value: Any,
    mask: Any = None,
    boundary_check: Any = (),
    cache_modifier: str = "",
    eviction_policy: str = "",
) -> Any:
    """Writes `value` where `mask` holds."""


@builtin
def make_block_ptr(base: Any, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any) -> Any:
    """A pointer to a block of the tensor at `base`; `order` names the axes from the fastest on and changes no results."""


@must_use_result("tl.advance moves nothing: it gives another block pointer.")
@builtin(method=True)
def advance(base: Any, offsets: Any) -> Any:
    """The block pointer moved by `offsets` elements per axis."""


@builtin
def make_tensor_descriptor(base: Any, shape: Any, strides: Any, block_shape: Any, padding_option: str = "zero") -> Any:
    """A descriptor of the tensor at `base`, whose last stride is 1, for accesses by blocks of `block_shape`."""


@builtin
def load_tensor_descriptor(desc: Any, offsets: Any) -> Any:
    """`desc.load(offsets)`."""


@builtin
def store_tensor_descriptor(desc: Any, offsets: Any, value: Any) -> Any:
    """`desc.store(offsets, value)`."""


@builtin(method=True)
def atomic_cas(pointer: Any, cmp: Any, val: Any, sem: Any = None, scope: Any = None) -> Any:
    """Replaces elements equal to `cmp` by `val`, atomically; returns the old elements."""


@builtin(method=True)
def atomic_add(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
    """Adds atomically; returns the old elements."""


@builtin(method=True)
def atomic_max(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
    """Keeps the larger, atomically; returns the old elements."""


@builtin(method=True)
def atomic_min(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
    """Keeps the smaller, atomically; returns the old elements."""


@builtin(method=True)
def atomic_and(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
    """Bitwise and, atomically; returns the old elements."""


@builtin(method=True)
def atomic_or(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
    """Bitwise or, atomically; returns the old elements."""


@builtin(method=True)
def atomic_xor(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
    """Bitwise exclusive or, atomically; returns the old elements."""


@builtin(method=True)
def atomic_xchg(pointer: Any, val: Any, mask: Any = None, sem: Any = None, scope: Any = None) -> Any:
    """Writes atomically; returns the old elements."""


@builtin
def dot(
    input: Any,
    other: Any,
    acc: Any = None,
    input_precision: Any = None,
    allow_tf32: Any = None,
    max_num_imprecise_acc: Any = None,
    out_dtype: Any = None,
) -> Any:
    """The matrix product [..., M, K] x [..., K, N], plus `acc`; fp32 operands are read as TF32 by default."""


@builtin
def dot_scaled(
    lhs: Any,
    lhs_scale: Any,
    lhs_format: str,
    rhs: Any,
    rhs_scale: Any,
    rhs_format: str,
    acc: Any = None,
    fast_math: bool = False,
    lhs_k_pack: bool = True,
    rhs_k_pack: bool = True,
    out_dtype: Any = None,
) -> Any:
    """The product of microscaled operands: groups along K share a scale. Computed in bf16, or fp16 beside fp16."""


@builtin(method=True)
def reduce(input: Any, axis: Any, combine_fn: Any, keep_dims: bool = False) -> Any:
    """Combines all elements along `axis` (all axes for None) by a jit function of two partial results."""


@builtin(method=True)
def sum(input: Any, axis: Any = None, keep_dims: bool = False, dtype: Any = None) -> Any:
    """The sum along `axis`; integers below 32 bits are summed in 32."""


@builtin(method=True)
def max(
    input: Any,
    axis: Any = None,
    return_indices: bool = False,
    return_indices_tie_break_left: bool = True,
    keep_dims: bool = False,
) -> Any:
    """The largest element along `axis`, NaN ignored; with its index on demand."""


@builtin(method=True)
def min(
    input: Any,
    axis: Any = None,
    return_indices: bool = False,
    return_indices_tie_break_left: bool = True,
    keep_dims: bool = False,
) -> Any:
    """The smallest element along `axis`, NaN ignored; with its index on demand."""


@builtin(method=True)
def argmax(input: Any, axis: Any, tie_break_left: bool = True, keep_dims: bool = False) -> Any:
    """The index of the largest element along `axis`, int32; of equal ones the lowest, also without `tie_break_left`."""


@builtin(method=True)
def argmin(input: Any, axis: Any, tie_break_left: bool = True, keep_dims: bool = False) -> Any:
    """The index of the smallest element along `axis`, int32; of equal ones the lowest, also without `tie_break_left`."""


@builtin(method=True)
def xor_sum(input: Any, axis: Any = None, keep_dims: bool = False) -> Any:
    """The exclusive or along `axis`, of integers."""


@builtin(method=True)
def reduce_or(input: Any, axis: Any, keep_dims: bool = False) -> Any:
    """The bitwise or along `axis`, of integers."""


@builtin(method=True)
def softmax(x: Any, dim: Any = None, keep_dims: bool = False, ieee_rounding: bool = False) -> Any:
    """exp(x - max) over its sum along `dim` (the first axis for None)."""


@builtin
def minimum(x: Any, y: Any, propagate_nan: Any = None) -> Any:
    """The smaller of each pair; a NaN gives way unless `propagate_nan` is PropagateNan.ALL."""


@builtin
def maximum(x: Any, y: Any, propagate_nan: Any = None) -> Any:
    """The larger of each pair; a NaN gives way unless `propagate_nan` is PropagateNan.ALL."""


@builtin
def clamp(x: Any, min: Any, max: Any, propagate_nan: Any = None) -> Any:
    """x, not below `min` and not above `max`."""


@builtin
def add(x: Any, y: Any, sanitize_overflow: bool = True) -> Any:
    """X + y."""


@builtin
def sub(x: Any, y: Any, sanitize_overflow: bool = True) -> Any:
    """X - y."""


@builtin
def mul(x: Any, y: Any, sanitize_overflow: bool = True) -> Any:
    """X * y."""


@builtin
def fdiv(x: Any, y: Any, ieee_rounding: bool = False) -> Any:
    """X / y of floats."""


@builtin(method=True)
def cdiv(x: Any, div: Any) -> Any:
    """X / div, rounded up."""


@builtin
def multiple_of(input: Any, values: Any) -> Any:
    """Promises that the values are multiples of `values`, per axis; returns `input`."""


@builtin
def max_contiguous(input: Any, values: Any) -> Any:
    """Promises that the first `values` elements are consecutive, per axis; returns `input`."""


@builtin
def max_constancy(input: Any, values: Any) -> Any:
    """Promises that the first `values` elements are equal, per axis; returns `input`."""


@builtin
def assume(cond: Any) -> Any:
    """Promises that a scalar condition holds."""


@builtin
def debug_barrier() -> Any:
    """A barrier of all threads of the program."""


@builtin
def static_assert(cond: Any, msg: Any = "") -> Any:
    """Stops the translation unless `cond`, a compile-time value, holds."""


@builtin
def static_print(*values: Any, sep: str = " ", end: str = "\n", file: Any = None, flush: bool = False) -> Any:
    """Prints when the kernel is translated."""


@builtin
def device_print(prefix: Any, *args: Any, hex: bool = False) -> Any:
    """Prints one line per element when the kernel runs."""


@builtin
def expect_zero(x: Any, mask: Any) -> Any:
    """X, which is promised to be 0 where `mask` holds; with the option `debug` that is asserted."""


@builtin
def device_assert(cond: Any, msg: Any = "", mask: Any = None) -> Any:
    """Stops the kernel where `cond` does not hold; no code unless the option `debug` is set."""
