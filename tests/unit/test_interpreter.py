"""The Python interpreter: kernels against NumPy, what Python cannot overload, and accesses."""

from __future__ import annotations

import sys
from collections import namedtuple
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright import diagnostics as errors
from written_kernels import written_kernel

RNG = np.random.default_rng(11)


@pytest.fixture(autouse=True)
def interpret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", "interpret")


# ---------------------------------------------------------------------------------------------------------- kernels


@triton.jit
def softmax_kernel(x_ptr, out_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + i, mask=i < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * stride + i, e / tl.sum(e, axis=0), mask=i < n)


def test_softmax() -> None:
    x, out = RNG.standard_normal((5, 37), dtype=np.float32), np.zeros((5, 37), np.float32)
    softmax_kernel[(5,)](x, out, 37, 37, BLOCK=64)
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=1e-5)


@triton.jit
def matmul_kernel(a_ptr, b_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    c = tl.zeros((M, N), dtype=tl.float32)
    for k in range(K):
        c += tl.load(a_ptr + m * K + k) * tl.load(b_ptr + k * N + n)
    tl.store(c_ptr + m * N + n, c)


def test_matrix_product() -> None:
    a, b = RNG.standard_normal((6, 9), dtype=np.float32), RNG.standard_normal((9, 5), dtype=np.float32)
    c = np.zeros((6, 5), np.float32)
    matmul_kernel[(1,)](a, b, c, M=6, N=5, K=9)
    np.testing.assert_allclose(c, a @ b, rtol=1e-5, atol=1e-6)


@triton.jit
def sum_kernel(x_ptr, out_ptr, N: tl.constexpr):
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, N)), axis=0))


@pytest.mark.parametrize("dtype", (np.float16, ml_dtypes.bfloat16))
def test_narrow_sums_round_as_a_tree(dtype: Any) -> None:
    """One after the other, bf16 ones would stop at 256."""
    out = np.zeros(1, dtype)
    sum_kernel[(1,)](np.ones(2048, dtype), out, N=2048)
    assert float(out[0]) == 2048.0


@triton.jit
def first_of(a, b):
    return a


@triton.jit
def branching(a, b):
    if a > b:
        return a
    return b * 1


@triton.jit
def combine_kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(out_ptr + tl.arange(0, M), tl.reduce(x, 1, first_of))
    tl.store(out_ptr + M + tl.arange(0, M), tl.reduce(x, 1, branching))
    tl.store(out_ptr + 2 * M, tl.reduce(x, None, branching))


def test_combinations_keep_their_order_and_may_branch() -> None:
    x, out = RNG.standard_normal((4, 7), dtype=np.float32), np.zeros(9, np.float32)
    combine_kernel[(1,)](x, out, M=4, N=7)
    np.testing.assert_array_equal(out, [*x[:, 0], *x.max(1), x.max()])


@triton.jit
def index_kernel(x_ptr, value_ptr, index_ptr, M: tl.constexpr, N: tl.constexpr):
    r = tl.arange(0, M)
    x = tl.load(x_ptr + r[:, None] * N + tl.arange(0, N)[None, :])
    value, index = tl.max(x, axis=1, return_indices=True, keep_dims=True)
    tl.store(value_ptr + r[:, None], value)
    tl.store(index_ptr + r[:, None], index)
    tl.store(index_ptr + M + r, tl.argmin(x, axis=1))
    tl.store(index_ptr + 2 * M, tl.argmax(x, axis=None))


def test_the_first_index_wins_and_nan_loses() -> None:
    nan, inf = np.nan, np.inf
    x = np.array([[3, 5, nan, -inf], [nan, -inf, -inf, nan], [2, 7, 7, 1], [nan, nan, 0, 0]], np.float32)
    value, index = np.zeros(4, np.float32), np.zeros(9, np.int32)
    index_kernel[(1,)](x, value, index, M=4, N=4)
    np.testing.assert_array_equal(value, [5, -inf, 7, 0])
    np.testing.assert_array_equal(index, [1, 1, 1, 2, 3, 1, 3, 2, 9])


