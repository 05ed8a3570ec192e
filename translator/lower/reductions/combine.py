"""What a reduction combines: the state of a partial result, and the text that combines two of them.

In: a `Combine` of the IR and the element types of the reduced tiles. Out: a `Combination`, which names a struct of the
generated text with a `combine` function, how a value enters it and how it leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...frozen import frozen
from ...ir.nodes import Combine
from ...language.dtypes import DType, int32, uint32
from ..text.literals import literal_text

# What CUDA calls the combinations that are an instruction for a whole warp of integers.
OVER_WARPS = {"Sum": "add", "Max": "max", "Min": "min", "Xor": "xor", "Or": "or", "And": "and"}


@frozen
class Combination:
    """A way to combine partial results.

    Attributes:
      struct: the C++ struct that holds `combine`.
      state: the C++ type of a partial result: the element type, or `<struct>::State` when it has several fields.
      fields: the fields of the state, empty for a plain element.
      expression: spells the combination of two plain elements; None for states of several fields.
      identity: the element that changes nothing, or None when there is none.
      commutes: whether two operands in either order give the same, bit by bit. Lanes that exchange partial results
        combine them in different orders; where that tells, they must take over what one of them has found.
      adds_up: whether a reader takes the identity for what it is: zero, or all bits. Of an extremum it would be NaN.
      over_warp: CUDA's function that combines an element of each lane of a warp; "" where it has none.
    """

    struct: str
    state: str
    fields: tuple[tuple[str, str], ...]
    expression: Callable[[str, str], str] | None
    identity: str | None
    commutes: bool = True
    adds_up: bool = False
    over_warp: str = ""


def _call(name: str) -> Callable[[str, str], str]:
    return lambda left, right: f"{name}({left}, {right})"


def _infix(operator: str) -> Callable[[str, str], str]:
    return lambda left, right: f"{left} {operator} {right}"


def extremum(word: str, dtype: DType) -> Callable[[str, str], str]:
    """`max` or `min` of two elements; NaN gives way to a number."""
    match dtype.name:
        case "fp32":
            return _call(f"f{word}f")
        case "fp64":
            return _call(f"f{word}")
        case "fp16" | "bf16":
            return _call(f"__h{word}")
    return _call(word)


def neutral(word: str, dtype: DType) -> str:
    """What changes no `max` or `min`: of floats NaN, which gives way to numbers, and is the answer where all are NaN."""
    if dtype.is_floating():
        return literal_text(float("nan"), dtype)
    if dtype.is_bool():
        return literal_text(word == "min", dtype)
    low = -(1 << (dtype.bits - 1)) if dtype.is_int_signed() else 0
    return literal_text(low if word == "max" else low + (1 << dtype.bits) - 1, dtype)


def known_combination(combine: Combine, dtypes: tuple[DType, ...]) -> Combination | None:
    """The combination of one tile by a known operation; None for any other."""
    known = _by_operation(combine, dtypes[0])
    if known is None or dtypes[0] not in (int32, uint32):
        return known
    return replace(known, over_warp=f"__reduce_{OVER_WARPS[known.struct]}_sync")


def _by_operation(combine: Combine, dtype: DType) -> Combination | None:
    cuda = dtype.cuda
    match combine.op:
        case "sum" if dtype.is_bool():  # one bit wraps
            return Combination("Xor", cuda, (), _infix("^"), literal_text(0, dtype), adds_up=True)
        case "sum":
            return Combination("Sum", cuda, (), _infix("+"), literal_text(0, dtype), adds_up=True)
        case "max" | "min":
            return Combination(
                combine.op.capitalize(), cuda, (), extremum(combine.op, dtype), neutral(combine.op, dtype)
            )
        case "xor" | "or" | "and":
            operator = {"xor": "^", "or": "|", "and": "&"}[combine.op]
            identity = literal_text(-1 if combine.op == "and" else 0, dtype)
            return Combination(combine.op.capitalize(), cuda, (), _infix(operator), identity, adds_up=True)
    return None
