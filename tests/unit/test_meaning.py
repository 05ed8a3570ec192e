"""What every row of the op table means: its NumPy function against Python's own numbers, on awkward values of every type.

Integers are compared with unbounded arithmetic that is wrapped afterwards, floats with float64 that is rounded once.
The rows of libdevice have a test of their own, which also runs them on the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tilewright.diagnostics import DTypeError
from tilewright.interpreter.tile import Tile, apply
from tilewright.language.dtypes import DTYPES, DType, PointerType, float32, float64, int1, int32
from tilewright.ops import OPS
from tilewright.ops.casts import numpy_cast, numpy_type
from tilewright.ops.registry import Operand

NUMBERS = [dtype for dtype in DTYPES if dtype.name != "void"]
FLOAT_VALUES = (0.0, -0.0, 1.0, -1.0, 1.5, -2.25, 3.0, 0.1, 100.5, -60000.0, 1e-7, math.inf, -math.inf, math.nan)


def values_of(dtype: DType) -> np.ndarray:
    """Values at which something can go wrong."""
    if dtype.is_bool():
        return np.array([False, True])
    if dtype.is_int():
        low, high = dtype.get_int_min_value(), dtype.get_int_max_value()
        inside = [v for v in (low, low + 1, -7, -1, 0, 1, 2, 5, 100, high - 1, high) if low <= v <= high]
        return np.array(inside, numpy_type(dtype))
    return numpy_cast(np.array(FLOAT_VALUES), float64, dtype)


def wrapped(value: Any, dtype: DType) -> Any:
    """An exact result in a type: integers keep their low bits, bool is one bit."""
    if dtype.is_bool():
        return bool(value & 1)
    if not dtype.is_int():
        return value
    low = int(value) & ((1 << dtype.bits) - 1)
    return low - (1 << dtype.bits) if dtype.is_int_signed() and low >> (dtype.bits - 1) else low


def truncated(x: int, y: int) -> int:
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def divided(x: float, y: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.float64(x) / np.float64(y))


def remainder(x: Any, y: Any) -> Any:
    if isinstance(x, int):
        return x - truncated(x, y) * y
    return math.nan if math.isinf(x) or y == 0 or math.isnan(x) or math.isnan(y) else math.fmod(x, y)


def number_wins(choose: Callable[..., Any]) -> Callable[..., Any]:
    """`choose`, for which a NaN gives way to a number."""

    def chosen(*values: Any) -> Any:
        numbers = [value for value in values if value == value]
        return choose(numbers) if numbers else math.nan

    return chosen


def nan_wins(choose: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *values: math.nan if any(value != value for value in values) else choose(values)


def clamped(x: float, low: float, high: float) -> float:
    larger, smaller = number_wins(max), number_wins(min)
    return smaller(larger(x, low), high)


def guarded(function: Callable[[float], float], outside: Any = math.nan) -> Callable[[float], Any]:
    def call(x: float) -> Any:
        try:
            return function(x)
        except OverflowError:
            return math.inf
        except ValueError:
            return outside

    return call


def logarithm(function: Callable[[float], float]) -> Callable[[float], Any]:
    return lambda x: -math.inf if x == 0 else guarded(function)(x)


def rounding(function: Callable[[float], int]) -> Callable[[float], float]:
    return lambda x: math.copysign(function(x), x) if math.isfinite(x) else x


def high_half(bits: int) -> Callable[[int, int], int]:
    mask = (1 << bits) - 1
    return lambda x, y: ((x & mask) * (y & mask)) >> bits


REFERENCES: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y,
    "div": divided, "fdiv": divided, "div_rn": divided,
    "floordiv": truncated, "mod": remainder,
    "and": lambda x, y: x & y, "or": lambda x, y: x | y, "xor": lambda x, y: x ^ y,
    "shl": lambda x, y: x << y, "shr": lambda x, y: x >> y,
    "neg": lambda x: -x, "invert": lambda x: ~x, "abs": abs,
    "logical_and": lambda x, y: x & y, "logical_or": lambda x, y: x | y, "logical_not": lambda x: not x,
    "eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "lt": lambda x, y: x < y, "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y, "ge": lambda x, y: x >= y,
    "where": lambda c, x, y: x if c else y,
    "maximum": number_wins(max), "minimum": number_wins(min), "maximum_nan": nan_wins(max), "minimum_nan": nan_wins(min),
    "clamp": clamped, "clamp_nan": lambda x, low, high: x if x != x else clamped(x, low, high),
    "fma": lambda x, y, z: float(np.float64(x) * np.float64(y) + np.float64(z)),
    "exp": guarded(math.exp), "exp2": guarded(lambda x: 2.0**x), "log": logarithm(math.log), "log2": logarithm(math.log2),
    "sin": guarded(math.sin), "cos": guarded(math.cos), "erf": math.erf,
    "sqrt": guarded(math.sqrt), "sqrt_rn": guarded(math.sqrt),
    "rsqrt": lambda x: divided(1.0, guarded(math.sqrt)(x)) if x else math.copysign(math.inf, x),
    "floor": rounding(math.floor), "ceil": rounding(math.ceil),
    "sigmoid": lambda x: 1 / (1 + guarded(math.exp)(-x)),
}  # fmt: skip
MATH = ("fma", "exp", "exp2", "log", "log2", "sin", "cos", "erf", "rsqrt", "sigmoid")
ROWS = [name for name in OPS if not name.startswith("libdevice.")]


def test_every_row_has_a_reference() -> None:
    assert set(ROWS) == {*REFERENCES, "umulhi"}


def defined(name: str, values: tuple[Any, ...], dtype: DType) -> bool:
    """Whether the language says what the result is."""
    if name in ("floordiv", "mod") and dtype.is_int():
        return values[1] != 0 and not (values[0] == dtype.get_int_min_value() and values[1] == -1)
    if name in ("shl", "shr"):
        return 0 <= values[1] < dtype.bits
    if name.startswith("clamp"):
        return values[1] <= values[2]
    return True


def operands(name: str, dtype: DType) -> list[np.ndarray]:
    """Every combination of the type's values, an array per operand."""
    count = len(OPS[name].parameters)
    if name == "where":
        one = values_of(dtype)
        return [np.arange(len(one)) % 2 == 0, one, one[::-1].copy()]
    grids = np.meshgrid(*[values_of(dtype)] * count, indexing="ij")
    return [grid.reshape(-1) for grid in grids]


