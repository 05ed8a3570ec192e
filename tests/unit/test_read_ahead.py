"""Loops whose loads find their addresses by numbers from memory: these are read an iteration before the copies."""

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

RNG = np.random.default_rng(21)


@triton.jit
def paged(
    q_ptr, k_ptr, v_ptr, table_ptr, length_ptr, out_ptr, stride, M: tl.constexpr, PAGE: tl.constexpr, D: tl.constexpr
):
    # Keys and values of a sequence lie in pages, whose numbers a table has.
    sequence = tl.program_id(0)
    m, n, d = tl.arange(0, M), tl.arange(0, PAGE), tl.arange(0, D)
    q = tl.load(q_ptr + (sequence * M + m[:, None]) * D + d[None, :])
    length = tl.load(length_ptr + sequence)
    total = tl.zeros((M, D), dtype=tl.float32)
    for j in range(0, tl.cdiv(length, PAGE)):
        page = tl.load(table_ptr + sequence * stride + j).to(tl.int64)
        k = tl.load(k_ptr + page * PAGE * D + d[:, None] + n[None, :] * D)
        v = tl.load(v_ptr + page * PAGE * D + d[None, :] + n[:, None] * D)
        p = tl.where(j * PAGE + n[None, :] < length, tl.dot(q, k), 0.0)
        total += tl.dot(p.to(tl.float16), v)
    tl.store(out_ptr + (sequence * M + m[:, None]) * D + d[None, :], total)


@triton.jit
def listed_rows(
    a_ptr, b_ptr, rows_ptr, out_ptr, count, lda, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr, STEP: tl.constexpr
):
    # Rows of B from a list, along K; loops of several kinds.
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    total = tl.zeros((M, N), dtype=tl.float32)
    first, stop = 0, count
    if STEP < 0:
        first, stop = (count - 1) // BK * BK, -1
    for start in range(first, stop, STEP):
        rows = tl.load(rows_ptr + start + k, mask=start + k < count, other=0)
        a = tl.load(a_ptr + m[:, None] * lda + start + k[None, :], mask=start + k[None, :] < count, other=0.0)
        b = tl.load(b_ptr + rows[:, None] * N + n[None, :], mask=(start + k < count)[:, None], other=0.0)
        total += tl.dot(a, b)
    tl.store(out_ptr + m[:, None] * N + n[None, :], total)


