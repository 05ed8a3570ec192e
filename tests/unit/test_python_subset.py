"""The Python that kernels may use, beyond plain arithmetic: each kernel runs on the CPU and in the interpreter."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest
import tilewright as triton
import tilewright.language as tl
from tilewright.diagnostics import ArgumentError, KernelFaultError

Pair = collections.namedtuple("Pair", ["first", "second"])
GLOBAL_SCALE = 3
DTYPE = tl.float32


@triton.jit
def optional_kernel(x_ptr, bias_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    if bias_ptr is not None:
        x += tl.load(bias_ptr + i, mask=i < n, other=0.0)
    inside = 0 <= i and i < n if False else i < n
    x = x * GLOBAL_SCALE if n > 2 else x
    last = 0
    for k in range(4):
        last = k
    tl.store(out_ptr + i, x.to(DTYPE) + last + k, mask=inside)


@pytest.mark.parametrize("with_bias", (True, False))
def test_optional_arguments_globals_and_loop_variables(run_everywhere: Any, with_bias: bool) -> None:
    x, bias = np.arange(6, dtype=np.float32), np.ones(6, np.float32)
    arguments = (x, bias if with_bias else None, np.zeros(6, np.float32), 6)
    out = run_everywhere(optional_kernel, (1,), *arguments, BLOCK=8)[-1]
    np.testing.assert_array_equal(out, (x + with_bias) * 3 + 6)


@triton.jit
def pair_of(x, y):
    return Pair(x + y, x - y)


@triton.jit
def power(x, N: tl.constexpr):
    if N == 0:
        return x * 0 + 1
    return x * power(x, N - 1)


@triton.jit
def helper_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    pair = pair_of(x, i)
    total, difference = pair
    scales = [s * 2 for s in (1, 2, 3)]
    y = power(total, 3) + pair.second + difference * scales[2] + len(scales)
    tl.store(out_ptr + i, y)


def test_tuples_recursion_and_comprehensions(run_everywhere: Any) -> None:
    x = np.arange(16, dtype=np.int32) % 5
    out = run_everywhere(helper_kernel, (1,), x, np.zeros(16, np.int32), BLOCK=16)[-1]
    i = np.arange(16)
    np.testing.assert_array_equal(out, (x + i) ** 3 + 7 * (x - i) + 3)


@triton.jit
def chain_kernel(x_ptr, out_ptr, low, high, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    inside = low < x < high
    outside = not low < 0
    tl.store(out_ptr + i, tl.where(inside, x, -1) + outside.to(tl.int32))


def test_chained_comparisons(run_everywhere: Any) -> None:
    x = np.arange(32, dtype=np.int32)
    out = run_everywhere(chain_kernel, (1,), x, np.zeros(32, np.int32), 5, 20, BLOCK=32)[-1]
    np.testing.assert_array_equal(out, np.where((x > 5) & (x < 20), x, -1) + 1)


@triton.jit
def assert_kernel(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.device_assert(x < 10, "x is too large")
    tl.store(x_ptr + i, x + 1)


@pytest.mark.parametrize("mode", ("cpu", "interpret"))
def test_device_assert(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_MODE", mode)
    x = np.arange(16, dtype=np.int32)
    assert_kernel[(1,)](x.copy(), BLOCK=16)  # no code unless debug
    with pytest.raises(KernelFaultError):
        assert_kernel[(1,)](x.copy(), BLOCK=16, debug=True)
    assert_kernel[(1,)](x[:8].copy(), BLOCK=8, debug=True)


@triton.jit
def swap_kernel(out_ptr, n):
    a = 1
    b = 2
    for _ in range(n):
        a, b = b, a + b
    tl.store(out_ptr, a)
    tl.store(out_ptr + 1, b)


def test_simultaneous_assignment(run_everywhere: Any) -> None:
    out = run_everywhere(swap_kernel, (1,), np.zeros(2, np.int32), 5)[-1]
    np.testing.assert_array_equal(out, [13, 21])


@triton.jit
def in_place_kernel(x_ptr, M: tl.constexpr, N: tl.constexpr):
    r, c = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + r[:, None] * N + c[None, :])
    tl.store(x_ptr + c[:, None] * M + r[None, :], x.T)


@pytest.mark.parametrize("side", (16, 32))
def test_a_tile_is_loaded_before_it_is_overwritten(run_everywhere: Any, side: int) -> None:
    x = np.arange(side * side, dtype=np.float32).reshape(side, side)
    out = run_everywhere(in_place_kernel, (1,), x, M=side, N=side)[-1]
    np.testing.assert_array_equal(out, x.T)


@triton.jit
def hints_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    tl.assume(n > 0)
    i = tl.max_contiguous(tl.multiple_of(tl.arange(0, BLOCK), BLOCK), BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, cache_modifier=".cg", eviction_policy="evict_first")
    y = tl.load(x_ptr + i, mask=i < n, eviction_policy="evict_last", volatile=False)
    tl.store(out_ptr + i, x + y, mask=i < n, cache_modifier=".cs")


@pytest.mark.parametrize("n", (64, 50))
def test_cache_hints(run_everywhere: Any, n: int) -> None:
    x = np.arange(64, dtype=np.float32)
    out = run_everywhere(hints_kernel, (1,), x, np.zeros(64, np.float32), n, BLOCK=64)[-1]
    np.testing.assert_array_equal(out, np.where(np.arange(64) < n, 2 * x, 0))


@triton.jit
def bool_kernel(m_ptr, out_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    m = tl.load(m_ptr + i)
    n = m ^ (i % 2 == 0)
    tl.store(out_ptr + i, n & ~(i > 12))
    tl.store(out_ptr + BLOCK, tl.sum(m) > 3)


def test_booleans(run_everywhere: Any) -> None:
    m = np.arange(16) % 3 == 0
    out = run_everywhere(bool_kernel, (1,), m, np.zeros(17, bool), BLOCK=16)[-1]
    i = np.arange(16)
    np.testing.assert_array_equal(out[:16], (m ^ (i % 2 == 0)) & ~(i > 12))
    assert out[16]


@triton.jit
def kept_index_kernel(out_ptr, n, before):
    block = 7
    for block in range(0, n):
        tl.store(out_ptr + 2, block)
    tl.store(out_ptr, block)
    other = before * 2
    for other in range(n, 0, -1):
        tl.store(out_ptr + 2, other)
    tl.store(out_ptr + 1, other)


@pytest.mark.parametrize("trips", (0, 3))
def test_a_loop_without_a_trip_leaves_its_variable(run_everywhere: Any, trips: int) -> None:
    out = run_everywhere(kept_index_kernel, (1,), np.full(3, -1, np.int32), trips, 20)[0]
    assert out[:2].tolist() == ([7, 40] if trips == 0 else [2, 1])


# ------------------------------------------------------------------------------- names where branches and loops meet


@triton.jit
def meeting_kernel(out_ptr, n):
    # The second branch assigns after a branch of its own.
    if n > 4:
        a = 1
        b = 2
        t = (3, 4)
    else:
        if n > 3:
            a = 5
        else:
            a = 6
        b = a
        a = b * 2
        t = (b, 7)
    # One branch gives a name another type and takes it back; the other leaves it alone.
    c = 3
    if n > 4:
        c = c * 0.5
        c = c.to(tl.int32) + 7
    # Both branches give a name the same new type.
    d = 3
    if n > 4:
        d = d * 0.5
    else:
        d = d * 0.25
    # So does a loop's body, which takes it back.
    e = 0
    for _ in range(n):
        e = e + 0.5
        e = e.to(tl.int32) + 1
    tl.store(out_ptr, a)
    tl.store(out_ptr + 1, b)
    tl.store(out_ptr + 2, t[0])
    tl.store(out_ptr + 3, t[1])
    tl.store(out_ptr + 4, c)
    tl.store(out_ptr + 5, (d * 4).to(tl.int32))
    tl.store(out_ptr + 6, e)


@pytest.mark.parametrize(
    ("n", "expected"), [(0, [12, 6, 6, 7, 3, 3, 0]), (4, [10, 5, 5, 7, 3, 3, 4]), (5, [1, 2, 3, 4, 8, 6, 5])]
)
def test_names_where_branches_and_loops_meet(run_everywhere: Any, n: int, expected: list[int]) -> None:
    (found,) = run_everywhere(meeting_kernel, (1,), np.zeros(7, np.int32), n)
    assert found.tolist() == expected


@triton.jit
def one_pointer_kernel(x_ptr, start_ptr, out_ptr, stride, B: tl.constexpr):
    i = tl.arange(0, B)
    # Every thread has one of the pointers, and keeps it: its first part is loaded.
    p = x_ptr + tl.load(start_ptr).to(tl.int64) * stride + i * stride
    total = tl.load(p) + tl.load(p + 1)
    tl.store(out_ptr + i, total)


def test_a_thread_with_one_pointer(run_everywhere: Any) -> None:
    x, start, out = np.arange(256, dtype=np.float16), np.ones(1, np.int32), np.zeros(32, np.float16)
    found = run_everywhere(one_pointer_kernel, (1,), x, start, out, 2, B=32, num_warps=1)
    np.testing.assert_array_equal(found[2], 2 * (2 * np.arange(1, 33)) + 1)


@triton.jit
def overwritten_kernel(count_ptr, few_ptr, out_ptr, FEW: tl.constexpr, MANY: tl.constexpr):
    count = tl.load(count_ptr)
    tl.store(count_ptr, count + 1)
    i = tl.arange(0, FEW)
    few = tl.load(few_ptr + i)
    tl.store(few_ptr + i, few * 2)
    tl.store(out_ptr + tl.arange(0, MANY), tl.zeros((MANY,), tl.int32) + (count + tl.sum(few)))


def test_what_all_threads_have_loaded_is_overwritten_afterwards(run_everywhere: Any) -> None:
    arguments = (np.array([5], np.int32), np.ones(32, np.int32), np.zeros(256, np.int32), 32, 256)
    found = run_everywhere(overwritten_kernel, (1,), *arguments)
    assert found[0].tolist() == [6] and (found[1] == 2).all() and (found[2] == 37).all()


@triton.jit
def two_counters_kernel(lengths_ptr, out_ptr, n):
    # The first loop counts in 64 bits, as its bound does, the second one in 32.
    length = tl.load(lengths_ptr)
    total = 0.0
    for start in range(0, length, 4):
        total += start
    for start in range(0, n, 2):
        total += 100.0 * start
    tl.store(out_ptr, total)
    tl.store(out_ptr + 1, start)


@pytest.mark.parametrize(("length", "n", "expected"), [(9, 5, (612, 4)), (9, 0, (12, 8)), (0, 3, (200, 2))])
def test_loops_of_one_name_may_count_in_different_types(
    run_everywhere: Any, length: int, n: int, expected: tuple[int, int]
) -> None:
    *_, out = run_everywhere(two_counters_kernel, (1,), np.array([length]), np.zeros(2, np.float32), n)
    assert tuple(out) == expected


@triton.jit
def tile_then_counter_kernel(out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, i)
    for i in range(n):
        tl.store(out_ptr + i, tl.load(out_ptr + i) + 10)


def test_a_counter_may_have_the_name_of_a_tile(run_everywhere: Any) -> None:
    out, *_ = run_everywhere(tile_then_counter_kernel, (1,), np.zeros(8, np.int32), 3, BLOCK=8)
    np.testing.assert_array_equal(out, [10, 11, 12, 3, 4, 5, 6, 7])


@triton.jit
def truth_of_pointers_kernel(x_ptr, bias_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    if bias_ptr:
        x += tl.load(bias_ptr + i, mask=i < n, other=0)
    given = bias_ptr.to(tl.int1) if bias_ptr is not None else False
    tl.store(out_ptr + i, x + (10 if given else 20), mask=i < n)


@pytest.mark.parametrize("bias", [None, np.arange(6, dtype=np.int32)])
def test_a_pointer_is_true_and_none_is_not(run_everywhere: Any, bias: Any) -> None:
    x = np.arange(6, dtype=np.int32)
    *_, out = run_everywhere(truth_of_pointers_kernel, (1,), x, bias, np.zeros_like(x), 6, BLOCK=8)
    np.testing.assert_array_equal(out, x + (20 if bias is None else bias + 10))


def test_an_empty_array_has_no_address_to_be_true(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setenv("TILEWRIGHT_MODE", "cpu")
    x, out = torch.arange(6, dtype=torch.int32), torch.zeros(6, dtype=torch.int32)
    truth_of_pointers_kernel[(1,)](x, torch.empty(0, dtype=torch.int32), out, 6, BLOCK=8)
    assert out.tolist() == (x + 20).tolist()


def adding(amount: int) -> Any:
    amount = tl.constexpr(amount)

    @triton.jit
    def added(x):
        return x + amount

    return added


class Amount:
    """Objects with one text."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __repr__(self) -> str:
        return "Amount"