def python_number(value: Any, dtype: DType) -> Any:
    return float(value) if dtype.is_floating() else int(value)


def accepts(name: str, dtype: DType) -> bool:
    """Whether the row's rule takes operands of this type."""
    try:
        OPS[name].rule(tuple(Operand(one) for one in operand_types(name, dtype)))
    except DTypeError:
        return False
    return True


def operand_types(name: str, dtype: DType) -> list[DType]:
    return [int1, dtype, dtype] if name == "where" else [dtype] * len(OPS[name].parameters)


CASES = [(name, dtype) for name in ROWS for dtype in NUMBERS if accepts(name, dtype)]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("name", "dtype"), CASES, ids=str)
def test_row(name: str, dtype: DType) -> None:
    arrays = operands(name, dtype)
    types = operand_types(name, dtype)
    resolved = OPS[name].rule(tuple(Operand(one) for one in types))
    result = apply(name, [Tile(array, one) for array, one in zip(arrays, types, strict=True)])
    assert result.element == resolved.result and result.values.dtype == numpy_type(resolved.result)
    wide = resolved.operands[-1]
    reference = high_half(wide.bits) if name == "umulhi" else REFERENCES[name]
    for position in range(arrays[0].size):
        values = tuple(
            python_number(numpy_cast(array[position : position + 1], one, element)[0], element)
            for array, one, element in zip(arrays, types, resolved.operands, strict=True)
        )
        if not defined(name, values, wide):
            continue
        expected = wrapped(reference(*values), resolved.result)
        if not resolved.result.is_floating():
            assert int(result.values[position]) == int(expected), (name, values)
            continue
        expected = (
            numpy_cast(np.array([expected], float), float64, resolved.result)[0]
            if resolved.result != float64
            else expected
        )
        tolerance = 3e-7 if name in MATH and dtype == float32 else 1e-15 if name in MATH else 0
        np.testing.assert_allclose(
            float(result.values[position]), float(expected), tolerance, tolerance, err_msg=str(values)
        )
        if expected == 0 and name not in ("clamp", "clamp_nan", "maximum", "minimum", "maximum_nan", "minimum_nan"):
            assert np.signbit(float(result.values[position])) == np.signbit(float(expected)), (name, values)


def test_fma_rounds_once() -> None:
    x = np.array([1 + 2.0**-12, 1 + 2.0**-30])
    single = apply("fma", [Tile(x.astype(np.float32)[:1], float32)] * 2 + [Tile(np.float32([-1 - 2.0**-11]), float32)])
    assert single.values[0] == np.float32(2.0**-24)
    double = apply("fma", [Tile(x[1:], float64)] * 2 + [Tile(np.array([-1 - 2.0**-29]), float64)])
    assert double.values[0] == 2.0**-60


