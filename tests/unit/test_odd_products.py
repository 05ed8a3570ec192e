"""Products of matrices whose rows are not aligned: how they are copied, and how the result is stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    k, inside = tl.arange(0, BK), (m[:, None] < M) & (n[None, :] < N)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        left = start + k < K
        a = tl.load(a_ptr + m[:, None] * K + start + k[None, :], mask=(m[:, None] < M) & left[None, :], other=0.0)
        b = tl.load(b_ptr + (start + k)[:, None] * N + n[None, :], mask=left[:, None] & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(c_ptr.dtype.element_ty), mask=inside)


def translated(element: str, tile: str, num_warps: int = 4) -> Any:
    pointers = ", ".join([f"*{element}:16"] * 3)
    return product.translate(f"{pointers}, i32, i32, i32, {tile}", arch="sm_90a", num_warps=num_warps)


def test_the_result_goes_to_neighbours() -> None:
    """The halves of a thread's sums lie 8 bytes apart: each store would write pieces of 8 sectors."""
    source = translated("fp16", "64, 64, 32").source
    assert "acc_rounded_shared" in source
    assert "int n = program_y * BN + tile_col;" in source, "a warp has 32 neighbours of a row"


@pytest.mark.parametrize(("tile", "num_warps", "shared_bytes"), [("64, 128, 64", 8, 102400), ("128, 64, 32", 4, 54272)])
def test_it_takes_the_memory_of_the_copies_where_that_leaves_room_for_a_block(
    tile: str, num_warps: int, shared_bytes: int
) -> None:
    artifact = translated("fp16", tile, num_warps)
    assert artifact.shared_bytes == shared_bytes, "that of the copies alone"
    assert "// everyone has read a, whose memory acc_rounded_shared takes" in artifact.source


def test_words_are_copied_one_by_one_where_registers_have_room() -> None:
    """Beside 128 sums a thread would find 64 addresses anew in each trip: there rows are copied as they lie in memory."""
    words, rows = translated("fp32", "64, 64, 32").source, translated("fp32", "128, 128, 32").source
    assert "cp_async_4(" in words and "copy_rows" not in words
    assert "cp_async_4(" not in rows and "copy_rows" in rows
    assert "copy_rows" in translated("fp16", "64, 64, 32").source, "no asynchronous copy takes halves"


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float16, 2e-2), (np.float32, 2e-2)])
@pytest.mark.parametrize("tile", [(64, 64, 32), (32, 128, 16)])
def test_products_are_right(dtype: Any, tolerance: float, tile: tuple[int, ...], run_everywhere: Any) -> None:
    rng = np.random.default_rng(sum(tile))
    a, b = rng.normal(size=(70, 45)).astype(dtype), rng.normal(size=(45, 51)).astype(dtype)
    sides = dict(zip(("BM", "BN", "BK"), tile, strict=True))
    grid = (-(-70 // tile[0]), -(-51 // tile[1]))
    c = run_everywhere(product, grid, a, b, np.full((70, 51), 9, dtype), 70, 51, 45, **sides, tolerance=tolerance)[2]
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=tolerance, atol=0.05)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_no_thread_reads_what_others_have_overwritten(
    dtype: Any, run_everyhow: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    tile = {"BM": 128, "BN": 64, "BK": 32}
    assert "union" in translated("fp16" if dtype == np.float16 else "fp32", "128, 64, 32").source
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(70, 75)).astype(dtype), rng.normal(size=(75, 51)).astype(dtype)
    for *_, c, _, _, _ in run_everyhow(product, (1, 1), (a, b, np.zeros((70, 51), dtype), 70, 51, 75), **tile):
        np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=2e-2, atol=0.05)


