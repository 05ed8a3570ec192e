"""CUDA's device math library, as `tl.extra.libdevice`: one row per function, overloads by exact type.

Names, overloads and meanings are those of the CUDA Math API reference; the NumPy meaning of a function that NumPy lacks
is computed in float64 with the `math` module.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..language.dtypes import DTYPES_BY_WORD, DType
from .numpy_functions import library as _np
from .numpy_functions import named as _numpy
from .numpy_functions import vectorised as _vectorised
from .promotion import exact
from .registry import OpDef, register

F, D, I, U, L, UL = "float32", "float64", "int32", "uint32", "int64", "uint64"
PREFIX = "libdevice."
NAMES = ("x", "y", "z", "w")


def _row(
    name: str, overloads: list[tuple[tuple[str, ...], str, str]], numpy: Callable[..., Any], doc: str = ""
) -> None:
    """One function: (operand words, result word, spelling) per overload."""
    cuda: dict[DType | str, str] = {DTYPES_BY_WORD[operands[0]]: spelling for operands, _, spelling in overloads}
    parameters = NAMES[: len(overloads[0][0])]
    rule = exact(*((operands, result) for operands, result, _ in overloads))
    register(OpDef(PREFIX + name, parameters, rule, numpy, cuda, doc=doc or f"CUDA's {name}."))


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
_float_pair("round", lambda x: _np().copysign(_np().floor(_np().abs(x.astype(float)) + 0.5), x))
_float_pair("erf", _vectorised(math.erf))
_float_pair("erfc", _vectorised(math.erfc))
_float_pair("erfcx", _vectorised(lambda x: math.exp(x * x) * math.erfc(x)))
_float_pair("lgamma", _vectorised(math.lgamma))
_float_pair("tgamma", _vectorised(math.gamma))
_float_pair("normcdf", _vectorised(lambda x: 0.5 * math.erfc(-x / math.sqrt(2))))
_float_pair("logb", lambda x: _np().frexp(x)[1] - 1.0)


def _inverse_normal(p: float) -> float:
    from statistics import NormalDist

    if not 0.0 < p < 1.0:
        return {0.0: -math.inf, 1.0: math.inf}.get(p, math.nan)
    return NormalDist().inv_cdf(p)


_float_pair("normcdfinv", _vectorised(_inverse_normal))
_float_pair("erfinv", _vectorised(lambda y: _inverse_normal((y + 1) / 2) / math.sqrt(2)))
_float_pair("erfcinv", _vectorised(lambda y: -_inverse_normal(y / 2) / math.sqrt(2)))


def _bessel_j(order: int, x: float) -> float:
    """Bessel's integral, by the midpoint rule, which converges exponentially for periodic integrands."""
    steps = 200 + int(4 * abs(x))
    angles = [(k + 0.5) * math.pi / steps for k in range(steps)]
    return sum(math.cos(order * t - x * math.sin(t)) for t in angles) / steps


def _bessel_i(order: int, x: float) -> float:
    steps = 200 + int(4 * abs(x))
    angles = [(k + 0.5) * math.pi / steps for k in range(steps)]
    return sum(math.exp(x * math.cos(t)) * math.cos(order * t) for t in angles) / steps


def _bessel_y(order: int, x: float) -> float:
    """Y_n by its integral representation (Abramowitz and Stegun 9.1.22), midpoint rule on both parts."""
    if x <= 0:
        return -math.inf if x == 0 else math.nan
    steps = 400 + int(8 * x)
    first = sum(math.sin(x * math.sin(t) - order * t) for t in ((k + 0.5) * math.pi / steps for k in range(steps)))
    limit, parts = math.asinh(60.0 / x) + 1.0, 20000
    width = limit / parts
    second = 0.0
    for k in range(parts):
        t = (k + 0.5) * width
        second += (math.exp(order * t) + (-1) ** order * math.exp(-order * t)) * math.exp(-x * math.sinh(t))
    return first / steps - second * width / math.pi


