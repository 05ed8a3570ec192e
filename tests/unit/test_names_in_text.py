"""What a reviewer meets first in generated text: names after the user's tiles, no code without a use, values where they are."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
import tilewright.runtime.cpu as cpu
from tilewright.ir.tensor_names import map_name, tensor_word, word_of_map

needs_compiler = pytest.mark.skipif(not cpu.has_compiler(), reason="no C++ compiler")


@triton.jit
def two_layouts(left_ptr, right_ptr, out_ptr, K, M: tl.constexpr, N: tl.constexpr, STEP: tl.constexpr):
    rows, cols, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, STEP)
    total = tl.zeros((M, N), tl.float32)
    for k in range(0, K, STEP):
        left = tl.load(left_ptr + rows[:, None] * K + k + inner[None, :])
        right = tl.load(right_ptr + (k + inner)[:, None] * N + cols[None, :])
        total = tl.dot(left, right, total)
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], total)


@triton.jit
def of_long(x_ptr, at_ptr, out_ptr, n):
    at = tl.load(at_ptr)
    tl.store(out_ptr, tl.load(x_ptr + at * 2 * n))


@triton.jit
def runs(starts_ptr, out_ptr, n):
    run = tl.program_id(0) + n
    first, last = tl.load(starts_ptr + run), tl.load(starts_ptr + run + 1)
    tl.store(out_ptr + 2 * n, last - first)


@triton.jit
def row_lengths(starts_ptr, out_ptr):
    row = tl.program_id(0)
    tl.store(out_ptr + row, tl.load(starts_ptr + row + 1) - tl.load(starts_ptr + row))


@triton.jit
def counts(x_ptr, out_ptr, BINS: tl.constexpr, BLOCK: tl.constexpr):
    bins = tl.arange(0, BINS)
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(out_ptr + bins, tl.sum((x[:, None] == bins[None, :]).to(tl.int32), axis=0))


@triton.jit
def averages(mean_1, weight_1, mean_2, weight_2):
    weight = weight_1 + weight_2
    return mean_1 + (mean_2 - mean_1) * (weight_2 / weight), weight


@triton.jit
def weighted(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    mean, weight = tl.reduce((x, x * 0.0 + 1.0), 0, averages)
    tl.store(out_ptr, mean)
    tl.store(out_ptr + 1, weight)


@triton.jit
def turned(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] * N + i[None, :])
    tl.store(out_ptr + i[:, None] * N + i[None, :], tl.trans(x))


@triton.jit
def grouped(x_ptr, out_ptr, n, N: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    pairs = tl.reshape(x, (N // 8, 8)) * 2.0
    tl.store(out_ptr + i, tl.reshape(pairs, (N,)), mask=i < n)


@triton.jit
def truncated(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(out_ptr + i, (i.to(tl.int64) + 1) + x.to(tl.int64))


@triton.jit
def unrolled(x_ptr, out_ptr, n, WIDTH: tl.constexpr):
    total = 0.0
    for step in tl.static_range(3):
        at = n + step * WIDTH - WIDTH // 2
        if at >= 0:
            total += tl.load(x_ptr + at)
        if step == 1:
            total = -total
    tl.store(out_ptr, total)


@triton.jit
def rolled(x_ptr, out_ptr, n, WIDTH: tl.constexpr):
    total = 0.0
    for step in tl.static_range(3):
        at = n + step * WIDTH - WIDTH // 2
        if at >= 0:
            total += tl.load(x_ptr + at)
    tl.store(out_ptr, total)


def text_of(kernel: Any, signature: str, **options: Any) -> str:
    """The generated text for sm_80."""
    return str(kernel.translate(signature, arch="sm_80", **options).source)


def test_constants_and_index_tiles_bear_the_name_of_their_tile() -> None:
    text = text_of(two_layouts, "*fp16:16, *fp16:16, *fp32:16, i32:16, 32, 64, 32")
    for name in ("LEFT_COL_THREADS", "LEFT_VEC", "RIGHT_ROW_THREADS", "RIGHT_ROWS", "left_col", "right_row"):
        assert f" {name} = " in text
    assert "inner_left" in text and "inner_right" in text
    assert not any(f" {name}_" in text for name in ("M", "N", "STEP"))


def test_the_header_leaves_index_tiles_to_the_text() -> None:
    text = text_of(two_layouts, "*fp16:16, *fp16:16, *fp32:16, i32:16, 32, 64, 32")
    head = text[: text.index("constexpr int")]
    assert "total [32, 64]" in head and "rows [" not in head and "inner" not in head


def test_what_nothing_mentions_is_left_out() -> None:
    """The whole sum is in one thread: no struct combines two parts of it."""
    text = text_of(counts, "*i32:16, *i32:16, 128, 4")
    assert "struct" not in text and "x[0] == bins" in text


def test_fields_are_called_as_their_parameters() -> None:
    text = text_of(weighted, "*fp32:16, *fp32:16, 256")
    assert "    float mean;\n    float weight;\n" in text
    assert "const auto [mean_1, " in text and "return {mean_1 + " in text


@pytest.mark.parametrize("kernel", [turned, grouped])
def test_a_store_that_only_moves_elements_copies_none(kernel: Any) -> None:
    text = text_of(kernel, "*fp32:16, *fp32:16, 32" if kernel is turned else "*fp32:16, *fp32:16, i32, 512")
    assert "stored" not in text


def test_an_integer_is_widened_once_and_a_float_converted() -> None:
    assert "static_cast<long long>(blockIdx.x) * N + " in text_of(grouped, "*fp32:16, *fp32:16, i32, 512")
    assert "+ static_cast<long long>(x[" in text_of(truncated, "*fp32:16, *i64:16, 256")


def test_numbers_make_sums_and_products_of_64_bits_with_a_suffix() -> None:
    text = text_of(runs, "*i32:16, *i32:16, i32")
    assert "starts_ptr[run + 1LL]" in text and "out_ptr[2LL * n]" in text
    assert "x_ptr[at * 2 * n]" in text_of(of_long, "*i32:16, *i64:16, *i32:16, i32")  # and none where there are as many


def test_a_program_has_a_next_one_in_32_bits() -> None:
    assert "starts_ptr[row + 1]" in text_of(row_lengths, "*i32:16, *i32:16")


def test_nothing_is_added_for_a_step_of_zero() -> None:
    text = text_of(unrolled, "*fp32:16, *fp32:16, i32, 6")
    assert "at = n - WIDTH / 2;" in text and "at = n + 2 * WIDTH - WIDTH / 2;" in text
    assert "at = n + step * WIDTH - WIDTH / 2;" in text_of(rolled, "*fp32:16, *fp32:16, i32, 6")


@needs_compiler
def test_moved_and_truncated_elements_are_right() -> None:
    x = np.arange(1024, dtype=np.float32).reshape(32, 32)
    out = np.zeros_like(x)
    turned[(1,)](x, out, 32)
    np.testing.assert_array_equal(out, x.T)
    out = np.zeros(1024, np.float32)
    grouped[(2,)](x.ravel(), out, 1000, 512)
    np.testing.assert_array_equal(out, np.where(np.arange(1024) < 1000, 2 * x.ravel(), 0))
    fractions = (np.random.default_rng(1).random(256) * 100).astype(np.float32)
    whole = np.zeros(256, np.int64)
    truncated[(1,)](fractions, whole, 256)
    np.testing.assert_array_equal(whole, np.arange(256) + 1 + fractions.astype(np.int64))


@triton.jit
def load_packet(x, load_packet_again):
    return x + load_packet_again


@triton.jit
def store_one(load_if, out_ptr, n, N: tl.constexpr):
    load_vec = tl.arange(0, N)
    the_load_vec = load_vec * 2
    mbarrier_arrive = tl.load(load_if + load_vec, mask=load_vec < n)
    tl.store(out_ptr + load_vec, load_packet(mbarrier_arrive, the_load_vec))


@needs_compiler
def test_names_of_helpers_are_the_users_to_take() -> None:
    """Helpers have every name that begins with `load_vec`: a longer one is none either."""
    text = text_of(store_one, "*fp32, *fp32, i32, 64")
    assert "const int the_load_vec = the_load_vec_second * 2;" in text and "float mbarrier_arrive_float = " in text
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    store_one[(1,)](x, out, 64, N=64)
    assert np.array_equal(out, 3 * x)


@needs_compiler
def test_a_reduction_by_the_users_function_is_right() -> None:
    x = np.random.default_rng(2).random(256).astype(np.float32)
    out = np.zeros(2, np.float32)
    weighted[(1,)](x, out, 256)
    np.testing.assert_allclose(out, [x.mean(), 256], rtol=1e-5)


@triton.jit
def best_of_planes(x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    places = (
        tl.arange(0, A)[:, None, None] * (B * C) + tl.arange(0, B)[None, :, None] * C + tl.arange(0, C)[None, None, :]
    )
    x = tl.load(x_ptr + places)
    best = tl.argmax(x, axis=1)
    tl.store(out_ptr + tl.arange(0, A)[:, None] * C + tl.arange(0, C)[None, :], best)


def test_a_constant_is_the_side_of_tiles_that_the_text_has() -> None:
    """The value that argmax finds beside the index, x_max, has no name in the text."""
    text = best_of_planes.translate("*fp32:16, *i32:16, 3, 2, 5").source
    sides = [line for line in text.splitlines() if re.match(r"constexpr int [ABC] = ", line)]
    assert [line.partition("// ")[2] for line in sides] == ["planes of x, rows of best", "rows of x", "columns of x"]


@triton.jit
def folded(x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, D: tl.constexpr, E: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, A * B * C * D * E).reshape(A, B, C, D, E))
    r = tl.sum(tl.sum(tl.sum(tl.permute(x, (2, 1, 0, 3, 4)), 3), 1), 0)
    tl.store(out_ptr + tl.arange(0, A * E).reshape(A, E), r)


@needs_compiler
def test_loops_in_loops_have_names_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's r has the loops over rows called i, as the loop over a sum's terms inside of them is otherwise."""
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    x = np.random.default_rng(5).integers(0, 1000, (4, 32, 32, 4, 2)).astype(np.int32)
    out = np.zeros((4, 2), np.int32)
    compiled = folded[(1,)](x, out, *x.shape)
    assert (out == x.sum((1, 2, 3))).all() and "for (int ii = 1; ii < B" in compiled.source