ADD_1, ADD_10, ONE, TEN = adding(1), adding(10), Amount(1), Amount(10)


@triton.jit
def applied(function: tl.constexpr, x):
    return function(x)


@triton.jit
def amounted(amount: tl.constexpr, x):
    return x + amount.size


@triton.jit
def look_alike_kernel(out_ptr, n):
    tl.store(out_ptr, applied(ADD_1, n))
    tl.store(out_ptr + 1, applied(ADD_10, n))
    tl.store(out_ptr + 2, amounted(ONE, n))
    tl.store(out_ptr + 3, amounted(TEN, n))


def test_compile_time_arguments_that_look_alike(run_everywhere: Any) -> None:
    (out,) = run_everywhere(look_alike_kernel, (1,), np.zeros(4, np.int32), 5)
    assert out.tolist() == [6, 15, 6, 15]


@triton.jit
def elif_kernel(x_ptr, out_ptr, n):
    if n == 0:
        size = 1.0
    elif n == 5:
        # Five is special.
        size = 3.0
    elif tl.load(x_ptr) > n:  # what a condition loads stands in front of it
        size = 4.0
    elif n > 7:
        size = 5.0
    else:
        size = 6.0
    tl.store(out_ptr, size)


@pytest.mark.parametrize(("n", "expected"), [(0, 1.0), (5, 3.0), (2, 4.0), (9, 5.0), (7, 6.0)])
def test_elif(run_everywhere: Any, n: int, expected: float) -> None:
    arrays = np.full(1, 4.0, np.float32), np.zeros(1, np.float32)
    assert run_everywhere(elif_kernel, (1,), *arrays, n)[1] == expected
    if n == 5:
        source = elif_kernel.translate("*fp32, *fp32, i32").source
        assert source.count("} else if (") == 2 and source.count("} else {") == 2
        assert "    } else if (n == 5) {\n        // L" in source