for _order in (0, 1):
    _float_pair(f"j{_order}", _vectorised(lambda x, n=_order: _bessel_j(n, x)))
    _float_pair(f"y{_order}", _vectorised(lambda x, n=_order: _bessel_y(n, x)))
    _float_pair(f"cyl_bessel_i{_order}", _vectorised(lambda x, n=_order: _bessel_i(n, x)))
for _name, _bessel in (("jn", _bessel_j), ("yn", _bessel_y)):
    _row(
        _name,
        [((I, F), F, _call(f"{_name}f", 2)), ((I, D), D, _call(_name, 2))],
        lambda n, x, f=_bessel: _vectorised(lambda a, b: f(int(a), b))(n, x).astype(x.dtype),
    )

# -------------------------------------------------------------------------------------------------- several operands

for _name, _function in (("copysign", "copysign"), ("nextafter", "nextafter"), ("atan2", "arctan2"), ("hypot", "hypot"),
                         ("fmod", "fmod")):  # fmt: skip
    _float_pair(_name, _numpy(_function), 2)
_float_pair("rhypot", lambda x, y: 1 / _np().hypot(x, y), 2)
_float_pair("remainder", lambda x, y: _vectorised(math.remainder)(x, y), 2)
_float_pair("fdim", lambda x, y: _np().maximum(x - y, 0), 2)
_float_pair("fma", lambda x, y, z: x.astype(float) * y.astype(float) + z.astype(float), 3)
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

_row("isnan", [((F,), I, "static_cast<int>(isnan({x}))"), ((D,), I, "static_cast<int>(isnan({x}))")],
     lambda x: _np().isnan(x).astype("int32"))  # fmt: skip
_row("isinf", [((F,), I, "static_cast<int>(isinf({x}))"), ((D,), I, "static_cast<int>(isinf({x}))")],
     lambda x: _np().isinf(x).astype("int32"))  # fmt: skip
_row("signbit", [((F,), I, "static_cast<int>(signbit({x}))"), ((D,), I, "static_cast<int>(signbit({x}))")],
     lambda x: _np().signbit(x).astype("int32"))  # fmt: skip
_row("finitef", [((F,), I, "static_cast<int>(isfinite({x}))")], lambda x: _np().isfinite(x).astype("int32"))
_row("isfinited", [((D,), I, "static_cast<int>(isfinite({x}))")], lambda x: _np().isfinite(x).astype("int32"))
_row("ilogb", [((F,), I, "ilogbf({x})"), ((D,), I, "ilogb({x})")], lambda x: (_np().frexp(x)[1] - 1).astype("int32"))

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


def _rounded(exact_value: Callable[..., Any], mode: str) -> Callable[..., Any]:
    """A float32 or float64 operation rounded as `mode` says, from a more exact value."""

    def compute(*arrays: Any) -> Any:
        np = _np()
        dtype = arrays[0].dtype
        value = exact_value(*(array.astype(np.longdouble) for array in arrays))
        near = value.astype(dtype)
        back = near.astype(np.longdouble)
        down, up = np.nextafter(near, dtype.type(-np.inf)), np.nextafter(near, dtype.type(np.inf))
        floor, ceiling = np.where(back > value, down, near), np.where(back < value, up, near)
        zero = np.where(value >= 0, floor, ceiling)
        return {"rn": near, "rd": floor, "ru": ceiling, "rz": zero}[mode].astype(dtype)

    return compute


for _mode in ("rn", "rz", "rd", "ru"):
    for _name, _letters, _count, _exact in (
        ("add", "add", 2, lambda x, y: x + y), ("sub", "sub", 2, lambda x, y: x - y), ("mul", "mul", 2, lambda x, y: x * y),
        ("div", "div", 2, lambda x, y: x / y), ("fma", "ma", 3, lambda x, y, z: x * y + z),
        ("rcp", "rcp", 1, lambda x: 1 / x), ("sqrt", "sqrt", 1, lambda x: _np().sqrt(x)),
    ):  # fmt: skip
        _single = f"__f{_letters}_{_mode}"
        _double = f"__fma_{_mode}" if _name == "fma" else f"__d{_letters}_{_mode}"
        _row(
            f"{_name}_{_mode}",
            [((F,) * _count, F, _call(_single, _count)), ((D,) * _count, D, _call(_double, _count))],
            _rounded(_exact, _mode),
        )
