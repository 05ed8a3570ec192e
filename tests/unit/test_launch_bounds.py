"""Launch bounds ask for no block that the shared memory leaves no room for."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import tilewright as triton
import tilewright.language as tl
from tilewright.runtime.building import nvrtc


@triton.jit
def logsumexp_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    # As compilers write it: elementwise accumulators in loops, reduced at the end.
    row = tl.program_id(0)
    base = tl.arange(0, BLOCK)
    largest = tl.full((BLOCK,), -float("inf"), tl.float32)
    for start in range(0, n, BLOCK):
        mask = start + base < n
        x = tl.load(x_ptr + row * n + start + base, mask=mask, other=0.0).to(tl.float32)
        larger = tl.where((largest > x) | (largest != largest), largest, x)
        largest = tl.where(mask, larger, largest)
    top = tl.max(largest, 0)
    total = tl.full((BLOCK,), 0, tl.float32)
    for start in range(0, n, BLOCK):
        mask = start + base < n
        x = tl.load(x_ptr + row * n + start + base, mask=mask, other=0.0).to(tl.float32)
        total = tl.where(mask, total + tl.exp(x - top), total)
    tl.store(out_ptr + row, tl.log(tl.sum(total, 0)) + top)


def test_accumulators_in_shared_memory_leave_one_block(run_everywhere: Any) -> None:
    """Two would each have 32 registers, which spilled, and one after the other still only one would run."""
    artifact = logsumexp_kernel.translate("*bf16:16, *fp32:16, i32:16, 32768", num_warps=32)
    assert artifact.shared_bytes > 64 * 1024
    assert "__launch_bounds__(NUM_THREADS, 1)" in artifact.source
    if nvrtc.is_available():
        assert nvrtc.compile_text(artifact).spill_bytes == 0
    x = np.random.default_rng(5).normal(size=(2, 5000)).astype(np.float16)
    out = run_everywhere(logsumexp_kernel, (2,), x, np.zeros(2, np.float32), 5000, BLOCK=4096, tolerance=1e-5)[1]
    np.testing.assert_allclose(out, np.log(np.exp(x.astype(np.float64)).sum(1)), rtol=1e-5)


@triton.jit
def rows_kernel(x_ptr, y_ptr, out_ptr, N: tl.constexpr, BLOCK: tl.constexpr, STORES: tl.constexpr):
    row, base = tl.program_id(0), tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, N, BLOCK):
        x = tl.load(x_ptr + row * N + start + base)
        total += x
        if STORES:
            tl.store(y_ptr + row * N + start + base, x * 2)
    tl.store(out_ptr + row, tl.sum(total, 0))


def test_loads_wait_for_the_stores_of_the_trip_before() -> None:
    """Registers for the loads of several trips are of no use then: more blocks are."""
    signature = "*fp32:16, *fp32:16, *fp32:16, 4096, 512"
    bounds = ["MIN_BLOCKS" in rows_kernel.translate(f"{signature}, {stores}").source for stores in (False, True)]
    assert bounds == [True, False]


@triton.jit
def recurrence_kernel(x_ptr, decay_ptr, y_ptr, T, D: tl.constexpr, TOGETHER: tl.constexpr):
    d, n = tl.arange(0, D), tl.arange(0, 16)
    state = tl.zeros((D, 16), tl.float32)
    for t in range(T):
        x = tl.load(x_ptr + t * D + d)
        decay = tl.load(decay_ptr + t * 16 + n)
        state = state * decay[None, :] + x[:, None]
        if TOGETHER:
            tl.store(y_ptr + t, tl.sum(state))
        else:
            tl.store(y_ptr + t * D + d, tl.sum(state, 1))


def test_a_loop_whose_threads_go_on_by_themselves_has_all_registers() -> None:
    """The compiler otherwise moves what is loaded for the next trip to the end of this one, to save registers."""
    signature = "*fp16:16, *fp16:16, *fp32:16, i32, 64"
    alone, together = (recurrence_kernel.translate(f"{signature}, {share}") for share in (False, True))
    assert "(for the next iteration)" in alone.source
    assert "__launch_bounds__(NUM_THREADS, 1)" in alone.source
    assert "__launch_bounds__(NUM_THREADS)" in together.source, "threads wait for each other: more blocks hide that"


@triton.jit
def columns_kernel(x_ptr, out_ptr, scale_ptr, M, N, ROWS: tl.constexpr, COLS: tl.constexpr, REDUCES: tl.constexpr):
    m, n = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.program_id(1) * COLS + tl.arange(0, COLS)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :]).to(tl.float32)
    if REDUCES:
        scale = tl.max(tl.abs(x), 0)
        x = x * 120 / scale[None, :]
        tl.store(scale_ptr + tl.program_id(0) * N + n, scale)
    tl.store(out_ptr + n[None, :] * M + m[:, None], x.to(tl.int8))


def test_what_threads_load_for_one_another_and_reduce_has_room(run_everywhere: Any) -> None:
    """The compiler, which takes as few registers as it can, puts loads behind stores to shared memory."""
    signature = "*fp16:16, *i8:16, *fp32:16, i32:16, i32:16"
    sizes = {"large": "128, 64, True", "small": "64, 64, True", "without": "128, 64, False"}
    texts = {size: columns_kernel.translate(f"{signature}, {named}") for size, named in sizes.items()}
    assert {size: "MIN_BLOCKS" in text.source for size, text in texts.items()} == {
        "large": True, "small": False, "without": False
    }  # fmt: skip
    assert "constexpr int MIN_BLOCKS = 6; " in texts["large"].source
    if nvrtc.is_available():
        assert nvrtc.compile_text(texts["large"]).spill_bytes == 0
    x = np.random.default_rng(6).integers(1, 5, (128, 128)).astype(np.float16)
    arguments = x, np.zeros((128, 128), np.int8), np.zeros((1, 128), np.float32), 128, 128
    found = run_everywhere(columns_kernel, (1, 2), *arguments, ROWS=128, COLS=64, REDUCES=True)
    np.testing.assert_array_equal(found[2][0], x.max(0))
    np.testing.assert_array_equal(found[1], (x.astype(int) * 120 // x.max(0).astype(int)).T)


@triton.jit
def state_kernel(x_ptr, a_ptr, state_ptr, out_ptr, D, STATE: tl.constexpr, BLOCK: tl.constexpr, PAIRS: tl.constexpr):
    d, s = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), tl.arange(0, STATE)
    mask, at = d < D, d[:, None] * STATE + s[None, :]
    x = tl.load(x_ptr + d, mask=mask, other=0.0)
    a = tl.load(a_ptr + at, mask=mask[:, None], other=0.0)
    state = tl.load(state_ptr + at, mask=mask[:, None], other=0.0)
    state = state * tl.exp(a) + x[:, None]
    if PAIRS:
        tl.store(out_ptr + d, tl.sum(tl.sum(tl.abs(state[:, :, None] - a[:, None, :]), 2), 1), mask=mask)
    else:
        tl.store(out_ptr + d, tl.sum(state, 1), mask=mask)


def test_what_lanes_load_and_reduce_is_under_way_at_once(run_everywhere: Any) -> None:
    """Not where all pairs are computed, which takes longer than memory, nor where few threads would be left."""
    signature = "*fp32:16, *fp32:16, *fp32:16, *fp32:16, i32, 16"
    sizes = {"loaded": "64, False", "few": "32, False", "much": "512, False", "pairs": "64, True"}
    texts = {size: state_kernel.translate(f"{signature}, {named}", num_warps=2) for size, named in sizes.items()}
    bounds = {size: "MIN_BLOCKS" in text.source for size, text in texts.items()}
    assert bounds == {"loaded": True, "few": False, "much": False, "pairs": False}
    if nvrtc.is_available():
        assert nvrtc.compile_text(texts["loaded"]).spill_bytes == 0
    x, a, state = (
        np.random.default_rng(7).normal(size=shape).astype(np.float32) for shape in ((70,), (70, 16), (70, 16))
    )
    out = run_everywhere(state_kernel, (2,), x, a, state, np.zeros(70, np.float32), 70, STATE=16, BLOCK=64, PAIRS=False,
                         num_warps=2, tolerance=1e-4)[3]  # fmt: skip
    np.testing.assert_allclose(out, (state * np.exp(a) + x[:, None]).sum(1), rtol=1e-3, atol=1e-3)


@triton.jit
def gates_kernel(x_ptr, y_ptr, out_ptr, D, BLOCK: tl.constexpr, FIELDS: tl.constexpr):
    row, at = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask, start = at < D, row * FIELDS * D + at
    total = tl.zeros((BLOCK,), tl.float32)
    for field in tl.static_range(FIELDS):
        total += tl.load(x_ptr + start + field * D, mask=mask) * tl.load(y_ptr + start + field * D, mask=mask)
    tl.store(out_ptr + row * D + at, total, mask=mask)


@triton.jit
def filter_kernel(x_ptr, out_ptr, H, W, ROWS: tl.constexpr, COLS: tl.constexpr, ALONG: tl.constexpr):
    r, c = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.program_id(1) * COLS + tl.arange(0, COLS)
    inside = (r[:, None] < H - 2) & (c[None, :] < W - 2)
    total = tl.zeros((ROWS, COLS), tl.float32)
    for step in tl.static_range(3):
        if ALONG:
            total += tl.load(x_ptr + r[:, None] * W + c[None, :] + step, mask=inside, other=0.0)
        else:
            total += tl.load(x_ptr + (r + step)[:, None] * W + c[None, :], mask=inside, other=0.0)
    tl.store(out_ptr + r[:, None] * W + c[None, :], total, mask=inside)


@triton.jit
def transpose_kernel(x_ptr, out_ptr, M, N, SIDE: tl.constexpr):
    m, n = tl.program_id(0) * SIDE + tl.arange(0, SIDE), tl.program_id(1) * SIDE + tl.arange(0, SIDE)
    x = tl.load(x_ptr + m[:, None] * N + n[None, :], mask=(m[:, None] < M) & (n[None, :] < N))
    tl.store(out_ptr + n[:, None] * M + m[None, :], tl.trans(x), mask=(n[:, None] < N) & (m[None, :] < M))


def test_what_neighbours_load_one_by_one_has_room(run_everywhere: Any) -> None:
    """The compiler, which takes as few registers as it can, starts a few of so many loads at a time."""
    names = {
        "fields": gates_kernel.translate("*fp16:16, *fp16:16, *fp32:16, i32, 1024, 3"),
        "few": gates_kernel.translate("*fp16:16, *fp16:16, *fp32:16, i32, 1024, 1"),
        "aligned": gates_kernel.translate("*fp16:16, *fp16:16, *fp32:16, i32:16, 1024, 3"),
        "moves": transpose_kernel.translate("*fp16:16, *fp16:16, i32, i32, 64"),
        "along rows": filter_kernel.translate("*fp32:16, *fp32:16, i32, i32, 16, 64, True"),
        "other rows": filter_kernel.translate("*fp32:16, *fp32:16, i32, i32, 16, 64, False"),
    }
    room = "constexpr int MIN_BLOCKS = 6; "
    assert {name for name, text in names.items() if room in text.source} == {"fields", "moves"}
    x, y = np.random.default_rng(7).normal(size=(2, 3, 5, 101)).astype(np.float16)
    out = run_everywhere(gates_kernel, (3, 1), x, y, np.zeros((3, 101), np.float32), 101, BLOCK=128, FIELDS=5)[2]
    np.testing.assert_allclose(out, (x.astype(np.float64) * y).sum(1), rtol=1e-2, atol=1e-2)


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        a = tl.load(a_ptr + m[:, None] * K + start + k[None, :])
        acc = tl.dot(a, tl.load(b_ptr + (start + k)[:, None] * N + n[None, :]), acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc)


def test_fragments_that_are_multiplied_a_few_times_are_read_ahead() -> None:
    """By itself the compiler reads one, waits, multiplies and reads the next. Of words it would hold so many that it spills."""

    def blocks(element: str, tile: str, num_warps: int, arch: str = "sm_90a") -> int | None:
        pointers = f"*{element}:16, *{element}:16, *fp32:16"
        source = product_kernel.translate(f"{pointers}, i32:16, i32:16, {tile}", num_warps=num_warps, arch=arch).source
        named = re.search(r"MIN_BLOCKS = (\d+);", source)
        return int(named[1]) if named else None

    assert blocks("fp16", "16, 128, 64", 4) == 4, "shared memory has room for four: 128 registers a thread"
    assert blocks("bf16", "32, 128, 64", 4) is None, "two stages, filled again, leave room for five"
    assert blocks("bf16", "16, 256, 64", 4) == 2
    assert blocks("fp16", "16, 64, 32", 4) is None, "twelve blocks have no registers to spare"
    assert blocks("fp32", "16, 128, 32", 4) is None
    assert blocks("fp16", "128, 128, 64", 8, "sm_80") is None, "64 sums a thread"


@triton.jit
def unaligned_product(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        at = start + k
        a = tl.load(a_ptr + m[:, None] * K + at[None, :], mask=(m[:, None] < M) & (at[None, :] < K), other=0.0)
        b = tl.load(b_ptr + n[None, :] * K + at[:, None], mask=(n[None, :] < N) & (at[:, None] < K), other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


def test_rows_that_are_shifted_have_room() -> None:
    """By itself the compiler keeps to 64 registers, in which a thread waits for each piece of a row."""

    def blocks(tile: str, num_warps: int) -> int | None:
        pointers = "*fp16:16, *fp16:16, *fp32:16"
        source = unaligned_product.translate(f"{pointers}, i32, i32, i32, {tile}", num_warps=num_warps).source
        assert "align_rows<" in source
        named = re.search(r"MIN_BLOCKS = (\d+);", source)
        return int(named[1]) if named else None

    assert blocks("64, 64, 64", 4) == 3
    assert blocks("128, 128, 64", 8) is None, "by two blocks the compiler would lose one"
