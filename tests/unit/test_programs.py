"""Blocks that run programs of several axes of the grid, one after another: which kernels, in which text, and that all run."""

from __future__ import annotations

import math
import re
from typing import Any

import dot_kernels as kernels
import dot_kernels_more as more
import numpy as np
import pytest
import test_computed_operands as computed
import tilewright as triton
import tilewright.language as tl
from test_rings import PLAIN, TILE, USUAL, planned
from tilewright.runtime.launching.grids import started

SIGNATURE = "*fp16:16, *fp16:16, *fp32:16, *i32:16, i32, i32:16, i32:16, 64, 16, 32"


@triton.jit
def batched(a_ptr, b_ptr, c_ptr, places_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    batch = tl.program_id(2)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    cols = tl.program_id(1) * BN + tl.arange(0, BN)
    a_ptr += batch * M * K
    b_ptr += batch * K * N
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :], mask=(rows < M)[:, None] & (k < K)[None, :], other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + cols[None, :], mask=(k < K)[:, None] & (cols < N)[None, :], other=0.0)
        total = tl.dot(a, b, total)
    tl.store(c_ptr + batch * M * N + rows[:, None] * N + cols[None, :], total,
             mask=(rows < M)[:, None] & (cols < N)[None, :])  # fmt: skip
    place = (batch * tl.num_programs(1) + tl.program_id(1)) * tl.num_programs(0) + tl.program_id(0)
    tl.store(
        places_ptr + place, 10000 * batch + 100 * tl.program_id(1) + tl.program_id(0) + 1000000 * tl.num_programs(2)
    )


@triton.jit
def heads(a_ptr, b_ptr, c_ptr, lengths_ptr, M, N, K, ENDS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
          BK: tl.constexpr):  # fmt: skip
    # Every program multiplies BM rows of A by its head of B; how much of K is decided by ENDS.
    first = tl.program_id(0) * BM
    head = tl.program_id(1)
    rows, cols = first + tl.arange(0, BM), tl.arange(0, BN)
    b_ptr += head.to(tl.int64) * K * N
    total = tl.zeros((BM, BN), tl.float32)
    begin = tl.program_id(2) * 128 if ENDS == "share" else 0
    if ENDS == "K":
        end = K
    if ENDS == "share":
        end = tl.minimum(begin + 128, K)
    if ENDS == "place":
        end = first + BM
    if ENDS == "memory":
        end = tl.load(lengths_ptr + head)
    for k in range(begin, end, BK):
        a = tl.load(a_ptr + rows[:, None] * K + (k + tl.arange(0, BK))[None, :])
        b = tl.load(b_ptr + (k + tl.arange(0, BK))[:, None] * N + cols[None, :])
        total = tl.dot(a, b, total)
    c_ptr += begin * M
    tl.store(c_ptr + (head * M + rows)[:, None] * N + cols[None, :], total)


@triton.jit
def lower_half(a_ptr, c_ptr, M, K, BM: tl.constexpr, BK: tl.constexpr):
    # A times its transpose, as far as the result does not repeat itself.
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    rows, cols = pid_m * BM + tl.arange(0, BM), pid_n * BM + tl.arange(0, BM)
    if pid_m >= pid_n:
        total = tl.zeros((BM, BM), tl.float32)
        for k in range(0, K, BK):
            a = tl.load(a_ptr + rows[:, None] * K + (k + tl.arange(0, BK))[None, :])
            b = tl.load(a_ptr + cols[:, None] * K + (k + tl.arange(0, BK))[None, :])
            total = tl.dot(a, b.T, total)
        tl.store(c_ptr + rows[:, None] * M + cols[None, :], total)


@triton.jit
def by_columns(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, cols = tl.program_id(1) * BM + tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + rows[:, None] * K + k[None, :], mask=rows[:, None] < M, other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + cols[None, :], mask=cols[None, :] < N, other=0.0)
        total = tl.dot(a, b, total)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], total, mask=(rows < M)[:, None] & (cols < N)[None, :])


HEADS = "*fp16:16, *fp16:16, *fp32:16, *i32:16, i32:16, i32:16, i32:16, '{}', 64, 32, 32"


