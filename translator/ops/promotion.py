"""Which type two operands are computed in: Triton's rules, quirks included.

A rule takes `Operand`s and answers with `Resolved`; it raises `DTypeError` (the caller adds the place). Literals adapt to
tensors in arithmetic only; everywhere else a literal is first given the type that it has on its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

from ..diagnostics import DTypeError
from ..language.dtypes import (
    DTYPES_BY_WORD,
    DType,
    Element,
    PointerType,
    bfloat16,
    float16,
    float32,
    float64,
    int1,
    int32,
    int64,
    uint32,
    uint64,
)
from .registry import Operand, Resolved

SMALLEST_NORMAL_FP32 = 2.0**-126
LARGEST_FP32 = (2 - 2**-23) * 2.0**127
CAST = "cast first, as x.to(tl.float32)"
WIDER = "cast to a wider float first, as x.to(tl.float32)"
KINDS = {"bool": 0, "signed": 1, "unsigned": 1, "float": 2}


def literal_type(value: int | float | bool) -> DType:
    """The type that a Python number has on its own.

    Raises:
      DTypeError: for an integer that 64 bits cannot hold.
    """
    if isinstance(value, bool):
        return int1
    if isinstance(value, int):
        for dtype, low, high in ((int32, -(2**31), 2**31), (uint32, 0, 2**32), (int64, -(2**63), 2**63)):
            if low <= value < high:
                return dtype
        if 0 <= value < 2**64:
            return uint64
        cause = f"the integer {value if value.bit_length() < 1000 else 'given here'} does not fit in 64 bits"
        raise DTypeError(cause, None, "write it as a float, as 1e30")
    magnitude = abs(value)
    single = magnitude == 0 or not math.isfinite(magnitude) or SMALLEST_NORMAL_FP32 <= magnitude <= LARGEST_FP32
    return float32 if single else float64


def number_type(element: Element) -> DType:
    """The element type of an operand that must be a number.

    Raises:
      DTypeError: for a pointer.
    """
    if isinstance(element, PointerType):
        cause = f"invalid operands of type {element}: a pointer takes only + and - with an integer"
        raise DTypeError(cause, None, "did you forget tl.load?")
    return element


def promote(left: DType, right: DType, division: bool = False) -> DType:
    """The type that two tensors are computed in; `division` is for `/` and `%`.

    Raises:
      DTypeError: for 8-bit floats with integers.
    """
    if left.is_fp8() or right.is_fp8():
        return _promote_fp8(left, right)
    if float64 in (left, right):
        return float64
    if float32 in (left, right):
        return float32
    if float16 in (left, right):
        return float32 if division else float16
    if bfloat16 in (left, right):
        return float32 if division or left != right else bfloat16
    return _promote_integers(left, right)


def _promote_fp8(left: DType, right: DType) -> DType:
    if left == right:
        return left
    other = right if left.is_fp8() else left
    if other.is_int():
        raise DTypeError(
            f"invalid operands of type {left} and {right}", None, "cast the 8-bit float first, as x.to(tl.float16)"
        )
    if left.is_fp8() and right.is_fp8():
        return float16
    return {float16: float16, bfloat16: float32}.get(other, other)


def _promote_integers(left: DType, right: DType) -> DType:
    if left.is_int_signed() == right.is_int_signed():
        return left if left.bits >= right.bits else right
    unsigned, signed = (right, left) if left.is_int_signed() else (left, right)
    return unsigned if unsigned.bits >= signed.bits else signed


def adapted(literal: int | float | bool, tensor: DType) -> DType:
    """The type that a literal takes beside a tensor in arithmetic.

    Raises:
      DTypeError: when the tensor's integer type cannot hold it.
    """
    kind = KINDS["bool" if isinstance(literal, bool) else "float" if isinstance(literal, float) else "signed"]
    if kind > KINDS[tensor.kind]:
        return literal_type(literal)
    if tensor.is_int() and not tensor.is_bool():
        low, high = tensor.get_int_min_value(), tensor.get_int_max_value()
        if tensor.is_int_unsigned() and literal < 0:
            raise DTypeError(
                f"cannot perform a binary operation between an unsigned tensor ({tensor}) and a negative scalar ({literal})",
                None,
                "cast the tensor to a signed type first, as x.to(tl.int64)",
            )
        if not low <= literal <= high:
            raise DTypeError(
                f"Scalar {literal} is out of range for type {tensor.word}",
                None,
                f"cast the other operand to {'a wider one, as' if tensor.bits < 64 else 'one that can hold it, as'} "
                f"x.to(tl.{'int64' if tensor.bits < 64 else 'uint64' if 0 <= literal < 2**64 else 'float64'})",
            )
    return tensor


def own_type(operand: Operand) -> DType:
    """An operand's type when literals do not adapt."""
    return literal_type(operand.literal) if operand.literal is not None else number_type(operand.element)


