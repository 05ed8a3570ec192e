"""`tl.math`: the elementary functions, on fp32 and fp64 unless a row says otherwise.

The fp32 spellings are those that Triton's own code has: approximate where it approximates, over the whole range.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..language.dtypes import (
    DType,
    bfloat16,
    float8e4nv,
    float8e5,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint32,
    uint64,
)
from . import exact
from . import promotion as rules
from .numpy_functions import library as _np
from .numpy_functions import named, vectorised
from .registry import OpDef, register

Meaning = Callable[..., Any]


def _function(
    name: str,
    numpy: Meaning,
    single: str,
    double: str,
    doc: str,
    accuracy: str = "",
    helper: str = "",
    long: bool = True,
) -> None:
    """A function of one fp32 or fp64 operand."""
    spelling: dict[DType | str, str] = {float32: f"{single}({{x}})", float64: f"{double}({{x}})"}
    register(OpDef(name, ("x",), rules.wide_float, numpy, spelling, accuracy, doc, helper, long))


def _absolute(x: Any) -> Any:
    return x if x.dtype.kind in "bu" else _np().abs(x)


def _reciprocal_root(x: Any) -> Any:
    return (1 / _np().sqrt(x.astype(float))).astype(x.dtype)


def _sigmoid(x: Any) -> Any:
    return (1 / (1 + _np().exp(-x))).astype(x.dtype)


def _high_half(x: Any, y: Any) -> Any:
    """The upper half of the product of the operands taken as unsigned."""
    np = _np()
    bits = x.dtype.itemsize * 8
    mask = (1 << bits) - 1
    products = np.vectorize(lambda a, b: ((int(a) & mask) * (int(b) & mask)) >> bits, otypes=[np.uint64])(x, y)
    return products.astype(f"uint{bits}").astype(x.dtype)


_function("exp", named("exp"), "__expf", "exp", "Natural exponential.",
          "exp: ex2.approx of x * log2(e), 2 ulp plus the rounding of the product")  # fmt: skip
_function("exp2", named("exp2"), "power_of_two", "exp2", "2 to the power x.",
          "exp2: ex2.approx.ftz, 2 ulp, zero for what is denormal", "power_of_two")  # fmt: skip
_function("log", named("log"), "__logf", "log", "Natural logarithm.",
          "log: lg2.approx times ln(2), 1 ulp of log2 near 1")  # fmt: skip
_function("log2", named("log2"), "__log2f", "log2", "Logarithm to the base 2.", "log2: lg2.approx, 1 ulp near 1")
_function("sin", named("sin"), "sinf", "sin", "Sine of radians.")
_function("cos", named("cos"), "cosf", "cos", "Cosine of radians.")
_function("sqrt", named("sqrt"), "square_root", "sqrt", "Square root.", "sqrt: 1 ulp", "square_root")
_function("rsqrt", _reciprocal_root, "rsqrtf", "rsqrt", "1 / sqrt(x).", "rsqrt: 2 ulp")
_function("erf", lambda x: vectorised(math.erf)(x).astype(x.dtype), "erff", "erf", "Error function.", "erf: 2 ulp")
_function("floor", named("floor"), "floorf", "floor", "The largest integer not above x.", long=False)
_function("ceil", named("ceil"), "ceilf", "ceil", "The smallest integer not below x.", long=False)
_function("sigmoid", _sigmoid, "sigmoid", "sigmoid_double", "1 / (1 + exp(-x)).",
          "sigmoid: 1 / (1 + exp(-x)) with the approximate exponential and quotient", "sigmoid")  # fmt: skip

for _op in (
    OpDef("sqrt_rn", ("x",), rules.single_float, named("sqrt"), {float32: "sqrtf({x})"},
          doc="Square root, rounded to nearest.", long=True),
    OpDef("abs", ("x",), rules.same_number, _absolute,
          {"*": "({x})", float32: "fabsf({x})", float64: "fabs({x})", float16: "__habs({x})", bfloat16: "__habs({x})",
           float8e5: "__nv_fp8_e5m2(fabsf(static_cast<float>({x})))",
           float8e4nv: "__nv_fp8_e4m3(fabsf(static_cast<float>({x})))", int8: "static_cast<signed char>(abs({x}))",
           int16: "static_cast<short>(abs({x}))", int32: "abs({x})", int64: "llabs({x})"}, doc="Absolute value."),
    OpDef("fma", ("x", "y", "z"), rules.any_float, exact.rounded(exact.fma),
          {float32: "fmaf({x}, {y}, {z})", float64: "fma({x}, {y}, {z})", float16: "__hfma({x}, {y}, {z})",
           bfloat16: "__hfma({x}, {y}, {z})"}, doc="x * y + z, rounded once."),
    OpDef("fdiv", ("x", "y"), rules.float_division, named("divide"), {"*": "{x} / {y}", float32: "divide({x}, {y})"},
          accuracy="fdiv: div.full, 2 ulp, over the full range", doc="Quotient of floats.", helper="divide", long=True),
    OpDef("div_rn", ("x", "y"), rules.single_float, named("divide"), {float32: "__fdiv_rn({x}, {y})"},
          doc="Quotient, rounded to nearest.", long=True),
    OpDef("umulhi", ("x", "y"), rules.high_half, _high_half,
          {uint32: "__umulhi({x}, {y})", int32: "static_cast<int>(__umulhi({x}, {y}))", uint64: "__umul64hi({x}, {y})",
           int64: "static_cast<long long>(__umul64hi({x}, {y}))"},
          doc="The high half of the unsigned product."),
):  # fmt: skip
    register(_op)