@pytest.mark.parametrize(
    ("kernel", "signature", "axes"),
    [
        (batched, SIGNATURE, 3),
        (heads, HEADS.format("K"), 2),
        (heads, HEADS.format("share"), 3),
        (kernels.product, PLAIN, 2),
        # Where warps do more than wait for products, a few programs along x do.
        (
            computed.widened,
            "*fp16:16, *i8:16, *fp32:16, *fp16:16, i32:16, i32:16, i32:16, False, True, False, 64, 128, 32",
            1,
        ),
        (more.rescaled, f"{USUAL}, {TILE}", 1),
        # The hardware gives the next program to whoever is done first, where some take longer.
        (heads, HEADS.format("place"), 0),
        (heads, HEADS.format("memory"), 0),
    ],
)
def test_whose_programs_share_a_block(kernel: Any, signature: str, axes: int) -> None:
    found = planned(kernel, signature)
    made = found.artifact
    assert found.schedule.rings.has_producer and made.program_axes == axes and made.persistent is (axes > 0)
    counts = [p.name for p in made.launch_parameters[len(made.parameters) :]]
    assert counts == (["num_programs"] if axes == 1 else [f"num_programs_{axis}" for axis in "xyz"[:axes]])
    grid = ("programs, programs, 1", "blocks, programs, 1", "blocks, blocks, 1", "blocks, blocks, blocks")[axes]
    assert f"grid ({grid})" in made.source


def test_loops_count_programs_under_the_users_names() -> None:
    text = planned(batched, SIGNATURE).artifact.source
    loops = (
        "for (int batch = blockIdx.z; batch < num_programs_z; batch += gridDim.z) {",
        "for (int program_y = blockIdx.y; program_y < num_programs_y; program_y += gridDim.y) {",
        "for (int program_x = blockIdx.x; program_x < num_programs_x; program_x += gridDim.x) {",
    )
    nest = r"\s+".join(map(re.escape, loops))
    assert len(re.findall(nest, text)) == 2  # of the loading thread, and of those that multiply
    assert "batch = tl.program_id(2)    (the loop above counts it)" in text
    assert "along each axis a block takes every gridDim-th program, the first blockIdx" in text
    assert "num_programs_x * num_programs_y * num_programs_z <= (M + BM - 1) / BM" in text
    text = planned(heads, HEADS.format("K")).artifact.source
    assert text.count("for (int head = blockIdx.y; head < num_programs_y; head += gridDim.y) {") == 2


