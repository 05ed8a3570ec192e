"""What pieces of a statement are called: what is loaded only to be converted, and sums and extrema of expressions."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import tilewright as triton
import tilewright.language as tl
from tilewright.lower.text.local_names import with_plain_names
from tilewright.lower.text.unit import Line, Loop, const

PAIR = "*fp16:16, *fp32:16, i32:16, 256"


@triton.jit
def halves_of_rows(x_ptr, out_ptr, n, N: tl.constexpr):
    start = x_ptr + tl.program_id(0) * n * 2
    cols = tl.arange(0, N)
    left = tl.load(start + cols, mask=cols < n, other=0.0).to(tl.float32)
    right = tl.load(start + n + cols, mask=cols < n, other=0.0).to(tl.float32)
    scale = tl.load(start).to(tl.float32)
    tl.store(out_ptr + tl.program_id(0) * n + cols, left * right + scale, mask=cols < n)


def test_what_is_loaded_to_be_converted_is_called_after_what_it_becomes(run_everywhere: Any) -> None:
    """They were start_value, right_start_value and scale_start_value."""
    text = halves_of_rows.translate(PAIR).source
    assert set(re.findall(r"\bhalf (\w+)(?:\[ELEMS\];| = )", text)) == {"left_loaded", "right_loaded"}
    x = np.random.default_rng(1).standard_normal((2, 512)).astype(np.float16)
    _, out = run_everywhere(halves_of_rows, (2,), x, np.zeros((2, 256), np.float32), 256, N=256)
    wide = x.astype(np.float32)
    assert np.allclose(out, wide[:, :256] * wide[:, 256:] + wide[:, :1], rtol=1e-6)


@triton.jit
def with_that_name(x_ptr, out_ptr, n, N: tl.constexpr):
    cols = tl.arange(0, N)
    x_loaded = 2.0 * n
    x = tl.load(x_ptr + cols).to(tl.float32)
    tl.store(out_ptr + cols, x + x_loaded)


def test_a_name_of_the_users_is_theirs() -> None:
    text = with_that_name.translate(PAIR).source
    assert "const float x_loaded = 2.0f * static_cast<float>(n);" in text and "half x_loaded" not in text


@triton.jit
def of_expressions(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    x, y = tl.load(x_ptr + tl.arange(0, N)), tl.load(y_ptr + tl.arange(0, N))
    tl.store(out_ptr, tl.max(tl.abs(x), 0))
    tl.store(out_ptr + 1, tl.sum(tl.exp(x - y), 0))
    tl.store(out_ptr + 2, tl.sum(tl.where(x < y, x, 0.0), 0))
    tl.store(out_ptr + 3, tl.sum(x * y, 0))
    tl.store(out_ptr + 4, tl.sum(x * x, 0))
    tl.store(out_ptr + 5, tl.max(x - y, 0))
    tl.store(out_ptr + 6, tl.sum(-x, 0))


@triton.jit
def with_largest(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    x, y = tl.load(x_ptr + tl.arange(0, N)), tl.load(y_ptr + tl.arange(0, N))
    largest = tl.maximum(tl.max(x - y, 0), 0.0)
    tl.store(out_ptr, largest)


def test_sums_and_extrema_are_called_after_what_they_are_of() -> None:
    """They were max_float, sum, sum_second and so on; of CUDA's functions no variable has the name."""
    text = of_expressions.translate("*fp32:16, *fp32:16, *fp32:16, 1024", num_warps=1).source
    found = re.findall(r"^    float (\w+) = [^;]*(?:\[0\]|0\.0f)", text, re.MULTILINE)
    assert found == ["abs_max", "exp_sum", "x_sum", "x_y_sum", "x_squared_sum", "largest", "sum"]
    text = with_largest.translate("*fp32:16, *fp32:16, *fp32:16, 1024", num_warps=1).source
    assert "const float largest = fmaxf(max_float, 0.0f);" in text  # the word is the user's


@triton.jit
def both_of_rows(x_ptr, y_ptr, mean_ptr, out_ptr, ROWS: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr):
    rows, cols = tl.arange(0, ROWS), tl.arange(0, BLOCK)
    all_x, all_xy = tl.zeros((ROWS, BLOCK), tl.float32), tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, N, BLOCK):
        x = tl.load(x_ptr + rows[:, None] * N + start + cols[None, :])
        y = tl.load(y_ptr + rows[:, None] * N + start + cols[None, :])
        all_x += x
        all_xy += x * y
    tl.store(mean_ptr + rows, tl.sum(all_x, 1))
    tl.store(out_ptr + rows, tl.sum(all_xy, 1) / N)