@triton.jit
def greek_row(x_ptr, w_ptr, out_ptr, K, M: tl.constexpr, N: tl.constexpr, B: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, B)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, K, B):
        μ = tl.load(x_ptr + m[:, None] * K + (start + k)[None, :], mask=(start + k)[None, :] < K, other=0.0)
        w = tl.load(w_ptr + (start + k)[:, None] * N + n[None, :]) + 1.0
        total = tl.dot(μ, w.to(tl.float16), total)
    tl.store(out_ptr + m[:, None] * N + n[None, :], total)


def test_a_threads_place_in_a_tile_named_in_greek_is_declared() -> None:
    artifact = greek_row.translate("*fp16, *fp16:16, *fp32, i32, 1, 128, 64", num_stages=4)
    assert "= mu_col" in artifact.source and "const int mu_col = " in artifact.source


@triton.jit
def of_tall_tiles(query_ptr, code_ptr, out_ptr, n, M: tl.constexpr, K: tl.constexpr):
    m, k = tl.arange(0, M), tl.arange(0, K)
    total, count = tl.zeros((M, K), tl.float32), tl.zeros((M, K), tl.int32)
    for _ in range(n):
        query = tl.load(query_ptr + m[:, None] * K + k[None, :])
        total = tl.dot(query, tl.load(query_ptr + k[:, None] * K + k[None, :]), total)
        code = tl.load(code_ptr + m[:, None] * K + k[None, :])
        count = tl.dot(code, tl.load(code_ptr + k[:, None] * K + k[None, :]).T, count)
    tl.store(out_ptr + m[:, None] * K + k[None, :], total + count.to(tl.float32))