@triton.jit
def operators_by_name_kernel(x_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)[:, :]
    x = tl.load(x_ptr + i[:, :])
    row = x[None, :, :, :]
    tl.store(out_ptr + i, x.__rshift__(1).__add__(other=5).__rsub__(100))
    tl.store(out_ptr + N + i, x.__lshift__(2).__or__(1).__xor__(x).__and__(0xFF).__neg__())
    tl.store(out_ptr + 2 * N + i, x.__lt__(4).to(tl.int32).__mul__(7).__radd__(1).__rfloordiv__(50))
    tl.store(out_ptr + 3 * N + i[None, :], row.__mod__(3) + x.__eq__(5).logical_or(other=x.__ge__(30)))


def test_operators_are_methods_and_colons_without_an_axis_stand_for_none(run_everywhere: Any) -> None:
    x = np.arange(1, 33, dtype=np.int32)
    out = run_everywhere(operators_by_name_kernel, (1,), x, np.zeros((4, 32), np.int32), N=32)[-1].reshape(4, 32)
    np.testing.assert_array_equal(out[0], 100 - ((x >> 1) + 5))
    np.testing.assert_array_equal(out[1], -((((x << 2) | 1) ^ x) & 0xFF))
    np.testing.assert_array_equal(out[2], np.where(x < 4, 50 // 8, 50))
    np.testing.assert_array_equal(out[3], x % 3 + ((x == 5) | (x >= 30)))


@triton.jit
def operand_too_few_kernel(x_ptr):
    tl.store(x_ptr, tl.load(x_ptr).__add__())


@triton.jit
def operand_too_many_kernel(x_ptr):
    tl.store(x_ptr, tl.load(x_ptr).__neg__(1))


@triton.jit
def operand_of_another_name_kernel(x_ptr):
    tl.store(x_ptr, tl.load(x_ptr).__radd__(by=1))


@pytest.mark.parametrize(
    ("kernel", "said"),
    (
        (operand_too_few_kernel, "__add__ takes one argument, other"),
        (operand_too_many_kernel, "__neg__ takes no argument"),
        (operand_of_another_name_kernel, "__radd__ takes one argument, other"),
    ),
)
def test_operators_by_name_say_what_they_take(kernel: Any, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        kernel.translate("*i32")
