"""Loops whose loads begin where a sum of numbers from memory says: the copies keep a sum of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.artifact import Options
from tilewright.pipeline import translate_stages
from tilewright.runtime.arguments.signature import parse_signature
from tilewright.schedule.plan import Schedule
from tilewright.schedule.targets import find_target

RNG = np.random.default_rng(33)


@triton.jit
def next_distance(list_ptr, i, count, BLOCK: tl.constexpr):
    # How far the next block of a list lies behind this one, in rows.
    here = tl.load(list_ptr + i)
    there = tl.load(list_ptr + i + 1, mask=i + 1 < count)
    return (there - here) * BLOCK


@triton.jit
def of_program(q_ptr, list_ptr, count_ptr, stride, M: tl.constexpr, D: tl.constexpr):
    # Queries of a sequence, the list of its blocks, and how many these are.
    sequence = tl.program_id(0)
    rows = sequence * M + tl.arange(0, M)
    q = tl.load(q_ptr + rows[:, None] * D + tl.arange(0, D)[None, :])
    return q, list_ptr + sequence * stride, tl.load(count_ptr + sequence)


@triton.jit
def store_rows(out_ptr, total, M: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    tl.store(out_ptr + rows[:, None] * D + tl.arange(0, D)[None, :], total)


@triton.jit
def listed_blocks(
    q_ptr, k_ptr, v_ptr, list_ptr, count_ptr, out_ptr, stride, M: tl.constexpr, BLOCK: tl.constexpr, D: tl.constexpr
):
    # Blocks of keys and values from a list, as torch's flex_attention finds them.
    q, own_list, count = of_program(q_ptr, list_ptr, count_ptr, stride, M, D)
    n, d = tl.arange(0, BLOCK), tl.arange(0, D)
    first = tl.load(own_list) * BLOCK
    total = tl.zeros((M, D), dtype=tl.float32)
    offset = 0
    for i in range(0, count):
        rows = first + offset + n
        k = tl.load(k_ptr + rows[:, None] * D + d[None, :])
        v = tl.load(v_ptr + rows[:, None] * D + d[None, :])
        p = tl.dot(q, tl.trans(k))
        total += tl.dot(p.to(tl.float16), v)
        offset += next_distance(own_list, i, count, BLOCK)
    store_rows(out_ptr, total, M, D)


@triton.jit
def moved_pointers(
    q_ptr, k_ptr, v_ptr, list_ptr, count_ptr, out_ptr, stride, M: tl.constexpr, BLOCK: tl.constexpr, D: tl.constexpr
):
    # The same with tiles of pointers, moved backwards along the list by subtraction.
    q, own_list, count = of_program(q_ptr, list_ptr, count_ptr, stride, M, D)
    n, d = tl.arange(0, BLOCK), tl.arange(0, D)
    rows = tl.load(own_list) * BLOCK + n
    k_ptrs = k_ptr + rows[None, :] * D + d[:, None]
    v_ptrs = v_ptr + rows[:, None] * D + d[None, :]
    total = tl.zeros((M, D), dtype=tl.float32)
    for i in range(0, count):
        p = tl.dot(q, tl.load(k_ptrs))
        total += tl.dot(p.to(tl.float16), tl.load(v_ptrs))
        distance = next_distance(own_list, i, count, BLOCK)
        k_ptrs += distance * D
        v_ptrs -= -distance * D
    store_rows(out_ptr, total, M, D)


@triton.jit
def block_pointers(
    q_ptr, k_ptr, v_ptr, list_ptr, count_ptr, out_ptr, stride, M: tl.constexpr, BLOCK: tl.constexpr, D: tl.constexpr
):
    # The same with block pointers.
    q, own_list, count = of_program(q_ptr, list_ptr, count_ptr, stride, M, D)
    first = tl.load(own_list) * BLOCK
    k_block = tl.make_block_ptr(k_ptr, (D, 1 << 20), (1, D), (0, first), (D, BLOCK), (0, 1))
    v_block = tl.make_block_ptr(v_ptr, (1 << 20, D), (D, 1), (first, 0), (BLOCK, D), (1, 0))
    total = tl.zeros((M, D), dtype=tl.float32)
    for i in range(0, count):
        p = tl.dot(q, tl.load(k_block))
        total += tl.dot(p.to(tl.float16), tl.load(v_block))
        distance = next_distance(own_list, i, count, BLOCK)
        k_block = tl.advance(k_block, (0, distance))
        v_block = tl.advance(v_block, (distance, 0))
    store_rows(out_ptr, total, M, D)


def schedule_of(kernel: Any, signature: str, **options: Any) -> Schedule:
    """How a kernel runs on Hopper."""
    return translate_stages(
        kernel, parse_signature(kernel, signature), Options(**options), find_target("sm_90a")
    ).schedule


@pytest.mark.parametrize("kernel", [listed_blocks, moved_pointers, block_pointers])
@pytest.mark.parametrize(("m", "num_warps"), [(16, 2), (64, 4), (128, 8)])
def test_blocks_of_a_list(kernel: Any, m: int, num_warps: int, run_everyhow: Any) -> None:
    """The list may go to and fro, and end where its memory ends."""
    block, d, stride, blocks, counts = 32, 64, 6, 9, (1, 0, 6)
    sequences = len(counts)
    q, k, v = (
        RNG.integers(-2, 3, (rows, d)).astype(np.float16) for rows in (sequences * m, blocks * block, blocks * block)
    )
    lists = np.full(sequences * stride, -(1 << 20), np.int32)
    expected = np.zeros((sequences * m, d))
    for sequence, count in enumerate(counts):
        own = RNG.permutation(blocks)[:count]
        lists[sequence * stride : sequence * stride + count] = own
        rows = (own[:, None] * block + np.arange(block)).ravel()
        part = slice(sequence * m, (sequence + 1) * m)
        expected[part] = (q[part].astype(float) @ k[rows].T.astype(float)) @ v[rows]
    lists = lists[: (sequences - 1) * stride + max(counts[-1], 1)]
    arguments = [q, k, v, lists, np.array(counts, np.int32), np.full(expected.shape, np.nan, np.float32), stride]
    options = {"M": m, "BLOCK": block, "D": d, "num_warps": num_warps, "num_stages": 3}
    for result in run_everyhow(kernel, (sequences,), arguments, checked=m == 16, **options):
        np.testing.assert_array_equal(result[5], expected)


@pytest.mark.parametrize("kernel", [listed_blocks, moved_pointers, block_pointers])
def test_all_spellings_load_ahead(kernel: Any) -> None:
    signature = "*fp16:16, *fp16:16, *fp16:16, *i32:16, *i32:16, *fp32:16, i32, 64, 32, 64"
    (ring,) = schedule_of(kernel, signature, num_stages=3).rings.rings
    assert len(ring.tiles) == 2 and ring.stages >= 3


@triton.jit
def steps_of_rows(x_ptr, steps_ptr, out_ptr, count, BLOCK: tl.constexpr, EARLY: tl.constexpr, SIGN: tl.constexpr):
    # Rows for registers; the step comes before or behind the row's load, as a sum or a difference.
    offsets = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    row = 0
    for i in tl.range(0, count, num_stages=3):
        step = tl.load(steps_ptr + i)
        if EARLY:
            row = row + step if SIGN else row - step
        total = total * 0.5 + tl.load(x_ptr + row * BLOCK + offsets)
        if not EARLY:
            row = row + step if SIGN else row - step
    tl.store(out_ptr + offsets, total)
    tl.store(out_ptr + BLOCK + offsets, row + tl.zeros((BLOCK,), tl.float32))


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("sign", [False, True])
@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_rows_for_registers(count: int, sign: bool, early: bool, run_everyhow: Any) -> None:
    """The loop's own variable goes on in its turn, whatever the copies have."""
    x = RNG.integers(-9, 10, (8, 1024)).astype(np.float32)
    rows = RNG.integers(0, 8, count + 1)
    rows[0] = 0
    steps = (np.diff(rows) * (1 if sign else -1)).astype(np.int32)
    expected = np.zeros(1024, np.float32)
    for row in rows[1:] if early else rows[:-1]:
        expected = expected * np.float32(0.5) + x[row]
    assert schedule_of(steps_of_rows, f"*fp32:16, *i32:16, *fp32:16, i32, 1024, {early}, {sign}").rings.rings[0].own
    arguments = [x, steps, np.full((2, 1024), np.nan, np.float32), count]
    for result in run_everyhow(steps_of_rows, (1,), arguments, checked=count == 7, BLOCK=1024, EARLY=early, SIGN=sign):
        np.testing.assert_array_equal(result[2][0], expected)
        np.testing.assert_array_equal(result[2][1], rows[-1])