def adapted_types(operands: tuple[Operand, ...]) -> tuple[DType, DType]:
    """The types of two operands, a literal's adapted to the tensor beside it.

    Raises:
      DTypeError: for pointers, and for literals that do not fit.
    """
    left, right = operands
    if left.literal is not None and right.literal is None:
        other = number_type(right.element)
        return adapted(left.literal, other), other
    if right.literal is not None and left.literal is None:
        other = number_type(left.element)
        return other, adapted(right.literal, other)
    return own_type(left), own_type(right)


def computation_type(operands: tuple[Operand, ...], division: bool = False) -> DType:
    """The common type of operands of which literals adapt to tensors."""
    return promote(*adapted_types(operands), division)


# -------------------------------------------------------------------------------------------------------- rules


def arithmetic(operands: tuple[Operand, ...]) -> Resolved:
    """`+ - *`: the common type."""
    common = computation_type(operands)
    if common.is_fp8():
        raise DTypeError(f"arithmetic on {common} is not possible", None, WIDER)
    return Resolved((common, common), common, literals_adapt=True)


def true_division(operands: tuple[Operand, ...]) -> Resolved:
    """`/`: always a float; fp32 for integers and for 16-bit floats."""
    common = computation_type(operands, division=True)
    if common.is_int():
        _require_same_sign(operands)
        common = float32
    if common.bits < 32:
        common = float32
    return Resolved((common, common), common, literals_adapt=True)


def integer_division(operands: tuple[Operand, ...]) -> Resolved:
    """`//`: integers of one signedness."""
    common = computation_type(operands, division=True)
    if not common.is_int():
        raise DTypeError(f"unexpected type {common} for //: it divides integers only", None, "write tl.floor(x / y)")
    _require_integer_division(operands)
    return Resolved((common, common), common)


def modulo(operands: tuple[Operand, ...]) -> Resolved:
    """`%`: integers of one signedness, or floats."""
    common = computation_type(operands, division=True)
    if common.is_int():
        _require_integer_division(operands)
    elif common.bits < 32:
        common = float32
    return Resolved((common, common), common, literals_adapt=True)


def _require_integer_division(operands: tuple[Operand, ...]) -> None:
    _require_same_sign(operands)
    if operands[1].literal == 0:
        cause = "division of an integer by zero; its result is not defined"
        raise DTypeError(cause, None, "leave the line out where this is 0, with `if`")


def _require_same_sign(operands: tuple[Operand, ...]) -> None:
    left, right = adapted_types(operands)
    if left.is_int_signed() != right.is_int_signed():
        raise DTypeError(
            f"Cannot use /, #, or % with {left} and {right} because they have different signedness",
            None,
            f"cast one of them first, as x.to(tl.{left.word})",
        )


def bitwise(operands: tuple[Operand, ...]) -> Resolved:
    """`& | ^`: integers."""
    common = computation_type(operands)
    if not common.is_int():
        names = " and ".join(str(own_type(operand)) for operand in operands)
        cause = f"invalid operands of type {names}: bits of integers only"
        raise DTypeError(cause, None, "cast with x.to(tl.int32); the bits of a float are x.to(tl.int32, bitcast=True)")
    return Resolved((common, common), common)


def left_shift(operands: tuple[Operand, ...]) -> Resolved:
    """`<<`: integers, by less than their bits."""
    resolved, count = bitwise(operands), operands[1].literal
    bits = number_type(resolved.result).bits
    if count is not None and not 0 <= count < bits:
        raise DTypeError(
            f"a shift of {resolved.result} by {count}, which is not defined: a count is 0 to {bits - 1}",
            None,
            "cast to a wider type first, as x.to(tl.int64)",
        )
    return resolved


def right_shift(operands: tuple[Operand, ...]) -> Resolved:
    """`>>`: arithmetic for signed values, logical for unsigned ones; the result has the common type as elsewhere."""
    resolved, (left, _right) = left_shift(operands), adapted_types(operands)
    shifted = number_type(resolved.result)
    if left.is_int_signed() and not shifted.is_int_signed():
        signed = DTYPES_BY_WORD[f"int{shifted.bits}"]  # the sign is shifted in, whatever the result is called
        return Resolved((signed, signed), shifted, signed)
    return resolved


def comparison(operands: tuple[Operand, ...]) -> Resolved:
    """Comparisons: literals are typed on their own first; the result is int1."""
    common = promote(own_type(operands[0]), own_type(operands[1]))
    if common.is_fp8():
        common = float16
    return Resolved((common, common), int1)


def extremum(operands: tuple[Operand, ...]) -> Resolved:
    """`maximum`, `minimum`: literals are typed on their own; bf16 is computed in fp32."""
    common = promote(own_type(operands[0]), own_type(operands[1]))
    common = float32 if common == bfloat16 or common.is_fp8() else common
    return Resolved((common, common), common)


def selection(operands: tuple[Operand, ...]) -> Resolved:
    """`where`: a condition and two values of a common type; pointers of one type too."""
    condition, values = operands[0].element, operands[1:]
    is_number = isinstance(condition, DType) and not condition.is_bool()
    warning = f"the condition of tl.where is of type {condition}: write condition != 0" if is_number else ""
    if any(isinstance(value.element, PointerType) for value in values):
        if values[0].element != values[1].element:
            cause = f"tl.where between {values[0].element} and {values[1].element}"
            raise DTypeError(cause, None, "choose between their offsets, or load first")
        return Resolved((int1, values[0].element, values[0].element), values[0].element, warning=warning)
    common = computation_type((values[0], values[1]))
    return Resolved((int1, common, common), common, literals_adapt=True, warning=warning)


