"""CUDA's device math library, as `tl.extra.libdevice`: one row per function, overloads by exact type.

Names, overloads and result types are Triton's, meanings those of the CUDA Math API reference; a function that NumPy lacks
is computed in float64 (`special.py`) or exactly (`exact.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from ..language.dtypes import DTYPES_BY_WORD, DType
from . import exact as exact_arithmetic
from . import special
from .exact import round_fraction, rounded
from .numpy_functions import library as _np
from .numpy_functions import named as _numpy
from .numpy_functions import vectorised as _vectorised
from .promotion import exact
from .registry import OpDef, register

F, D, I, U, L, UL, B = "float32", "float64", "int32", "uint32", "int64", "uint64", "int1"
PREFIX = "libdevice."
NAMES = ("x", "y", "z", "w")


def _row(
    name: str, overloads: list[tuple[tuple[str, ...], str, str]], numpy: Callable[..., Any], doc: str = ""
) -> None:
    """One function: (operand words, result word, spelling) per overload."""
    cuda: dict[DType | str, str] = {DTYPES_BY_WORD[operands[0]]: spelling for operands, _, spelling in overloads}
    parameters = NAMES[: len(overloads[0][0])]
    rule = exact(*((operands, result) for operands, result, _ in overloads))
    register(OpDef(PREFIX + name, parameters, rule, numpy, cuda, doc=doc or f"CUDA's {name}.", long=True))


def _call(function: str, count: int) -> str:
    return f"{function}({', '.join('{' + name + '}' for name in NAMES[:count])})"


def _float_pair(name: str, numpy: Callable[..., Any], count: int = 1, base: str | None = None) -> None:
    """`name` for fp32 (with an f) and fp64."""
    base = base or name
    overloads = [((F,) * count, F, _call(f"{base}f", count)), ((D,) * count, D, _call(base, count))]
    _row(name, overloads, lambda *arrays: _np().asarray(numpy(*arrays)).astype(arrays[0].dtype))


# ---------------------------------------------------------------------------------------- real functions, fp32 and fp64

for _name in ("sinh", "cosh", "tanh", "log10", "log1p", "expm1", "exp2", "exp", "log", "log2", "sin", "cos", "tan", "ceil",
              "floor", "trunc", "rint", "sqrt", "cbrt"):  # fmt: skip
    _float_pair(_name, _numpy(_name))
for _name, _function in (("asin", "arcsin"), ("acos", "arccos"), ("atan", "arctan"), ("asinh", "arcsinh"),
                         ("acosh", "arccosh"), ("atanh", "arctanh"), ("nearbyint", "rint")):  # fmt: skip
    _float_pair(_name, _numpy(_function))
_float_pair("rsqrt", lambda x: 1 / _np().sqrt(x))
_float_pair("rcbrt", lambda x: 1 / _np().cbrt(x))
_float_pair("exp10", lambda x: _np().power(10.0, x))
_float_pair("sinpi", lambda x: _np().sin(_np().pi * _np().fmod(x.astype(float), 2.0)))
_float_pair("cospi", lambda x: _np().cos(_np().pi * _np().fmod(x.astype(float), 2.0)))
_float_pair("round", lambda x: _away_from_zero(x))
for _name, _scalar in (
    ("erf", math.erf), ("erfc", math.erfc), ("erfcx", special.scaled_erfc), ("lgamma", special.log_gamma),
    ("tgamma", special.gamma), ("normcdf", lambda x: 0.5 * math.erfc(-x / math.sqrt(2))),
    ("normcdfinv", special.inverse_normal), ("erfinv", special.inverse_erf), ("erfcinv", special.inverse_erfc),
):  # fmt: skip
    _float_pair(_name, _vectorised(_scalar))


def _away_from_zero(x: Any) -> Any:
    """The nearest integer, halves away from zero."""
    np = _np()
    whole = np.trunc(x)
    return whole + np.copysign(np.abs(x - whole) >= 0.5, x)


def _exponent(x: Any) -> Any:
    """The binary exponent as a float; -inf for 0, inf for infinities, NaN for NaN."""
    np = _np()
    inner = np.where(np.isfinite(x) & (x != 0), x, 1)
    return np.where(x == 0, -np.inf, np.where(np.isfinite(x), np.frexp(inner)[1] - 1.0, np.abs(x)))


_float_pair("logb", _exponent)

for _order in (0, 1):
    _float_pair(f"j{_order}", lambda x, n=_order: special.bessel_j(n, x.astype(float)))
    _float_pair(f"y{_order}", lambda x, n=_order: special.bessel_y(n, x.astype(float)))
    _float_pair(f"cyl_bessel_i{_order}", lambda x, n=_order: special.bessel_i(n, x.astype(float)))


def _of_orders(bessel: Callable[[int, Any], Any]) -> Callable[..., Any]:
    """A Bessel function of arrays of orders and arguments."""

    def compute(orders: Any, x: Any) -> Any:
        np = _np()
        result = np.zeros(x.shape)
        for order in np.unique(orders):
            result = np.where(orders == order, bessel(int(order), x.astype(float)), result)
        return result.astype(x.dtype)

    return compute


for _name, _bessel in (("jn", special.bessel_j), ("yn", special.bessel_y)):
    _row(_name, [((I, F), F, _call(f"{_name}f", 2)), ((I, D), D, _call(_name, 2))], _of_orders(_bessel))

# -------------------------------------------------------------------------------------------------- several operands

for _name, _function in (("copysign", "copysign"), ("nextafter", "nextafter"), ("atan2", "arctan2"), ("hypot", "hypot"),
                         ("fmod", "fmod")):  # fmt: skip
    _float_pair(_name, _numpy(_function), 2)
_float_pair("rhypot", lambda x, y: 1 / _np().hypot(x, y), 2)
_float_pair("remainder", lambda x, y: _vectorised(math.remainder)(x, y), 2)
_float_pair("fdim", lambda x, y: _np().where(x > y, x - y, _np().where(x <= y, 0, x + y)), 2)
_float_pair("fma", rounded(exact_arithmetic.fma), 3)
_float_pair("norm3d", lambda x, y, z: _np().sqrt(x.astype(float) ** 2 + y.astype(float) ** 2 + z.astype(float) ** 2), 3)
_float_pair(
    "rnorm3d", lambda x, y, z: 1 / _np().sqrt(x.astype(float) ** 2 + y.astype(float) ** 2 + z.astype(float) ** 2), 3
)
_float_pair("norm4d", lambda *v: _np().sqrt(sum(a.astype(float) ** 2 for a in v)), 4)
_float_pair("rnorm4d", lambda *v: 1 / _np().sqrt(sum(a.astype(float) ** 2 for a in v)), 4)
_row(
    "pow",
    [((F, F), F, "powf({x}, {y})"), ((D, D), D, "pow({x}, {y})"),
     ((F, I), F, "powf({x}, {y})"), ((D, I), D, "pow({x}, {y})")],
    lambda x, y: _np().power(x, y.astype(x.dtype)),
)  # fmt: skip
for _name in ("ldexp", "scalbn"):
    _row(
        _name,
        [((F, I), F, _call(f"{_name}f", 2)), ((D, I), D, _call(_name, 2))],
        lambda x, y: _np().ldexp(x, y),
    )

# ------------------------------------------------------------------------------------------------------- predicates

for _name, _test, _words in (
    ("isnan", "isnan", (F, D)), ("isinf", "isinf", (F, D)), ("finitef", "isfinite", (F,)), ("isfinited", "isfinite", (D,)),
):  # fmt: skip
    _row(_name, [((_word,), B, _call(_test, 1)) for _word in _words], _numpy(_test))
_row("signbit", [((_word,), I, "static_cast<int>(signbit({x}))") for _word in (F, D)],
     lambda x: _np().signbit(x).astype("int32"))  # fmt: skip


def _integer_exponent(x: Any) -> Any:
    np = _np()
    exponent = _exponent(x)
    smallest, largest = -(2**31), 2**31 - 1
    return np.where(np.isfinite(exponent), exponent, np.where(exponent > 0, largest, smallest)).astype("int32")


_row("ilogb", [((F,), I, "ilogbf({x})"), ((D,), I, "ilogb({x})")], _integer_exponent)

# --------------------------------------------------------------------------------------------------- fast variants

for _name, _function in (("sinf", "sin"), ("cosf", "cos"), ("tanf", "tan"), ("expf", "exp"), ("logf", "log"), ("log2f", "log2"),
                         ("log10f", "log10")):  # fmt: skip
    _row(f"fast_{_name}", [((F,), F, _call(f"__{_name}", 1))], _numpy(_function))
_row("fast_exp10f", [((F,), F, "__exp10f({x})")], lambda x: _np().power(10.0, x).astype(x.dtype))
_row("fast_tanhf", [((F,), F, "tanhf({x})")], _numpy("tanh"))
_row("fast_powf", [((F, F), F, "__powf({x}, {y})")], _numpy("power"))
_row("fast_dividef", [((F, F), F, "__fdividef({x}, {y})")], _numpy("divide"))
_row("saturatef", [((F,), F, "__saturatef({x})")], lambda x: _np().clip(_np().nan_to_num(x), 0, 1).astype(x.dtype))

# ------------------------------------------------------------------------------------ arithmetic with a rounding mode

for _mode in ("rn", "rz", "rd", "ru"):
    for _name, _letters, _count, _exact in (
        ("add", "add", 2, exact_arithmetic.add), ("sub", "sub", 2, exact_arithmetic.sub),
        ("mul", "mul", 2, exact_arithmetic.mul), ("div", "div", 2, exact_arithmetic.div),
        ("fma", "ma", 3, exact_arithmetic.fma), ("rcp", "rcp", 1, exact_arithmetic.reciprocal),
        ("sqrt", "sqrt", 1, exact_arithmetic.square_root),
    ):  # fmt: skip
        _single = f"__f{_letters}_{_mode}"
        _double = f"__fma_{_mode}" if _name == "fma" else f"__d{_letters}_{_mode}"
        _row(
            f"{_name}_{_mode}",
            [((F,) * _count, F, _call(_single, _count)), ((D,) * _count, D, _call(_double, _count))],
            rounded(_exact, _mode),
        )
_row("rsqrt_rn", [((F,), F, "__frsqrt_rn({x})")], lambda x: (1 / _np().sqrt(x.astype(float))).astype(x.dtype))

# ------------------------------------------------------------------------------------------------------ conversions


def _to_integer(word: str, result: str, mode: str) -> Callable[..., Any]:
    """Floats as integers of type `word`, out of range to the nearest end; typed `result`, of the same width."""
    name = {"rn": "rint", "rz": "trunc", "rd": "floor", "ru": "ceil"}[mode]

    def convert(x: Any) -> Any:
        from .casts import numpy_cast

        source = DTYPES_BY_WORD[str(x.dtype)]
        return numpy_cast(getattr(_np(), name)(x), source, DTYPES_BY_WORD[word]).view(result)

    return convert


def _to_real(word: str, mode: str) -> Callable[..., Any]:
    """Integers, or float64, as floats of type `word`."""

    def convert(x: Any) -> Any:
        np = _np()
        dtype = np.dtype(word)
        values = [
            float(v) if isinstance(v, float) and not math.isfinite(v) else Fraction(v) for v in x.reshape(-1).tolist()
        ]
        return np.asarray([round_fraction(value, dtype, mode) for value in values], dtype).reshape(x.shape)

    return convert


for _mode in ("rn", "rz", "rd", "ru"):
    for _real, _word in (("float", F), ("double", D)):
        # Triton types the results of conversions to unsigned integers as signed ones of the same bits.
        for _integer, _type, _result in (("int", I, I), ("uint", U, I), ("ll", L, L), ("ull", UL, L)):
            _name = f"{_real}2{_integer}_{_mode}"
            _spelling = _call(f"__{_name}", 1)
            if _type != _result:
                _spelling = f"static_cast<{DTYPES_BY_WORD[_result].cuda}>({_spelling})"
            _row(_name, [((_word,), _result, _spelling)], _to_integer(_type, _result, _mode))
            _name = f"{_integer}2{_real}_{_mode}"
            if not (_real == "double" and _integer in ("int", "uint") and _mode != "rn"):  # exact, so only rn exists
                _row(_name, [((_type,), _word, _call(f"__{_name}", 1))], _to_real(_word, _mode))
    _row(f"double2float_{_mode}", [((D,), F, _call(f"__double2float_{_mode}", 1))], _to_real(F, _mode))


def _halves(x: Any, high: bool) -> Any:
    bits = x.view("int64")
    return ((bits >> 32) if high else (bits & 0xFFFFFFFF)).astype("uint32").view("int32")


_row("double2loint", [((D,), I, "__double2loint({x})")], lambda x: _halves(x, False))
_row("double2hiint", [((D,), I, "__double2hiint({x})")], lambda x: _halves(x, True))
_row("hiloint2double", [((I, I), D, "__hiloint2double({x}, {y})")],
     lambda x, y: ((x.astype("int64") << 32) | (y.astype("int64") & 0xFFFFFFFF)).view("float64"))  # fmt: skip
_row("rcp64h", [((D,), D, "__hiloint2double(__double2hiint(1.0 / {x}), 0)")],
     lambda x: ((1 / x).view("int64") & ~0xFFFFFFFF).view("float64"))  # fmt: skip
for _name, _source, _target in (
    ("int_as_float", I, F), ("float_as_int", F, I), ("uint_as_float", U, F),
    ("longlong_as_double", L, D), ("double_as_longlong", D, L),
):  # fmt: skip
    _row(_name, [((_source,), _target, _call(f"__{_name}", 1))], lambda x, t=_target: x.view(t))
_row("float_as_uint", [((F,), I, "static_cast<int>(__float_as_uint({x}))")], lambda x: x.view("int32"))
for _name, _whole in (("llrint", _numpy("rint")), ("llround", _away_from_zero)):
    _row(
        _name,
        [((F,), L, _call(f"{_name}f", 1)), ((D,), L, _call(_name, 1))],
        lambda x, f=_whole: f(x).astype("int64"),
    )

# --------------------------------------------------------------------------------------------------------- integers


def _bits(function: Callable[[int, int], int]) -> Callable[..., Any]:
    """An integer function of the unsigned value and the width, element by element; the result is int32."""

    def compute(x: Any) -> Any:
        width = x.dtype.itemsize * 8
        mask = (1 << width) - 1
        return _np().vectorize(lambda value: function(int(value) & mask, width), otypes=["int64"])(x)

    return compute


def _reverse(value: int, width: int) -> int:
    return int(f"{value:0{width}b}"[::-1], 2)


for _name, _of_bits in (
    ("clz", lambda value, width: width - value.bit_length()),
    ("popc", lambda value, width: bin(value).count("1")),
    ("ffs", lambda value, width: (value & -value).bit_length()),
):
    _row(_name, [((I,), I, _call(f"__{_name}", 1)), ((L,), I, _call(f"__{_name}ll", 1))],
         lambda x, f=_of_bits: _bits(f)(x).astype("int32"))  # fmt: skip
_row("brev", [((I,), I, "static_cast<int>(__brev({x}))"), ((L,), L, "static_cast<long long>(__brevll({x}))")],
     lambda x: _np().vectorize(lambda v: _reverse(int(v) & ((1 << x.dtype.itemsize * 8) - 1), x.dtype.itemsize * 8),
                               otypes=["uint64"])(x).astype(f"uint{x.dtype.itemsize * 8}").view(x.dtype))  # fmt: skip
_row(
    "abs",
    [((I,), I, "abs({x})"), ((L,), L, "llabs({x})"), ((F,), F, "fabsf({x})"), ((D,), D, "fabs({x})")],
    _numpy("abs"),
)


def _wide(function: Callable[[int, int], int]) -> Callable[..., Any]:
    """A function of two integers computed without overflow, wrapped to the operands' type."""

    def compute(x: Any, y: Any) -> Any:
        mask = (1 << x.dtype.itemsize * 8) - 1
        values = _np().vectorize(lambda a, b: function(int(a), int(b)) & mask, otypes=["uint64"])(x, y)
        return values.astype(f"uint{x.dtype.itemsize * 8}").view(x.dtype)

    return compute