@triton.jit
def steps_for_copies_alone(x_ptr, y_ptr, steps_ptr, out_ptr, count, BLOCK: tl.constexpr):
    # Nothing but the places of rows needs the steps; one of the rows may be too narrow for an asynchronous copy.
    offsets = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    row = 0
    for i in tl.range(0, count, num_stages=3):
        total = total * 0.5 + tl.load(x_ptr + row * BLOCK + offsets)
        total += tl.load(y_ptr + row * BLOCK + offsets)
        step = tl.load(steps_ptr + i, mask=i + 1 < count, other=0)
        row += step
    tl.store(out_ptr + offsets, total)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("count", [0, 1, 6])
def test_rows_that_are_copied_and_rows_that_are_not(dtype: Any, count: int, run_everyhow: Any) -> None:
    """A thread's two bytes of a row are loaded in their turn, at the loop's own place; 4 are copied ahead."""
    x, y = RNG.integers(-9, 10, (8, 128)).astype(np.float32), RNG.integers(-9, 10, (8, 128)).astype(dtype)
    rows = RNG.integers(0, 8, count + 1)
    rows[0], expected = 0, np.zeros(128, np.float32)
    for row in rows[:-1]:
        expected = expected * np.float32(0.5) + x[row] + y[row].astype(np.float32)
    word = "fp32" if dtype == np.float32 else "fp16"
    signature = f"*fp32:16, *{word}:16, *i32:16, *fp32:16, i32, 128"
    (ring,) = schedule_of(steps_for_copies_alone, signature).rings.rings
    copied = ["x", "y"] if dtype == np.float32 else ["x", "step"]
    assert [own.name.split("_")[0] for own in ring.own] == copied and ring.running
    arguments = [x, y, np.diff(rows).astype(np.int32), np.full(128, np.nan, np.float32), count]
    arguments[2] = np.resize(arguments[2], max(count, 1))
    for result in run_everyhow(steps_for_copies_alone, (1,), arguments, checked=count == 6, BLOCK=128):
        np.testing.assert_array_equal(result[3], expected)