def test_constants_of_products_are_called_after_their_tiles() -> None:
    """A_ROWS_STEP, "from 64 rows of a to the next", was the constant of all, and NEXT_MMA_K that of the next type."""
    text = of_tall_tiles.translate("*fp16:16, *i8:16, *fp32:16, i32, 128, 64", arch="sm_90a", num_warps=4).source
    constants = dict(re.findall(r"constexpr int (\w*(?:_STEP|MMA_K)) = \d+;(?: +// (.*))?", text))
    assert constants == {
        "MMA_K": "elements of K per instruction",
        "QUERY_ROWS_STEP": "chunks from 64 rows of query to the next",
        "COUNT_MMA_K": "elements of K per instruction of count",
        "CODE_ROWS_STEP": "chunks from 64 rows of code to the next",
    }


@triton.jit
def lowered(x_ptr, out_ptr, n, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    for i in range(n):
        x = x - (tl.load(x_ptr + i) + 3.0 * i)
        x = x * (x + 1.0) * (x - 1.0)
    tl.store(out_ptr + tl.arange(0, N), x)


def test_what_is_taken_off_needs_no_parentheses() -> None:
    text = text_of(lowered, "*fp32:16, *fp32:16, i32, 512")
    assert re.search(r"x\[e\] -= [^()]+ \+ 3\.0f \* static_cast<float>\(i\);", text)
    assert "= x[e] * (x[e] + 1.0f) * (x[e] - 1.0f);" in text or "*= (x[e] + 1.0f) * (x[e] - 1.0f);" in text


@triton.jit
def bytes_by_bytes(a_ptr, b_ptr, out_ptr, K, M: tl.constexpr, N: tl.constexpr, STEP: tl.constexpr):
    rows, cols, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, STEP)
    total = tl.zeros((M, N), tl.int32)
    for k in range(0, K, STEP):
        a = tl.load(a_ptr + rows[:, None] * K + k + inner[None, :])
        b = tl.load(b_ptr + cols[None, :] * (K // 2) + k + inner[:, None])
        total = tl.dot(a, b, total)
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], total)


def test_strides_of_bytes_are_multiplied_by_nothing() -> None:
    text = bytes_by_bytes.translate("*i8:16, *i8:16, *i32:16, i32:16, 128, 128, 64").source
    assert "strides in bytes [K];" in text and "strides in bytes [K / 2];" in text


@pytest.mark.parametrize(
    ("pointer", "word"),
    [
        ("x_ptr", "x"),
        ("x_ptrs", "x"),
        ("Aptr", "A"),
        ("x_desc_base", "x"),
        ("a_descriptor", "a"),
        ("x", "x"),
        ("ptr", "ptr"),
    ],
)
def test_a_tensor_is_called_after_its_pointer(pointer: str, word: str) -> None:
    """What is loaded, the start of what is found, the map and the pieces that are stored: all have the same word."""
    assert tensor_word(pointer) == word and word_of_map(map_name(word)) == word