@triton.jit
def bags(table_ptr, index_ptr, offset_ptr, weight_ptr, out_ptr, D, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    bag = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in tl.range(tl.load(offset_ptr + bag), tl.load(offset_ptr + bag + 1), num_stages=STAGES):
        row = tl.load(index_ptr + i)
        w = tl.load(weight_ptr + row)
        total += tl.load(table_ptr + row * D + columns, mask=columns < D, other=0.0) * w + row
    tl.store(out_ptr + bag * D + columns, total, mask=columns < D)


@triton.jit
def in_several_steps(x_ptr, row_ptr, slot_ptr, out_ptr, count, D, BLOCK: tl.constexpr):
    # The row's number is found by a slot, which also says where in the row to begin.
    columns = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in tl.range(tl.program_id(0), count, tl.num_programs(0), num_stages=4):
        slot = tl.load(slot_ptr + i)
        row = tl.load(row_ptr + slot)
        total += tl.load(x_ptr + row * D + slot + columns)
    tl.store(out_ptr + tl.program_id(0) * BLOCK + columns, total)


@triton.jit
def elements(x_ptr, index_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    for row in tl.range(0, rows, num_stages=3):
        index = tl.load(index_ptr + row * BLOCK + offsets)
        tl.store(out_ptr + row * BLOCK + offsets, tl.load(x_ptr + index))


@triton.jit
def squares(x_ptr, index_ptr, out_ptr, rows, N, BLOCK: tl.constexpr):
    # Each thread would need two parts of the same numbers.
    offsets = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for row in tl.range(0, rows, num_stages=3):
        index = tl.load(index_ptr + row * BLOCK + offsets)
        total += tl.load(x_ptr + index[:, None] * N + index[None, :])
    tl.store(out_ptr + offsets[:, None] * BLOCK + offsets[None, :], total)


@triton.jit
def list_in_the_making(x_ptr, index_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    # Every row says which one follows.
    offsets = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in tl.range(0, rows, num_stages=3):
        row = tl.load(index_ptr + i)
        x = tl.load(x_ptr + row * BLOCK + offsets)
        total += x
        tl.store(index_ptr + i + 1, tl.sum(x).to(tl.int32) % rows)
    tl.store(out_ptr + offsets, total)


@triton.jit
def either_list(x_ptr, one_ptr, other_ptr, out_ptr, rows, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for i in tl.range(0, rows, num_stages=3):
        row = tl.load(one_ptr + i)
        if i % 2 == 0:
            row = tl.load(other_ptr + i)
        total += tl.load(x_ptr + row * BLOCK + offsets)
    tl.store(out_ptr + offsets, total)


@triton.jit
def sparse_product(
    out_ptr, values_ptr, column_ptr, start_ptr, b_ptr, N, BM: tl.constexpr, BK: tl.constexpr, BN: tl.constexpr
):
    # Blocks of A, compressed by rows, times B, of which tensor copies bring boxes.
    row = tl.program_id(0)
    m, k, n = tl.arange(0, BM), tl.arange(0, BK), tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(tl.load(start_ptr + row), tl.load(start_ptr + row + 1)):
        column = tl.load(column_ptr + i)
        a = tl.load(values_ptr + i * BM * BK + m[:, None] * BK + k[None, :])
        b = tl.load(b_ptr + (column * BK + k)[:, None] * N + n[None, :], mask=n[None, :] < N, other=0.0)
        total += tl.dot(a, b)
    tl.store(out_ptr + (row * BM + m)[:, None] * N + n[None, :], total, mask=n[None, :] < N)


def planned(kernel: Any, signature: str, **options: Any) -> Translation:
    """All stages of a translation."""
    return translate_stages(kernel, parse_signature(kernel, signature), Options(**options), find_target("sm_90a"))


def ahead_of(kernel: Any, signature: str, **options: Any) -> list[tuple[str, int]]:
    """What a kernel reads ahead of its copies, and by how many iterations."""
    rings = planned(kernel, signature, **options).schedule.rings
    return [(one.variable.name, one.distance) for one in rings.ahead]


@pytest.mark.parametrize(("m", "num_warps"), [(16, 4), (64, 4), (16, 1)])
@pytest.mark.parametrize("lengths", [(1, 100, 0), (64, 33, 31)])
def test_pages(lengths: tuple[int, ...], m: int, num_warps: int, run_everyhow: Any) -> None:
    page, d, stride = 32, 64, 4
    sequences, pages = len(lengths), 9
    q, k, v = (
        RNG.integers(-2, 3, (rows, d)).astype(np.float16) for rows in (sequences * m, pages * page, pages * page)
    )
    used = [-(-length // page) for length in lengths]
    table = np.full(sequences * stride, -(1 << 30), np.int32)  # what no page is for must not be read from
    for sequence, count in enumerate(used):
        table[sequence * stride : sequence * stride + count] = RNG.permutation(pages)[:count]
    table = table[: (sequences - 1) * stride + used[-1]]  # and what follows the last one is not there
    expected = np.zeros((sequences * m, d))
    for sequence, (length, count) in enumerate(zip(lengths, used, strict=True)):
        rows = (table[sequence * stride : sequence * stride + count][:, None] * page + np.arange(page)).ravel()[:length]
        own = slice(sequence * m, (sequence + 1) * m)
        expected[own] = q[own].astype(float) @ k[rows].T.astype(float) @ v[rows]
    out = np.full(expected.shape, np.nan, np.float32)
    arguments = [q, k, v, table, np.array(lengths, np.int32), out, stride]
    options = {"M": m, "PAGE": page, "D": d, "num_warps": num_warps, "num_stages": 3}
    for result in run_everyhow(paged, (sequences,), arguments, checked=100 in lengths, **options):
        np.testing.assert_array_equal(result[5], expected)


def test_pages_in_the_text() -> None:
    signature = "*fp16:16, *fp16:16, *fp16:16, *i32:16, *i32:16, *fp32:16, i32, 16, 32, 64"
    assert ahead_of(paged, signature) == [("next_page", 1)] * 2
    text = planned(paged, signature).artifact.source
    assert text.count("next_page = table_ptr[") == 1  # one number serves both copies
    assert "if (j + 1 < j_stop) find_tiles(j + 1);" in text and "if (j_stop > 0) find_tiles(0);" in text


def test_copies_follow_products_only_where_nothing_else_is_computed() -> None:
    """Of sums alone, copies behind the products leave these to be mixed with them; other work hides copies ahead of it.

    So do copies ahead of products that are few to a fragment: behind these they would come late.
    """
    computing = "*fp16:16, *fp16:16, *fp16:16, *i32:16, *i32:16, *fp32:16, i32, 16, 32, 64"
    adding = "*fp16:16, *fp16:16, *i32:16, *fp32:16, i32, i32:16"
    for kernel, signature, late in (
        (paged, computing, False),
        (listed_rows, f"{adding}, 16, 64, 64, 64", False),
        (listed_rows, f"{adding}, 64, 64, 64, 64", True),
    ):
        text = planned(kernel, signature, num_warps=2).artifact.source
        assert (text.rindex("load_tiles(") > text.rindex("mma_m16n8k16(")) == late == ("bool more" in text)


@pytest.mark.parametrize(("m", "num_warps", "step"), [(16, 4, 64), (16, 4, -64), (128, 8, 64), (128, 8, -64)])
@pytest.mark.parametrize("count", [1, 129, 320])
def test_listed_rows(count: int, m: int, num_warps: int, step: int, run_everyhow: Any) -> None:
    n, lda, bk = 64, 320, 64
    a, b = (RNG.integers(-2, 3, shape).astype(np.float16) for shape in ((m, lda), (50, n)))
    rows = RNG.integers(0, 50, count).astype(np.int32)
    expected = a[:, :count].astype(float) @ b[rows].astype(float)
    arguments = [a, b, rows, np.full((m, n), np.nan, np.float32), count, lda]
    options = {"M": m, "N": n, "BK": bk, "STEP": step, "num_warps": num_warps}
    signature = f"*fp16:16, *fp16:16, *i32:16, *fp32:16, i32, i32:16, {m}, {n}, {bk}, {step}"
    assert ahead_of(listed_rows, signature, num_warps=num_warps) == [("next_rows", 1)]
    for result in run_everyhow(listed_rows, (1,), arguments, checked=count == 129, **options):
        np.testing.assert_array_equal(result[3], expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("stages", [2, 3, 5])
def test_bags(stages: int, dtype: Any, run_everyhow: Any) -> None:
    d, sizes = 250, [0, 1, 7, 2]
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    table, weight = RNG.integers(-4, 5, (20, d)).astype(dtype), RNG.integers(-4, 5, 20).astype(dtype)
    index = RNG.integers(0, 20, offsets[-1]).astype(np.int64)
    values = table.astype(float) * weight.astype(float)[:, None] + np.arange(20)[:, None]
    expected = np.stack([values[index[a:b]].sum(0) for a, b in zip(offsets[:-1], offsets[1:], strict=True)])
    arguments = [table, index, offsets, weight, np.full(expected.shape, np.nan, np.float32), d]
    for result in run_everyhow(bags, (len(sizes),), arguments, checked=stages == 3, BLOCK=256, STAGES=stages):
        np.testing.assert_array_equal(result[4], expected)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 11])
def test_several_steps(count: int, run_everyhow: Any) -> None:
    signature = "*fp32:16, *i32:16, *i32:16, *fp32:16, i32, i32:16, 128"
    assert ahead_of(in_several_steps, signature) == [("later_slot", 2), ("next_row", 1), ("next_slot", 1)]
    x, rows = RNG.integers(-9, 10, (8, 160)).astype(np.float32), RNG.integers(0, 8, 30).astype(np.int32)
    slots = RNG.integers(0, 30, count).astype(np.int32)
    expected = np.zeros((2, 128), np.float32)
    for i, slot in enumerate(slots):
        expected[i % 2] += x[rows[slot], slot : slot + 128]
    arguments = [x, rows, slots, np.full((2, 128), np.nan, np.float32), count, 160]
    for result in run_everyhow(in_several_steps, (2,), arguments, checked=count == 11, BLOCK=128):
        np.testing.assert_array_equal(result[3], expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_elements(dtype: Any, run_everyhow: Any) -> None:
    """Elements of two bytes, which cp.async cannot copy, are loaded in their turn, by the numbers of that iteration."""
    x, index = RNG.integers(-9, 10, 400).astype(dtype), RNG.integers(0, 400, (5, 256)).astype(np.int32)
    arguments = [x, index, np.full((5, 256), np.nan, dtype), 5]
    for result in run_everyhow(elements, (1,), arguments, BLOCK=256):
        np.testing.assert_array_equal(result[2], x[index])


def test_numbers_along_two_axes(run_everyhow: Any) -> None:
    """Along each axis other threads need them: both ways are loaded, and both are read ahead."""
    both = [("next_index", 1), ("next_index_of_columns", 1)]
    assert ahead_of(squares, "*fp32:16, *i32:16, *fp32:16, i32, i32, 64") == both
    x, index = RNG.integers(-9, 10, (40, 40)).astype(np.float32), RNG.integers(0, 40, (4, 64)).astype(np.int32)
    arguments = [x, index, np.full((64, 64), np.nan, np.float32), 4, 40]
    expected = sum(x[np.ix_(each, each)] for each in index)
    for result in run_everyhow(squares, (1,), arguments, BLOCK=64):
        np.testing.assert_array_equal(result[2], expected)


def test_what_the_kernel_writes_is_not_read_ahead(run_everyhow: Any) -> None:
    assert not ahead_of(list_in_the_making, "*fp32:16, *i32:16, *fp32:16, i32, 128")
    x, index = RNG.integers(0, 4, (6, 128)).astype(np.float32), np.zeros(7, np.int32)
    arguments = [x, index, np.full(128, np.nan, np.float32), 6]
    row, expected = 0, np.zeros(128, np.float32)
    for _ in range(6):
        expected += x[row]
        row = int(x[row].sum()) % 6
    for result in run_everyhow(list_in_the_making, (1,), arguments, BLOCK=128):
        np.testing.assert_array_equal(result[2], expected)


def test_numbers_of_one_branch_are_read_in_their_turn(run_everyhow: Any) -> None:
    assert not ahead_of(either_list, "*fp32:16, *i32:16, *i32:16, *fp32:16, i32, 128")
    x = RNG.integers(-9, 10, (9, 128)).astype(np.float32)
    one, other = (RNG.integers(0, 9, 5).astype(np.int32) for _ in range(2))
    expected = x[np.where(np.arange(5) % 2 == 0, other, one)].sum(0)
    arguments = [x, one, other, np.full(128, np.nan, np.float32), 5]
    for result in run_everyhow(either_list, (1,), arguments, BLOCK=128):
        np.testing.assert_array_equal(result[3], expected)


def test_boxes_by_numbers(run_everyhow: Any) -> None:
    """The loading thread reads where a box lies while it waits for a stage."""
    counts, n, block = [3, 0, 1], 136, (64, 64, 128)
    signature = "*fp32:16, *fp16:16, *i32:16, *i32:16, *fp16:16, i32:16, 64, 64, 128"
    text = planned(sparse_product, signature).artifact.source
    assert text.index("const int column = column_ptr[i];") < text.index("mbarrier_wait(&empty[stage]")
    values, b = (RNG.integers(-2, 3, shape).astype(np.float16) for shape in ((4, 64, 64), (5 * 64, n)))
    column, start = np.array([4, 0, 2, 2], np.int32), np.cumsum([0, *counts]).astype(np.int32)
    expected = np.zeros((3, 64, n))
    for row, (first, last) in enumerate(zip(start[:-1], start[1:], strict=True)):
        for i in range(first, last):
            expected[row] += values[i].astype(float) @ b[column[i] * 64 : column[i] * 64 + 64].astype(float)
    arguments = [np.full((3 * 64, n), np.nan, np.float32), values, column, start, b, n]
    names = dict(zip(("BM", "BK", "BN"), block, strict=True))
    for result in run_everyhow(sparse_product, (3, 2), arguments, **names):
        np.testing.assert_array_equal(result[0], expected.reshape(-1, n))


@triton.jit
def some_rows(x_ptr, rows_ptr, out_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros((N,), tl.float32)
    for k in tl.range(0, n, num_stages=2):
        row = tl.load(rows_ptr + k)
        x = tl.load(x_ptr + row * N + i, mask=row != 2, other=1.0)
        y = tl.load(x_ptr + row * N + i, mask=row != 1, other=0.0)
        total = total * 0.5 + x + y
    tl.store(out_ptr + i, total)


def test_what_lies_outside_of_a_mask_of_numbers(run_everywhere: Any) -> None:
    """It was put there by the mask of the iteration whose copies had been started last."""
    x, rows = np.arange(4 * 1024, dtype=np.float32) % 7, np.array([3, 2, 0, 1, 2], np.int32)
    run_everywhere(some_rows, (1,), x, rows, np.zeros(1024, np.float32), 5, N=1024)
    text = some_rows.translate("*fp32:16, *i32:16, *fp32:16, i32, 1024").source
    assert "y_ahead" in text and "x_ahead" not in text
