"""The element types of the language: one row per type.

A `DType` is what users write as `tl.float32`. Everything that depends on a type alone stands in its row: width, kind,
the CUDA spelling, the NumPy type that holds its values. The rules for two types together are in `ops/promotion.py`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from ..diagnostics import DTypeError
from ..frozen import frozen

Kind = Literal["bool", "signed", "unsigned", "float", "void"]


class _ByName(type):
    """Makes `tl.dtype("uint16")` the type of that name; the table below has a value for every attribute."""

    def __call__(cls, *values: Any, **named: Any) -> Any:
        if len(values) + len(named) != 1:
            return super().__call__(*values, **named)
        given = values[0] if values else named["name"]
        name = getattr(given, "value", given)  # of a constexpr
        if name in DTYPES_BY_WORD or name in DTYPES_BY_NAME:
            return DTYPES_BY_WORD.get(name) or DTYPES_BY_NAME[name]
        raise ValueError(f"there is no element type {name!r}; there are {', '.join(DTYPES_BY_WORD)}")


@frozen
class DType(metaclass=_ByName):
    """One element type.

    Attributes:
      short: the name in a signature: "fp32", "i32", "u8", "bf16".
      word: Triton's long name, the attribute of `tl`: "float32".
      kind: what sort of number it is.
      bits: the width of a value in a register, in bits; 1 for `int1`, which occupies a byte in memory.
      cuda: the CUDA C++ spelling.
      numpy_name: the NumPy type of its values; the names of `ml_dtypes` for bf16 and fp8.
      mantissa_bits: explicit mantissa bits of a float, 0 otherwise.
    """

    short: str
    word: str
    kind: Kind
    bits: int
    cuda: str
    numpy_name: str
    mantissa_bits: int = 0
    # Triton's lists of the names of its types, from which programs make tables of their own.
    SINT_TYPES: ClassVar[list[str]] = ["int8", "int16", "int32", "int64"]
    UINT_TYPES: ClassVar[list[str]] = ["int1", "uint8", "uint16", "uint32", "uint64"]
    FP_TYPES: ClassVar[list[str]] = [
        "fp8e4b15", "fp8e4nv", "fp8e4b8", "fp8e5", "fp8e5b16", "fp16", "bf16", "fp32", "fp64",
    ]  # fmt: skip
    STANDARD_FP_TYPES: ClassVar[list[str]] = ["fp16", "bf16", "fp32", "fp64"]
    OTHER_TYPES: ClassVar[list[str]] = ["void"]

    def __repr__(self) -> str:
        return f"triton.language.{self.word}"

    def __str__(self) -> str:
        return self.short

    @property
    def name(self) -> str:
        """Triton's name: short for floats ("fp32"), long for integers ("int32")."""
        return self.short if self.is_floating() else self.word

    @property
    def itemsize(self) -> int:
        """Bytes that one element occupies in memory."""
        return max(self.bits // 8, 1)

    @property
    def primitive_bitwidth(self) -> int:
        """Triton's name for `bits`."""
        return self.bits

    @property
    def int_bitwidth(self) -> int:
        """Triton's name for `bits` of an integer type."""
        return self.bits

    @property
    def fp_mantissa_width(self) -> int:
        """Triton's name for `mantissa_bits`."""
        return self.mantissa_bits

    @property
    def scalar(self) -> DType:
        """The element type of a scalar is itself."""
        return self

    @property
    def value(self) -> DType:
        """The type itself, for kernels that take it out of a constexpr."""
        return self

    def is_floating(self) -> bool:
        """True for every floating-point type, fp8 included."""
        return self.kind == "float"

    def is_standard_floating(self) -> bool:
        """True for fp16, bf16, fp32 and fp64."""
        return self.kind == "float" and self.bits >= 16

    def is_fp8(self) -> bool:
        """True for the 8-bit floats."""
        return self.kind == "float" and self.bits == 8

    def is_int(self) -> bool:
        """True for every integer type, `int1` included."""
        return self.kind in ("bool", "signed", "unsigned")

    def is_int_signed(self) -> bool:
        """True for int8 to int64."""
        return self.kind == "signed"

    def is_int_unsigned(self) -> bool:
        """True for uint8 to uint64 and, as in Triton, for `int1`."""
        return self.kind in ("bool", "unsigned")

    def is_bool(self) -> bool:
        """True for `int1`."""
        return self.kind == "bool"

    @property
    def int_signedness(self) -> int:
        """Triton's number for the kind of an integer type: 1 for signed, 0 for unsigned."""
        return int(self.is_int_signed())

    @property
    def exponent_bias(self) -> int:
        """What is added to the exponent of a float type in memory."""
        return int(2 ** (self.bits - self.mantissa_bits - 2)) - 1

    def get_int_min_value(self) -> int:
        """The smallest value of an integer type."""
        return -(1 << (self.bits - 1)) if self.is_int_signed() else 0

    def get_int_max_value(self) -> int:
        """The largest value of an integer type."""
        return (1 << (self.bits - self.is_int_signed())) - 1

    def is_const(self) -> bool:
        """False: only pointers can be constant."""
        return False

    def is_ptr(self) -> bool:
        """False: pointer types are `PointerType`."""
        return False

    def is_block(self) -> bool:
        """False: tiles have a `ValueType`."""
        return False

    def __getattr__(self, attribute: str) -> Any:
        # Triton has one predicate per type: is_fp32(), is_int8(), is_uint64(), ...
        if attribute.startswith("is_"):
            wanted = attribute[3:]
            if wanted in DTYPES_BY_WORD or wanted in DTYPES_BY_NAME:
                return lambda: wanted in (self.short, self.word)
        raise AttributeError(f"dtype has no attribute {attribute!r}")


void = DType("void", "void", "void", 0, "void", "V0")
int1 = DType("i1", "int1", "bool", 1, "bool", "bool")
int8 = DType("i8", "int8", "signed", 8, "signed char", "int8")
int16 = DType("i16", "int16", "signed", 16, "short", "int16")
int32 = DType("i32", "int32", "signed", 32, "int", "int32")
int64 = DType("i64", "int64", "signed", 64, "long long", "int64")
uint8 = DType("u8", "uint8", "unsigned", 8, "unsigned char", "uint8")
uint16 = DType("u16", "uint16", "unsigned", 16, "unsigned short", "uint16")
uint32 = DType("u32", "uint32", "unsigned", 32, "unsigned", "uint32")
uint64 = DType("u64", "uint64", "unsigned", 64, "unsigned long long", "uint64")
float8e5 = DType("fp8e5", "float8e5", "float", 8, "__nv_fp8_e5m2", "float8_e5m2", 2)
float8e4nv = DType("fp8e4nv", "float8e4nv", "float", 8, "__nv_fp8_e4m3", "float8_e4m3fn", 3)
float16 = DType("fp16", "float16", "float", 16, "half", "float16", 10)
bfloat16 = DType("bf16", "bfloat16", "float", 16, "__nv_bfloat16", "bfloat16", 7)
float32 = DType("fp32", "float32", "float", 32, "float", "float32", 23)
float64 = DType("fp64", "float64", "float", 64, "double", "float64", 52)

DTYPES = (
    void, int1, int8, int16, int32, int64, uint8, uint16, uint32, uint64,
    float8e5, float8e4nv, float16, bfloat16, float32, float64,
)  # fmt: skip
# Types of other GPUs, and one that only software knows: they can be named and compared, as tables of types do, but no kernel
# here has such elements.
ELSEWHERE = (
    DType("fp8e4b8", "float8e4b8", "float", 8, "", "", 3), DType("fp8e5b16", "float8e5b16", "float", 8, "", "", 2),
    DType("fp8e4b15", "float8e4b15", "float", 8, "", "", 3),
)  # fmt: skip
DTYPES_BY_NAME = {dtype.short: dtype for dtype in DTYPES} | {"u1": int1, "B": int1}
DTYPES_BY_WORD = {dtype.word: dtype for dtype in DTYPES}


@frozen
class PointerType:
    """A pointer into global memory: `*fp32` in a signature; `const` for `*kfp32` and `tl.const`."""

    element_ty: DType
    const: bool = False

    def __str__(self) -> str:
        return f"*{'k' if self.const else ''}{self.element_ty.short}"

    def is_ptr(self) -> bool:
        """True."""
        return True

    def is_const(self) -> bool:
        """Whether what it points to is only read."""
        return self.const

    def is_block(self) -> bool:
        """False: tiles have a `ValueType`."""
        return False

    def is_int(self) -> bool:
        """False."""
        return False

    def is_floating(self) -> bool:
        """False."""
        return False

    def is_bool(self) -> bool:
        """False."""
        return False

    @property
    def scalar(self) -> PointerType:
        """The element type of a scalar is itself."""
        return self


Element = DType | PointerType


def of_this_gpu(dtype: Element) -> Element:
    """The type, if kernels can have elements of it.

    Raises:
      DTypeError: in Triton's words.
    """
    if dtype in ELSEWHERE:
        usable = tuple(sorted(one.name for one in DTYPES if one.is_fp8()))
        raise DTypeError(
            f"type {dtype} not supported in this architecture. The supported fp8 dtypes are {usable}",
            None,
            "use one of them",
        )
    if dtype == void:
        raise DTypeError("no value has the type tl.void", None, "name the type of the elements")
    return dtype
