"""Loads and stores of every second element that lie between each other are one; others stay as they are."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl

BF16X4 = "*bf16:16, *bf16:16, *fp32:16, *fp32:16"


@triton.jit
def rotate(x_ptr, out_ptr, cos_ptr, sin_ptr, T, pairs, ROWS: tl.constexpr, HALF: tl.constexpr, WHAT: tl.constexpr):
    t = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    i = tl.arange(0, HALF)
    first = t[:, None] * (2 * HALF) + 2 * i[None, :]
    live = (t[:, None] < T) & (i[None, :] < pairs)
    live_odd = live
    if WHAT == "two masks":
        live = (t[:, None] < T) & (2 * i[None, :] < 2 * pairs - 1)
        live_odd = (t[:, None] < T) & (2 * i[None, :] + 1 < 2 * pairs - 1)
    if WHAT == "odd first":
        y = tl.load(x_ptr + first + 1, mask=live_odd, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + first, mask=live, other=0.0).to(tl.float32)
    else:
        x = tl.load(x_ptr + first, mask=live, other=0.0).to(tl.float32)
        y = tl.load(x_ptr + first + 1, mask=live_odd, other=0.0).to(tl.float32)
    cos = tl.load(cos_ptr + t[:, None] * HALF + i[None, :], mask=live, other=0.0)
    sin = tl.load(sin_ptr + t[:, None] * HALF + i[None, :], mask=live, other=0.0)
    place = out_ptr + first
    if WHAT == "in place":
        place = x_ptr + first
    tl.store(place, (x * cos - y * sin).to(tl.bfloat16), mask=live)
    tl.store(place + 1, (x * sin + y * cos).to(tl.bfloat16), mask=live_odd)


@pytest.mark.parametrize("what", ["", "two masks", "odd first", "in place"])
def test_rotary_embeddings(run_everywhere: Any, what: str) -> None:
    import ml_dtypes

    rng = np.random.default_rng(3)
    x = rng.standard_normal((11, 64)).astype(ml_dtypes.bfloat16)
    cos, sin = rng.standard_normal((2, 11, 32)).astype(np.float32)
    out = np.full_like(x, 7)
    results = run_everywhere(rotate, (3,), x, out, cos, sin, 11, 27, 4, 32, what, tolerance=1e-2)
    pairs = x.astype(np.float32).reshape(11, 32, 2)
    live = np.arange(64).reshape(32, 2) < (53 if what == "two masks" else 54)
    pairs = np.where(live, pairs, 0)
    cos, sin = np.where(live[:, 0], cos, 0), np.where(live[:, 0], sin, 0)
    wanted = np.stack([pairs[..., 0] * cos - pairs[..., 1] * sin, pairs[..., 0] * sin + pairs[..., 1] * cos], -1)
    before = (x if what == "in place" else out).astype(np.float32).reshape(11, 32, 2)
    found = results[0 if what == "in place" else 1].astype(np.float32).reshape(11, 32, 2)
    np.testing.assert_allclose(found, np.where(live, wanted, before), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("what", ["", "odd first", "in place"])
def test_both_are_accessed_by_vectors(what: str) -> None:
    text = rotate.translate(f"{BF16X4}, i32, i32:16, 4, 64, {what!r}", num_warps=1).source
    width = re.search(r"int (VEC|X_Y_VEC) = 8;", text)
    assert width is not None and f"load_vec_if<{width[1]}>" in text and text.count(f"store_vec<{width[1]}>") == 1
    assert text.count("(stored at L") == 1 and "(loaded at L" in text


@triton.jit
def unpack(q_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    q = tl.load(q_ptr + i, mask=i < n, other=0)
    tl.store(out_ptr + 2 * i, (q >> 4).to(tl.float32), mask=i < n)
    tl.store(out_ptr + 2 * i + 1, (q & 15).to(tl.float32), mask=i < n)


@pytest.mark.parametrize("n", [0, 1, 100, 1000, 1008, 2048])
def test_two_numbers_in_a_byte(run_everywhere: Any, n: int) -> None:
    q = np.random.default_rng(n).integers(0, 256, 2048).astype(np.uint8)
    out = np.full(4096, 77.0, np.float32)
    found = run_everywhere(unpack, (2,), q, out, n, 1024)[1]
    wanted = np.stack([q >> 4, q & 15], -1).reshape(-1)
    assert np.array_equal(found, np.where(np.arange(4096) < 2 * n, wanted, 77))


def test_one_test_for_a_vector_of_both() -> None:
    """`i / 2 < n` holds for all of a vector or for none where `n` is a multiple of half a vector."""
    text = unpack.translate("*u8:16, *fp32:16, i32:16, 1024").source
    assert "VEC / 2 < n) {" in text
    assert "int VEC = 4;" in text or "int TILE_VEC = 4;" in text


@triton.jit
def apart(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr, WHAT: tl.constexpr):
    i = tl.arange(0, BLOCK)
    base = 0
    x = tl.load(x_ptr + base + 2 * i)
    if WHAT == "stored between":
        tl.store(x_ptr + i, x + 1)
    if WHAT == "moved":
        base = n
    if WHAT == "branch":  # noqa: SIM102 - the one is decided when the kernel is translated
        if n > 3:
            base += 1
    if WHAT == "barrier":
        tl.debug_barrier()
    if WHAT == "other array":
        y = tl.load(y_ptr + base + 2 * i + 1)
    elif WHAT == "same":
        y = tl.load(x_ptr + base + 2 * i)
    elif WHAT == "other mask":
        y = tl.load(x_ptr + base + 2 * i + 1, mask=i < n - 1, other=1)
    elif WHAT == "volatile":
        y = tl.load(x_ptr + base + 2 * i + 1, volatile=True)
    elif WHAT == "further":
        y = tl.load(x_ptr + base + 2 * i + 3)
    elif WHAT == "wider":
        y = tl.load(x_ptr + base + 4 * i + 1)
    else:
        y = tl.load(x_ptr + base + 2 * i + 1)
    scale = n - 7
    tl.store(out_ptr + 2 * i, x * scale)
    if WHAT == "read between":
        y += tl.load(out_ptr + 2 * i) - 2 * x
    if WHAT == "twice":
        tl.store(out_ptr + 2 * i, x * 3)
    if WHAT == "computed":
        scale = scale + 5
        y = y + scale - 7
    tl.store(out_ptr + 2 * i + 1, y)


KINDS = ["", "stored between", "moved", "branch", "barrier", "other array", "same", "other mask", "volatile", "further",
         "wider", "read between", "twice", "computed"]  # fmt: skip


@pytest.mark.parametrize("what", KINDS)
def test_only_what_lies_between_each_other(run_everywhere: Any, what: str) -> None:
    """What is stored between two loads, or moves their places, is seen by the second one only."""
    rng = np.random.default_rng(5)
    x, y = rng.integers(-100, 100, (2, 600)).astype(np.int32)
    first, second = x[0:256:2].copy(), x[1:257:2].copy()
    n = 9
    if what == "stored between":
        after = x.copy()
        after[:128] = first + 1
        second = after[1:257:2]
    elif what == "moved":
        second = x[n + 1 : n + 257 : 2]
    elif what == "branch":
        second = x[2:258:2]
    elif what == "other array":
        second = y[1:257:2]
    elif what == "same":
        second = first
    elif what == "other mask":
        second = np.where(np.arange(128) < n - 1, second, 1)
    elif what == "further":
        second = x[3:259:2]
    elif what == "wider":
        second = x[1:513:4]
    wanted = np.stack([first * (3 if what == "twice" else 2), second], -1).reshape(-1)
    found = run_everywhere(apart, (1,), x, y, np.full(256, 7, np.int32), n, 128, what, num_warps=1)[2]
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize(
    "what, loads, stores",
    [("", True, True), ("computed", True, False), ("other mask", False, True), ("read between", True, False),
     ("stored between", False, True), ("twice", True, True)],
)  # fmt: skip
def test_what_is_put_together(what: str, loads: bool, stores: bool) -> None:
    """`scale` has another value by the second store in "computed"."""
    text = apart.translate(f"*i32:16, *i32:16, *i32:16, i32:16, 128, {what!r}", num_warps=1).source
    assert ("(loaded at L" in text) == loads
    assert ("(stored at L" in text) == stores


@triton.jit
def in_a_loop(x_ptr, out_ptr, trips, D: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    real = tl.zeros([BLOCK], tl.float32)
    imaginary = tl.zeros([BLOCK], tl.float32)
    for k in range(trips):
        re = tl.load(x_ptr + k * D + i * 2)
        im = tl.load(x_ptr + k * D + (i * 2 + 1))
        real, imaginary = real * re - imaginary * im + 1.0, real * im + imaginary * re
    tl.store(out_ptr + 1 + 2 * i, imaginary)
    tl.store(out_ptr + 2 * i, real)


@pytest.mark.parametrize("stages", [1, 3])
def test_complex_numbers_in_a_loop(run_everywhere: Any, stages: int) -> None:
    x = np.random.default_rng(6).standard_normal((9, 512)).astype(np.float32)
    arguments = x, np.zeros(512, np.float32), 9, 512, 256
    found = run_everywhere(in_a_loop, (1,), *arguments, tolerance=1e-4, num_warps=2, num_stages=stages)[1]
    number = np.zeros(256, np.complex128)
    for row in x.astype(np.float64).view(np.complex128):
        number = number * row + 1
    np.testing.assert_allclose(found.astype(np.float64).view(np.complex128), number, rtol=1e-3, atol=1e-3)
    text = in_a_loop.translate("*fp32:16, *fp32:16, i32, 512, 256", num_warps=2, num_stages=stages).source
    assert "(loaded at L" in text and "(stored at L" in text


@triton.jit
def sums_of_pairs(x_ptr, out_ptr, n, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    place = x_ptr + i * 2
    tl.store(out_ptr + i, tl.load(place, mask=i < n) + tl.load(place + 1, mask=i < n), mask=i < n)


def test_where_pairs_lie_is_formed_where_they_are_loaded() -> None:
    """Of `place` the text said that its value is not used, beside loads that have it."""
    text = sums_of_pairs.translate("*fp32:16, *fp32:16, i32:16, 512").source
    assert re.search(r"place = x_ptr \+ i \* 2 +\(formed where it is used\)", text) and "is not used" not in text
