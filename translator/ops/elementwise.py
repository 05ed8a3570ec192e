"""The elementwise operations of the language: operators, comparisons, selection and `tl.math`."""

from __future__ import annotations

import math
from typing import Any

from ..language.dtypes import (
    DType,
    bfloat16,
    float16,
    float32,
    float64,
    int1,
    int8,
    int16,
    int32,
    int64,
    uint32,
    uint64,
)
from . import promotion as rules
from .numpy_functions import library as _np
from .numpy_functions import named as _numpy
from .numpy_functions import vectorised as _vectorised
from .registry import OpDef, register


def _truncated_quotient(x: Any, y: Any) -> Any:
    np = _np()
    safe = np.where(y == 0, np.ones_like(y), y)
    remainder = np.fmod(x, safe)
    return ((x - remainder) // safe).astype(x.dtype)


def _c_remainder(x: Any, y: Any) -> Any:
    np = _np()
    if np.issubdtype(x.dtype, np.integer):
        return np.fmod(x, np.where(y == 0, np.ones_like(y), y))
    return np.fmod(x, y)


def _shift(direction: str) -> Any:
    def shift(x: Any, y: Any) -> Any:
        np = _np()
        function = np.left_shift if direction == "left" else np.right_shift
        return function(x, np.clip(y, 0, x.dtype.itemsize * 8 - 1))

    return shift


# ------------------------------------------------------------------------------------------------------ operators

BINARY = ("x", "y")
register(
    OpDef("add", BINARY, rules.arithmetic, lambda x, y: x ^ y if x.dtype == bool else x + y,
          {"*": "{x} + {y}", int1: "{x} != {y}"}, doc="Sum.", commutes=True)
)  # fmt: skip
register(
    OpDef("sub", BINARY, rules.arithmetic, lambda x, y: x ^ y if x.dtype == bool else x - y,
          {"*": "{x} - {y}", int1: "{x} != {y}"}, doc="Difference.")
)  # fmt: skip
register(
    OpDef("mul", BINARY, rules.arithmetic, lambda x, y: x & y if x.dtype == bool else x * y,
          {"*": "{x} * {y}", int1: "{x} && {y}"}, doc="Product.", commutes=True)
)  # fmt: skip
register(
    OpDef(
        "div",
        BINARY,
        rules.true_division,
        _numpy("divide"),
        {"*": "{x} / {y}", float32: "divide({x}, {y})"},
        accuracy="/: div.full, 2 ulp, over the full range",
        doc="Quotient, always a float.",
        helper="divide",
    )
)
register(
    OpDef("floordiv", BINARY, rules.integer_division, _truncated_quotient, {"*": "{x} / {y}"},
          doc="Quotient of integers, rounded towards zero.")
)  # fmt: skip
register(
    OpDef("mod", BINARY, rules.modulo, _c_remainder,
          {"*": "{x} % {y}", float32: "fmodf({x}, {y})", float64: "fmod({x}, {y})"},
          doc="Remainder with the sign of the dividend.")
)  # fmt: skip
register(
    OpDef(
        "and",
        BINARY,
        rules.bitwise,
        _numpy("bitwise_and"),
        {"*": "{x} & {y}", int1: "{x} && {y}"},
        doc="Bitwise and.",
        commutes=True,
    )
)
register(
    OpDef(
        "or",
        BINARY,
        rules.bitwise,
        _numpy("bitwise_or"),
        {"*": "{x} | {y}", int1: "{x} || {y}"},
        doc="Bitwise or.",
        commutes=True,
    )
)
register(
    OpDef(
        "xor",
        BINARY,
        rules.bitwise,
        _numpy("bitwise_xor"),
        {"*": "{x} ^ {y}", int1: "{x} != {y}"},
        doc="Bitwise exclusive or.",
        commutes=True,
    )
)
register(OpDef("shl", BINARY, rules.bitwise, _shift("left"), {"*": "{x} << {y}"}, doc="Left shift."))
register(
    OpDef(
        "shr",
        BINARY,
        rules.right_shift,
        _shift("right"),
        {"*": "{x} >> {y}"},
        doc="Right shift: arithmetic for signed types.",
    )
)
register(
    OpDef(
        "neg",
        ("x",),
        rules.negation,
        lambda x: x if x.dtype == bool else -x,
        {"*": "-{x}", int1: "{x}"},
        doc="Negation.",
    )
)
register(
    OpDef(
        "invert", ("x",), rules.integer_only, lambda x: ~x, {"*": "~{x}", int1: "!{x}"}, doc="Complement of all bits."
    )
)
register(
    OpDef("logical_and", BINARY, rules.logical, _numpy("logical_and"), {"*": "{x} && {y}"}, doc="Both.", commutes=True)
)
register(
    OpDef("logical_or", BINARY, rules.logical, _numpy("logical_or"), {"*": "{x} || {y}"}, doc="Either.", commutes=True)
)
register(OpDef("logical_not", ("x",), rules.logical, _numpy("logical_not"), {"*": "!{x}"}, doc="Not."))

for _name, _function, _operator in (
    ("eq", "equal", "=="), ("ne", "not_equal", "!="), ("lt", "less", "<"),
    ("le", "less_equal", "<="), ("gt", "greater", ">"), ("ge", "greater_equal", ">="),
):  # fmt: skip
    register(
        OpDef(_name, BINARY, rules.comparison, _numpy(_function), {"*": f"{{x}} {_operator} {{y}}"}, doc="Comparison.")
    )

register(
    OpDef("where", ("condition", "x", "y"), rules.selection, _numpy("where"), {"*": "{condition} ? {x} : {y}"},
          doc="x where the condition holds, y elsewhere; both are evaluated.")
)  # fmt: skip

# ------------------------------------------------------------------------------------------------------- extrema


def _extremum_spelling(word: str, of_booleans: str) -> dict[DType | str, str]:
    return {
        float32: f"f{word}f({{x}}, {{y}})",
        float64: f"f{word}({{x}}, {{y}})",
        float16: f"__h{word}({{x}}, {{y}})",
        bfloat16: f"__h{word}({{x}}, {{y}})",
        int1: f"{{x}} {of_booleans} {{y}}",
        "*": f"{word}({{x}}, {{y}})",
    }


_MAX = _extremum_spelling("max", "||")
_MIN = _extremum_spelling("min", "&&")
register(
    OpDef(
        "maximum",
        BINARY,
        rules.extremum,
        _numpy("fmax"),
        _MAX,
        doc="The larger; a NaN gives way to the other.",
        commutes=True,
    )
)
register(
    OpDef(
        "minimum",
        BINARY,
        rules.extremum,
        _numpy("fmin"),
        _MIN,
        doc="The smaller; a NaN gives way to the other.",
        commutes=True,
    )
)
register(
    OpDef("maximum_nan", BINARY, rules.extremum, _numpy("maximum"),
          {"*": "max_nan({x}, {y})", float16: "__hmax_nan({x}, {y})"},
          doc="The larger; NaN if either is NaN.", helper="max_nan", commutes=True)
)  # fmt: skip
register(
    OpDef("minimum_nan", BINARY, rules.extremum, _numpy("minimum"),
          {"*": "min_nan({x}, {y})", float16: "__hmin_nan({x}, {y})"},
          doc="The smaller; NaN if either is NaN.", helper="min_nan", commutes=True)
)  # fmt: skip

# ---------------------------------------------------------------------------------------------------------- math


def _math(
    name: str,
    numpy: Any,
    single: str,
    double: str,
    doc: str,
    accuracy: str = "",
    rule: Any = rules.wide_float,
    helper: str = "",
) -> None:
    spelling: dict[DType | str, str] = {float32: single, float64: double}
    register(OpDef(name, ("x",), rule, numpy, spelling, accuracy, doc, helper))


_math("exp", _numpy("exp"), "__expf({x})", "exp({x})", "Natural exponential.",
      "exp: ex2.approx of x * log2(e), 2 ulp plus the rounding of the product")  # fmt: skip
_math("exp2", _numpy("exp2"), "exp2f({x})", "exp2({x})", "2 to the power x.", "exp2: 2 ulp")
_math(
    "log",
    _numpy("log"),
    "__logf({x})",
    "log({x})",
    "Natural logarithm.",
    "log: lg2.approx times ln(2), 1 ulp of log2 near 1",
)
_math("log2", _numpy("log2"), "__log2f({x})", "log2({x})", "Logarithm to the base 2.", "log2: lg2.approx, 1 ulp near 1")
_math("sin", _numpy("sin"), "sinf({x})", "sin({x})", "Sine of radians.")
_math("cos", _numpy("cos"), "cosf({x})", "cos({x})", "Cosine of radians.")
_math("sqrt", _numpy("sqrt"), "square_root({x})", "sqrt({x})", "Square root.", "sqrt: 1 ulp", helper="square_root")
_math("sqrt_rn", _numpy("sqrt"), "sqrtf({x})", "sqrt({x})", "Square root, rounded to nearest.", rule=rules.single_float)
_math(
    "rsqrt", lambda x: (1 / _np().sqrt(x)).astype(x.dtype), "rsqrtf({x})", "rsqrt({x})", "1 / sqrt(x).", "rsqrt: 2 ulp"
)
_math(
    "erf", lambda x: _vectorised(math.erf)(x).astype(x.dtype), "erff({x})", "erf({x})", "Error function.", "erf: 2 ulp"
)
_math("floor", _numpy("floor"), "floorf({x})", "floor({x})", "The largest integer not above x.")
_math("ceil", _numpy("ceil"), "ceilf({x})", "ceil({x})", "The smallest integer not below x.")


def _sigmoid(x: Any) -> Any:
    return (1 / (1 + _np().exp(-x))).astype(x.dtype)


register(
    OpDef("sigmoid", ("x",), rules.wide_float, _sigmoid, {float32: "sigmoid({x})", float64: "sigmoid({x})"},
          "sigmoid: 1 / (1 + exp(-x)) with the approximate exponential", "1 / (1 + exp(-x)).", "sigmoid")
)  # fmt: skip
register(
    OpDef("abs", ("x",), rules.same_number, lambda x: x if x.dtype == bool else _np().abs(x),
          {"*": "{x}", float32: "fabsf({x})", float64: "fabs({x})", float16: "__habs({x})", bfloat16: "__habs({x})",
           int8: "static_cast<signed char>(abs({x}))", int16: "static_cast<short>(abs({x}))", int32: "abs({x})",
           int64: "llabs({x})"}, doc="Absolute value.")
)  # fmt: skip
register(
    OpDef("fma", ("x", "y", "z"), rules.any_float,
          lambda x, y, z: (x.astype(float) * y.astype(float) + z.astype(float)).astype(x.dtype),
          {float32: "fmaf({x}, {y}, {z})", float64: "fma({x}, {y}, {z})", float16: "__hfma({x}, {y}, {z})",
           bfloat16: "__hfma({x}, {y}, {z})"}, doc="x * y + z, rounded once.")
)  # fmt: skip
register(
    OpDef(
        "fdiv",
        BINARY,
        rules.float_division,
        _numpy("divide"),
        {"*": "{x} / {y}", float32: "divide({x}, {y})"},
        accuracy="fdiv: div.full, 2 ulp, over the full range",
        doc="Quotient of floats.",
        helper="divide",
    )
)
register(
    OpDef(
        "div_rn",
        BINARY,
        rules.single_float,
        _numpy("divide"),
        {"*": "__fdiv_rn({x}, {y})"},
        doc="Quotient, rounded to nearest.",
    )
)
register(
    OpDef("clamp", ("x", "low", "high"), rules.bounded, lambda x, low, high: _np().fmin(_np().fmax(x, low), high),
          {float32: "fminf(fmaxf({x}, {low}), {high})", float64: "fmin(fmax({x}, {low}), {high})",
           float16: "__hmin(__hmax({x}, {low}), {high})", bfloat16: "__hmin(__hmax({x}, {low}), {high})"},
          doc="x, not below `low` and not above `high`.")
)  # fmt: skip
register(
    OpDef("clamp_nan", ("x", "low", "high"), rules.bounded,
          lambda x, low, high: _np().where(_np().isnan(x), x, _np().fmin(_np().fmax(x, low), high)),
          {"*": "clamp_nan({x}, {low}, {high})"}, doc="The same; NaN where x is NaN.", helper="clamp_nan")
)  # fmt: skip


def _multiply_high(x: Any, y: Any) -> Any:
    np = _np()
    bits = x.dtype.itemsize * 8
    mask = (1 << bits) - 1
    products = np.vectorize(lambda a, b: ((int(a) & mask) * (int(b) & mask)) >> bits, otypes=[object])(x, y)
    unsigned = np.asarray(products).astype(np.uint64).astype(f"uint{bits}")
    return unsigned.astype(x.dtype)


register(
    OpDef("umulhi", BINARY, rules.high_half, _multiply_high,
          {uint32: "__umulhi({x}, {y})", int32: "static_cast<int>(__umulhi({x}, {y}))", uint64: "__umul64hi({x}, {y})",
           int64: "static_cast<long long>(__umul64hi({x}, {y}))"}, doc="The high half of the unsigned product.", commutes=True)
)  # fmt: skip