def test_what_was_reduced_together_is_read_where_it_lies(run_everywhere: Any) -> None:
    """An array was a copy of each field; of a tile that is stored as it is there still is one, for the vectors."""
    text = both_of_rows.translate("*fp32:16, *fp32:16, *fp32:16, *fp32:16, 4, 1024, 512").source
    assert "divide(sums[r].all_xy_sum, N)" in text and "float all_xy_sum[" not in text
    assert "all_x_sum[r] = sums[r].all_x_sum;" in text and "store_vec<ROW_VEC>(mean_ptr, all_x_sum);" in text
    rng = np.random.default_rng(2)
    x, y = (rng.standard_normal((4, 512)).astype(np.float32) for _ in range(2))
    found, sides = (np.zeros(4, np.float32), np.zeros(4, np.float32)), {"ROWS": 4, "N": 512, "BLOCK": 128}
    *_, mean, out = run_everywhere(both_of_rows, (1,), x, y, *found, **sides, tolerance=1e-4)
    assert np.allclose(mean, x.sum(1), atol=1e-3) and np.allclose(out, (x * y).sum(1) / 512, atol=1e-4)


@triton.jit
def row_beside_rows(x_ptr, w_ptr, out_ptr, ROWS: tl.constexpr, N: tl.constexpr):
    rows, cols = tl.arange(0, ROWS), tl.arange(0, N)
    w = tl.load(w_ptr + cols)[None, :]
    x = tl.load(x_ptr + rows[:, None] * N + cols[None, :])
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], x * w)


def test_a_row_is_loaded_into_the_array_that_it_is_as_a_tile(run_everywhere: Any) -> None:
    """A loop copied `w_loaded` to `w`, and the header named both."""
    text = row_beside_rows.translate("*fp32:16, *fp32:16, *fp32:16, 16, 128").source
    assert "w_loaded" not in text and text.count("float w[COLS];") == 1
    assert len(re.findall(r"^//.*\bw \[", text, re.MULTILINE)) == 1
    x = np.random.default_rng(3).standard_normal((16, 128)).astype(np.float32)
    w = np.arange(128, dtype=np.float32)
    *_, out = run_everywhere(row_beside_rows, (1,), x, w, np.zeros_like(x), ROWS=16, N=128)
    assert np.array_equal(out, x * w)


@triton.jit
def sums_down(x_ptr, out_ptr, part, ROWS: tl.constexpr, COLS: tl.constexpr):
    cols = tl.arange(0, COLS)
    x = tl.load(x_ptr + tl.arange(0, ROWS)[:, None] * COLS + cols[None, :])
    tl.store(out_ptr + cols, tl.sum(x, 0) + tl.max(x * x, 0) + part)


def test_where_partial_results_lie_has_a_name(run_everywhere: Any) -> None:
    """`x_sum_partial[tid / 16 % 2 * 2 + 1]` left the reader to find out whose part that is."""
    text = sums_down.translate("*fp32:16, *fp32:16, fp32, 64, 64").source
    assert re.search(r"const int first_part = tid / \d+ % 2 \* 2;", text)
    assert "_partial[first_part]" in text and "_partial[first_part + 1]" in text
    x = np.random.default_rng(4).standard_normal((64, 64)).astype(np.float32)
    _, out = run_everywhere(sums_down, (1,), x, np.zeros(64, np.float32), 0.5, ROWS=64, COLS=64, tolerance=1e-4)
    assert np.allclose(out, x.sum(0) + (x * x).max(0) + 0.5, atol=1e-4)