@triton.jit
def lists_in_a_loop(x_ptr, steps_ptr, out_ptr, lists, count, BLOCK: tl.constexpr):
    # The inner loop begins anew for every list; its steps have a place that a number says.
    offsets = tl.arange(0, BLOCK)
    for one in range(0, lists):
        total = tl.zeros((BLOCK,), dtype=tl.float32)
        place = tl.load(steps_ptr + one)
        for i in tl.range(0, count, num_stages=3):
            total = total * 0.5 + tl.load(x_ptr + place + offsets)
            place += tl.load(steps_ptr + lists + one * count + i) * BLOCK
        tl.store(out_ptr + one * BLOCK + offsets, total)


def test_the_sum_begins_anew(run_everyhow: Any) -> None:
    lists, count = 3, 4
    x = RNG.integers(-9, 10, (8, 1024)).astype(np.float32)
    rows = RNG.integers(0, 8, (lists, count + 1))
    steps = np.concatenate([rows[:, 0] * 1024, np.diff(rows, axis=1).ravel()]).astype(np.int32)
    expected = np.zeros((lists, 1024), np.float32)
    for trip in range(count):
        expected = expected * np.float32(0.5) + x[rows[:, trip]]
    arguments = [x, steps, np.full((lists, 1024), np.nan, np.float32), lists, count]
    for result in run_everyhow(lists_in_a_loop, (1,), arguments, BLOCK=1024):
        np.testing.assert_array_equal(result[2], expected)


@triton.jit
def chained(x_ptr, next_ptr, out_ptr, count, BLOCK: tl.constexpr, SOMETIMES: tl.constexpr):
    # Where the next number lies depends on the sum, or the sum on a branch: each load waits for its turn.
    offsets = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    row = 0
    for i in tl.range(0, count, num_stages=3):
        total = total * 0.5 + tl.load(x_ptr + row * BLOCK + offsets)
        if SOMETIMES:
            if i % 2 == 0:
                row += tl.load(next_ptr + i)
        else:
            row += tl.load(next_ptr + row)
    tl.store(out_ptr + offsets, total)


@pytest.mark.parametrize("sometimes", [False, True])
def test_chains_and_branches(sometimes: bool, run_everyhow: Any) -> None:
    x = RNG.integers(-9, 10, (8, 1024)).astype(np.float32)
    steps = np.array([3, 0, 2, 4, 0, -3, -6, -2], np.int32)
    row, expected = 0, np.zeros(1024, np.float32)
    for i in range(5):
        expected = expected * np.float32(0.5) + x[row]
        row += (steps[i] if i % 2 == 0 else 0) if sometimes else steps[row]
    arguments = [x, steps, np.full(1024, np.nan, np.float32), 5]
    for result in run_everyhow(chained, (1,), arguments, BLOCK=1024, SOMETIMES=sometimes):
        np.testing.assert_array_equal(result[2], expected)


@triton.jit
def written_steps(x_ptr, steps_ptr, out_ptr, count, BLOCK: tl.constexpr):
    # The steps are in the making: a trip writes those of the next.
    offsets = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    row = 0
    for i in tl.range(0, count, num_stages=3):
        total = total * 0.5 + tl.load(x_ptr + row * BLOCK + offsets)
        row += tl.load(steps_ptr + i)
        tl.debug_barrier()
        tl.store(steps_ptr + i + 1, 1 - row % 2)
        tl.debug_barrier()
    tl.store(out_ptr + offsets, total)


def test_steps_that_the_kernel_writes(run_everyhow: Any) -> None:
    x = RNG.integers(-9, 10, (8, 1024)).astype(np.float32)
    steps, row, expected = [1], 0, np.zeros(1024, np.float32)
    for i in range(5):
        expected = expected * np.float32(0.5) + x[row]
        row += steps[i]
        steps.append(1 - row % 2)
    arguments = [x, np.array([1, 0, 0, 0, 0, 0], np.int32), np.full(1024, np.nan, np.float32), 5]
    for result in run_everyhow(written_steps, (1,), arguments, BLOCK=1024):
        np.testing.assert_array_equal(result[2], expected)
