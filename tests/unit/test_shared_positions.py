"""Tiles of which several neighbours along an axis are one element of memory: words that hold several weights, by `k // 8`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.artifact import Options
from tilewright.pipeline import Translation, translate_stages
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.schedule.targets import find_target


@triton.jit
def unpacked_weights(a_ptr, w_ptr, c_ptr, N, K, EACH: tl.constexpr, BITS: tl.constexpr, ALONG_K: tl.constexpr,
                     MASK: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # fmt: skip
    # EACH neighbours along K in a word of w.
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :])
        place = (
            (k // EACH)[:, None] + cols[None, :] * (K // EACH) if ALONG_K else (k // EACH)[:, None] * N + cols[None, :]
        )
        if MASK == "words":
            word = tl.load(w_ptr + place, mask=(k // EACH < K // EACH)[:, None] & (cols < N)[None, :], other=0)
        elif MASK == "not below":
            word = tl.load(w_ptr + place, mask=(k // EACH >= 0)[:, None] & (cols < N)[None, :], other=0)
        elif MASK == "weights":
            word = tl.load(w_ptr + place, mask=(k < K)[:, None] & (cols < N)[None, :], other=0)
        else:
            word = tl.load(w_ptr + place)
        w = (word >> (k % EACH * BITS)[:, None]) & ((1 << BITS) - 1)
        total = tl.dot(a, w.to(tl.float16), total)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total)


@triton.jit
def carried_words(a_ptr, w_ptr, c_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # The same by a shift, from pointers that the loop carries.
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a_ptrs = a_ptr + rows[:, None] * K + k[None, :]
    w_ptrs = w_ptr + (k >> 3)[:, None] * N + cols[None, :]
    total = tl.zeros((BM, BN), tl.float32)
    for _ in range(K // BK):
        w = (tl.load(w_ptrs) >> ((k & 7) * 4)[:, None]) & 15
        total = tl.dot(tl.load(a_ptrs), w.to(tl.float16), total)
        a_ptrs += BK
        w_ptrs += BK // 8 * N
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total)


@triton.jit
def unpacked_activations(a_ptr, b_ptr, c_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Two neighbouring rows of A in the halves of a byte.
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        both = tl.load(a_ptr + (rows // 2)[:, None] * K + k[None, :])
        a = (both >> (rows % 2 * 4)[:, None]) & 15
        b = tl.load(b_ptr + k[:, None] * N + cols[None, :])
        total = tl.dot(a.to(tl.float16), b, total)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total)


def packed(numbers: np.ndarray, each: int, bits: int, dtype: Any) -> np.ndarray:
    """Words of `each` neighbours along the first axis."""
    shifts = (np.arange(each, dtype=np.uint32) * bits)[None, :, None]
    words = (numbers.reshape(-1, each, numbers.shape[1]).astype(np.uint32) << shifts).sum(1, dtype=np.uint32)
    return np.ascontiguousarray(words.astype(dtype) if dtype != np.int32 else words.view(np.int32))


def brings(source: str, name: str) -> bool:
    """Whether a tensor copy brings the tile, and each thread multiplies what it takes from it."""
    return f"tma_load_2d({name}_tile[stage]" in source and "_fragments" in source


@pytest.mark.parametrize("along_k", (False, True))
@pytest.mark.parametrize(("each", "bits", "dtype"), [(2, 4, np.uint8), (4, 2, np.uint8), (8, 4, np.int32)])
@pytest.mark.parametrize("mask", ("none", "words", "weights"))
def test_weights_in_words(run_everywhere: Any, each: int, bits: int, dtype: Any, along_k: bool, mask: str) -> None:
    m, n, k = 64, 256, 256
    rng = np.random.default_rng(each + along_k)
    a = rng.integers(-3, 4, (m, k)).astype(np.float16)
    numbers = rng.integers(0, 1 << bits, (k, n))
    words = packed(numbers, each, bits, dtype)
    words = np.ascontiguousarray(words.T) if along_k else words
    c = np.full((m, n), np.nan, np.float32)
    *_, found = run_everywhere(
        unpacked_weights, (1, 2), a, words, c, n, k, EACH=each, BITS=bits, ALONG_K=along_k, MASK=mask, BM=64, BN=128,
        BK=128, num_warps=8,
    )  # fmt: skip
    np.testing.assert_array_equal(found, a.astype(np.float32) @ numbers.astype(np.float32))


def planned(kernel: Any, signature: str, warps: int = 8) -> Translation:
    return translate_stages(kernel, parse_signature(kernel, signature), Options(num_warps=warps), find_target("sm_90a"))


@pytest.mark.parametrize(
    ("word", "values", "copied"),
    [
        ("u8", "4, 2, False, 'none', 64, 128, 64", True),
        ("u8", "4, 2, True, 'none', 64, 128, 64", True),
        ("i32", "8, 4, False, 'words', 64, 128, 64", True),
        ("i32", "8, 4, False, 'weights', 64, 128, 64", False),  # a bound of weights is none of words
        ("i32", "8, 4, False, 'not below', 64, 128, 64", False),  # quotients of -7 to 7 are alike
        ("u8", "4, 2, False, 'none', 64, 128, 16", False),  # 4 lines: no whole pattern of the swizzle
    ],
)
def test_tensor_copies_bring_each_word_once(word: str, values: str, copied: bool) -> None:
    translation = planned(unpacked_weights, f"*fp16:16, *{word}:16, *fp32:16, i32:16, i32:16, {values}")
    source = translation.artifact.source
    assert brings(source, "word") == copied
    if copied:
        each, depth = values.split(",")[0], values.split(",")[-1].strip()
        lines = [line for line in source.splitlines() if "word_tile[NUM_STAGES][" in line]
        assert len(lines) == 1 and f"BK / {each}" in lines[0] and depth == "64"


def test_pointers_that_a_loop_carries(run_everywhere: Any) -> None:
    m, n, k = 64, 128, 192
    rng = np.random.default_rng(3)
    a, numbers = rng.integers(-3, 4, (m, k)).astype(np.float16), rng.integers(0, 16, (k, n))
    c = np.full((m, n), np.nan, np.float32)
    *_, found = run_everywhere(
        carried_words, (1, 1), a, packed(numbers, 8, 4, np.int32), c, n, k, BM=64, BN=128, BK=64, num_warps=8
    )
    np.testing.assert_array_equal(found, a.astype(np.float32) @ numbers.astype(np.float32))
    source = planned(carried_words, "*fp16:16, *i32:16, *fp32:16, i32:16, i32:16, 64, 128, 64").artifact.source
    assert brings(source, "w_loaded")


def test_rows_in_words(run_everywhere: Any) -> None:
    m, n, k = 128, 64, 128
    rng = np.random.default_rng(4)
    numbers, b = rng.integers(0, 16, (m, k)), rng.integers(-3, 4, (k, n)).astype(np.float16)
    c = np.full((m, n), np.nan, np.float32)
    *_, found = run_everywhere(
        unpacked_activations, (1, 1), packed(numbers, 2, 4, np.uint8), b, c, n, k, BM=128, BN=64, BK=64, num_warps=4
    )
    np.testing.assert_array_equal(found, numbers.astype(np.float32) @ b.astype(np.float32))


@triton.jit
def doubled_words(a_ptr, w_ptr, c_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # Eight neighbours along N in a word, which is interleaved with itself three times: as AWQ's kernels unpack it.
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    words = tl.program_id(1) * (BN // 8) + tl.arange(0, BN // 8)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    shifts = tl.reshape((tl.arange(0, 2) * 4)[None, :] + tl.arange(0, 4)[:, None], (8,)) * 4
    shifts = tl.reshape(tl.broadcast_to(shifts[None, :], (BK * (BN // 8), 8)), (BK, BN))
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :])
        w = tl.load(w_ptr + k[:, None] * (N // 8) + words[None, :])
        w = tl.interleave(w, w)
        w = tl.interleave(w, w)
        w = tl.interleave(w, w)
        total = tl.dot(a, ((w >> shifts) & 15).to(tl.float16), total)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total)


@pytest.mark.parametrize(("m", "warps"), [(64, 8), (16, 4)])
def test_words_that_are_doubled(run_everywhere: Any, m: int, warps: int) -> None:
    """A thread takes the words that it needs from where they were brought: nothing moves, and nothing is chosen."""
    n, k, order = 128, 256, [0, 4, 1, 5, 2, 6, 3, 7]
    rng = np.random.default_rng(6)
    a, numbers = rng.integers(-3, 4, (m, k)).astype(np.float16), rng.integers(0, 16, (k, n))
    shifts = np.array(order, np.uint32) * 4
    words = (numbers.reshape(k, n // 8, 8).astype(np.uint32) << shifts).sum(-1, dtype=np.uint32).view(np.int32)
    c = np.full((m, n), np.nan, np.float32)
    *_, found = run_everywhere(
        doubled_words, (1, 1), a, words, c, n, k, BM=m, BN=128, BK=64, num_warps=warps, num_stages=3
    )
    np.testing.assert_array_equal(found, a.astype(np.float32) @ numbers.astype(np.float32))
    signature = f"*fp16:16, *i32:16, *fp32:16, i32:16, i32:16, {m}, 128, 64"
    source = planned(doubled_words, signature, warps).artifact.source
    assert "moves through shared memory" not in source and "% 2 == 0 ?" not in source
    assert brings(source, "w") if m == 64 else "its copies, made ahead" in source and "if (lane" not in source


@triton.jit
def by_differences(q_ptr, k_ptr, table_ptr, out_ptr, T, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    # Products with a number for each difference of positions.
    rows, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + d[None, :])
    largest = tl.full((BM,), float("-inf"), tl.float32)
    for start in range(0, T, BN):
        cols = start + tl.arange(0, BN)
        s = tl.dot(q, tl.load(k_ptr + cols[None, :] * D + d[:, None]))
        s += tl.load(table_ptr + cols[None, :] - rows[:, None] + T)
        largest = tl.maximum(largest, tl.max(s, 1))
    tl.store(out_ptr + rows, largest)


def test_a_table_by_differences_is_not_copied(run_everywhere: Any) -> None:
    t, depth = 128, 64
    rng = np.random.default_rng(7)
    q, k = (rng.integers(-2, 3, (t, depth)).astype(np.float16) for _ in range(2))
    table, out = rng.integers(-9, 10, 2 * t).astype(np.float32), np.full(t, np.nan, np.float32)
    *_, found = run_everywhere(by_differences, (2,), q, k, table, out, t, D=depth, BM=64, BN=64, num_warps=4)
    places = np.arange(t)
    scores = q.astype(np.float32) @ k.astype(np.float32).T + table[places[None, :] - places[:, None] + t]
    np.testing.assert_array_equal(found, scores.max(1))
    source = planned(by_differences, "*fp16:16, *fp16:16, *fp32:16, *fp32:16, i32:16, 64, 128, 64").artifact.source
    assert "table_ahead" not in source and "- rows_s[r] + T)" in source


@triton.jit
def unfolded(x_ptr, out_ptr, W, OW, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i // OW * W + i % OW, mask=i < n, other=0.0), mask=i < n)


def test_quotients_stand_in_no_branch(run_everywhere: Any) -> None:
    x, out = np.arange(40 * 50, dtype=np.float32), np.full(40 * 48, np.nan, np.float32)
    *_, found = run_everywhere(unfolded, (2,), x, out, 50, 48, out.size, BLOCK=1024)
    np.testing.assert_array_equal(found, x.reshape(40, 50)[:, :48].ravel())
    assert "load_if(" in planned(unfolded, "*fp32:16, *fp32:16, i32, i32, i32, 1024", 4).artifact.source