_row("mulhi", [((I, I), I, "__mulhi({x}, {y})"), ((U, U), U, "__umulhi({x}, {y})"), ((L, L), L, "__mul64hi({x}, {y})"),
               ((UL, UL), UL, "__umul64hi({x}, {y})")],
     lambda x, y: _wide(lambda a, b: (a * b) >> (x.dtype.itemsize * 8))(x, y))  # fmt: skip


def _low_bits(value: int, signed: bool) -> int:
    low = value & 0xFFFFFF
    return low - (1 << 24) if signed and low >> 23 else low


_row("mul24", [((I, I), I, "__mul24({x}, {y})"), ((U, U), U, "__umul24({x}, {y})")],
     lambda x, y: _wide(lambda a, b: _low_bits(a, x.dtype.kind == "i") * _low_bits(b, x.dtype.kind == "i"))(x, y))  # fmt: skip
_row("hadd", [((I, I), I, "__hadd({x}, {y})"), ((U, U), U, "__uhadd({x}, {y})")], _wide(lambda a, b: (a + b) >> 1))
_row(
    "rhadd", [((I, I), I, "__rhadd({x}, {y})"), ((U, U), U, "__urhadd({x}, {y})")], _wide(lambda a, b: (a + b + 1) >> 1)
)
_row("sad", [((I, I, U), I, "static_cast<int>(__sad({x}, {y}, {z}))"), ((U, U, U), U, "__usad({x}, {y}, {z})")],
     lambda x, y, z: (_np().abs(x.astype("int64") - y).astype("uint32") + z).view(x.dtype))  # fmt: skip


def _permute_bytes(x: int, y: int, selector: int) -> int:
    source = (x & 0xFFFFFFFF) | (y & 0xFFFFFFFF) << 32
    return sum(((source >> 8 * (selector >> 4 * k & 7)) & 0xFF) << 8 * k for k in range(4))


_row("byte_perm", [((I, I, I), I, "static_cast<int>(__byte_perm({x}, {y}, {z}))")],
     lambda x, y, z: _np().vectorize(lambda a, b, s: _permute_bytes(int(a), int(b), int(s)), otypes=["uint64"])(x, y, z)
     .astype("uint32").view("int32"))  # fmt: skip