@triton.jit
def added_up(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    even = tl.load(x_ptr + 2 * i).to(tl.float32) * 2
    odd = even + 1
    even += tl.sum(tl.load(x_ptr + i + 1), 0) * odd
    odd += tl.sum(tl.load(x_ptr + i + 3), 0) * even
    tl.store(out_ptr + i, even * odd)


def test_pieces_of_what_is_added_are_called_after_what_they_are_added_to() -> None:
    text = added_up.translate("*fp32:16, *fp32:16, 128").source
    assert "odd_x_sum" in text and "even_x_sum" in text and "second" not in text


@triton.jit
def in_two_loops(x_ptr, out_ptr, n, N: tl.constexpr):
    cols = tl.arange(0, N)
    total, largest = 0.0, 0.0
    for row in range(0, n):
        x = tl.load(x_ptr + row * N + cols)
        total += tl.sum(x, 0) * 2.0
    for row in range(0, n):
        x = tl.load(x_ptr + row * N + cols) - total
        largest += tl.sum(x, 0) * 3.0
    tl.store(out_ptr, total)
    tl.store(out_ptr + 1, largest)


def test_pieces_in_blocks_beside_each_other_have_the_same_names(run_everywhere: Any) -> None:
    x = np.arange(2 * 128, dtype=np.float32) % 7
    _, out = run_everywhere(in_two_loops, (1,), x, np.zeros(2, np.float32), 2, 128)
    total = 2 * x.sum()
    np.testing.assert_allclose(out, [total, 3 * (x - total).sum()], rtol=1e-6)
    text = in_two_loops.translate("*fp32:16, *fp32:16, i32, 128").source
    assert text.count("x_sum = block_reduce<Sum>(x_sum, ") == 2 and "total_x_sum" not in text


@triton.jit
def of_one_shape(x_ptr, out_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, x * 2)
    tl.store(out_ptr + N + i, x + 1)
    if n > 0:
        tl.store(out_ptr + 2 * N + i, x + 3)
    tl.store(out_ptr + 3 * N + i, (x > 2.0).to(tl.float32))


def test_stores_of_one_shape_share_an_array(run_everywhere: Any) -> None:
    x = np.arange(512, dtype=np.float32)
    _, out = run_everywhere(of_one_shape, (1,), x, np.zeros(2048, np.float32), 1, 512)
    np.testing.assert_array_equal(out, np.concatenate((x * 2, x + 1, x + 3, x > 2)))
    text = of_one_shape.translate("*fp32:16, *fp32:16, i32, 512").source
    assert text.count("float stored[ELEMS];") == 1 and "_stored" not in text


def test_plain_names_where_no_line_sees_another_thing_of_that_name() -> None:
    def trip(name: str, then: str = "") -> Loop:
        return Loop("while (true)", (const("int", name, "k"), Line(f"f({name}{then});")))

    wanted = {"ahead_second": "ahead", "ahead_third": "ahead"}
    apart = trip("ahead"), trip("ahead_second"), trip("ahead_third")
    assert with_plain_names(apart, wanted) == (trip("ahead"), trip("ahead"), trip("ahead"))
    seen = (const("int", "ahead", "k"), trip("ahead_second"))
    assert with_plain_names(seen, wanted) == seen
    read = (trip("ahead"), trip("ahead_second", " + ahead"))
    assert with_plain_names(read, wanted) == read
    outside = (trip("ahead"), const("int", "ahead_second", "k"), trip("j", " + ahead_second"))
    assert with_plain_names(outside, wanted) == outside


@triton.jit
def rows_of_list(starts_ptr, x_ptr, out_ptr):
    row = tl.program_id(0)
    total = 0.0
    for place in range(tl.load(starts_ptr + row), tl.load(starts_ptr + row + 1)):
        total += tl.load(x_ptr + place)
    tl.store(out_ptr + row, total)


def test_where_a_loop_stops_is_called_so(run_everywhere: Any) -> None:
    starts, x = np.array([0, 3, 3, 7], np.int32), np.arange(7, dtype=np.float32)
    *_, out = run_everywhere(rows_of_list, (3,), starts, x, np.zeros(3, np.float32))
    np.testing.assert_array_equal(out, [3, 0, 18])
    text = rows_of_list.translate("*i32:16, *fp32:16, *fp32:16").source
    assert "for (int place = starts; place < place_stop; ++place) {" in text and "_second" not in text


@triton.jit
def scaled(x_ptr, out_ptr, R: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, tl.where(x < R, x * (R - 1) + N * N, x / (2 * R + 1)))


def test_integers_beside_floats_need_no_cast(run_everywhere: Any) -> None:
    """C makes floats of them; of two it would make a product of integers, and what stands alone keeps its type."""
    x = np.linspace(-9, 9, 64, dtype=np.float32)
    found = run_everywhere(scaled, (1,), x, np.zeros_like(x), R=3, N=64)[1]
    np.testing.assert_allclose(found, np.where(x < 3, x * 2 + 4096, x / 7), rtol=1e-6)
    text = scaled.translate("*fp32:16, *fp32:16, 3, 64").source
    assert re.search(r"x(\[e\])? < R", text) and re.search(r"x(\[e\])? \* \(R - 1\) \+ N \* N", text)
    assert "2 * R + 1)" in text and "static_cast" not in text


@triton.jit
def called_again(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    r, c = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + r[:, None] * N + c[None, :])
    x = tl.sum(x + 1, axis=1)
    tl.store(out_ptr + r, x)
    x = tl.max(x, axis=0)
    tl.store(out_ptr + M, x)


def test_a_reduction_that_is_called_as_what_it_reduces(run_everywhere: Any) -> None:
    """It was x_second, and then x_third."""
    x = np.arange(128, dtype=np.float32).reshape(4, 32)
    found = run_everywhere(called_again, (1,), x, np.zeros(5, np.float32), M=4, N=32)[1]
    np.testing.assert_array_equal(found, [*(x + 1).sum(1), (x + 1).sum(1).max()])
    text = called_again.translate("*fp32:16, *fp32:16, 4, 32").source
    assert "x_second" not in text and re.search(r"float x_sum\b", text) and re.search(r"float x_max\b", text)