@pytest.mark.parametrize(
    "sizes",
    [(5, 64, 16, 32), (1, 300, 16, 48), (1, 64, 96, 32), (7, 190, 80, 48), (1, 2, 16, 16), (2, 200, 48, 0)],
)
def test_all_programs_run(sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    batches, m, n, k = sizes
    generator = np.random.default_rng(1)
    a, b = (
        generator.standard_normal(shape).astype(np.float16)
        for shape in ((batches, m, max(k, 8)), (batches, max(k, 8), n))
    )
    c = np.full((batches, m, n), np.nan, np.float32)
    grid = (triton.cdiv(m, 64), triton.cdiv(n, 16), batches)
    places = np.zeros(grid[::-1], np.int32)
    made = batched[grid](a, b, c, places, m, n, k, BM=64, BN=16, BK=32)
    assert made.artifact.program_axes == (3 if k else 0)  # of empty operands there is no tensor map
    expected = a.astype(np.float64) @ b.astype(np.float64) if k else np.zeros((batches, m, n))
    np.testing.assert_allclose(c, expected, rtol=1e-3, atol=1e-2)
    z, y, x = np.indices(grid[::-1])
    np.testing.assert_array_equal(places, 10000 * z + 100 * y + x + 1000000 * batches)


@pytest.mark.parametrize("axis", range(3))
def test_no_programs(axis: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    a, b, c, places = np.ones((64, 32), np.float16), np.ones((32, 16), np.float16), np.ones((64, 16)), np.ones(1)
    grid = [2, 2, 2]
    grid[axis] = 0
    batched[tuple(grid)](a, b, c.astype(np.float32), places.astype(np.int32), 64, 16, 32, BM=64, BN=16, BK=32)
    assert (c == 1).all() and (places == 1).all()


@pytest.mark.parametrize(
    ("grid", "axes", "blocks"),
    [
        ((100, 1, 1), 1, (100, 1, 1)),
        ((1000, 2, 1), 1, (66, 2, 1)),
        ((9, 70, 1), 1, (9, 70, 1)),
        ((4, 4, 64), 3, (4, 4, 8)),  # whole products
        ((4, 4, 64), 2, (1, 2, 64)),  # of axes that the kernel does not ask for each has its own blocks
        ((4, 4, 200), 2, (4, 4, 200)),
        ((32, 32, 1), 2, (8, 16, 1)),  # 8 rows and 16 columns are less to read than 4 and 32
        ((8, 128, 1), 2, (8, 16, 1)),
        ((128, 8, 1), 3, (16, 8, 1)),
        ((24, 40, 1), 2, (12, 10, 1)),
        ((3, 2, 100), 3, (3, 2, 20)),
        ((37, 41, 1), 2, (3, 41, 1)),  # 13 rounds; of blocks that all have as much to do it would be 12
        ((5, 7, 11), 3, (5, 7, 11)),  # 4 rounds, where programs one by one take 3
        ((3, 5, 7), 3, (3, 5, 7)),
        ((1, 65535, 32767), 3, (1, 66, 2)),
    ],
)
def test_blocks_that_are_started(grid: tuple[int, int, int], axes: int, blocks: tuple[int, int, int]) -> None:
    assert started(grid, axes, 132) == (blocks, grid[:axes])


@pytest.mark.parametrize(
    ("grid", "axes", "blocks"),
    [
        ((32, 32, 1), 2, (132, 1, 1)),
        ((5, 7, 1), 2, (35, 1, 1)),
        ((32, 32, 4), 3, (132, 1, 1)),
        ((32, 32, 4), 2, (33, 1, 4)),  # of an axis that the kernel does not ask for each place has its own blocks
        ((32, 32, 200), 2, (1, 1, 200)),
        ((70, 3, 2), 1, (22, 3, 2)),
    ],
)
def test_blocks_that_take_turns(grid: tuple[int, int, int], axes: int, blocks: tuple[int, int, int]) -> None:
    assert started(grid, axes, 132, turns=True) == (blocks, grid[:axes])


def test_no_grid_leaves_much_to_a_few_blocks() -> None:
    generator = np.random.default_rng(1)
    for _ in range(300):
        grid = tuple(int(side) for side in generator.integers(1, (40, 40, 20)))
        (x, y, z), counts = started(grid, 3, 132)  # type: ignore[arg-type]
        fewest = -(-math.prod(grid) // 132)
        rounds = math.prod(-(-side // blocks) for side, blocks in zip(grid, (x, y, z), strict=True))
        assert counts == grid and ((x * y * z <= 132 and fewest <= rounds <= fewest * 9 / 8) or (x, y, z) == grid)


def test_a_grid_of_no_integers() -> None:
    for axes in (1, 2, 3):
        with pytest.raises(TypeError):
            started((1.5, 2, 2), axes, 132)  # type: ignore[arg-type]


@triton.jit
def lower_blocks(a_ptr, c_ptr, M, K, WHEN: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    # A times its transpose where WHEN says so, in blocks of rows that may be higher than the columns are wide.
    i, j = tl.program_id(0), tl.program_id(1)
    if WHEN == "below" and i < j:
        return
    if WHEN == "touched":
        above = i * BM + BM <= j * BN
        if above:
            return
    if WHEN == "above" and j <= i:
        return
    if WHEN == "band" and (i * BM > j * BN + 64 or i * BM + BM <= j * BN):
        return
    if WHEN == "rows" and i * BM >= M - 40:
        return
    if WHEN == "odd" and (i + j) % 2 == 1:
        return
    if WHEN == "square" and i * i < j:
        return
    rows, cols = i * BM + tl.arange(0, BM), j * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptr + rows[:, None] * K + (k + tl.arange(0, BK))[None, :], mask=rows[:, None] < M, other=0.0)
        b = tl.load(a_ptr + cols[:, None] * K + (k + tl.arange(0, BK))[None, :], mask=cols[:, None] < M, other=0.0)
        total = tl.dot(a, b.T, total)
    tl.store(c_ptr + rows[:, None] * M + cols[None, :], total, mask=(rows < M)[:, None] & (cols < M)[None, :])


SOME = "*fp16:16, *fp32:16, i32:16, i32:16, '{}', 64, 32, 32"
LINES = {  # of programs, of which some do something
    "below": ("const int useful = max(num_programs_x - j, 0);", "const int i = j + turn;"),
    "touched": (
        "const int first = (max(j * BN + 1 - BM, 0) + BM - 1) / BM;",
        "const int useful = max(num_programs_x - first, 0);",
        "const int i = first + turn;",
    ),
    "above": ("const int useful = min(num_programs_x, j);", "const int i = turn;"),
    "rows": ("const int useful = min(num_programs_x, (max(M - 40, 0) + BM - 1) / BM);", "const int i = turn;"),
}


@pytest.mark.parametrize("when", LINES)
def test_blocks_take_turns_at_programs_that_do_something(when: str) -> None:
    made = planned(lower_blocks, SOME.format(when)).artifact
    *counted, program = LINES[when]
    assert made.program_axes == 2 and made.in_turns
    assert (
        "grid (blocks, 1, 1)" in made.source
        and "each block takes every gridDim.x-th, the first blockIdx.x" in made.source
    )
    lines = (
        "for (int j = 0; j < num_programs_y; ++j) {",
        *counted,
        "for (; turn < useful; turn += gridDim.x) {",
        program,
    )
    text = re.sub(r"\s*//.*", "", made.source)
    assert len(re.findall(r"\s+".join(map(re.escape, lines)), text)) == 2, (
        text
    )  # the loading thread, and the multiplying ones
    assert text.count("turn -= useful;") == 2 and "return;" not in text[text.index("__global__") :]
    assert "(the loops above leave such programs out)" in made.source


def test_all_that_a_program_does_may_stand_under_the_condition() -> None:
    made = planned(lower_half, "*fp16:16, *fp32:16, i32:16, i32:16, 64, 32").artifact
    assert made.in_turns and made.source.count("const int pid_m = pid_n + turn;") == 2
    assert "if pid_m >= pid_n:    (the loops above leave all other programs out)" in made.source


def test_lines_lie_along_the_axis_that_the_condition_can_be_solved_for() -> None:
    text = planned(lower_blocks, SOME.format("square")).artifact.source
    assert text.count("for (int i = 0; i < num_programs_x; ++i) {") == text.count("const int j = turn;") == 2
    assert "const int useful = min(num_programs_y, max(i * i + 1, 0));" in text


def test_other_conditions_are_asked_by_each_program() -> None:
    made = planned(lower_blocks, SOME.format("odd")).artifact
    assert made.program_axes == 0 and not made.in_turns and "return;" in made.source


@pytest.mark.parametrize(("when", "m"), [*((when, 320) for when in (*LINES, "band", "odd", "square")), ("below", 200)])
def test_useful_programs_run_and_no_others(
    when: str, m: int, run_everyhow: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TILEWRIGHT_ARCH", "sm_90a")
    a = np.random.default_rng(1).standard_normal((m, 64)).astype(np.float16)
    grid = (triton.cdiv(m, 64), triton.cdiv(m, 32))
    i, j = np.indices(grid)
    useful = {
        "below": i >= j, "touched": i * 64 + 64 > j * 32, "above": j > i, "rows": i * 64 < m - 40, "odd": (i + j) % 2 == 0,
        "band": (i * 64 <= j * 32 + 64) & (i * 64 + 64 > j * 32), "square": i * i >= j,
    }[when]  # fmt: skip
    stored = np.kron(useful, np.ones((64, 32)))[:m, :m] > 0
    expected = np.where(stored, a.astype(np.float64) @ a.T.astype(np.float64), 7)
    arguments = (a, np.full((m, m), 7, np.float32), m, 64)
    for _, c, *_ in run_everyhow(lower_blocks, grid, arguments, when == "below", WHEN=when, BM=64, BN=32, BK=32):
        np.testing.assert_allclose(c, expected, rtol=1e-3, atol=1e-2)
