"""The types of two 16-bit floats in one register, and what CUDA has to make them."""

from __future__ import annotations

from ...frozen import frozen
from ...ir.nodes import Call, Expr


@frozen
class PairType:
    """The words of a type of pairs, and the numbers whose unit is 1: `first` are the bits of the first of 2 ** `room`.

    `one` are the bits of the number 1; `of_two`, `of_one` and `of_floats` make a pair.
    """

    name: str
    of_two: str
    of_one: str
    of_floats: str
    first: int
    room: int
    one: int

    @property
    def many(self) -> int:
        """How many such numbers there are."""
        return 1 << self.room

    @property
    def unit(self) -> str:
        """The first of them, twice."""
        return f"0x{self.first * 0x10001:08x}"


PAIR_TYPES = {
    "fp16": PairType("half2", "__halves2half2", "__half2half2", "__floats2half2_rn", 0x6400, 10, 0x3C00),
    "bf16": PairType(
        "__nv_bfloat162", "__halves2bfloat162", "__bfloat162bfloat162", "__floats2bfloat162_rn", 0x4300, 7, 0x3F80
    ),
}


def rounds_floats(value: Expr) -> bool:
    """Whether an expression rounds fp32 to a type that has pairs, as their instruction does: to the nearest, ties to even."""
    if not (isinstance(value, Call) and value.op == "cast") or value.type.is_pointer:
        return False
    source = value.args[0].type
    plain = not value.attribute("bitcast") and value.attribute("rounding") in (None, "rtne")
    return plain and not source.is_pointer and source.dtype.name == "fp32" and value.type.dtype.name in PAIR_TYPES