@triton.jit
def logits(x_ptr, w_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    k, inside = tl.arange(0, BK), (m[:, None] < M) & (n[None, :] < N)
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        x = tl.load(x_ptr + m[:, None] * K + start + k[None, :], mask=m[:, None] < M, other=0.0)
        w = tl.load(w_ptr + n[None, :] * K + start + k[:, None], mask=n[None, :] < N, other=0.0)
        acc = tl.dot(x, w, acc)
    tl.store(y_ptr + m[:, None] * N + n[None, :], acc.to(y_ptr.dtype.element_ty), mask=inside)


@pytest.mark.parametrize("tile", [(128, 64, 64), (64, 128, 64)])
def test_results_beside_tensor_copies(
    tile: tuple[int, ...], run_everyhow: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tokens by words of an odd vocabulary: what is multiplied is aligned, the result is not, and no tensor copy stores it."""
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    signature = f"*fp16:16, *fp16:16, *fp16:16, i32:16, i32, i32:16, {', '.join(map(str, tile))}"
    source = logits.translate(signature, arch="sm_90a").source
    assert "tma_load" in source and "acc_rounded_shared" in source and "no TMA     store" in source
    rng = np.random.default_rng(tile[0])
    x, w = rng.normal(size=(144, 192)).astype(np.float16), rng.normal(size=(131, 192)).astype(np.float16)
    grid, sides = (-(-144 // tile[0]), -(-131 // tile[1])), dict(zip(("BM", "BN", "BK"), tile, strict=True))
    for *_, y, _, _, _ in run_everyhow(logits, grid, (x, w, np.zeros((144, 131), np.float16), 144, 131, 192), **sides):
        np.testing.assert_allclose(y, x.astype(np.float64) @ w.astype(np.float64).T, rtol=2e-2, atol=0.1)


@pytest.mark.parametrize(
    ("arch", "tile", "options"), [("sm_86", "128, 256, 64", {}), ("sm_90a", "128, 256, 64", {"num_stages": 4})]
)
def test_results_stay_in_place_where_memory_has_no_room(arch: str, tile: str, options: dict[str, int]) -> None:
    """A kernel that fits must not be refused, nor lose a stage that was asked for, for what its result moves through."""
    signature = "*fp16:16, *fp16:16, *fp16:16, i32:16, i32, i32:16"
    artifact = logits.translate(f"{signature}, {tile}", arch=arch, num_warps=8, **options)
    assert "acc_rounded_shared" not in artifact.source
    assert not options or "NUM_STAGES = 4" in artifact.source


@triton.jit
def persistent_product(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    tiles_n = tl.cdiv(N, BN)
    for tile in range(tl.program_id(0), tl.cdiv(M, BM) * tiles_n, tl.num_programs(0)):
        m, n = tile // tiles_n * BM + tl.arange(0, BM), tile % tiles_n * BN + tl.arange(0, BN)
        acc = tl.zeros((BM, BN), tl.float32)
        for start in range(0, K, BK):
            k = start + tl.arange(0, BK)
            a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
            b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
            acc = tl.dot(a, b, acc)
        inside = (m[:, None] < M) & (n[None, :] < N)
        tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(c_ptr.dtype.element_ty), mask=inside)


@pytest.mark.parametrize(("dtype", "element"), [(np.float16, "fp16"), (np.float32, "fp32")])
def test_so_does_that_of_each_of_many_tiles(dtype: Any, element: str, run_everyhow: Any) -> None:
    """Two barriers a tile are few beside those of its sum."""
    source = persistent_product.translate(
        f"*{element}:16, *{element}:16, *{element}:16, i32, i32, i32, 64, 64, 32"
    ).source
    assert ("acc_rounded_shared" if element == "fp16" else "acc_shared") in source
    rng = np.random.default_rng(5)
    a, b = rng.normal(size=(130, 45)).astype(dtype), rng.normal(size=(45, 131)).astype(dtype)
    sides, c = {"BM": 64, "BN": 64, "BK": 32}, np.full((130, 131), np.nan, dtype)
    wide = a.astype(np.float64) @ b.astype(np.float64)
    for *_, out, _, _, _ in run_everyhow(persistent_product, (2,), (a, b, c, 130, 131, 45), **sides):
        assert np.linalg.norm(out - wide) < 2e-3 * np.linalg.norm(wide)