@triton.jit
def shape_kernel(x_ptr, out_ptr, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr):
    i = tl.arange(0, A * B * C)
    x = tl.load(x_ptr + i)
    y = tl.permute(x.reshape(A, B, C), (2, 0, 1))
    z = tl.squeeze(tl.expand_dims(tl.trans(y), (0, -1)), 0)
    tl.store(out_ptr + i, tl.ravel(tl.unsqueeze(z, 0)))
    tl.static_assert(y.shape[0] == C and y.type.is_block() and y.numel == A * B * C)


def test_shapes() -> None:
    x, out = RNG.standard_normal(24, dtype=np.float32), np.zeros(24, np.float32)
    shape_kernel[(1,)](x, out, A=2, B=3, C=4)
    np.testing.assert_array_equal(out, x.reshape(2, 3, 4).transpose(2, 1, 0).ravel())


Pair = namedtuple("Pair", ["left", "right"])


@triton.jit
def swapped(pair):
    return Pair(pair.right, pair.left)


@triton.jit
def tuple_kernel(x_ptr, out_ptr, SCALES: tl.constexpr):
    i = tl.arange(0, 4)
    pair = swapped(Pair(tl.load(x_ptr + i), 10))
    a, (b, c) = pair.left, (pair.right, len(SCALES))
    for k in tl.static_range(len(SCALES)):
        b = b * SCALES[k]
    tl.store(out_ptr + i, a + b + c)


def test_tuples() -> None:
    x, out = np.arange(4, dtype=np.int32), np.zeros(4, np.int32)
    tuple_kernel[(1,)](x, out, SCALES=(2, 3))
    np.testing.assert_array_equal(out, x * 6 + 12)