def logical(operands: tuple[Operand, ...]) -> Resolved:
    """`and`, `or`, `not`: booleans."""
    for operand in operands:
        own = own_type(operand)
        if not own.is_bool():
            raise DTypeError(
                f"and, or and not take conditions, not values of type {own}", None, "compare it first, as x != 0"
            )
    return Resolved((int1,) * len(operands), int1)


def same_number(operands: tuple[Operand, ...]) -> Resolved:
    """One operand of any number type; the result has it too."""
    own = own_type(operands[0])
    return Resolved((own,), own)


def negation(operands: tuple[Operand, ...]) -> Resolved:
    """Unary minus."""
    own = own_type(operands[0])
    if own.is_fp8():
        raise DTypeError(f"arithmetic on {own} is not possible", None, WIDER)
    return Resolved((own,), own)


def integer_only(operands: tuple[Operand, ...]) -> Resolved:
    """One integer operand."""
    own = own_type(operands[0])
    if not own.is_int():
        cause = f"wrong type argument to unary invert ({own}): integers only"
        raise DTypeError(cause, None, "write -x for the negative, or cast with x.to(tl.int32)")
    return Resolved((own,), own)


def wide_float(operands: tuple[Operand, ...]) -> Resolved:
    """Math functions: fp32 or fp64, all operands alike."""
    types = [own_type(operand) for operand in operands]
    common = float64 if float64 in types else float32
    for dtype in types:
        if dtype not in (float32, float64):
            raise DTypeError(f"Expected dtype ['fp32', 'fp64'] but got {dtype}", None, CAST)
    return Resolved((common,) * len(types), common)


def single_float(operands: tuple[Operand, ...]) -> Resolved:
    """Functions that exist for fp32 only."""
    for operand in operands:
        if own_type(operand) != float32:
            raise DTypeError(f"Expected dtype ['fp32'] but got {own_type(operand)}", None, CAST)
    return Resolved((float32,) * len(operands), float32)


def any_float(operands: tuple[Operand, ...]) -> Resolved:
    """Several float operands of a common type; 16-bit ones included."""
    common = own_type(operands[0])
    for operand in operands[1:]:
        common = promote(common, own_type(operand))
    if not common.is_floating() or common.is_fp8():
        raise DTypeError(f"expected floating-point operands, got {common}", None, "cast first, as x.to(tl.float32)")
    return Resolved((common,) * len(operands), common)


def bounded(operands: tuple[Operand, ...]) -> Resolved:
    """`clamp`: floats; bf16 is computed in fp32."""
    common = any_float(operands).result
    common = float32 if common == bfloat16 else common
    return Resolved((common,) * len(operands), common)


def float_division(operands: tuple[Operand, ...]) -> Resolved:
    """`fdiv`: floats; 16-bit ones are computed in fp32."""
    common = any_float(operands).result
    common = float32 if isinstance(common, DType) and common.bits < 32 else common
    return Resolved((common, common), common)


def high_half(operands: tuple[Operand, ...]) -> Resolved:
    """`umulhi`: 32- and 64-bit integers, taken as unsigned."""
    common = promote(own_type(operands[0]), own_type(operands[1]))
    if not common.is_int() or common.bits < 32:
        cause = f"Expected dtype ['int32', 'int64', 'uint32', 'uint64'] but got {common}"
        raise DTypeError(cause, None, "cast first, as x.to(tl.int32)")
    return Resolved((common, common), common)


def exact(*overloads: tuple[tuple[str, ...], str]) -> Callable[[tuple[Operand, ...]], Resolved]:
    """A rule that takes exactly one of the given operand types: ((operand words, result word), …).

    Operands of which none takes the types are promoted to a common one first, as in Triton.
    """

    def rule(operands: tuple[Operand, ...]) -> Resolved:
        types = tuple(own_type(operand).word for operand in operands)
        common = reduce(promote, map(own_type, operands)).word
        for given in (types, (common,) * len(operands)):
            for wanted, result in overloads:
                if given == wanted:
                    return Resolved(tuple(DTYPES_BY_WORD[word] for word in wanted), DTYPES_BY_WORD[result])
        choices = " or ".join(f"({', '.join(wanted)})" for wanted, _ in overloads)
        raise DTypeError(f"input arg type does not match: got ({', '.join(types)}), expected {choices}", None, CAST)

    return rule


# ---------------------------------------------------------------------------------------------------- reductions


def summed_type(dtype: DType) -> DType:
    """The type that a sum has: integers below 32 bits are summed in 32; floats keep theirs."""
    if dtype.is_int() and dtype.bits < 32:
        return int32 if dtype.is_int_signed() else uint32
    return dtype


def ordered_type(dtype: DType) -> DType:
    """The type that `max` and `min` without indices have."""
    if dtype.bits >= 32:
        return dtype
    return int32 if dtype.is_int() else float32
