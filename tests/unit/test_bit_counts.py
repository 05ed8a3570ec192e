"""Bits that kernels count by sums and masks: one instruction, if nobody else reads a step and constants are right."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl


@triton.jit
def bits_of(x):
    x = x - ((x >> 1) & 0x55555555)
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F
    return (x * 0x01010101) >> 24


@triton.jit
def by_function(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(out_ptr + i, bits_of(x), mask=i < n)


@triton.jit
def in_one_expression(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    two = (0x55555555 & x) + (0x55555555 & (x >> 1))
    four = ((two >> 2) & 0x33333333) + (two & 0x33333333)
    tl.store(out_ptr + i, (0x01010101 * (((four >> 4) + four) & 0x0F0F0F0F) >> 24) & 63, mask=i < n)


@triton.jit
def of_64_bits(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    x = x - ((x >> 1) & 0x5555555555555555)
    x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333)
    x = x + (x >> 4)
    x = x & 0x0F0F0F0F0F0F0F0F
    x = x * 0x0101010101010101
    tl.store(out_ptr + i, x >> 56, mask=i < n)


@triton.jit
def by_trips(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, n, BLOCK):
        x = tl.load(x_ptr + start + i, mask=start + i < n, other=0) ^ 1
        x = x - ((x >> 1) & 0x55555555)
        x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
        x = (x + (x >> 4)) & 0x0F0F0F0F
        total += (x * 0x01010101 >> 24) & 0xFF
    tl.store(out_ptr + i, total)


@triton.jit
def also_stored(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    x = x - ((x >> 1) & 0x55555555)
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F
    tl.store(out_ptr + i, ((x * 0x01010101) >> 24) + (x & 0x0F) * 256, mask=i < n)


@triton.jit
def of_what_was(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    two = x - ((x >> 1) & 0x55555555)
    x = x + 1
    four = (two & 0x33333333) + ((two >> 2) & 0x33333333)
    eight = (four + (four >> 4)) & 0x0F0F0F0F
    tl.store(out_ptr + i, (eight * 0x01010101 >> 24) + (x - x), mask=i < n)


@triton.jit
def with_another_mask(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    x = x - ((x >> 1) & 0x55555554)
    x = (x & 0x33333333) + ((x >> 2) & 0x33333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F
    tl.store(out_ptr + i, (x * 0x01010101) >> 24, mask=i < n)


@triton.jit
def read_in_the_next_trip(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.int32)
    two = tl.zeros((BLOCK,), tl.int32)
    for start in range(0, n, BLOCK):
        total += two & 1
        x = tl.load(x_ptr + start + i, mask=start + i < n, other=0)
        two = x - ((x >> 1) & 0x55555555)
        four = (two & 0x33333333) + ((two >> 2) & 0x33333333)
        eight = (four + (four >> 4)) & 0x0F0F0F0F
        total += (eight * 0x01010101 >> 24) * 2
    tl.store(out_ptr + i, total)


def set_bits(x: np.ndarray) -> np.ndarray:
    """How many bits of each number are set."""
    width = x.dtype.itemsize * 8
    return np.array([bin(int(value) & (1 << width) - 1).count("1") for value in x])


def numbers(dtype: type, count: int = 100) -> np.ndarray:
    """Random bits, and the numbers that have none, all, and the highest one alone."""
    given = np.random.default_rng(3).integers(0, 256, count * np.dtype(dtype).itemsize, np.uint8).view(dtype)
    given[:3] = 0, np.iinfo(dtype).max, np.iinfo(dtype).min
    given[3] = ~given[0]
    return given


@pytest.mark.parametrize(
    ("kernel", "dtype"),
    [
        (by_function, np.int32), (in_one_expression, np.uint32), (of_64_bits, np.int64), (of_64_bits, np.uint64),
        (of_what_was, np.int32),
    ],
)  # fmt: skip
def test_steps_are_one_instruction(kernel: Any, dtype: type, run_everyhow: Callable[..., Any]) -> None:
    x = numbers(dtype)
    for arguments in run_everyhow(kernel, (1,), [x, np.zeros(x.size, dtype), x.size], BLOCK=128):
        np.testing.assert_array_equal(arguments[1], set_bits(x))
    word = {np.int32: "i32", np.uint32: "u32", np.int64: "i64", np.uint64: "u64"}[dtype]
    text = kernel.translate(f"*{word}, *{word}, i32, 128").source
    assert ("__popcll(" if "64" in word else "__popc(") in text
    assert "(bits are counted at L" in text


def test_a_name_is_used_again_in_every_trip(run_everyhow: Callable[..., Any]) -> None:
    x = numbers(np.int32, 128)
    for arguments in run_everyhow(by_trips, (1,), [x, np.zeros(32, np.int32), 128], BLOCK=32):
        np.testing.assert_array_equal(arguments[1], set_bits(x ^ 1).reshape(4, 32).sum(0))
    assert "+= __popc(x)" in by_trips.translate("*i32, *i32, i32, 32").source


def also_stored_as(x: np.ndarray) -> np.ndarray:
    """What `also_stored` stores: the bits of the lowest byte beside those of all."""
    return set_bits(x) + 256 * set_bits((x & 0xFF).astype(np.int32))


@pytest.mark.parametrize(
    ("kernel", "expected"),
    [
        (also_stored, also_stored_as),
        (with_another_mask, lambda x: set_bits(x & ~2) + 2 * set_bits(x & 2)),
    ],
)  # fmt: skip
def test_steps_that_mean_more_stay(kernel: Any, expected: Callable[..., Any], run_everyhow: Callable[..., Any]) -> None:
    x = numbers(np.int32)
    for arguments in run_everyhow(kernel, (1,), [x, np.zeros(x.size, np.int32), x.size], BLOCK=128):
        np.testing.assert_array_equal(arguments[1], expected(x))
    assert "__popc" not in kernel.translate("*i32, *i32, i32, 128").source


def test_a_step_that_the_next_trip_reads_stays(run_everyhow: Callable[..., Any]) -> None:
    x = numbers(np.int32, 96)
    bits = set_bits(x).reshape(3, 32)
    low = ((x.astype(np.int64) - (x.astype(np.int64) >> 1 & 0x55555555)) & 1).reshape(3, 32)
    for arguments in run_everyhow(read_in_the_next_trip, (1,), [x, np.zeros(32, np.int32), 96], BLOCK=32):
        np.testing.assert_array_equal(arguments[1], 2 * bits.sum(0) + low[:2].sum(0))
    assert "__popc" not in read_in_the_next_trip.translate("*i32, *i32, i32, 32").source
