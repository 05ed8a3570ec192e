"""What a text need not say: casts that C makes by itself, parentheses, and second names for one place of a thread."""

from __future__ import annotations

from typing import Any

import numpy as np
import tilewright as triton
import tilewright.language as tl

RANDOM = np.random.default_rng(0)


@triton.jit
def labels(x_ptr, label_ptr, out_ptr, H, W, N: tl.constexpr):
    i = tl.arange(0, N)
    label = tl.load(label_ptr)
    shifted = tl.load(x_ptr + H * W + i - H * W) - 1.0
    chosen = tl.sum(tl.where(i == label, shifted, 0.0), axis=0)
    tl.store(out_ptr + i, shifted + chosen + (i + label).to(tl.float32))


def test_wide_integers_on_the_right(run_everywhere: Any) -> None:
    """C widens the left operand as it does the right one; a product that is taken away needs no parentheses."""
    x = RANDOM.random(64, np.float32)
    found = run_everywhere(labels, (1,), x, np.array([7]), np.zeros_like(x), 3, 5, N=64)[2]
    np.testing.assert_allclose(found, x - 1 + x[7] - 1 + np.arange(64) + 7, rtol=1e-6)
    text = labels.translate("*fp32:16, *i64:16, *fp32:16, i32, i32, 64").source
    assert "i == label_or_none ?" in text and "i + label)" in text
    assert " - H * W" in text and "(H * W)" not in text
    assert "float shifted" in text and "shifted_float" not in text, "no helper has the name"


@triton.jit
def of_pairs(x_ptr, low_ptr, high_ptr, ROWS: tl.constexpr, PAIRS: tl.constexpr):
    row, at = tl.arange(0, ROWS), tl.arange(0, PAIRS)
    place = x_ptr + row[:, None] * (2 * PAIRS) + 2 * at[None, :]
    even, odd = tl.load(place), tl.load(place + 1)
    tl.store(low_ptr + row, tl.minimum(tl.min(even, axis=1), tl.min(odd, axis=1)))
    tl.store(high_ptr + row, tl.maximum(tl.max(even, axis=1), tl.max(odd, axis=1)))


def test_tiles_that_are_shared_out_among_the_same_threads(run_everywhere: Any) -> None:
    """A thread's place among them has one name, however many elements of a tile it holds; so have minima with maxima."""
    x = RANDOM.random((4, 128), np.float32)
    _, low, high = run_everywhere(of_pairs, (1,), x, *np.zeros((2, 4), np.float32), ROWS=4, PAIRS=64)
    np.testing.assert_array_equal(low, x.min(1))
    np.testing.assert_array_equal(high, x.max(1))
    text = of_pairs.translate("*fp32:16, *fp32:16, *fp32:16, 4, 64").source
    assert text.count("_THREADS = 32;") == 1 and "even_col" not in text
    assert "struct Extrema" in text and "= Extrema::combine(extrema, " in text


@triton.jit
def until_done(flag_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    done = tl.load(flag_ptr + i, mask=i < n, other=0).to(tl.int1)
    tl.store(out_ptr + i, 1, mask=(i < n) & ~done)
    steps, found = 0, False
    while steps < n and not found:
        found = tl.load(flag_ptr + steps) != 0
        steps += 1
    tl.store(out_ptr + n, steps)


def test_what_is_negated_binds_tightest_and_a_remark_names_the_limit_alone(run_everywhere: Any) -> None:
    flags = (np.arange(64) % 7 == 3).astype(np.int32)
    found = run_everywhere(until_done, (1,), flags, np.zeros(65, np.int32), 64, BLOCK=64)[1]
    np.testing.assert_array_equal(found, [*(1 - flags), 4])
    text = until_done.translate("*i32:16, *i32:16, i32:16, 1024").source
    assert "while (steps < n && !found) {" in text and " && !done" in text and "(!" not in text
    assert "elements: n and the index of the first" in text


@triton.jit
def at_level(x_ptr, out_ptr, bits, N: tl.constexpr):
    level = tl.program_id(0).to(tl.int64)
    tl.store(out_ptr + level * N + tl.arange(0, N), tl.load(x_ptr + (level << bits) + tl.arange(0, N)))


def test_wide_numbers_are_shifted_by_an_int(run_everywhere: Any) -> None:
    x = np.arange(256, dtype=np.float32)
    found = run_everywhere(at_level, (3,), x, np.zeros((3, 32), np.float32), 6, N=32)[1]
    np.testing.assert_array_equal(found, x[np.arange(3)[:, None] * 64 + np.arange(32)])
    text = at_level.translate("*fp32:16, *fp32:16, i32, 32").source
    assert "level << bits" in text and "static_cast<long long>(bits)" not in text