def test_where_selects_pointers() -> None:
    pointer = PointerType(float32)
    chosen = apply(
        "where", [Tile(np.array([True, False]), int1), Tile(np.int64(8), pointer), Tile(np.int64(16), pointer)]
    )
    assert chosen.element == pointer and chosen.values.tolist() == [8, 16]
    with pytest.raises(DTypeError, match="where between"):
        apply("where", [True, Tile(np.int64(8), pointer), Tile(np.int64(8), PointerType(int32))])


# ------------------------------------------------------------------------------------------------------------ casts


@pytest.mark.parametrize("wanted", NUMBERS, ids=str)
@pytest.mark.parametrize("source", NUMBERS, ids=str)
def test_casts(source: DType, wanted: DType) -> None:
    values = values_of(source)
    if (source.is_fp8() and wanted.is_int()) or (wanted.is_fp8() and source.is_int()):
        with pytest.raises(DTypeError, match="wider float"):
            numpy_cast(values, source, wanted)
        return
    with np.errstate(all="ignore"):
        result = numpy_cast(values, source, wanted)
    assert result.dtype == numpy_type(wanted)
    for value, got in zip(values, result, strict=True):
        number = python_number(value, source)
        if wanted.is_bool():
            assert bool(got) == (number != 0)
        elif wanted.is_int():
            assert int(got) == (saturated(number, source, wanted) if source.is_floating() else wrapped(number, wanted))
        elif wanted.is_fp8() and not math.isnan(number):
            largest = float(ml_dtypes.finfo(numpy_type(wanted)).max)
            expected = np.float32(min(max(number, -largest), largest)).astype(numpy_type(wanted))
            assert float(got) == float(expected)
        else:
            with np.errstate(all="ignore"):
                np.testing.assert_equal(float(got), float(np.float64(number).astype(numpy_type(wanted))))


def saturated(value: float, source: DType, wanted: DType) -> int:
    """Which integer CUDA makes of a float: the nearest of 32 or 64 bits, of which fewer are the last ones."""
    bits = max(wanted.bits, 32)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if wanted.is_int_signed() else (0, 2**bits - 1)
    if math.isnan(value):
        return wrapped(0 if bits == 32 and source.bits < 64 else 2 ** (bits - 1), wanted)
    return wrapped(low if value < low else high if value > high else int(value), wanted)


@pytest.mark.parametrize(
    ("value", "expected"), ((1 + 2**-8 + 2**-40, 1 + 2**-7), (1 + 2**-8 - 2**-40, 1.0), (1 + 2**-8, 1.0))
)
def test_bf16_is_rounded_once(value: float, expected: float) -> None:
    bf16 = next(dtype for dtype in NUMBERS if dtype.name == "bf16")
    assert float(numpy_cast(np.array([value]), float64, bf16)[0]) == expected
    integer = np.array([int(value * 2**40)])
    assert float(numpy_cast(integer, DTYPES[5], bf16)[0]) == expected * 2**40


@pytest.mark.parametrize(("name", "expected"), (("fp16", 3.6992), ("bf16", 3.6875), ("fp32", 3.69999981)))
def test_rounding_towards_zero(name: str, expected: float) -> None:
    wanted = next(dtype for dtype in NUMBERS if dtype.name == name)
    result = numpy_cast(np.array([3.7, -3.7]), float64, wanted, "rtz").astype(float)
    np.testing.assert_allclose(result, [expected, -expected], rtol=1e-5)
    assert abs(result[0]) <= 3.7


def test_bit_casts_keep_bits() -> None:
    for source in NUMBERS:
        for wanted in NUMBERS:
            values = values_of(source)
            if source.bits != wanted.bits:
                with pytest.raises(DTypeError, match="Cannot bitcast data-type of size"):
                    numpy_cast(values, source, wanted, bitcast=True)
            else:
                assert numpy_cast(values, source, wanted, bitcast=True).tobytes() == values.tobytes()


@pytest.mark.parametrize("arguments", ((float32, float64, "rtz"), (float64, float32, "up")))
def test_roundings_that_do_not_exist(arguments: tuple[DType, DType, str]) -> None:
    source, wanted, rounding = arguments
    with pytest.raises(DTypeError):
        numpy_cast(np.zeros(1, numpy_type(source)), source, wanted, rounding)
