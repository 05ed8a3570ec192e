"""Comparisons, selection, and what follows from them: minimum, maximum, clamp."""

from __future__ import annotations

from ..language.dtypes import DType, bfloat16, float16, float32, float64, int1
from . import promotion as rules
from .numpy_functions import library as _np
from .numpy_functions import named
from .registry import OpDef, register

BINARY = ("x", "y")
LIMITED = ("x", "low", "high")

for _name, _function, _operator, _words in (
    ("eq", "equal", "==", "equal"), ("ne", "not_equal", "!=", "not equal"), ("lt", "less", "<", "less"),
    ("le", "less_equal", "<=", "less or equal"), ("gt", "greater", ">", "greater"),
    ("ge", "greater_equal", ">=", "greater or equal"),
):  # fmt: skip
    register(
        OpDef(_name, BINARY, rules.comparison, named(_function), {"*": f"{{x}} {_operator} {{y}}"},
              doc=f"Whether x is {_words}{'' if _words.endswith('equal') else ' than'} y.")
    )  # fmt: skip


def _extremum_spelling(word: str, of_booleans: str) -> dict[DType | str, str]:
    return {
        float32: f"f{word}f({{x}}, {{y}})",
        float64: f"f{word}({{x}}, {{y}})",
        float16: f"__h{word}({{x}}, {{y}})",
        bfloat16: f"__h{word}({{x}}, {{y}})",
        int1: f"{{x}} {of_booleans} {{y}}",
        "*": f"{word}({{x}}, {{y}})",
    }


for _op in (
    OpDef("where", ("condition", "x", "y"), rules.selection, named("where"), {"*": "{condition} ? {x} : {y}"},
          doc="x where the condition holds, y elsewhere; both are evaluated."),
    OpDef("maximum", BINARY, rules.extremum, named("fmax"), _extremum_spelling("max", "||"),
          doc="The larger; a NaN gives way to the other."),
    OpDef("minimum", BINARY, rules.extremum, named("fmin"), _extremum_spelling("min", "&&"),
          doc="The smaller; a NaN gives way to the other."),
    OpDef("maximum_nan", BINARY, rules.extremum, named("maximum"),
          {"*": "max_nan({x}, {y})", float16: "__hmax_nan({x}, {y})"},
          doc="The larger; NaN if either is NaN.", helper="max_nan"),
    OpDef("minimum_nan", BINARY, rules.extremum, named("minimum"),
          {"*": "min_nan({x}, {y})", float16: "__hmin_nan({x}, {y})"},
          doc="The smaller; NaN if either is NaN.", helper="min_nan"),
    OpDef("clamp", LIMITED, rules.bounded, lambda x, low, high: _np().fmin(_np().fmax(x, low), high),
          {float32: "fminf(fmaxf({x}, {low}), {high})", float64: "fmin(fmax({x}, {low}), {high})",
           float16: "__hmin(__hmax({x}, {low}), {high})"},
          doc="x, not below `low` and not above `high`."),
    OpDef("clamp_nan", LIMITED, rules.bounded,
          lambda x, low, high: _np().where(_np().isnan(x), x, _np().fmin(_np().fmax(x, low), high)),
          {"*": "clamp_nan({x}, {low}, {high})"}, doc="The same; NaN where x is NaN.", helper="clamp_nan"),
):  # fmt: skip
    register(_op)
