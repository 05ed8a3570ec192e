"""Parameters that a kernel assigns to, what stands above a kernel, and numbers as a person would write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import tilewright as triton
import tilewright.language as tl
from tilewright.runtime.building import nvrtc


@triton.jit
def rows(x_ptr, out_ptr, n, stride, BLOCK: tl.constexpr):
    """Doubles rows.

    More words.
    """
    x_ptr += tl.program_id(0) * stride
    out_ptr = out_ptr + tl.program_id(0) * stride
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        tl.store(out_ptr + cols, tl.load(x_ptr + cols, mask=cols < n, other=20.0) * 2e6, mask=cols < n)


def test_a_parameter_is_assigned_to_as_the_user_does(run_everyhow: Callable[..., Any]) -> None:
    x = np.arange(60, dtype=np.float32).reshape(3, 20)
    for arguments in run_everyhow(rows, (3,), [x, np.zeros_like(x), 20, 20], BLOCK=16):
        np.testing.assert_array_equal(arguments[1], x * 2e6)
    text = rows.translate("*fp32, *fp32, i32, i32, 16").source
    assert "\n// Doubles rows.\nextern" in text
    assert "\n    x_ptr += " in text and "\n    out_ptr += " in text and "_second" not in text
    assert ": 20.0f" in text and "* 2000000.0f" in text


@triton.jit
def earlier_addresses(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    first = x_ptr + offs
    count = n
    x_ptr += n
    n = n // 2
    tl.store(out_ptr + offs, tl.load(first) + tl.load(x_ptr + offs) + n + count)


def test_what_reads_the_parameter_later_reads_the_argument(run_everyhow: Callable[..., Any]) -> None:
    x = np.arange(64, dtype=np.float32)
    for arguments in run_everyhow(earlier_addresses, (1,), [x, np.zeros(32, np.float32), 32], BLOCK=32):
        np.testing.assert_array_equal(arguments[1], x[:32] + x[32:] + 16 + 32)


@triton.jit
def least_and_most(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + cols, mask=cols < n, other=-float("inf"))
    y = tl.load(x_ptr + cols, mask=cols < n, other=float("inf"))
    tl.store(out_ptr, tl.maximum(tl.max(x), -float("inf")) - tl.min(y))


def test_infinities_have_names(run_everyhow: Callable[..., Any]) -> None:
    x = np.arange(7, dtype=np.float32)
    for arguments in run_everyhow(least_and_most, (1,), [x, np.zeros(1, np.float32), 7], BLOCK=16):
        assert arguments[1] == 6
    body = least_and_most.translate("*fp32, *fp32, i32, 16").source.partition("extern ")[2]
    assert body.count("__int_as_float") == 2 and "const float neg_inf = __int_as_float(0xff800000);" in body
    assert ": neg_inf" in body and ": inf" in body


@triton.jit
def listed_rows(rows_ptr, count_ptr, x_ptr, out_ptr, B: tl.constexpr):
    cols = tl.arange(0, B)
    total = tl.zeros([B], tl.float32)
    next_row = tl.load(count_ptr)
    for i in tl.range(0, next_row, num_stages=2):
        row = tl.load(rows_ptr + i)
        total += tl.load(x_ptr + row * B + cols)
    tl.store(out_ptr + cols, total)


def test_what_a_loop_reads_ahead_shares_no_array(run_everyhow: Callable[..., Any]) -> None:
    x, listed = np.arange(1024, dtype=np.float32).reshape(8, 128), np.array([5, 0, 7, 7, 2], np.int32)
    count, out = np.array([4], np.int32), np.zeros(128, np.float32)
    for arguments in run_everyhow(listed_rows, (1,), [listed, count, x, out], B=128):
        np.testing.assert_array_equal(arguments[3], x[listed[:4]].sum(0))
    text = listed_rows.translate("*i32, *i32, *fp32:16, *fp32:16, 128").source
    assert text.count("int next_row = ") == text.count("int next_row_second = ") == 1


@triton.jit
def another_array(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    x_ptr = out_ptr + n
    tl.store(x_ptr + offs, x)
    out_ptr = x_ptr - n
    y = tl.load(out_ptr + offs)
    tl.store(x_ptr + BLOCK + offs, y)


def test_a_parameter_that_is_read_may_become_a_pointer_that_is_written(run_everyhow: Callable[..., Any]) -> None:
    x, out = np.arange(32, dtype=np.float32), np.full(96, 7, np.float32)
    for arguments in run_everyhow(another_array, (1,), [x, out, 32], BLOCK=32):
        np.testing.assert_array_equal(arguments[1], np.concatenate([out[:32], x, out[:32]]))
    artifact = another_array.translate("*fp32:16, *fp32:16, i32, 32")
    assert "const float* x_ptr" in artifact.source
    if nvrtc.is_available():
        assert "warning" not in nvrtc.compile_text(artifact).log


@triton.jit
def one_block(x_ptr, out_ptr, C: tl.constexpr, R: tl.constexpr, BLOCKS: tl.constexpr):
    rows, cols = tl.arange(0, R)[:, None], tl.arange(0, C)[None, :]
    total = tl.zeros([R, C], tl.float32)
    for block in range(BLOCKS):  # a single one, so that each total is a version of its own
        total += tl.load(x_ptr + block * R * C + rows * C + cols)
    tl.store(out_ptr + rows * C + cols, total)


def test_equal_elements_of_an_earlier_version_outlive_the_first_of_them(run_everyhow: Callable[..., Any]) -> None:
    x = np.random.default_rng(0).standard_normal((8, 512)).astype(np.float32)
    for arguments in run_everyhow(one_block, (1,), [x, np.zeros((8, 512), np.float32)], C=512, R=8, BLOCKS=1):
        np.testing.assert_array_equal(arguments[1], x)


@triton.jit
def one_of_two(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    if tl.program_id(0) % 2 == 1:
        x_ptr = y_ptr
    for _ in range(n):
        tl.store(out_ptr + offs, tl.load(x_ptr + offs))
        x_ptr += BLOCK
        out_ptr += BLOCK


def test_nothing_is_assigned_to_itself(run_everyhow: Callable[..., Any]) -> None:
    x = np.arange(96, dtype=np.float32)
    for arguments in run_everyhow(one_of_two, (1,), [x, -x, np.zeros(96, np.float32), 3], BLOCK=32):
        np.testing.assert_array_equal(arguments[2], x)
    text = one_of_two.translate("*fp32, *fp32, *fp32, i32, 32").source
    assert "x_ptr = y_ptr;" in text and "x_ptr = x_ptr" not in text and "out_ptr = out_ptr" not in text
