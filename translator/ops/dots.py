"""Matrix products: which operand types they take, what type they give, and what they mean (NumPy).

The frontend, the interpreter and the rules of the typed kernel all ask here, so that they agree.
"""

from __future__ import annotations

from typing import Any

from ..diagnostics import ArgumentError, DTypeError, ShapeError
from ..frozen import frozen
from ..language.dtypes import DType, float16, float32, float64, int8, int32
from ..language.hints import check_size, shown
from .casts import numpy_type

PRECISIONS = ("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6")
OPERANDS = ("int8", "float8e5", "float8e4nv", "float16", "bfloat16", "float32", "float64")
# The bits of a float32 that the tensor cores' TF32 multiplier does not read.
TF32_MASK = 0xFFFFE000


@frozen
class DotTypes:
    """A product's result type and the attributes of its IR operation (docs/ir.md)."""

    result: DType
    input_precision: str
    max_num_imprecise_acc: int | None


def dot_shape(left: tuple[int, ...], right: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a product: [..., M, K] times [..., K, N] is [..., M, N].

    Raises:
      ShapeError: when the shapes do not fit.
    """
    shown = f"{[int(side) for side in left]} and {[int(side) for side in right]}"
    if len(left) != len(right) or len(left) < 2:
        raise ShapeError(
            f"Both inputs must be either 2D or 3D, they have the shapes {shown}",
            None,
            "add the missing axis, as x[None, :]; tl.sum(x * y, axis) multiplies vectors",
        )
    if left[-1] != right[-2]:
        raise ShapeError(
            f"shapes {shown} are not compatible for matmul: the first has {int(left[-1])} columns, the second "
            f"{int(right[-2])} rows",
            None,
            "load the second operand as [K, N], or transpose it with tl.trans",
        )
    if left[:-2] != right[:-2]:
        raise ShapeError(f"the batch axes of {shown} differ", None, "broadcast one of them with tl.broadcast_to")
    check_size((*left[:-2], left[-2], right[-1]))
    return (*left[:-2], left[-2], right[-1])


def dot_types(
    left: DType,
    right: DType,
    depth: int,
    acc: DType | None,
    input_precision: str | None,
    allow_tf32: bool | None,
    max_num_imprecise_acc: int | None,
    out_dtype: DType | None,
    default_precision: str = "tf32",
) -> DotTypes:
    """The types of `tl.dot`; `depth` is K, `acc` the accumulator's type, and the others are the user's arguments.

    Raises:
      DTypeError, ArgumentError: when they do not fit together.
    """
    _check_operands(left, right)
    _check_wanted(left, out_dtype)
    result = _result_type(left, acc if out_dtype is None else out_dtype)
    if acc is not None and acc != result:
        raise DTypeError(
            f"expected an accumulator of type {result}, got {acc}",
            None,
            f"make it with tl.zeros(..., dtype=tl.{result.word}), or cast it",
        )
    fp8 = left.is_fp8()
    if fp8 and max_num_imprecise_acc is not None and max_num_imprecise_acc > depth:
        raise ArgumentError(
            f"max_num_imprecise_acc ({max_num_imprecise_acc}) must be <= K ({int(depth)})", None, "leave it out"
        )
    precision = _precision(input_precision, allow_tf32, default_precision)
    return DotTypes(result, precision if left == float32 else "ieee", max_num_imprecise_acc if fp8 else None)


def _check_operands(left: DType, right: DType) -> None:
    # First of all: an integer beside a float is to be that float, not an int8.
    if left != right and not (left.is_fp8() and right.is_fp8()):
        raise DTypeError(
            f"Both operands must be same dtype. Got {left} and {right}",
            None,
            "cast one of them, as y.to(x.dtype)",
        )
    for side, dtype in (("first", left), ("second", right)):
        if dtype.is_int() and dtype != int8:
            raise DTypeError(
                f"only int8 supported! The {side} operand has the type {dtype}", None, "cast it to tl.int8"
            )
        if dtype.word not in OPERANDS:
            raise DTypeError(f"Unsupported operand type {dtype} of tl.dot", None, f"it takes {', '.join(OPERANDS)}")


def _check_wanted(operand: DType, wanted: DType | None) -> None:
    """Rejects an `out_dtype` that a product of `operand`s would not have; fp32 is Triton's default, and stands for any."""
    if wanted is None or wanted == float32 or operand == int8:
        return
    if wanted.is_int() or (wanted == float64) != (operand == float64):
        own = _result_type(operand, None).word
        remedy = f"leave it out, and cast the product with .to(tl.{wanted.word})"
        raise DTypeError(f"out_dtype={wanted.word} of a product of {operand}, which is computed in {own}", None, remedy)


def _result_type(operand: DType, wanted: DType | None) -> DType:
    """What a product of `operand`s is computed in; only fp16 and fp8 leave a choice."""
    if operand == int8:
        return int32
    if wanted is not None and wanted.word == "bfloat16":
        raise DTypeError(
            "out_dtype=bfloat16 is unsupported",
            None,
            "use out_dtype=tl.float32 and cast the result with .to(tl.bfloat16)",
        )
    if operand == float64:
        return float64
    if wanted == float16 and (operand == float16 or operand.is_fp8()):
        return float16
    return float32


def _precision(wanted: str | None, allow_tf32: bool | None, default: str) -> str:
    if wanted is not None and allow_tf32 is not None:
        raise ArgumentError("Only one of input_precision and allow_tf32 can be specified", None, "drop allow_tf32")
    if wanted is None:
        wanted = "ieee" if allow_tf32 is not None and not allow_tf32 else default
    precision = wanted.lower() if isinstance(wanted, str) else wanted
    if precision not in PRECISIONS:
        raise ArgumentError(
            f"input_precision must be one of {', '.join(PRECISIONS)}. Got {shown(wanted)}", None, "leave it out"
        )
    return precision


def numpy_dot(left: Any, right: Any, acc: Any, operands: tuple[DType, DType], types: DotTypes) -> Any:
    """`left @ right + acc` on arrays of the operands' NumPy types; `acc` has the result's type or is None.

    Floats below 64 bits are multiplied exactly and summed in float32, in any order; TF32 operands lose the bits that the
    tensor cores do not read (relative error below 2^-10), the split precisions are float32 throughout. Integers are exact
    and wrap as int32 does.
    """
    import numpy as np

    result = numpy_type(types.result)
    if types.result == int32:  # products of int8 are exact in float64, which NumPy multiplies fast
        product = np.matmul(left.astype(np.float64), right.astype(np.float64)).astype(np.int64)
        return (product + (0 if acc is None else acc.astype(np.int64))).astype(result)
    wide = np.float64 if types.result == float64 else np.float32
    factors = [array.astype(wide) for array in (left, right)]
    if types.input_precision == "tf32" and operands[0] == float32:
        factors = [(array.view(np.uint32) & np.uint32(TF32_MASK)).view(np.float32) for array in factors]
    with np.errstate(all="ignore"):
        product = np.matmul(*factors)
        product = product if acc is None else product + acc.astype(wide)
        return product.astype(result)