_row("rsqrt_rn", [((F,), F, "__frsqrt_rn({x})")], lambda x: (1 / _np().sqrt(x.astype(float))).astype(x.dtype))

# ------------------------------------------------------------------------------------------------------ conversions


def _to_integer(word: str, mode: str) -> Callable[..., Any]:
    name = {"rn": "rint", "rz": "trunc", "rd": "floor", "ru": "ceil"}[mode]

    def convert(x: Any) -> Any:
        from .casts import numpy_cast

        source = DTYPES_BY_WORD[str(x.dtype)]
        return numpy_cast(getattr(_np(), name)(x), source, DTYPES_BY_WORD[word])

    return convert


def _to_real(word: str, mode: str) -> Callable[..., Any]:
    dtype = DTYPES_BY_WORD[word].numpy_name

    def convert(x: Any) -> Any:
        np = _np()
        near = x.astype(dtype)
        exact_value, back = x.astype(np.longdouble), near.astype(np.longdouble)
        down, up = np.nextafter(near, np.dtype(dtype).type(-np.inf)), np.nextafter(near, np.dtype(dtype).type(np.inf))
        floor, ceiling = np.where(back > exact_value, down, near), np.where(back < exact_value, up, near)
        zero = np.where(exact_value >= 0, floor, ceiling)
        return {"rn": near, "rd": floor, "ru": ceiling, "rz": zero}[mode].astype(dtype)

    return convert


for _mode in ("rn", "rz", "rd", "ru"):
    for _real, _word in (("float", F), ("double", D)):
        for _integer, _target in (("int", I), ("uint", U), ("ll", L), ("ull", UL)):
            _name = f"{_real}2{_integer}_{_mode}"
            _row(_name, [((_word,), _target, _call(f"__{_name}", 1))], _to_integer(_target, _mode))
            _name = f"{_integer}2{_real}_{_mode}"
            if not (_real == "double" and _integer in ("int", "uint") and _mode != "rn"):  # exact, so only rn exists
                _row(_name, [((_target,), _word, _call(f"__{_name}", 1))], _to_real(_word, _mode))
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
    ("int_as_float", I, F), ("float_as_int", F, I), ("uint_as_float", U, F), ("float_as_uint", F, U),
    ("longlong_as_double", L, D), ("double_as_longlong", D, L),
):  # fmt: skip
    _row(_name, [((_source,), _target, _call(f"__{_name}", 1))], lambda x, t=_target: x.view(t))
for _name, _target in (("llrint", L), ("llround", L)):
    _float = {"llrint": "rint", "llround": "round"}[_name]
    _row(
        _name,
        [((F,), _target, _call(f"{_name}f", 1)), ((D,), _target, _call(_name, 1))],
        lambda x, r=_float: (
            _np().rint(x) if r == "rint" else _np().copysign(_np().floor(_np().abs(x.astype(float)) + 0.5), x)
        ).astype("int64"),
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
_row("sad", [((I, I, U), U, "__sad({x}, {y}, {z})"), ((U, U, U), U, "__usad({x}, {y}, {z})")],
     lambda x, y, z: (_np().abs(x.astype("int64") - y.astype("int64")) + z.astype("int64")).astype("uint32"))  # fmt: skip


def _permute_bytes(x: int, y: int, selector: int) -> int:
    source = (x & 0xFFFFFFFF) | (y & 0xFFFFFFFF) << 32
    return sum(((source >> 8 * (selector >> 4 * k & 7)) & 0xFF) << 8 * k for k in range(4))


_row("byte_perm", [((I, I, I), I, "static_cast<int>(__byte_perm({x}, {y}, {z}))")],
     lambda x, y, z: _np().vectorize(lambda a, b, s: _permute_bytes(int(a), int(b), int(s)), otypes=["uint64"])(x, y, z)
     .astype("uint32").view("int32"))  # fmt: skip
