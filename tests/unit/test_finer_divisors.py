"""Integers that are multiples of less than 16: which texts would gain by it, and which launches take these."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl

SIZES = (33, 72, 40), (33, 72, 41), (35, 74, 44), (33, 75, 41), (40, 40, 104), (33, 72, 40), (64, 48, 32), (9, 76, 42)


@triton.jit
def scaled_rows(x_ptr, y_ptr, row_stride, cols, by, unused, BLOCK: tl.constexpr):
    row, col = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * row_stride + col, mask=col < cols, other=0.0)
    tl.store(y_ptr + row * row_stride + col, x * by, mask=col < cols)


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_bk, stride_cm, SIDE: tl.constexpr):
    """As everybody writes it: places along M and N wrap around, pointers move along K."""
    rows, cols = tl.program_id(0) * SIDE + tl.arange(0, SIDE), tl.program_id(1) * SIDE + tl.arange(0, SIDE)
    inner = tl.arange(0, SIDE)
    a_ptrs = a_ptr + (rows % M)[:, None] * stride_am + inner[None, :]
    b_ptrs = b_ptr + inner[:, None] * stride_bk + (cols % N)[None, :]
    acc = tl.zeros((SIDE, SIDE), tl.float32)
    for k in range(0, tl.cdiv(K, SIDE)):
        a = tl.load(a_ptrs, mask=inner[None, :] < K - k * SIDE, other=0.0)
        b = tl.load(b_ptrs, mask=inner[:, None] < K - k * SIDE, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += SIDE
        b_ptrs += SIDE * stride_bk
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(c_ptr + rows[:, None] * stride_cm + cols[None, :], acc.to(tl.float16), mask=mask)


@triton.jit
def added(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n) + 1.0, mask=at < n)


@triton.jit
def by_halves(x_ptr, y_ptr, sizes, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    rows, cols = sizes
    first = tl.load(x_ptr + row * cols + at, mask=at < cols // 2, other=0.0)
    tl.store(y_ptr + row * cols + at, first, mask=(at < cols // 2) & (row < rows))


def finer(kernel: Any, signature: str) -> dict[str, tuple[int, ...]]:
    return {p.name: p.finer for p in kernel.translate(signature).parameters if p.finer}


def divisors(compiled: Any, *names: str) -> list[int]:
    found = {argument.name: argument for argument in compiled.specialisation.arguments}
    return [found[name].divisor for name in names]


@pytest.mark.parametrize(
    ("dtype", "wanted"), [("i8", 8), ("fp8e5", 8), ("fp16", 8), ("bf16", 8), ("fp32", 4), ("fp64", 2)]
)
def test_rows_are_to_be_multiples_of_what_an_access_has(dtype: str, wanted: int) -> None:
    signature = f"*{dtype}:16, *{dtype}:16, {{0}}, {{0}}, fp32, i32, 1024"
    for known in ("i32", "i64", "i32:2", "i32:4", "i32:8", "i32:16"):
        further = tuple(d for d in (8, 4, 2) if int(known[4:] or 1) < d <= wanted)
        assert finer(scaled_rows, signature.format(known)) == dict.fromkeys(
            ("row_stride", "cols") if further else (), further
        )
    assert not finer(scaled_rows, f"*{dtype}, *{dtype}, i32, i32, fp32, i32, 1024")  # nothing helps pointers like these


def test_only_what_decides_about_accesses_is_asked_for() -> None:
    pointers = "*fp16:16, *fp16:16, *fp16:16"
    assert not finer(added, "*fp32:16, *fp32:16, i32, 1024")
    every = dict.fromkeys(("N", "K", "stride_am", "stride_bk", "stride_cm"), (8, 4, 2))
    assert finer(product, f"{pointers}, i32, i32, i32, i32, i32, i32, 64") == every
    assert finer(product, f"{pointers}, i32, i32:2, i32, i32:16, i32:4, i32:8, 64") == {"N": (8, 4), "stride_bk": (8,)}
    assert finer(product, f"{pointers}, i32, i32:8, i32, i32:8, i32:8, i32:8, 64") == {}
    # What an access has to count inside of a bound matters where it may be wider, and not where it is as wide in any case.
    assert finer(scaled_rows, "*fp32:16, *fp32:16, i32:2, i32, fp32, i32, 1024") == {"row_stride": (4,), "cols": (4, 2)}
    assert finer(scaled_rows, "*fp32:16, *fp32:16, i32:16, i32, fp32, i32, 1024") == {}


def test_a_product_of_aligned_rows_has_tensor_copies() -> None:
    signature = "*fp16:16, *fp16:16, *fp16:16, i32, {0}, i32, {0}, {0}, {0}, 64"
    usual, eights, fours = (product.translate(signature.format(word)) for word in ("i32", "i32:8", "i32:4"))
    assert [one.name for one in eights.tensor_maps] == ["a_map", "b_map", "c_map"]
    assert not usual.tensor_maps and not fours.tensor_maps
    assert "multiples of 8" in eights.source and "multiples of 4" in fours.source
    assert "stride_am % 8 != 0" in product.translate(signature.format("i32:8"), host=True).source


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_launches_take_the_text_for_their_multiples(monkeypatch: pytest.MonkeyPatch, arch: str) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    monkeypatch.setenv("TILEWRIGHT_ARCH", arch)
    rng = np.random.default_rng(0)
    seen = []
    for m, n, k in SIZES:
        a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n)))
        c = np.full((m, n), np.nan, np.float16)
        compiled = product[(triton.cdiv(m, 32), triton.cdiv(n, 32))](a, b, c, m, n, k, k, n, n, 32)
        np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=2e-3, atol=2e-2)
        shared = [math.gcd(size, 16) for size in (n, k, n)]
        assert divisors(compiled, "N", "stride_am", "stride_bk") == shared
        assert divisors(compiled, "M") == [16 if m == 64 else 1]  # rows that are tested by themselves
        seen.append(compiled)
    assert seen[0] is seen[5] is seen[4] and len(set(seen)) == 6


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, ml_dtypes.bfloat16])
def test_rows_of_all_sizes(monkeypatch: pytest.MonkeyPatch, dtype: Any) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    most = min(16 // np.dtype(dtype).itemsize, 8)
    for cols in (100, 102, 103, 104, 112):
        x = np.random.default_rng(cols).integers(-9, 9, (3, cols)).astype(dtype)
        y = np.full_like(x, 99)
        compiled = scaled_rows[(3,)](x, y, cols, cols, 2, cols, 128)
        assert (y == x + x).all() and divisors(compiled, "unused") == [16 if cols == 112 else 1]
        assert divisors(compiled, "row_stride", "cols") == [16 if cols == 112 else math.gcd(cols, most)] * 2


def test_what_is_not_specialised_has_no_multiples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    x, names = np.ones((3, 24), np.float16), ["row_stride", "cols", "unused"]
    for options in ({"do_not_specialize": names}, {"do_not_specialize_on_alignment": names}):
        kernel = triton.JITFunction(scaled_rows.fn, **options)
        compiled = [kernel[(3,)](x, np.empty_like(x), n, n, 2, n, 32) for n in (24, 23)]
        assert compiled[0] is compiled[1] and divisors(compiled[0], "row_stride") == [1]


def test_items_of_tuples_are_multiples_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    for cols, known in ((40, 8), (41, 1), (48, 16), (24, 8)):
        x, y = np.ones((3, cols), np.float16), np.full((3, cols), 7, np.float16)
        compiled = by_halves[(3,)](x, y, (3, cols), 64)
        assert (y[:, : cols // 2] == 1).all() and (y[:, cols // 2 :] == 7).all()
        assert [item.divisor for item in compiled.specialisation.arguments[2].items] == [1, known]


def test_data_for_other_processes_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    x = np.ones((3, 24), np.float16)
    compiled = scaled_rows[(3,)](x, np.empty_like(x), 24, 24, 2, 24, 32)
    data = compiled.specialisation.data()
    assert '"divisor": 8' in data and scaled_rows.preload(data) is compiled
