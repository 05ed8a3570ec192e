"""Loads that are started ahead name the scalars that they are found by, as the loop's lines do."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import tilewright as triton
import tilewright.language as tl
from tilewright.runtime.building import nvrtc


@triton.jit
def tasks(a_ptr, b_ptr, out_ptr, count, heads, rows, step, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    for task in tl.range(tl.program_id(0), count, step, num_stages=3):
        batch = task // heads
        head = task % heads
        blocks = tl.cdiv(rows, M)
        block = head % blocks
        first = block * M
        a = tl.load(a_ptr + batch * rows * K + (first + i)[:, None] * K + k[None, :], mask=(first + i)[:, None] < rows)
        b = tl.load(b_ptr + batch * K * N + k[:, None] * N + j[None, :])
        out = tl.dot(a, b)
        tl.store(out_ptr + task * M * N + i[:, None] * N + j[None, :], out)


def expected(a: np.ndarray, b: np.ndarray, count: int, heads: int, side: int) -> np.ndarray:
    rows, found = a.shape[1], np.zeros((count, side, b.shape[2]))
    for task in range(count):
        first = task % heads % -(-rows // side) * side
        part = a[task // heads, first : first + side].astype(np.float64)
        found[task, : len(part)] = part @ b[task // heads].astype(np.float64)
    return found


def test_their_lines_stand_where_loads_are_started(run_everywhere: Any) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((3, 50, 32), (3, 32, 64)))
    out = np.zeros((9, 32, 64), np.float32)
    found = run_everywhere(tasks, (2,), a, b, out, 9, 3, 50, 2, M=32, N=64, K=32, tolerance=1e-3)[2]
    np.testing.assert_allclose(found, expected(a, b, 9, 3, 32), rtol=1e-3, atol=1e-3)


def test_what_is_written_once_has_no_name() -> None:
    artifact = tasks.translate("*fp16:16, *fp16:16, *fp32:16, i32, i32, i32, i32, 32, 64, 32")
    copies = artifact.source.partition("const auto load_tiles")[2].partition("};")[0]
    assert re.findall(r"const int (\w+)_ahead = ", copies) == ["batch", "first"]
    assert copies.count("(for the copies)") == 2
    code = re.sub(r"//.*", "", copies)
    assert code.count("/ heads") == code.count("% heads") == 1
    if nvrtc.is_available():
        assert "warning" not in nvrtc.compile_text(artifact).log


@triton.jit
def doubling(a_ptr, b_ptr, out_ptr, count, K: tl.constexpr):
    i = tl.arange(0, K)
    total = tl.zeros((K, K), tl.float32)
    for n in range(count):
        c0 = n // 3
        c1 = c0 % (c0 + 2)
        c2 = c1 % (c1 + 2)
        c3 = c2 % (c2 + 2)
        c4 = c3 % (c3 + 2)
        c5 = c4 % (c4 + 2)
        c6 = c5 % (c5 + 2)
        c7 = c6 % (c6 + 2)
        c8 = c7 % (c7 + 2)
        c9 = c8 % (c8 + 2)
        d0 = c9 % (c9 + 2)
        d1 = d0 % (d0 + 2)
        d2 = d1 % (d1 + 2)
        d3 = d2 % (d2 + 2)
        d4 = d3 % (d3 + 2)
        d5 = d4 % (d4 + 2)
        d6 = d5 % (d5 + 2)
        d7 = d6 % (d6 + 2)
        d8 = d7 % (d7 + 2)
        d9 = d8 % (d8 + 2)
        a = tl.load(a_ptr + n * K * K + i[:, None] * K + i[None, :])
        b = tl.load(b_ptr + c2 * K * K + i[:, None] * K + i[None, :])
        total += tl.dot(a, b) * d9
    tl.store(out_ptr + i[:, None] * K + i[None, :], total)


def test_chains_that_double_end() -> None:
    text = doubling.translate("*fp16:16, *fp16:16, *fp32:16, i32, 32").source
    assert len(text) < 40_000


@triton.jit
def weights_gradient(x_ptr, dy_ptr, dw_ptr, H, W, C, PIXELS, P: tl.constexpr, N: tl.constexpr):
    channels, outs = tl.arange(0, N), tl.arange(0, N)
    total = tl.zeros((N, N), tl.float32)
    for start in range(0, PIXELS, P):
        pixels = start + tl.arange(0, P)
        column, row = pixels % W - 1, pixels // W % H - 1
        inside = (pixels < PIXELS) & (column >= 0) & (column < W) & (row >= 0) & (row < H)
        x = tl.load(x_ptr + (pixels - W - 1)[None, :] * C + channels[:, None], mask=inside[None, :], other=0.0)
        dy = tl.load(dy_ptr + pixels[:, None] * N + outs[None, :], mask=(pixels < PIXELS)[:, None], other=0.0)
        total = tl.dot(x, dy, total)
    tl.store(dw_ptr + channels[:, None] * N + outs[None, :], total)


def test_indices_have_names_at_every_element(run_everywhere: Any) -> None:
    rng = np.random.default_rng(4)
    images, h, w, c = 2, 5, 7, 64
    x, dy = (rng.standard_normal((images, h, w, c)).astype(np.float16) for _ in range(2))
    dw = np.zeros((c, c), np.float32)
    sizes = {"P": 32, "N": c, "num_stages": 3}
    found = run_everywhere(weights_gradient, (1,), x, dy, dw, h, w, c, images * h * w, **sizes, tolerance=2e-3)[2]
    shifted = np.zeros((images, h, w, c))
    shifted[:, 1:, 1:] = x[:, :-1, :-1]
    np.testing.assert_allclose(found, shifted.reshape(-1, c).T @ dy.reshape(-1, c), rtol=2e-3, atol=2e-3)


def test_what_a_name_stands_for_is_computed_once_for_an_element() -> None:
    artifact = weights_gradient.translate("*fp16:16, *fp16:16, *fp32:16, i32, i32, i32:16, i32, 32, 64", num_stages=3)
    copies = re.sub(r"//.*", "", artifact.source.partition("const auto load_tiles")[2].partition("};")[0])
    assert re.findall(r"const int (\w+)_ahead = ", copies) == ["column", "row"]
    assert copies.count("% W") == copies.count("/ W % H") == 1 and " & " not in copies
    # Quoted for the copies, and where the loop has it, as folded into them.
    assert artifact.source.count("column, row = pixels % W - 1") == 2
    if nvrtc.is_available():
        assert "warning" not in nvrtc.compile_text(artifact).log


@triton.jit
def shifted_rows(x_ptr, out_ptr, n, width, height, SHIFT: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = (i < n) & (i // width % height + SHIFT < height)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=inside, other=-1.0), mask=i < n)


def test_no_branch_stands_around_a_quotient_in_a_mask(run_everywhere: Any) -> None:
    x = np.arange(300, dtype=np.float32)
    out = run_everywhere(shifted_rows, (3,), x, np.zeros_like(x), 300, 7, 11, SHIFT=2, BLOCK=128)[1]
    i = np.arange(300)
    np.testing.assert_array_equal(out, np.where(i // 7 % 11 + 2 < 11, x, -1))
    source = shifted_rows.translate("*fp32:16, *fp32:16, i32, i32, i32, 2, 128").source
    assert re.search(r"\(i < n\) & \(i / width % height \+ SHIFT < height\)", source)
