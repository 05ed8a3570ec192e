"""Matrix products: types, the typed kernel, the interpreter against NumPy, and every error."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright import diagnostics as errors
from tilewright.artifact import Options
from tilewright.frontend import build_kernel
from tilewright.ir.printer import print_kernel
from tilewright.ir.verify import verify
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.schedule.targets import find_target

RNG = np.random.default_rng(3)
TYPES = {
    "fp8e4nv": ml_dtypes.float8_e4m3fn,
    "fp8e5": ml_dtypes.float8_e5m2,
    "bf16": ml_dtypes.bfloat16,
    "fp16": np.float16,
    "fp32": np.float32,
    "fp64": np.float64,
    "i8": np.int8,
}


def typed(kernel: Any, signature: str, **options: Any) -> str:
    """The typed kernel as text; it follows the rules of docs/ir.md."""
    found = build_kernel(kernel, parse_signature(kernel, signature), Options(**options), find_target("sm_90a"))
    verify(found)
    return print_kernel(found)


@triton.jit
def product_kernel(
    a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
    PRECISION: tl.constexpr, TF32: tl.constexpr, LIMIT: tl.constexpr, OUT: tl.constexpr,
):  # fmt: skip
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + n[None, :])
    c = tl.dot(a, b, input_precision=PRECISION, allow_tf32=TF32, max_num_imprecise_acc=LIMIT, out_dtype=OUT)
    tl.store(c_ptr + m[:, None] * N + n[None, :], c)


def signature(a: str, b: str, *rest: Any, sides: str = "16, 16, 32") -> str:
    return f"*{a}, *{b}, *fp32, {sides}, " + ", ".join(str(one) for one in rest)


RESULTS = [
    ("fp16", "fp16", ("None", None, None, None), "fp32", "ieee", None),
    ("fp16", "fp16", ("None", None, None, "fp16"), "fp16", "ieee", None),
    ("bf16", "bf16", ("None", None, None, None), "fp32", "ieee", None),
    ("bf16", "bf16", ("'tf32'", None, None, "fp32"), "fp32", "ieee", None),
    ("fp32", "fp32", ("None", None, None, None), "fp32", "tf32", None),
    ("fp32", "fp32", ("None", True, None, None), "fp32", "tf32", None),
    ("fp32", "fp32", ("None", False, None, None), "fp32", "ieee", None),
    ("fp32", "fp32", ("'TF32x3'", None, None, None), "fp32", "tf32x3", None),
    ("fp32", "fp32", ("'bf16x6'", None, None, None), "fp32", "bf16x6", None),
    ("fp64", "fp64", ("None", None, None, "fp32"), "fp64", "ieee", None),
    ("i8", "i8", ("None", None, None, "fp32"), "i32", "ieee", None),
    ("fp8e5", "fp8e4nv", ("None", None, 32, None), "fp32", "ieee", 32),
    ("fp8e4nv", "fp8e4nv", ("None", None, None, "fp16"), "fp16", "ieee", None),
    ("fp16", "fp16", ("None", None, 64, None), "fp32", "ieee", None),
]


@pytest.mark.parametrize(("a", "b", "given", "result", "precision", "limit"), RESULTS)
def test_result_types_and_attributes(a: str, b: str, given: Any, result: str, precision: str, limit: Any) -> None:
    text = typed(product_kernel, signature(a, b, *given))
    said = f"c: {result}[16, 16] = dot(a, b, input_precision='{precision}'"
    assert said + (f", max_num_imprecise_acc={limit})" if limit else ")") in text


@triton.jit
def limited_kernel(a_ptr, b_ptr, c_ptr, LIMIT: tl.constexpr):
    i = tl.arange(0, 32)
    acc = tl.zeros((32, 32), tl.float32)
    for k in range(4):
        a = tl.load(a_ptr + i[:, None] * 128 + k * 32 + i[None, :])
        b = tl.load(b_ptr + (k * 32 + i)[:, None] * 32 + i[None, :])
        acc = tl.dot(a, b, acc, max_num_imprecise_acc=LIMIT)
    tl.store(c_ptr + i[:, None] * 32 + i[None, :], acc)


@pytest.mark.parametrize("limit", [None, 32])
def test_tensor_cores_keep_no_sum_that_is_to_be_precise(limit: int | None) -> None:
    text = typed(limited_kernel, f"*fp8e4nv, *fp8e4nv, *fp32, {limit}")
    assert ("= dot(a, b, acc" in text) == (limit is None) and ("acc: fp32[32, 32] = add(" in text) == (limit == 32)


def test_the_default_precision_is_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    text = typed(product_kernel, signature("fp32", "fp32", *[None] * 4), default_dot_input_precision="ieee")
    assert "input_precision='ieee'" in text
    monkeypatch.setenv("TRITON_F32_DEFAULT", "ieee")
    a = np.full((1, 1), 1 + 2.0**-23, np.float32)  # TF32 reads 1
    assert run_product(a, a) == np.float32(a * a)
    monkeypatch.delenv("TRITON_F32_DEFAULT")
    assert run_product(a, a) == 1


# ------------------------------------------------------------------------------------------------------ the meaning


def run_product(a: Any, b: Any, dtype: Any = np.float32, precision: Any = None, out: Any = None) -> Any:
    """`a @ b` in the interpreter."""
    (m, k), n = a.shape, b.shape[1]
    c = np.full((m, n), 77, dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILEWRIGHT_MODE", "interpret")
        product_kernel[(1,)](a, b, c, m, n, k, precision, None, None, out)
    return c


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (1, 64, 16), (2, 8, 32), (64, 32, 128)])
@pytest.mark.parametrize("name", ["fp8e4nv", "fp8e5", "bf16", "fp16"])
def test_narrow_floats_are_summed_in_float32(name: str, m: int, n: int, k: int) -> None:
    a, b = (RNG.standard_normal(shape).astype(TYPES[name]) for shape in ((m, k), (k, n)))
    expected = a.astype(np.float64) @ b.astype(np.float64)
    bound = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
    assert (np.abs(run_product(a, b) - expected) <= bound * k * 2.0**-24).all()


def test_fp16_results_are_rounded_once() -> None:
    a, b = RNG.standard_normal((16, 64)).astype(np.float16), RNG.standard_normal((64, 8)).astype(np.float16)
    expected = (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)
    np.testing.assert_array_equal(run_product(a, b, np.float16, out=tl.float16), expected)


def test_integers_are_exact() -> None:
    a, b = RNG.integers(-128, 128, (16, 512), dtype=np.int8), RNG.integers(-128, 128, (512, 8), dtype=np.int8)
    a[0], b[:, 0] = -128, -128
    np.testing.assert_array_equal(run_product(a, b, np.int32), a.astype(np.int64) @ b.astype(np.int64))


def test_doubles() -> None:
    a, b = RNG.standard_normal((8, 32)), RNG.standard_normal((32, 4))
    np.testing.assert_allclose(run_product(a, b, np.float64), a @ b, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize(
    ("precision", "relative"), [("tf32", 2.0**-9), ("tf32x3", 2.0**-18), ("bf16x6", 2.0**-18), ("ieee", 2.0**-18)]
)
def test_precisions_of_fp32(precision: str, relative: float) -> None:
    a, b = RNG.standard_normal((32, 64), dtype=np.float32), RNG.standard_normal((64, 32), dtype=np.float32)
    expected, bound = a.astype(np.float64) @ b.astype(np.float64), np.abs(a.astype(np.float64)) @ np.abs(b)
    error = np.max(np.abs(run_product(a, b, precision=precision) - expected) / bound)
    assert error < relative
    assert (error > 2.0**-16) == (precision == "tf32")


@triton.jit
def batch_kernel(a_ptr, b_ptr, c_ptr, B: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, B)[:, None, None] * (N * N) + tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    a, b = tl.load(a_ptr + i), tl.load(b_ptr + i)
    wide = tl.dot(a.reshape(1, B, N, N), b.reshape(1, B, N, N), input_precision="ieee")
    c = tl.dot(tl.permute(a, (0, 2, 1)), b, wide.reshape(B, N, N), input_precision="ieee")
    tl.store(c_ptr + i, c)


def test_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    text = typed(batch_kernel, "*fp32, *fp32, *fp32, 4, 16")
    assert "product: fp32[4, 16, 16] = dot(a, b, input_precision='ieee')" in text
    assert "dot(permute(a, order=(0, 2, 1)), b, reshape(wide), input_precision='ieee')" in text
    monkeypatch.setenv("TILEWRIGHT_MODE", "interpret")
    a, b = (RNG.standard_normal((4, 16, 16), dtype=np.float32) for _ in range(2))
    c = np.zeros_like(a)
    batch_kernel[(1,)](a, b, c, 4, 16)
    np.testing.assert_allclose(c, a @ b + a.transpose(0, 2, 1) @ b, rtol=1e-4, atol=1e-4)


# ---------------------------------------------------------------------------------------------------- accumulation


@triton.jit
def sums_kernel(a_ptr, c_ptr, steps, KIND: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.load(a_ptr + i)
    acc = tl.full((N, N), 0.5, tl.float32)
    for step in range(steps):
        if KIND == "augmented":
            acc += tl.dot(a, a.T)
        elif KIND == "explicit":
            acc = tl.dot(a, a.T, acc)
        elif KIND == "reversed":
            acc = tl.dot(a, a.T) + acc
        elif KIND == "scaled":
            acc = acc * 0.25 + tl.dot(a, a.T)
        elif KIND == "named":
            product = tl.dot(a, a.T)
            acc += product
        elif KIND == "row":
            acc += tl.dot(a, a.T) + tl.arange(0, N)[None, :].to(tl.float32)
        elif KIND == "difference":
            acc = acc - tl.dot(a, a.T)
        elif KIND == "twice":
            acc += tl.dot(a, a.T) + tl.dot(a, a.T)
    tl.store(c_ptr + i, acc)


A_T = "permute(a, order=(1, 0))"
SUMS = [
    ("augmented", f"acc: fp32[16, 16] = dot(a, {A_T}, acc, input_precision='ieee')", lambda c, p, r: c + p),
    ("explicit", f"acc: fp32[16, 16] = dot(a, {A_T}, acc, input_precision='ieee')", lambda c, p, r: c + p),
    ("reversed", f"acc: fp32[16, 16] = dot(a, {A_T}, acc, input_precision='ieee')", lambda c, p, r: c + p),
    ("scaled", f"acc: fp32[16, 16] = dot(a, {A_T}, mul(acc, 0.25:fp32[16, 16])", lambda c, p, r: c * 0.25 + p),
    ("named", f"product: fp32[16, 16] = dot(a, {A_T}, input_precision='ieee')", lambda c, p, r: c + p),
    ("row", f"product: fp32[16, 16] = dot(a, {A_T}, input_precision='ieee')", lambda c, p, r: c + p + r),
    ("difference", "acc: fp32[16, 16] = sub(acc, product)", lambda c, p, r: c - p),
    ("twice", f"product: fp32[16, 16] = dot(a, {A_T}, product, input_precision='ieee')", lambda c, p, r: c + 2 * p),
]


@pytest.mark.parametrize(("kind", "said", "step"), SUMS, ids=[case[0] for case in SUMS])
def test_sums_become_accumulation(kind: str, said: str, step: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert said in typed(sums_kernel, f"*fp16:16, *fp32:16, i32, {kind!r}, 16")
    monkeypatch.setenv("TILEWRIGHT_MODE", "interpret")
    a, c = RNG.standard_normal((16, 16)).astype(np.float16), np.zeros((16, 16), np.float32)
    sums_kernel[(1,)](a, c, 3, kind, 16)
    product, expected = a.astype(np.float64) @ a.T.astype(np.float64), np.full((16, 16), 0.5)
    for _ in range(3):
        expected = step(expected, product, np.arange(16)[None, :])
    np.testing.assert_allclose(c, expected, rtol=1e-5, atol=1e-4)


def test_sums_of_8_bit_floats_stay_outside() -> None:
    text = typed(sums_kernel, "*fp8e5:16, *fp32:16, i32, 'augmented', 16")
    assert "acc: fp32[16, 16] = add(acc, product)" in text
    assert "dot(a, permute(a, order=(1, 0)), acc" in typed(sums_kernel, "*fp8e5:16, *fp32:16, i32, 'explicit', 16")


# ---------------------------------------------------------------------------------------------------------- errors

WRONG = [
    (("fp16", "fp32", None, None, None, None), {}, errors.DTypeError, "Both operands must be same dtype. Got fp16 and fp32"),
    (("fp32", "i32", None, None, None, None), {}, errors.DTypeError, "Both operands must be same dtype. Got fp32 and i32"),
    (("u8", "u8", None, None, None, None), {}, errors.DTypeError, "only int8 supported!"),
    (("i32", "i32", None, None, None, None), {}, errors.DTypeError, "only int8 supported!"),
    (("bf16", "bf16", None, None, None, "bf16"), {}, errors.DTypeError, "out_dtype=bfloat16 is unsupported"),
    (("fp32", "fp32", "'tf32'", True, None, None), {}, errors.ArgumentError, "Only one of input_precision and allow_tf32"),
    (("fp32", "fp32", "'half'", None, None, None), {}, errors.ArgumentError, "input_precision must be one of"),
    (("fp8e5", "fp8e5", None, None, 64, None), {}, errors.ArgumentError, r"max_num_imprecise_acc (64) must be <= K (32)"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "options", "kind", "said"), WRONG)
def test_errors_of_types(given: Any, options: Any, kind: Any, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(kind, match=re.escape(said)) as caught:
        typed(product_kernel, signature(*given))
    line, carets = str(caught.value).splitlines()[1:3]
    assert line[carets.index("^") :].startswith("tl.dot(a, b, input_precision=PRECISION")
    numpy_types = TYPES | {"u8": np.uint8, "i32": np.int32}
    words = {None: None, "bf16": tl.bfloat16, "'tf32'": "tf32", "'half'": "half"}
    monkeypatch.setenv("TILEWRIGHT_MODE", "interpret")
    a, b, c = (np.zeros((32, 32), dtype) for dtype in (numpy_types[given[0]], numpy_types[given[1]], np.float32))
    with pytest.raises(kind, match=re.escape(said)):
        product_kernel[(1,)](a, b, c, 16, 16, 32, words[given[2]], given[3], given[4], words[given[5]])


@triton.jit
def shapes_kernel(x_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, D: tl.constexpr):
    a, b = tl.zeros(A, tl.float16), tl.zeros(B, tl.float16)
    c = tl.dot(a, b, None if C is None else tl.zeros(C, D))
    tl.store(x_ptr, tl.sum(c))


SHAPES = [
    ((16, 32), (16, 32), None, None, errors.ShapeError, "not compatible for matmul"),
    ((16, 32), (1, 32, 16), None, None, errors.ShapeError, "either 2D or 3D"),
    ((32,), (32,), None, None, errors.ShapeError, "either 2D or 3D"),
    ((2, 16, 32), (3, 32, 16), None, None, errors.ShapeError, "batch axes"),
    ((16, 32), (32, 16), (16, 32), tl.float32, errors.ShapeError, "the accumulator"),
    ((16, 32), (32, 16), (16, 16), tl.float64, errors.DTypeError, "expected an accumulator of type fp32, got fp64"),
    ((16, 32), (32, 16), (16, 16), tl.int32, errors.DTypeError, "expected an accumulator of type fp32, got i32"),
]


@pytest.mark.parametrize("mode", ["cpu", "interpret"])
@pytest.mark.parametrize(("a", "b", "c", "d", "kind", "said"), SHAPES)
def test_errors_of_shapes(a: Any, b: Any, c: Any, d: Any, kind: Any, said: str, mode: str, monkeypatch: Any) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    with pytest.raises(kind, match=said) as caught:
        shapes_kernel[(1,)](np.zeros(1, np.float32), a, b, c, d)
    assert "tl.dot(a, b, " in str(caught.value) and "^^^" in str(caught.value)


@triton.jit
def scalar_kernel(x_ptr, n):
    tl.store(x_ptr, tl.dot(n, tl.zeros((16, 16), tl.float16)))


@pytest.mark.parametrize("mode", ["cpu", "interpret"])
def test_scalars_are_no_operands(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    with pytest.raises(errors.DTypeError, match=r"input of tl\.dot must be a tile of numbers"):
        scalar_kernel[(1,)](np.zeros(1, np.float32), 7)


# --------------------------------------------------------------------------------------------------- scaled operands


@triton.jit
def scaled_kernel(
    a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
    A_FORMAT: tl.constexpr, B_FORMAT: tl.constexpr, A_PACK: tl.constexpr, B_PACK: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    a_rows: tl.constexpr = M // 2 if A_FORMAT == "e2m1" and not A_PACK else M
    a_columns: tl.constexpr = K // 2 if A_FORMAT == "e2m1" and A_PACK else K
    b_rows: tl.constexpr = K // 2 if B_FORMAT == "e2m1" and B_PACK else K
    b_columns: tl.constexpr = N // 2 if B_FORMAT == "e2m1" and not B_PACK else N
    a = tl.load(a_ptr + tl.arange(0, a_rows)[:, None] * a_columns + tl.arange(0, a_columns)[None, :])
    b = tl.load(b_ptr + tl.arange(0, b_rows)[:, None] * b_columns + tl.arange(0, b_columns)[None, :])
    groups: tl.constexpr = K // GROUP
    g = tl.arange(0, groups)[None, :]
    a_scale = tl.load(a_scale_ptr + tl.arange(0, M)[:, None] * groups + g)
    b_scale = None
    if b_scale_ptr is not None:
        b_scale = tl.load(b_scale_ptr + tl.arange(0, N)[:, None] * groups + g)
    c = tl.dot_scaled(a, a_scale, A_FORMAT, b, b_scale, B_FORMAT, lhs_k_pack=A_PACK, rhs_k_pack=B_PACK)
    tl.store(c_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], c)


FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])


def operand(format_: str, shape: tuple[int, int], packed_axis: int) -> tuple[Any, Any]:
    """Random elements of a format, and their values."""
    if format_ == "e2m1":
        nibbles = RNG.integers(0, 16, shape, dtype=np.uint8)
        low, high = (np.take(nibbles, range(first, shape[packed_axis], 2), packed_axis) for first in (0, 1))
        return low | high << 4, FP4[nibbles]
    kinds = {"e4m3": TYPES["fp8e4nv"], "e5m2": TYPES["fp8e5"], "bf16": TYPES["bf16"], "fp16": np.float16}
    values = RNG.standard_normal(shape).astype(kinds[format_])
    return values, values.astype(np.float64)


SCALED = [
    ("e4m3", "e5m2", True, True, 32),
    ("e2m1", "e2m1", True, True, 32),
    ("e2m1", "e4m3", False, True, 32),
    ("e4m3", "e2m1", True, False, 32),
    ("e2m1", "bf16", True, True, 32),
    ("e2m1", "fp16", True, True, 32),
    ("e2m1", "e2m1", True, True, 16),
]


@pytest.mark.parametrize(("a_format", "b_format", "a_pack", "b_pack", "group"), SCALED)
def test_scaled_products(
    a_format: str, b_format: str, a_pack: bool, b_pack: bool, group: int, monkeypatch: Any
) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "interpret")
    m, n, k = 16, 8, 64
    (a, a_values), (b, b_values) = operand(a_format, (m, k), int(a_pack)), operand(b_format, (k, n), int(not b_pack))
    if group == 32:
        a_scale, b_scale = (RNG.integers(120, 132, (rows, k // 32), dtype=np.uint8) for rows in (m, n))
        a_powers, b_powers = (np.exp2(scale.astype(np.float64) - 127) for scale in (a_scale, b_scale))
    else:
        a_scale, b_scale = (np.abs(RNG.standard_normal((rows, k // 16))).astype(TYPES["fp8e4nv"]) for rows in (m, n))
        a_powers, b_powers = a_scale.astype(np.float64), b_scale.astype(np.float64)
    if b_format in ("bf16", "fp16"):
        b_scale, b_powers = None, np.ones((n, k // group))
    wide_a = a_values * np.repeat(a_powers, group, axis=1)
    wide_b = b_values * np.repeat(b_powers, group, axis=1).T
    c = np.zeros((m, n), np.float32)
    scaled_kernel[(1,)](a, a_scale, b, b_scale, c, m, n, k, a_format, b_format, a_pack, b_pack, group)
    np.testing.assert_allclose(c, wide_a @ wide_b, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("kept_as", [np.uint8, np.int8])
def test_a_scale_of_255_is_nan(kept_as: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "interpret")
    (a, _), (b, _) = operand("e4m3", (16, 32), 1), operand("e4m3", (32, 8), 0)
    a_scale, b_scale = np.full((16, 1), 127, np.uint8), np.full((8, 1), 127, np.uint8)
    a_scale[3] = 255
    c = np.zeros((16, 8), np.float32)
    scaled_kernel[(1,)](a, a_scale.view(kept_as), b, b_scale, c, 16, 8, 32, "e4m3", "e4m3", True, True, 32)
    assert np.isnan(c[3]).all() and np.isfinite(np.delete(c, 3, axis=0)).all()


def test_scaled_products_are_dots_of_16_bit_floats() -> None:
    rest = "*u8, *u8, *u8, *fp32, 16, 8, 64"
    text = typed(scaled_kernel, f"*u8, {rest}, 'e2m1', 'e2m1', True, True, 32")
    assert "c: fp32[16, 8] = dot(a_scaled, b_scaled, input_precision='ieee')" in text
    signed = typed(scaled_kernel, "*u8, *i8, *u8, *i8, *fp32, 16, 8, 64, 'e4m3', 'e4m3', True, True, 32")
    assert "eq(cast(cast(b_scale, bitcast=True)), 255:i32[8, 2])" in signed  # of int8 the bits count
    assert "permute(reshape(broadcast(reshape(b_factor))), order=(1, 0))" in signed  # NaN or a power, once for a group
    assert "a_unpacked: u8[16, 64]" in text and "a_bits: u16[16, 64]" in text
    assert "a_scaled: bf16[16, 64]" in text and "b_scaled: bf16[64, 8]" in text
    halves = typed(scaled_kernel, "*u8, *u8, *fp16, None, *fp32, 16, 8, 64, 'e2m1', 'fp16', True, True, 32")
    assert "dot(a_scaled, b, input_precision='ieee')" in halves and "a_scaled: fp16[16, 64]" in halves


@pytest.mark.parametrize(
    ("change", "kind", "said"),
    [
        ({"A_FORMAT": "e3m2"}, errors.ArgumentError, "lhs_format must be one of"),
        ({"A_FORMAT": "bf16"}, errors.DTypeError, "lhs of format bf16 must be of type bf16"),
        ({"GROUP": 8}, errors.ShapeError, "lhs_scale has the shape [16, 8]"),
    ],
)
@pytest.mark.parametrize("mode", ["cpu", "interpret"])
def test_errors_of_scaled_products(
    change: Any, kind: Any, said: str, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    x = np.zeros(4096, np.uint8)
    options = {
        "M": 16,
        "N": 8,
        "K": 64,
        "A_FORMAT": "e4m3",
        "B_FORMAT": "e4m3",
        "A_PACK": True,
        "B_PACK": True,
        "GROUP": 32,
    }
    with pytest.raises(kind, match=re.escape(said)) as caught:
        scaled_kernel[(1,)](x, x, x, x, np.zeros((16, 8), np.float32), **(options | change))
    assert "tl.dot_scaled(a, a_scale, A_FORMAT" in str(caught.value)


@triton.jit
def scaled_by_pointers(x_ptr, FORMAT: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, 32)[:, None] * 32 + tl.arange(0, 32)[None, :]).to(tl.float8e5)
    scales = x_ptr + tl.arange(0, 32)[:, None]  # forgot tl.load
    tl.store(x_ptr, tl.sum(tl.sum(tl.dot_scaled(x, scales, FORMAT, x, None, FORMAT), 1), 0))


@pytest.mark.parametrize(
    ("given", "said"), [("e5m2", "lhs_scale must be uint8 (e8m0)"), (object(), "not an object of type object")]
)
@pytest.mark.parametrize("mode", ["cpu", "interpret"])
def test_scales_that_are_pointers(given: Any, said: str, mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    with pytest.raises(errors.CompilationError, match=re.escape(said)):
        scaled_by_pointers[(1,)](np.zeros(1024, np.float32), given)
