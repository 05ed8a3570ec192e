"""What all of a thread's elements have in common is computed once; indices are divided, and offsets added up, in 32 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


def body_of(kernel: Any, signature: str) -> str:
    text = kernel.translate(signature).source
    return " ".join(text[text.index('extern "C"') :].split())


@triton.jit
def doubled_image(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = i // 64 % 64
    column = i & 63
    image = i >> 12
    scale = tl.sqrt(row.to(tl.float32) + 1.0)
    x = tl.load(x_ptr + image * 1024 + row // 2 * 32 + column // 2)
    tl.store(out_ptr + i, x * scale)


def test_what_is_equal_for_a_thread_is_a_scalar() -> None:
    body = body_of(doubled_image, "*fp16:16, *fp16:16, 1024")
    assert "const int i = program_x * BLOCK + tid * VEC;" in body
    assert "const int row = i / 64 % 64; // equal for all of a thread's elements" in body
    assert "column[e] = (i & 63) + e;" in body
    assert "const int image = i >> 12;" in body
    assert "const float scale = square_root(static_cast<float>(row) + 1.0f);" in body
    assert "__builtin_assume(program_x >= 0);" in body
    assert "x_ptr[image * 1024 + row / 2 * 32 + column[v] / 2]" in body  # 32 bits: it cannot overflow


def test_elements_of_several_vectors_stay_arrays() -> None:
    body = body_of(doubled_image, "*fp16:16, *fp16:16, 4096")
    assert "float scale[ELEMS];" in body and "row[e] = i[e / VEC * VEC] / 64 % 64;" in body


@pytest.mark.parametrize("mode", ["cpu", "interpret"])
@pytest.mark.parametrize("block", [256, 1024, 4096])
def test_images(mode: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    x = np.random.default_rng(3).standard_normal((4, 32, 32)).astype(np.float16)
    out = np.full((4, 64, 64), np.nan, np.float16)
    doubled_image[(out.size // block,)](x, out, BLOCK=block)
    scale = np.sqrt(np.arange(64, dtype=np.float32) + 1)[:, None]
    np.testing.assert_allclose(out, x.repeat(2, 1).repeat(2, 2) * scale, rtol=2e-3)


@triton.jit
def gathered(x_ptr, at_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = tl.load(at_ptr + i)
    tl.store(out_ptr + i, tl.load(x_ptr + at * 8 + i % 100 * 3) + tl.load(x_ptr + i % 100 * 3))


def test_offsets_that_might_overflow_are_added_up_in_64_bits() -> None:
    body = body_of(gathered, "*fp16:16, *i32:16, *fp32:16, i32, 1024")
    assert "x_ptr[static_cast<long long>(at[e]) * 8 + (i[e / VEC] % 100 + e % VEC) * 3]" in body
    assert "x_ptr[(i[e / VEC] % 100 + e % VEC) * 3]" in body


@triton.jit
def divided(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    y = tl.load(y_ptr + i)
    floor = tl.where((x < 0) != (y < 0), tl.where(x % y != 0, x // y - 1, x // y), x // y)
    tl.store(out_ptr + i, floor + tl.where(x > y, x // 4, x))


def test_quotients_are_computed_on_both_ways_of_a_choice() -> None:
    body = body_of(divided, "*i16:16, *i16:16, *i16:16, 1024")
    assert body.count("choose<short>(") == 2
    assert "x[e] > y[e] ?" in body  # a shift is not worth it


@pytest.mark.parametrize("mode", ["cpu", "interpret"])
@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64])
def test_floors(mode: str, dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    rng = np.random.default_rng(4)
    x, y = rng.integers(-999, 999, 1024).astype(dtype), rng.integers(1, 99, 1024).astype(dtype)
    y[::2] *= -1
    out = np.zeros(1024, dtype)
    divided[(1,)](x, y, out, BLOCK=1024)
    towards_zero = np.trunc(x / 4).astype(dtype)
    np.testing.assert_array_equal(out, x // y + np.where(x > y, towards_zero, x))


@triton.jit
def turned(x_ptr, out_ptr, n, SIDE: tl.constexpr):
    i = tl.arange(0, SIDE)
    places = i[:, None] * SIDE + i[None, :]
    few = (i[:, None] // 8 < n) & (i[None, :] >= 0)
    x = tl.load(x_ptr + places)
    tl.store(out_ptr + places, tl.where(tl.trans(few), x, 0.0))


@pytest.mark.parametrize("mode", ["cpu", "interpret"])
def test_a_transposed_mask(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    x, out = (
        np.random.default_rng(5).standard_normal((32, 32)).astype(np.float32),
        np.full((32, 32), np.nan, np.float32),
    )
    turned[(1,)](x, out, 2, SIDE=32)
    np.testing.assert_array_equal(out, np.where(np.arange(32)[None, :] < 16, x, 0))


@triton.jit
def pooled(x_ptr, out_ptr, n, SIDE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row, column = i // SIDE, i % SIDE
    half = SIDE // 2
    inside = i < n
    x = tl.load(
        x_ptr
        + (
            half * ((row // 2) * (row // 2 < half) + (half - 1) * (row // 2 >= half))
            + ((column // 2) * (column // 2 < half) + (half - 1) * (column // 2 >= half))
        ),
        mask=inside,
        other=0.0,
    )
    tl.store(out_ptr + i, x, mask=i < n)


def test_long_offsets_of_masked_elements_are_found_first() -> None:
    body = body_of(pooled, "*fp16:16, *fp16:16, i32, 30, 1024")
    assert "int x_at[ELEMS];" in body and "i[e] < n ? x_ptr[x_at[e]] : __float2half(0.0f)" in body


@pytest.mark.parametrize("mode", ["cpu", "check", "interpret"])
def test_pools(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    x, out = (
        np.random.default_rng(6).standard_normal((15, 15)).astype(np.float16),
        np.full((30, 30), np.nan, np.float16),
    )
    pooled[(4,)](x, out, 900, SIDE=30, BLOCK=256)
    np.testing.assert_array_equal(out, x.repeat(2, 0).repeat(2, 1))


@triton.jit
def turned_pairs(x_ptr, cos_ptr, sin_ptr, out_ptr, PAIRS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    pair, second = i // 2, i % 2 == 1
    cos, sin = tl.load(cos_ptr + pair % PAIRS), tl.load(sin_ptr + pair % PAIRS)
    first_x, second_x = tl.load(x_ptr + 2 * pair), tl.load(x_ptr + 2 * pair + 1)
    tl.store(out_ptr + i, tl.where(second, first_x * sin + second_x * cos, first_x * cos - second_x * sin))


def test_parts_of_a_vector_divide_once() -> None:
    body = body_of(turned_pairs, "*fp32:16, *fp32:16, *fp32:16, *fp32:16, 32, 512")
    assert "pair[e] = i[e / 2 * 2] / 2;" in body
    wide = body_of(turned_pairs, "*fp32:16, *fp32:16, *fp32:16, *fp32:16, 32, 2048")
    assert "pair[e] = i[e / 2 * 2] / 2;" in wide


@pytest.mark.parametrize("mode", ["cpu", "interpret"])
@pytest.mark.parametrize("block", [512, 2048])
def test_pairs(mode: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    rng = np.random.default_rng(7)
    x, angle = rng.standard_normal((64, 32, 2), dtype=np.float32), rng.standard_normal(32, dtype=np.float32)
    cos, sin, out = np.cos(angle), np.sin(angle), np.full_like(x, np.nan)
    turned_pairs[(x.size // block,)](x, cos, sin, out, PAIRS=32, BLOCK=block)
    expected = np.stack((x[..., 0] * cos - x[..., 1] * sin, x[..., 0] * sin + x[..., 1] * cos), -1)
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


@triton.jit
def turned_blocks(out_ptr, n, N: tl.constexpr):
    """Numbers that are equal within a vector, and that a loop changes in place."""
    i = tl.arange(0, N)
    block, turned = i // 8, i * 0
    for _ in range(n):
        turned = turned // 2 * 4 + (block & 3) + (turned & 1)
        block = block // 2 + (block & 4) * n + block % 8
    tl.store(out_ptr + i, turned)
    tl.store(out_ptr + N + i, block)


@pytest.mark.parametrize("warps", (1, 2))
def test_equal_elements_change_one_by_one(run_everywhere: Any, warps: int) -> None:
    found = run_everywhere(turned_blocks, (1,), np.zeros((2, 64), np.int32), 3, N=64, num_warps=warps)[0]
    i = np.arange(64, dtype=np.int32)
    block, turned = i // 8, i * 0
    for _ in range(3):
        turned = turned // 2 * 4 + (block & 3) + (turned & 1)
        block = block // 2 + (block & 4) * 3 + block % 8
    np.testing.assert_array_equal(found, np.stack([turned, block]))


@triton.jit
def bits_counted(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    x = x - ((x >> 1) & 0x55555555)
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F
    tl.store(out_ptr + i, (x * 0x01010101) >> 24)


@triton.jit
def turned_in_place(x_ptr, out_ptr, N: tl.constexpr):
    i, j = tl.arange(0, N), tl.arange(0, N)
    at = i[:, None] * N + j[None, :]
    x = tl.load(x_ptr + at)
    x = x + tl.trans(x)
    x = x - (x >> 1)
    tl.store(out_ptr + at, x)


def test_integers_that_are_computed_from_their_own_elements_stay_one_array(run_everywhere: Any) -> None:
    x = np.random.default_rng(4).integers(0, 1 << 30, 256).astype(np.int32)
    _, out = run_everywhere(bits_counted, (1,), x, np.zeros(256, np.int32), N=256, num_warps=1)
    np.testing.assert_array_equal(out, [int(one).bit_count() for one in x])
    assert "x_second" not in body_of(bits_counted, "*i32:16, *i32:16, 256")
    square = x.reshape(16, 16) >> 4
    _, out = run_everywhere(turned_in_place, (1,), square, np.zeros_like(square), N=16, num_warps=1)
    total = square + square.T
    np.testing.assert_array_equal(out, total - (total >> 1))