@triton.jit
def count_kernel(x_ptr, count_ptr, old_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    old = tl.atomic_add(count_ptr + x, 1, mask=i < n)
    tl.store(old_ptr + i, old, mask=i < n)


def test_atomics_take_turns_within_a_tile() -> None:
    x, count, old = RNG.integers(0, 3, 20, dtype=np.int32), np.zeros(3, np.int32), np.zeros(20, np.int32)
    count_kernel[(2,)](x, count, old, 20, BLOCK=16)
    np.testing.assert_array_equal(count, np.bincount(x, minlength=3))
    assert [old[x == k].tolist() for k in range(3)] == [list(range(number)) for number in count]


@triton.jit
def extremes_kernel(largest_ptr, smallest_ptr, x_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.atomic_max(largest_ptr + i, tl.load(x_ptr + i))
    tl.atomic_min(smallest_ptr + i, tl.load(x_ptr + i))


def test_float_atomics_order_zeros() -> None:
    largest, smallest = np.array([-0.0, 0.0, -1.0], np.float32), np.array([-0.0, 0.0, -1.0], np.float32)
    extremes_kernel[(1,)](largest, smallest, np.array([0.0, -0.0, 2.0], np.float32), N=3)
    assert largest.tolist() == [0.0, 0.0, 2.0] and smallest.tolist() == [0.0, 0.0, -1.0]
    assert np.signbit(largest).tolist() == [False, False, False]
    assert np.signbit(smallest).tolist() == [True, True, True]


@triton.jit
def address_kernel(x_ptr, out_ptr, addresses_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(addresses_ptr + i, (x_ptr + i).to(tl.int64))
    back = tl.load(addresses_ptr + i).to(tl.pointer_type(tl.float32))
    bits = (x_ptr + i).to(tl.pointer_type(tl.int32), bitcast=True)
    chosen = tl.where(i < 2, x_ptr + i, out_ptr + N + i)
    tl.store(out_ptr + i, tl.load(back) + (tl.load(bits) != 0) + tl.load(chosen))


def test_pointers_are_values() -> None:
    x, out, addresses = np.arange(1, 5, dtype=np.float32), np.zeros(8, np.float32), np.zeros(4, np.int64)
    address_kernel[(1,)](x, out, addresses, N=4)
    np.testing.assert_array_equal(out[:4], [3, 5, 4, 5])
    assert addresses[0] == x.ctypes.data


@triton.jit
def table_kernel(table_ptr, sizes_ptr, out_ptr, STRIDE: tl.constexpr, N: tl.constexpr):
    # The launch is given addresses of arrays, not the arrays.
    which, i = tl.program_id(0), tl.arange(0, N)
    start = tl.load(table_ptr + which).to(tl.pointer_type(tl.float32))
    size = tl.load(sizes_ptr + which)
    x = tl.load(start + i, mask=i < size, other=-1.0)
    tl.store(start + i, x + 1, mask=i < size)
    tl.store(out_ptr + which * STRIDE + i, x)


def test_arrays_that_only_addresses_tell_of(monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = [np.arange(1, 4, dtype=np.float32), np.arange(5, dtype=np.float32)]
    before = [array.copy() for array in arrays]
    table, sizes = np.array([a.ctypes.data for a in arrays], np.int64), np.array([3, 5], np.int32)
    for mode in ("cpu", "interpret"):
        monkeypatch.setenv("TILEWRIGHT_MODE", mode)
        for array, values in zip(arrays, before, strict=True):
            array[...] = values
        out = np.zeros((2, 8), np.float32)
        table_kernel[(2,)](table, sizes, out, STRIDE=8, N=8)
        for row, array, values in zip(out, arrays, before, strict=True):
            np.testing.assert_array_equal(row[: len(values)], values)
            np.testing.assert_array_equal(row[len(values) :], -1)
            np.testing.assert_array_equal(array, values + 1)


def test_address_zero_is_no_array() -> None:
    with pytest.raises(errors.KernelFaultError, match="out of bounds read"):
        table_kernel[(1,)](np.zeros(1, np.int64), np.ones(1, np.int32), np.zeros(8, np.float32), STRIDE=8, N=8)


# ---------------------------------------------------------------------------- what Python cannot overload by itself


@triton.jit
def literals_kernel(x_ptr, half_ptr, out_ptr, SCALE: tl.constexpr):
    a = 2.0
    scale = SCALE
    half = tl.load(half_ptr)
    tl.static_assert((half * 2.0).dtype == tl.float16)
    tl.static_assert((half * a).dtype == tl.float32)
    tl.static_assert((half * SCALE).dtype == tl.float16 and (half * scale).dtype == tl.float32)
    tl.static_assert(-7 // 2 == -4)
    SCALE += 1.0
    tl.static_assert((half * SCALE).dtype == tl.float16)
    seven = -7
    tl.store(out_ptr, seven // 2)
    tl.store(out_ptr + 1, seven % 3)
    tl.store(out_ptr + 2, 0x7FFFFFFF + tl.load(x_ptr))
    WIDE: tl.constexpr
    WIDE = 5
    tl.store(out_ptr + 3 + tl.arange(0, WIDE), WIDE)
    tl.static_assert(
        isinstance(WIDE, tl.constexpr) and isinstance(half, tl.tensor) and not isinstance(half, tl.constexpr)
    )


def test_literals_decay_and_constexprs_do_not() -> None:
    out = np.zeros(8, np.int32)
    literals_kernel[(1,)](np.ones(1, np.int32), np.ones(1, np.float16), out, SCALE=3.0)
    assert out.tolist() == [-3, -1, -(2**31), 5, 5, 5, 5, 5]


@triton.jit
def once_kernel(count_ptr, out_ptr, FLAG: tl.constexpr):
    i = tl.arange(0, 8)
    inside = (i > 1) and (i <= 5) and not (i == 3)
    tl.store(out_ptr + i, inside)
    tl.store(out_ptr + 8, 0 <= tl.atomic_add(count_ptr, 1) < 9)
    if FLAG is not None and FLAG > tl.load(count_ptr):
        tl.store(out_ptr + 9, 1)
    if (k := tl.load(count_ptr)) == 1 or k == 2:
        tl.store(out_ptr + 10, 1)
    tl.store(out_ptr + 11, min(max(k, 5), 3, 4))


@pytest.mark.parametrize("flag", (None, 7))
def test_logic_evaluates_each_operand_once(flag: int | None) -> None:
    count, out = np.zeros(1, np.int32), np.zeros(12, np.int32)
    once_kernel[(1,)](count, out, FLAG=flag)
    assert out.tolist() == [0, 0, 1, 0, 1, 1, 0, 0, 1, int(flag is not None), 1, 3] and count[0] == 1


@triton.jit
def factorial(n: tl.constexpr):
    if n <= 1:
        return 1
    return n * factorial(n - 1)


@triton.jit
def optional(x, bias: tl.constexpr = None):
    if bias is None:
        return x
    return x + bias


@triton.jit
def loops_kernel(out_ptr, n, stop):
    tl.store(out_ptr, factorial(5))
    tl.store(out_ptr + 1, optional(n) + optional(n, 100))
    total = tl.zeros((), tl.int64)
    for i in tl.range(0, stop, 3, num_stages=2):
        tl.static_assert(i.dtype == tl.int32)
        total += i
    tl.store(out_ptr + 2, total)
    for j in range(n, 0, -2):
        tl.static_assert(j.dtype == tl.int32)
        tl.store(out_ptr + 2 + j, j)
    while total > 0 and n > 0:
        total -= 10
        n -= 1
    tl.store(out_ptr + 8, n)
    if n == 3:
        return
    tl.store(out_ptr + 9, 1)


def test_loops_and_functions() -> None:
    out = np.zeros(10, np.int64)
    loops_kernel[(1,)](out, 5, 10)
    assert out.tolist() == [120, 110, 18, 1, 0, 3, 0, 5, 3, 0]


@triton.jit
def wide_loop_kernel(out_ptr, start, n):
    for i in range(start, start + n):
        tl.static_assert(i.dtype == tl.int64)
        tl.store(out_ptr, i)


def test_loop_indices_have_the_type_of_their_bounds() -> None:
    out = np.zeros(1, np.int64)
    wide_loop_kernel[(1,)](out, 2**40, 3)
    assert out[0] == 2**40 + 2


def test_kernels_see_closures_and_present_globals() -> None:
    offset = tl.constexpr(3)

    @triton.jit
    def local_kernel(out_ptr):
        tl.store(out_ptr, offset + GLOBAL)

    out = np.zeros(1, np.int32)
    for value in (1, 20):
        globals()["GLOBAL"] = value
        local_kernel[(1,)](out)
        assert out[0] == 3 + value


GLOBAL = 0


# ------------------------------------------------------------------------------------------------- what is refused

HEADER = """import tilewright as triton
import tilewright.language as tl
@triton.jit
def kernel(x_ptr, n, C: tl.constexpr = 4):
"""


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        ("for i in range(3):\n    break", errors.UnsupportedLanguageConstruct, "Break statements cannot stand"),
        ("while n > 0:\n    continue", errors.UnsupportedLanguageConstruct, "Continue statements cannot stand"),
        ("for i in range(3):\n    pass\nelse:\n    pass", errors.UnsupportedLanguageConstruct, "else of a loop"),
        ("while n > 9:\n    pass\nelse:\n    pass", errors.UnsupportedLanguageConstruct, "else of a loop"),
        ("for i in (1, 2):\n    pass", errors.UnsupportedLanguageConstruct, "runs over range, tl.range or"),
        ("while True:\n    pass", errors.NotConstexprError, "is a compile-time value"),
        ("while tl.condition(C > 3):\n    pass", errors.NotConstexprError, "is a compile-time value"),
        ("kernel(x_ptr, n)", errors.UnsupportedLanguageConstruct, "end the recursion by a compile-time condition"),
        ("a, b = n", errors.DTypeError, "cannot unpack a single value into 2 names"),
        ("a = n.to(float)", errors.DTypeError, "write tl.float32"),
        ("a = n.to('int8')", errors.DTypeError, "write tl.int8"),
    ],
)
def test_what_a_translation_refuses_is_refused_here(
    tmp_path: Path, body: str, kind: Any, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = written_kernel(tmp_path / "refused.py", HEADER, body)
    for mode in ("interpret", "cpu"):
        monkeypatch.setenv("TILEWRIGHT_MODE", mode)
        with pytest.raises(kind) as caught:
            kernel[(1,)](np.zeros(4, np.float32), 7)
        if mode == "interpret":
            assert said in str(caught.value)


def test_errors_show_the_line_that_ran(tmp_path: Path) -> None:
    path = tmp_path / "changed.py"
    kernel = written_kernel(path, HEADER, "tl.store(x_ptr, 'äöü' if C < 3 else (größe + 1))")
    path.write_text("another = file\n" * 20)
    with pytest.raises(errors.UndefinedVariableError) as caught:
        kernel[(1,)](np.zeros(4, np.float32), 7)
    place, line, caret, _help = str(caught.value).split("\n")
    assert place.startswith(f"{path}:5:")
    assert "tl.store(x_ptr" in line
    if sys.version_info >= (3, 11):  # before, Python does not say which part of a line ran
        assert caret.count("^") == 5 and line.index("größe") == caret.index("^")
